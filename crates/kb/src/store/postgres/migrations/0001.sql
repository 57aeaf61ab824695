-- Keys and digests are unsigned in Rust: here they are the same bits with a sign.

CREATE TABLE record (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    -- The record's number in the lists of words; a record that is put again gets a new one.
    doc integer NOT NULL UNIQUE,
    -- Who may read it: the namespace, and in `personal` the owner with it.
    scope text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    tags text[] COLLATE "C" NOT NULL,
    updated bigint,
    digest bigint NOT NULL,
    source text COLLATE "C" NOT NULL,
    -- How many words each field has.
    lengths integer[] NOT NULL,
    -- The record as JSON, out of the way of what filters read.
    body text NOT NULL
) WITH (toast_tuple_target = 256);
CREATE INDEX record_scope ON record (scope, kind);
CREATE INDEX record_tags ON record USING gin (tags) WITH (fastupdate = off);
CREATE INDEX record_updated ON record (updated);
CREATE INDEX record_source ON record (source);

-- The parts of records that have vectors. Two with the same text share one.
CREATE TABLE passage (
    record bigint NOT NULL,
    ordinal integer NOT NULL,
    vector bigint NOT NULL,
    PRIMARY KEY (record, ordinal)
);
CREATE INDEX passage_vector ON passage (vector);

-- The column gets its dimensions, and its index, with the first vector (see vectors.rs).
CREATE TABLE vector (key bigint PRIMARY KEY, embedding halfvec NOT NULL);
CREATE TABLE maker (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    name text NOT NULL,
    dimensions integer NOT NULL
);

-- In which records a word is: for a block of numbers one list a field (see postings.rs for its form).
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

-- Numbers that are gone, but still in the lists.
CREATE TABLE block (block integer PRIMARY KEY, gone bytea NOT NULL DEFAULT '');

CREATE TABLE source (name text COLLATE "C" PRIMARY KEY, digest bytea NOT NULL);

-- What BM25 needs to know of all records.
CREATE TABLE total (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    records bigint NOT NULL,
    lengths bigint[] NOT NULL,
    next_doc integer NOT NULL
);
INSERT INTO total (records, lengths, next_doc) VALUES (0, '{0,0,0}', 0);
