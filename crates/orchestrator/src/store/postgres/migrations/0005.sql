-- Whole toolsets, for sessions that go on on another server, or after the files have changed.
CREATE TABLE toolset (
  id text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL,
  used_at bigint NOT NULL,
  tools integer NOT NULL,
  content bytea NOT NULL
);

-- The content is compressed already.
ALTER TABLE toolset ALTER COLUMN content SET STORAGE EXTERNAL;
