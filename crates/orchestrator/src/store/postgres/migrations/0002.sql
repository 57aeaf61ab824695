-- Blocks have their own table, and budgets are meters: a claim is charged any number of them.
--
-- Servers of the version before may still run: their columns and functions stay. They count the retrievals of a turn
-- apart from the meters, and store new blocks as sessions, which every newer server moves when it starts (see
-- `move_blocks`).

CREATE TABLE block (
  -- Empty when the principal has no org.
  org text COLLATE "C" NOT NULL,
  principal text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (org, principal, client_id)
);

-- What the session has spent: {"turn": {meter: n}, "session": {meter: n}}.
ALTER TABLE session ADD COLUMN spent jsonb NOT NULL DEFAULT '{}';
ALTER TABLE session ALTER COLUMN retrievals SET DEFAULT 0;
UPDATE session SET spent = jsonb_build_object('turn', jsonb_build_object('retrieval', retrievals)) WHERE retrievals > 0;

-- What the claim was charged, and in which turn: for `unclaim`.
ALTER TABLE execution ADD COLUMN charges jsonb;
ALTER TABLE execution ADD COLUMN turn bigint;

CREATE FUNCTION spent_on(in_spent jsonb, in_scope text, in_meter text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce((in_spent -> in_scope ->> in_meter)::bigint, 0)
$$;

-- Adds charges, or takes them back with a sign of -1.
CREATE FUNCTION add_charges(in_spent jsonb, in_charges jsonb, in_sign bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  charge record;
BEGIN
  FOR charge IN SELECT * FROM jsonb_to_recordset(in_charges) AS c (scope text, meter text, amount bigint) LOOP
    in_spent := in_spent || jsonb_build_object(charge.scope,
      coalesce(in_spent -> charge.scope, '{}') || jsonb_build_object(charge.meter,
        greatest(spent_on(in_spent, charge.scope, charge.meter) + in_sign * charge.amount, 0)));
  END LOOP;
  RETURN in_spent;
END
$$;

-- Decides a claim. The rules are those of the memory back end, in its order; see store/mod.rs.
CREATE FUNCTION claim(
  in_session text, in_execution text, in_tool text, in_tool_version text, in_digest bytea, in_idempotent boolean,
  in_charges jsonb, in_confirmation text, in_now bigint,
  in_owner text, in_lease_ms bigint, in_attempt bigint, in_relaxed boolean,
  OUT verdict text, OUT recorded text, OUT exceeded_meter text, OUT exceeded_spent bigint
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
      -- Its owner is gone. It was charged when it was first claimed.
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
        EXIT;
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
    IF in_confirmation IS NOT NULL AND NOT EXISTS (
      SELECT FROM confirmation c
      WHERE c.id = in_confirmation AND c.answer = 'approved' AND c.session = in_session AND c.execution = in_execution
        AND c.tool = in_tool AND c.tool_version = in_tool_version AND c.digest = in_digest
    ) THEN
      verdict := 'unapproved';
      EXIT;
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
    IF in_confirmation IS NOT NULL THEN
      UPDATE confirmation c SET answer = 'used' WHERE c.id = in_confirmation;
    END IF;
    verdict := 'new';
    EXIT;
  END LOOP;
  -- The lease of an owner that was suspended may have run out: without a new one, others would take its claim for
  -- orphaned.
  IF verdict = 'new' AND NOT EXISTS (
    SELECT FROM instance i WHERE i.id = in_owner AND i.lease_until > clock_timestamp()
  ) THEN
    PERFORM renew(in_owner, in_lease_ms);
  END IF;
END
$$;

-- Takes back a claim whose reply was lost, with all that it spent. False when there is none (yet).
CREATE FUNCTION unclaim(
  in_session text, in_execution text, in_confirmation text, in_owner text, in_attempt bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  claimed record;
BEGIN
  PERFORM FROM session s WHERE s.id = in_session FOR NO KEY UPDATE;
  PERFORM FROM confirmation c WHERE c.id = in_confirmation FOR NO KEY UPDATE;
  UPDATE execution e SET owner = NULL
    WHERE e.session = in_session AND e.id = in_execution AND e.owner = in_owner AND e.attempt = in_attempt
      AND e.envelope IS NULL AND e.taken_over;
  IF FOUND THEN
    RETURN true;
  END IF;
  DELETE FROM execution e
    WHERE e.session = in_session AND e.id = in_execution AND e.owner = in_owner AND e.attempt = in_attempt
      AND e.envelope IS NULL
    RETURNING e.charges, e.turn INTO claimed;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- The meters of a turn that is over have been reset.
  UPDATE session s SET spent = add_charges(s.spent, (
      SELECT coalesce(jsonb_agg(c), '[]') FROM jsonb_array_elements(claimed.charges) AS c
        WHERE c ->> 'scope' = 'session' OR s.turn = claimed.turn
    ), -1)
    WHERE s.id = in_session AND claimed.charges IS NOT NULL;
  UPDATE confirmation c SET answer = 'approved' WHERE c.id = in_confirmation AND c.answer = 'used';
  RETURN true;
END
$$;
