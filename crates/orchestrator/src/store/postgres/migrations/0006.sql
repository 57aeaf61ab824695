-- The conversation logs, which are deleted with their session. Entries are appended and never changed.
CREATE TABLE IF NOT EXISTS conversation (
  session text COLLATE "C" PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  -- Who has it open for writing, and the instance that the writer belongs to.
  writer text,
  owner text,
  -- The position of the last entry.
  last bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

CREATE TABLE IF NOT EXISTS conversation_entry (
  session text COLLATE "C" NOT NULL REFERENCES conversation (session) ON DELETE CASCADE,
  position bigint NOT NULL,
  body text NOT NULL,
  PRIMARY KEY (session, position)
);
