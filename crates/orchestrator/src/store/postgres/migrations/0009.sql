-- Tasks: calls that run in the background. They are deleted with their session.
CREATE TABLE IF NOT EXISTS task (
  id text COLLATE "C" PRIMARY KEY,
  session text COLLATE "C" NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  -- The key of the principal.
  principal text COLLATE "C" NOT NULL,
  record text NOT NULL,
  created_at bigint NOT NULL,
  -- Null until it has ended.
  ended_at bigint,
  -- The instance that runs it.
  owner text NOT NULL,
  revision bigint NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS task_age ON task (created_at, id);
CREATE INDEX IF NOT EXISTS task_session ON task (session, created_at, id);
CREATE INDEX IF NOT EXISTS task_principal ON task (principal, created_at, id);
CREATE INDEX IF NOT EXISTS task_open ON task (owner) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS task_ended ON task (ended_at) WHERE ended_at IS NOT NULL;
