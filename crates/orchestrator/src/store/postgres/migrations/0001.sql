-- The tables and the functions that decide. Everything happens in one schema, which is the search path of every
-- connection. Ids are compared byte by byte (COLLATE "C"); what is JSON in Rust is JSON text here, exactly as written.
--
-- Locks are always taken in the order session, confirmation, execution, audit: nobody waits in a circle.

CREATE TABLE session (
  id text COLLATE "C" PRIMARY KEY,
  record text NOT NULL,
  -- Newer than what the record says.
  turn bigint NOT NULL,
  retrievals bigint NOT NULL,
  standing text NOT NULL,
  expires_at bigint NOT NULL,
  revision bigint NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX session_expiry ON session (standing, expires_at);

-- Who makes claims. An instance without a row, or whose lease has run out, is gone.
CREATE TABLE instance (
  id text COLLATE "C" PRIMARY KEY,
  lease interval NOT NULL,
  lease_until timestamptz NOT NULL,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- When the server started, and when somebody first noticed.
CREATE TABLE server (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  started_at timestamptz NOT NULL,
  noticed_at timestamptz NOT NULL
);

CREATE TABLE execution (
  session text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  -- The order in which executions came.
  number bigint GENERATED ALWAYS AS IDENTITY,
  tool text NOT NULL,
  tool_version text NOT NULL,
  digest bytea NOT NULL,
  idempotent boolean NOT NULL,
  -- The instance that runs it; null once it was given up.
  owner text,
  -- The owner's own number of the claim, so that it can take back that one and no other.
  attempt bigint NOT NULL,
  -- Somebody else had claimed it before, and paid.
  taken_over boolean NOT NULL DEFAULT false,
  claimed_at bigint NOT NULL,
  -- Null until it is settled.
  envelope text,
  PRIMARY KEY (session, id)
) WITH (fillfactor = 80);

CREATE TABLE confirmation (
  id text COLLATE "C" PRIMARY KEY,
  session text COLLATE "C" NOT NULL,
  execution text COLLATE "C" NOT NULL,
  tool text NOT NULL,
  tool_version text NOT NULL,
  digest bytea NOT NULL,
  -- The question as it was asked; the answer's author, reason and arguments, null until there is one.
  asked text NOT NULL,
  decided text,
  -- Instead of the arguments in those, which are then only shown: for as long as somebody may need them.
  secrets text,
  -- Newer than what `asked` says.
  token_hash bytea NOT NULL,
  answer text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);

CREATE UNIQUE INDEX confirmation_waiting ON confirmation (session, execution) WHERE answer = 'pending';
CREATE INDEX confirmation_open ON confirmation (answer, created_at, id) WHERE answer IN ('pending', 'approved');
CREATE INDEX confirmation_closed ON confirmation (expires_at) WHERE answer IN ('rejected', 'expired', 'used');
CREATE INDEX confirmation_session ON confirmation (session);
CREATE INDEX confirmation_secrets ON confirmation (session, execution) WHERE secrets IS NOT NULL;

CREATE TABLE audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  chain text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  previous text NOT NULL,
  hash text NOT NULL,
  entry text NOT NULL,
  UNIQUE (chain, position)
);

-- While the server is down nobody can renew a lease, so its owners must not be taken for dead when it comes back:
-- everybody has the time of one lease, from when the start (or another server's take-over) was first noticed.
CREATE FUNCTION is_alive(who text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (
    SELECT FROM instance i LEFT JOIN server s ON s.started_at = pg_postmaster_start_time()
    WHERE i.id = who
      AND (greatest(i.lease_until, s.noticed_at + i.lease) > clock_timestamp() OR s.noticed_at IS NULL)
  )
$$;

CREATE FUNCTION renew(who text, lease_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  its_lease interval := lease_ms * interval '1 millisecond';
BEGIN
  IF NOT EXISTS (SELECT FROM server WHERE started_at = pg_postmaster_start_time()) THEN
    INSERT INTO server (started_at, noticed_at) VALUES (pg_postmaster_start_time(), clock_timestamp())
      ON CONFLICT (is_only) DO UPDATE SET started_at = excluded.started_at, noticed_at = excluded.noticed_at
        WHERE server.started_at <> excluded.started_at;
  END IF;
  INSERT INTO instance (id, lease, lease_until) VALUES (who, its_lease, clock_timestamp() + its_lease)
    ON CONFLICT (id) DO UPDATE SET lease = excluded.lease, lease_until = excluded.lease_until;
END
$$;

-- Decides a claim. The rules are those of the memory back end, in its order; see store/mod.rs.
CREATE FUNCTION claim(
  in_session text, in_execution text, in_tool text, in_tool_version text, in_digest bytea, in_idempotent boolean,
  in_turn bigint, in_limit bigint, in_confirmation text, in_now bigint,
  in_owner text, in_lease_ms bigint, in_attempt bigint, in_relaxed boolean,
  OUT verdict text, OUT recorded text, OUT used bigint
) LANGUAGE plpgsql AS $$
DECLARE
  known record;
  held record;
  is_locked boolean := false;
BEGIN
  IF in_relaxed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  LOOP
    SELECT e.digest, e.idempotent, e.owner, e.attempt, e.envelope INTO known
      FROM execution e WHERE e.session = in_session AND e.id = in_execution;
    IF FOUND THEN
      recorded := known.envelope;
      verdict := CASE
        WHEN known.digest <> in_digest THEN 'conflict'
        WHEN known.envelope IS NOT NULL THEN 'finished'
        WHEN known.owner = in_owner OR is_alive(known.owner) THEN 'running'
        WHEN NOT known.idempotent THEN 'in_doubt'
      END;
      EXIT WHEN verdict IS NOT NULL;
      -- Its owner is gone. It was paid for when it was first claimed.
      UPDATE execution e
        SET owner = in_owner, attempt = in_attempt, taken_over = true, claimed_at = in_now
        WHERE e.session = in_session AND e.id = in_execution AND e.envelope IS NULL
          AND e.attempt = known.attempt AND e.owner IS NOT DISTINCT FROM known.owner;
      IF FOUND THEN
        UPDATE confirmation c SET answer = 'used'
          WHERE c.id = in_confirmation AND c.answer = 'approved' AND c.session = in_session
            AND c.execution = in_execution AND c.digest = in_digest;
        verdict := 'new';
        EXIT;
      END IF;
      CONTINUE;
    END IF;

    -- What may be spent is locked first, and the execution looked up again: whoever had the lock may have claimed it.
    IF NOT is_locked THEN
      is_locked := true;
      IF in_turn IS NULL THEN
        SELECT s.turn, s.retrievals INTO held FROM session s WHERE s.id = in_session;
      ELSE
        SELECT s.turn, s.retrievals INTO held FROM session s WHERE s.id = in_session FOR NO KEY UPDATE;
      END IF;
      IF NOT FOUND THEN
        verdict := 'no_session';
        EXIT;
      END IF;
      PERFORM FROM confirmation c WHERE c.id = in_confirmation FOR NO KEY UPDATE;
      CONTINUE WHEN in_turn IS NOT NULL OR in_confirmation IS NOT NULL;
    END IF;

    -- A call that comes late is paid by the turn that it comes in: or else it would cost nothing.
    IF in_turn IS NOT NULL AND held.retrievals >= in_limit THEN
      verdict := 'over_budget';
      used := held.retrievals;
      EXIT;
    END IF;
    IF in_confirmation IS NOT NULL AND NOT EXISTS (
      SELECT FROM confirmation c
      WHERE c.id = in_confirmation AND c.answer = 'approved' AND c.session = in_session AND c.execution = in_execution
        AND c.tool = in_tool AND c.tool_version = in_tool_version AND c.digest = in_digest
    ) THEN
      verdict := 'unapproved';
      EXIT;
    END IF;
    INSERT INTO execution (session, id, tool, tool_version, digest, idempotent, owner, attempt, claimed_at)
      VALUES (in_session, in_execution, in_tool, in_tool_version, in_digest, in_idempotent, in_owner, in_attempt, in_now)
      ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    IF in_turn IS NOT NULL THEN
      UPDATE session s SET retrievals = s.retrievals + 1 WHERE s.id = in_session;
    END IF;
    IF in_confirmation IS NOT NULL THEN
      UPDATE confirmation c SET answer = 'used' WHERE c.id = in_confirmation;
    END IF;
    verdict := 'new';
    EXIT;
  END LOOP;
  -- An owner that has been asleep must not own what everybody else takes for orphaned.
  IF verdict = 'new' AND NOT EXISTS (
    SELECT FROM instance i WHERE i.id = in_owner AND i.lease_until > clock_timestamp()
  ) THEN
    PERFORM renew(in_owner, in_lease_ms);
  END IF;
END
$$;

-- Takes back a claim whose answer never arrived, with all that it spent. False when there is none (yet).
CREATE FUNCTION unclaim(
  in_session text, in_execution text, in_turn bigint, in_confirmation text, in_owner text, in_attempt bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF in_turn IS NOT NULL THEN
    PERFORM FROM session s WHERE s.id = in_session FOR NO KEY UPDATE;
  END IF;
  PERFORM FROM confirmation c WHERE c.id = in_confirmation FOR NO KEY UPDATE;
  UPDATE execution e SET owner = NULL
    WHERE e.session = in_session AND e.id = in_execution AND e.owner = in_owner AND e.attempt = in_attempt
      AND e.envelope IS NULL AND e.taken_over;
  IF FOUND THEN
    RETURN true;
  END IF;
  DELETE FROM execution e
    WHERE e.session = in_session AND e.id = in_execution AND e.owner = in_owner AND e.attempt = in_attempt
      AND e.envelope IS NULL;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE session s SET retrievals = s.retrievals - 1
    WHERE s.id = in_session AND s.turn = in_turn AND s.retrievals > 0;
  UPDATE confirmation c SET answer = 'approved' WHERE c.id = in_confirmation AND c.answer = 'used';
  RETURN true;
END
$$;

-- Keeps a question, or gives the one that waits already the new token. One whose time has come does not wait.
CREATE FUNCTION ask(
  in_id text, in_session text, in_execution text, in_tool text, in_tool_version text, in_digest bytea,
  in_asked text, in_secrets text, in_token_hash bytea, in_answer text, in_created_at bigint, in_expires_at bigint
) RETURNS SETOF confirmation LANGUAGE plpgsql AS $$
BEGIN
  UPDATE confirmation c SET answer = 'expired', secrets = NULL
    WHERE c.session = in_session AND c.execution = in_execution AND c.answer = 'pending'
      AND c.expires_at <= in_created_at;
  RETURN QUERY
    INSERT INTO confirmation AS c
      (id, session, execution, tool, tool_version, digest, asked, secrets, token_hash, answer, created_at, expires_at)
      VALUES (in_id, in_session, in_execution, in_tool, in_tool_version, in_digest,
        in_asked, in_secrets, in_token_hash, in_answer, in_created_at, in_expires_at)
      ON CONFLICT (session, execution) WHERE answer = 'pending' DO UPDATE
        -- Another call with the same id is a conflict, and must not void the token that the person holds.
        SET token_hash = CASE WHEN c.digest = excluded.digest THEN excluded.token_hash ELSE c.token_hash END
      RETURNING c.*;
END
$$;

CREATE FUNCTION audit_lock() RETURNS bigint LANGUAGE sql AS $$
  SELECT hashtextextended('toolwright audit ' || current_schema(), 0)
$$;

-- Records settlements and audit rows, all or nothing. Rows without a session are audit alone. A settlement that does not
-- count, since its call is not claimed or is settled already, must not be in the audit, but the rows are hashed before
-- anybody knows: then nothing is done, and the places of those that do not count are the answer, with the envelope that
-- stands instead, if there is one.
CREATE FUNCTION settle(
  in_sessions text[], in_executions text[], in_envelopes text[],
  in_chain text, in_position bigint, in_previous text[], in_hashes text[], in_entries text[], in_relaxed boolean
) RETURNS TABLE (place bigint, has_session boolean, recorded text) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  is_refused boolean := false;
BEGIN
  FOR item IN
    SELECT t.session, t.id, t.place,
        first_value(t.place) OVER (PARTITION BY t.session, t.id ORDER BY t.place) AS first
      FROM unnest(in_sessions, in_executions) WITH ORDINALITY AS t (session, id, place)
      WHERE t.session IS NOT NULL
      ORDER BY t.session, t.id, t.place
  LOOP
    PERFORM FROM execution e
      WHERE e.session = item.session AND e.id = item.id AND e.envelope IS NULL FOR NO KEY UPDATE;
    IF NOT FOUND OR item.first <> item.place THEN
      is_refused := true;
      place := item.place;
      has_session := EXISTS (SELECT FROM session s WHERE s.id = item.session);
      SELECT e.envelope INTO recorded FROM execution e WHERE e.session = item.session AND e.id = item.id;
      IF FOUND AND recorded IS NULL THEN
        recorded := in_envelopes[item.first];
      END IF;
      RETURN NEXT;
    END IF;
  END LOOP;
  IF is_refused THEN
    RETURN;
  END IF;

  IF in_relaxed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  FOR item IN
    SELECT t.session, t.id, t.envelope FROM unnest(in_sessions, in_executions, in_envelopes) AS t (session, id, envelope)
      WHERE t.session IS NOT NULL
  LOOP
    UPDATE execution e SET envelope = item.envelope WHERE e.session = item.session AND e.id = item.id;
  END LOOP;
  UPDATE confirmation c SET secrets = NULL
    FROM unnest(in_sessions, in_executions) AS t (session, id)
    WHERE c.session = t.session AND c.execution = t.id AND c.secrets IS NOT NULL AND c.answer = 'used';
  -- See audit_horizon.
  PERFORM pg_advisory_xact_lock_shared(audit_lock());
  INSERT INTO audit (chain, position, previous, hash, entry)
    SELECT in_chain, in_position + t.place - 1, t.previous, t.hash, t.entry
      FROM unnest(in_previous, in_hashes, in_entries) WITH ORDINALITY AS t (previous, hash, entry, place)
      ORDER BY t.place;
END
$$;

-- The last number up to which all rows of the audit are there to be read. Numbers are given before transactions end, so
-- a higher one may be seen first; a reader that went on from it would miss the lower ones. Writers hold the lock
-- together, from before they take numbers until they are done; this waits for those of the moment.
CREATE FUNCTION audit_horizon() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  last bigint;
BEGIN
  SELECT last_value INTO last FROM audit_number_seq;
  PERFORM pg_advisory_xact_lock(audit_lock());
  RETURN last;
END
$$;

-- Forgets up to `in_most` executions beyond the last `in_kept` of their session that are from before `in_before`, and
-- neither run nor are in doubt.
CREATE FUNCTION forget_executions(in_kept bigint, in_before bigint, in_most bigint) RETURNS bigint LANGUAGE sql AS $$
  WITH crowded AS (
    SELECT session FROM execution GROUP BY session HAVING count(*) > in_kept
  ), old AS (
    SELECT later.session, later.id FROM crowded CROSS JOIN LATERAL (
      SELECT e.session, e.id, e.claimed_at, e.envelope IS NOT NULL AS is_settled, e.idempotent, e.owner
        FROM execution e WHERE e.session = crowded.session ORDER BY e.number DESC OFFSET in_kept
    ) later
    WHERE later.claimed_at <= in_before
      AND (later.is_settled OR later.idempotent AND NOT is_alive(later.owner))
    LIMIT in_most
  ), free AS (
    SELECT e.session, e.id FROM execution e JOIN old USING (session, id) FOR UPDATE OF e SKIP LOCKED
  ), gone AS (
    DELETE FROM execution e USING free WHERE e.session = free.session AND e.id = free.id RETURNING 1
  )
  SELECT count(*) FROM gone
$$;

-- Forgets up to `in_most` sessions that are over since `in_before`, and so are their executions, with all that belongs
-- to them but the audit.
CREATE FUNCTION forget_sessions(in_before bigint, in_most bigint) RETURNS bigint LANGUAGE sql AS $$
  WITH old AS (
    SELECT s.id FROM session s
      WHERE s.standing IN ('ended', 'expired') AND s.expires_at <= in_before AND NOT EXISTS (
        SELECT FROM execution e
          WHERE e.session = s.id AND (e.claimed_at > in_before OR e.envelope IS NULL AND is_alive(e.owner))
      )
      LIMIT in_most FOR UPDATE OF s SKIP LOCKED
  ), questions AS (
    DELETE FROM confirmation c USING old WHERE c.session = old.id
  ), executions AS (
    DELETE FROM execution e USING old WHERE e.session = old.id
  ), gone AS (
    DELETE FROM session s USING old WHERE s.id = old.id RETURNING 1
  )
  SELECT count(*) FROM gone
$$;
