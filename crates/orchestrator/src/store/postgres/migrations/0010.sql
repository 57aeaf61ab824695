-- Owners have epochs, rate limits are shared, toolsets and old executions are found by indexes, and the audit is found
-- by org, client and approver.
--
-- Servers of the version before may still run: their columns and functions stay. Their settlements are checked as those
-- of this version are; they renew leases that have expired, and count rate limits for themselves.

-- The toolset of a session, which never changes. Only active sessions use one.
ALTER TABLE session ADD COLUMN IF NOT EXISTS toolset text COLLATE "C";

-- Not through JSON functions, which refuse a record with a NUL. The first match is the record's own field: inside a
-- JSON string its quotation marks would be escaped, and the state, which may have a field of that name, comes after it.
CREATE OR REPLACE FUNCTION toolset_of(in_record text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT substring(in_record FROM '"toolset":"([^"]*)"')
$$;

-- A trigger, because servers of the version before do not write the column.
CREATE OR REPLACE FUNCTION fill_toolset() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.toolset := toolset_of(NEW.record);
  RETURN NEW;
END
$$;
DROP TRIGGER IF EXISTS session_toolset ON session;
CREATE TRIGGER session_toolset BEFORE INSERT ON session FOR EACH ROW EXECUTE FUNCTION fill_toolset();
UPDATE session SET toolset = toolset_of(record) WHERE standing = 'active';
CREATE INDEX IF NOT EXISTS session_toolset ON session (toolset) WHERE standing = 'active';

-- Up to which time of their claims old executions were examined.
CREATE TABLE IF NOT EXISTS sweep_position (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  claimed_at bigint NOT NULL
);
INSERT INTO sweep_position (claimed_at) VALUES (-9223372036854775808) ON CONFLICT DO NOTHING;
CREATE INDEX IF NOT EXISTS execution_age ON execution (claimed_at);
CREATE INDEX IF NOT EXISTS execution_number ON execution (session, number);

-- Forgets executions beyond the last `in_kept` of their session that are from before `in_before`, and neither run nor
-- are in doubt. A session is examined when one of its executions becomes that old. Examines about `in_most` executions,
-- and returns how many: fewer than `in_most` if there are no more.
CREATE OR REPLACE FUNCTION forget_executions(in_kept bigint, in_before bigint, in_most bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  examined_until bigint;
  examined record;
BEGIN
  SELECT p.claimed_at INTO examined_until FROM sweep_position p FOR UPDATE SKIP LOCKED;
  IF NOT FOUND OR examined_until >= in_before THEN
    RETURN 0;
  END IF;
  SELECT count(*) AS count, max(batch.claimed_at) AS until, array_agg(DISTINCT batch.session) AS sessions
    INTO examined FROM (
      SELECT e.claimed_at, e.session FROM execution e
        WHERE e.claimed_at > examined_until AND e.claimed_at <= in_before
        ORDER BY e.claimed_at FETCH FIRST in_most ROWS WITH TIES
    ) batch;
  DELETE FROM execution e USING (
    SELECT old.session, old.id FROM unnest(examined.sessions) AS crowded (session)
      CROSS JOIN LATERAL (
        SELECT n.number FROM execution n WHERE n.session = crowded.session
          ORDER BY n.number DESC OFFSET in_kept - 1 LIMIT 1
      ) first_kept
      CROSS JOIN LATERAL (
        SELECT o.session, o.id, o.claimed_at, o.envelope IS NOT NULL AS is_settled, o.idempotent, o.owner
          FROM execution o WHERE o.session = crowded.session AND o.number < first_kept.number
          ORDER BY o.number LIMIT in_most FOR UPDATE SKIP LOCKED
      ) old
      WHERE old.claimed_at <= in_before
        AND (old.is_settled OR old.idempotent AND NOT is_alive(old.owner))
  ) gone WHERE e.session = gone.session AND e.id = gone.id;
  UPDATE sweep_position p
    SET claimed_at = CASE WHEN examined.count < in_most THEN in_before ELSE examined.until END;
  RETURN examined.count;
END
$$;

-- The owner of a claim is an epoch of an instance: a row of `instance` with its own lease. The first epoch has the name
-- of the instance, later ones are `name:2`, `name:3` and so on. A lease that has expired is never renewed: its instance
-- begins the next epoch, and others may take over what the earlier one owns.
CREATE OR REPLACE FUNCTION instance_of(owner text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(owner, ':', 1)
$$;

-- While the server is down nobody can renew a lease, so everybody has the time of one lease after its start: but those
-- whose end was recorded have ended.
CREATE OR REPLACE FUNCTION is_alive(who text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (
    SELECT FROM instance i LEFT JOIN server s ON s.started_at = pg_postmaster_start_time()
    WHERE i.id = who AND i.lease_until > '-infinity'
      AND (greatest(i.lease_until, s.noticed_at + i.lease) > clock_timestamp() OR s.noticed_at IS NULL)
  )
$$;

-- Whether an owner is gone. That is recorded before anybody acts on it: from then on it cannot renew its lease.
CREATE OR REPLACE FUNCTION is_gone(who text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF is_alive(who) THEN
    RETURN false;
  END IF;
  PERFORM FROM instance i WHERE i.id = who AND i.lease_until > '-infinity' FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NOT is_alive(who);
  END IF;
  -- It may have renewed its lease before it was locked.
  IF is_alive(who) THEN
    RETURN false;
  END IF;
  UPDATE instance i SET lease_until = '-infinity' WHERE i.id = who;
  RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION notice_start() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM server WHERE started_at = pg_postmaster_start_time()) THEN
    INSERT INTO server (started_at, noticed_at) VALUES (pg_postmaster_start_time(), clock_timestamp())
      ON CONFLICT (is_only) DO UPDATE SET started_at = excluded.started_at, noticed_at = excluded.noticed_at
        WHERE server.started_at <> excluded.started_at;
  END IF;
END
$$;

-- Renews the lease of an owner. False if it has expired.
CREATE OR REPLACE FUNCTION keep_lease(who text, lease_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  its_lease interval := lease_ms * interval '1 millisecond';
BEGIN
  PERFORM notice_start();
  PERFORM FROM instance i WHERE i.id = who FOR NO KEY UPDATE;
  IF NOT FOUND OR NOT is_alive(who) THEN
    RETURN false;
  END IF;
  UPDATE instance i SET lease = its_lease, lease_until = clock_timestamp() + its_lease WHERE i.id = who;
  RETURN true;
END
$$;

-- Begins an epoch, after the lease of `in_before` has expired. Its conversation logs and tasks go on if nobody has
-- taken them over; its claims do not, since others may have been told that they are in doubt.
CREATE OR REPLACE FUNCTION begin_epoch(who text, in_before text, lease_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  its_lease interval := lease_ms * interval '1 millisecond';
BEGIN
  PERFORM notice_start();
  UPDATE conversation c SET owner = who WHERE c.owner = in_before;
  UPDATE task t SET owner = who WHERE t.owner = in_before AND t.ended_at IS NULL;
  UPDATE instance i SET lease_until = '-infinity' WHERE i.id = in_before;
  INSERT INTO instance (id, lease, lease_until) VALUES (who, its_lease, clock_timestamp() + its_lease)
    ON CONFLICT (id) DO UPDATE SET lease = excluded.lease, lease_until = excluded.lease_until;
END
$$;

-- The calls that count for a rate limit, numbered for each key. Only as many as the limit has are kept: a call is
-- allowed if the one that is a whole limit before it is not in the window any more.
CREATE TABLE IF NOT EXISTS rate (
  key text COLLATE "C" NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  until bigint NOT NULL,
  -- The claim that has spent it, for `take_back_claim`.
  owner text NOT NULL,
  attempt bigint NOT NULL,
  PRIMARY KEY (key, number)
);
CREATE INDEX IF NOT EXISTS rate_end ON rate (until);

-- The place of the first rate limit that is used up, and for how many milliseconds; null if there is none. From then on
-- nobody else spends them until the transaction ends.
CREATE OR REPLACE FUNCTION exceeded_rate(in_rates jsonb, in_now bigint, OUT place bigint, OUT wait_ms bigint)
LANGUAGE plpgsql AS $$
DECLARE
  item record;
  first_at bigint;
BEGIN
  FOR item IN
    SELECT DISTINCT hashtextextended('toolwright rate ' || current_schema() || ' ' || r.key, 0) AS lock
      FROM jsonb_to_recordset(in_rates) AS r (key text) ORDER BY lock
  LOOP
    PERFORM pg_advisory_xact_lock(item.lock);
  END LOOP;
  FOR item IN
    SELECT r.key, r.calls, r.window_ms, r.place
      FROM ROWS FROM (jsonb_to_recordset(in_rates) AS (key text, calls bigint, window_ms bigint))
        WITH ORDINALITY AS r (key, calls, window_ms, place) ORDER BY r.place
  LOOP
    first_at := NULL;
    IF item.calls <= 0 THEN
      first_at := in_now;
    ELSE
      SELECT f.at INTO first_at FROM rate f
        WHERE f.key = item.key
          AND f.number = (SELECT max(l.number) FROM rate l WHERE l.key = item.key) - item.calls + 1;
    END IF;
    IF item.calls <= 0 OR first_at + item.window_ms > in_now THEN
      place := item.place;
      wait_ms := first_at + item.window_ms - in_now;
      RETURN;
    END IF;
  END LOOP;
END
$$;

-- Counts a call for these rate limits, after `exceeded_rate`. The times of a key never go back, whatever the clocks of
-- several servers say.
CREATE OR REPLACE FUNCTION count_call(in_rates jsonb, in_now bigint, in_owner text, in_attempt bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  item record;
  last_number bigint;
  last_at bigint;
BEGIN
  FOR item IN SELECT * FROM jsonb_to_recordset(in_rates) AS r (key text, calls bigint, window_ms bigint) LOOP
    SELECT l.number, l.at INTO last_number, last_at FROM rate l
      WHERE l.key = item.key ORDER BY l.number DESC LIMIT 1;
    last_number := coalesce(last_number, 0);
    last_at := greatest(in_now, last_at);
    DELETE FROM rate f WHERE f.key = item.key AND f.number <= last_number + 1 - item.calls;
    INSERT INTO rate (key, number, at, until, owner, attempt)
      VALUES (item.key, last_number + 1, last_at, last_at + item.window_ms, in_owner, in_attempt);
  END LOOP;
END
$$;

-- Counts a call without a claim, unless a rate limit is used up.
CREATE OR REPLACE FUNCTION spend_rates(
  in_rates jsonb, in_now bigint, in_owner text, in_attempt bigint, OUT place bigint, OUT wait_ms bigint
) LANGUAGE plpgsql AS $$
BEGIN
  SELECT e.place, e.wait_ms INTO place, wait_ms FROM exceeded_rate(in_rates, in_now) e;
  IF place IS NULL THEN
    PERFORM count_call(in_rates, in_now, in_owner, in_attempt);
  END IF;
END
$$;

-- Decides a claim. The rules are those of the memory back end, in its order; see store/mod.rs. An owner whose lease has
-- expired gets no claim.
CREATE OR REPLACE FUNCTION claim_execution(
  in_session text, in_execution text, in_tool text, in_tool_version text, in_digest bytea, in_idempotent boolean,
  in_charges jsonb, in_rates jsonb, in_confirmation text, in_now bigint,
  in_owner text, in_attempt bigint, in_relaxed boolean,
  OUT verdict text, OUT recorded text, OUT exceeded_meter text, OUT exceeded_spent bigint,
  OUT exceeded_place bigint, OUT wait_ms bigint
) LANGUAGE plpgsql AS $$
DECLARE
  known record;
  held record;
  is_locked boolean := false;
BEGIN
  IF NOT is_alive(in_owner) THEN
    verdict := 'lease_expired';
    RETURN;
  END IF;
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
        WHEN known.owner = in_owner OR NOT is_gone(known.owner) THEN 'running'
        WHEN NOT known.idempotent THEN 'in_doubt'
      END;
      EXIT WHEN verdict IS NOT NULL;
      -- Its owner is gone. It was charged when it was first claimed.
      UPDATE execution e
        SET owner = in_owner, attempt = in_attempt, taken_over = true, claimed_at = in_now
        WHERE e.session = in_session AND e.id = in_execution AND e.envelope IS NULL
          AND e.attempt = known.attempt AND e.owner IS NOT DISTINCT FROM known.owner;
      CONTINUE WHEN NOT FOUND;
      UPDATE confirmation c SET answer = 'used'
        WHERE c.id = in_confirmation AND c.answer = 'approved' AND c.session = in_session
          AND c.execution = in_execution AND c.digest = in_digest;
      verdict := 'new';
      RETURN;
    END IF;

    -- Lock what may be spent first, and look the execution up again: another claim may have held the lock.
    IF NOT is_locked THEN
      is_locked := true;
      IF in_charges IS NULL THEN
        SELECT s.turn, s.spent INTO held FROM session s WHERE s.id = in_session;
      ELSE
        SELECT s.turn, s.spent INTO held FROM session s WHERE s.id = in_session FOR NO KEY UPDATE;
      END IF;
      IF NOT FOUND THEN
        verdict := 'no_session';
        RETURN;
      END IF;
      PERFORM FROM confirmation c WHERE c.id = in_confirmation FOR NO KEY UPDATE;
      CONTINUE WHEN in_charges IS NOT NULL OR in_confirmation IS NOT NULL;
    END IF;

    SELECT 'over_budget', c.meter, spent_on(held.spent, c.scope, c.meter)
      INTO verdict, exceeded_meter, exceeded_spent
      FROM ROWS FROM (jsonb_to_recordset(in_charges) AS (scope text, meter text, amount bigint, "limit" bigint))
        WITH ORDINALITY AS c (scope, meter, amount, maximum, place)
      WHERE spent_on(held.spent, c.scope, c.meter) + c.amount > c.maximum ORDER BY c.place LIMIT 1;
    EXIT WHEN verdict IS NOT NULL;
    IF in_rates IS NOT NULL THEN
      SELECT e.place, e.wait_ms INTO exceeded_place, wait_ms FROM exceeded_rate(in_rates, in_now) e;
      IF exceeded_place IS NOT NULL THEN
        verdict := 'rate_limited';
        RETURN;
      END IF;
    END IF;
    IF in_confirmation IS NOT NULL AND NOT EXISTS (
      SELECT FROM confirmation c
      WHERE c.id = in_confirmation AND c.answer = 'approved' AND c.session = in_session AND c.execution = in_execution
        AND c.tool = in_tool AND c.tool_version = in_tool_version AND c.digest = in_digest
    ) THEN
      verdict := 'unapproved';
      RETURN;
    END IF;
    INSERT INTO execution
      (session, id, tool, tool_version, digest, idempotent, owner, attempt, claimed_at, charges, turn)
      VALUES (in_session, in_execution, in_tool, in_tool_version, in_digest, in_idempotent, in_owner, in_attempt,
        in_now, in_charges, held.turn)
      ON CONFLICT DO NOTHING;
    CONTINUE WHEN NOT FOUND;
    IF in_charges IS NOT NULL THEN
      UPDATE session s SET spent = add_charges(s.spent, in_charges, 1) WHERE s.id = in_session;
    END IF;
    IF in_rates IS NOT NULL THEN
      PERFORM count_call(in_rates, in_now, in_owner, in_attempt);
    END IF;
    IF in_confirmation IS NOT NULL THEN
      UPDATE confirmation c SET answer = 'used' WHERE c.id = in_confirmation;
    END IF;
    verdict := 'new';
    RETURN;
  END LOOP;
END
$$;

-- As `unclaim` of the version before, with the keys of the rate limits.
CREATE OR REPLACE FUNCTION take_back_claim(
  in_session text, in_execution text, in_confirmation text, in_rates text[], in_owner text, in_attempt bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM rate r WHERE r.key = ANY (in_rates) AND r.owner = in_owner AND r.attempt = in_attempt;
  RETURN unclaim(in_session, in_execution, in_confirmation, in_owner, in_attempt);
END
$$;

-- Takes back a claim of any epoch of an instance, unless another instance has taken it over.
CREATE OR REPLACE FUNCTION take_back_lost_claim(
  in_session text, in_execution text, in_confirmation text, in_rates text[], in_instance text
) RETURNS void LANGUAGE sql AS $$
  SELECT take_back_claim(in_session, in_execution, in_confirmation, in_rates, e.owner, e.attempt) FROM execution e
    WHERE e.session = in_session AND e.id = in_execution AND e.envelope IS NULL AND instance_of(e.owner) = in_instance
$$;

ALTER TABLE audit ADD COLUMN IF NOT EXISTS org text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS client text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS approver text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS edited boolean;

-- The fields of the rows of before. A row that somebody has damaged has none, and no field has a NUL.
CREATE OR REPLACE FUNCTION audit_fields(in_entry text, OUT org text, OUT client text) LANGUAGE plpgsql AS $$
DECLARE
  fields json;
BEGIN
  fields := replace(in_entry, '\u0000', '\\0')::json;
  org := fields ->> 'org';
  client := fields ->> 'clientId';
EXCEPTION WHEN others THEN
  NULL;
END
$$;
UPDATE audit a SET (org, client) = (SELECT f.org, f.client FROM audit_fields(a.entry) f);
DROP FUNCTION audit_fields;

CREATE INDEX IF NOT EXISTS audit_org ON audit (org, number) WHERE org IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_client ON audit (client, number);
CREATE INDEX IF NOT EXISTS audit_approver ON audit (approver, number) WHERE approver IS NOT NULL;
CREATE INDEX IF NOT EXISTS audit_edited ON audit (number) WHERE edited;

-- As before, with two changes. A call that another instance has claimed meanwhile is not settled: that one's record
-- counts. Its row in the answer has neither an envelope nor `has_session`. The chain of an instance begins with its
-- name. And the fields of audit rows are those of this version.
CREATE OR REPLACE FUNCTION settle(
  in_sessions text[], in_executions text[], in_envelopes text[], in_args text[],
  in_chain text, in_position bigint, in_previous text[], in_hashes text[], in_entries text[], in_fields text[],
  in_relaxed boolean
) RETURNS TABLE (place bigint, has_session boolean, recorded text) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  known record;
  is_refused boolean := false;
BEGIN
  FOR item IN
    SELECT t.session, t.id, t.place,
        first_value(t.place) OVER (PARTITION BY t.session, t.id ORDER BY t.place) AS first
      FROM unnest(in_sessions, in_executions) WITH ORDINALITY AS t (session, id, place)
      WHERE t.session IS NOT NULL
      ORDER BY t.session, t.id, t.place
  LOOP
    SELECT e.envelope, coalesce(instance_of(e.owner) <> split_part(in_chain, '.', 1), false) AS is_taken_over
      INTO known FROM execution e WHERE e.session = item.session AND e.id = item.id FOR NO KEY UPDATE;
    IF FOUND AND known.envelope IS NULL AND NOT known.is_taken_over AND item.first = item.place THEN
      CONTINUE;
    END IF;
    is_refused := true;
    place := item.place;
    recorded := known.envelope;
    has_session := EXISTS (SELECT FROM session s WHERE s.id = item.session);
    IF known.is_taken_over AND recorded IS NULL THEN
      has_session := NULL;
    ELSIF NOT known.is_taken_over AND recorded IS NULL THEN
      recorded := in_envelopes[item.first];
    END IF;
    RETURN NEXT;
  END LOOP;
  IF is_refused THEN
    RETURN;
  END IF;

  IF in_relaxed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  FOR item IN
    SELECT t.session, t.id, t.envelope, t.args
      FROM unnest(in_sessions, in_executions, in_envelopes, in_args) AS t (session, id, envelope, args)
      WHERE t.session IS NOT NULL
  LOOP
    UPDATE execution e SET envelope = item.envelope, args = item.args
      WHERE e.session = item.session AND e.id = item.id;
  END LOOP;
  UPDATE confirmation c SET secrets = NULL
    FROM unnest(in_sessions, in_executions) AS t (session, id)
    WHERE c.session = t.session AND c.execution = t.id AND c.secrets IS NOT NULL AND c.answer = 'used';
  -- See audit_horizon.
  PERFORM pg_advisory_xact_lock_shared(audit_lock());
  INSERT INTO audit (chain, position, previous, hash, entry, at, event, session, execution, tool, outcome, principal,
      org, client, approver, edited)
    SELECT in_chain, in_position + t.place - 1, t.previous, t.hash, t.entry,
        f.at, f.event, f.session, f.execution, f.tool, f.outcome, f.principal, f.org, f.client, f.approver, f.edited
      FROM unnest(in_previous, in_hashes, in_entries, in_fields)
          WITH ORDINALITY AS t (previous, hash, entry, fields, place)
        CROSS JOIN LATERAL jsonb_to_record(t.fields::jsonb) AS f (
          at bigint, event text, session text, execution text, tool text, outcome text, principal text,
          org text, client text, approver text, edited boolean)
      ORDER BY t.place;
END
$$;
