-- Keys and digests are u64 in Rust, stored as the same bits in a signed bigint.

CREATE TABLE record (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    -- The document number in the postings; a replaced record gets a new one.
    doc integer NOT NULL UNIQUE,
    -- The namespace, with the owner in `personal`.
    scope text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    updated bigint,
    digest bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    -- The number of words in each field.
    lengths integer[] NOT NULL,
    -- The record as JSON, stored out of line so that filters read less.
    body text NOT NULL
) WITH (toast_tuple_target = 256);
CREATE INDEX record_scope ON record (scope, kind);
CREATE INDEX record_tags ON record USING gin (tags) WITH (fastupdate = off);
CREATE INDEX record_updated ON record (updated);
CREATE INDEX record_source ON record (source);

-- The passages of records. Passages with the same text share a vector.
CREATE TABLE passage (
    record bigint NOT NULL,
    ordinal integer NOT NULL,
    vector bigint NOT NULL,
    PRIMARY KEY (record, ordinal)
);
CREATE INDEX passage_vector ON passage (vector);

-- The column gets its dimensions and its index with the first vector (see postgres_vectors.rs).
CREATE TABLE vector (key bigint PRIMARY KEY, embedding halfvec NOT NULL);
CREATE TABLE maker (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    name text NOT NULL,
    dimensions integer NOT NULL
);

-- The postings: one list per word, block of document numbers and field (see postings.rs for the format).
CREATE TABLE posting (
    word text COLLATE "C" NOT NULL,
    block integer NOT NULL,
    text bytea NOT NULL,
    title bytea NOT NULL,
    labels bytea NOT NULL,
    PRIMARY KEY (word, block)
);
ALTER TABLE posting ALTER text SET STORAGE EXTERNAL;
ALTER TABLE posting ALTER title SET STORAGE EXTERNAL;
ALTER TABLE posting ALTER labels SET STORAGE EXTERNAL;

-- The deleted documents that are still in the postings.
CREATE TABLE block (block integer PRIMARY KEY, gone bytea NOT NULL DEFAULT '');

CREATE TABLE source (name text COLLATE "C" PRIMARY KEY, digest bytea NOT NULL);

-- The BM25 statistics.
CREATE TABLE total (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    records bigint NOT NULL,
    lengths bigint[] NOT NULL,
    next_doc integer NOT NULL
);
INSERT INTO total (records, lengths, next_doc) VALUES (0, '{0,0,0}', 0);
