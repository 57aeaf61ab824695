-- The audit is found by tool, session, principal and outcome, sessions by their age; a call has its arguments.
--
-- Servers of the version before may still run: they write audit rows without these columns, which are found only by
-- pages without a filter, and calls without arguments.

-- Without those that are `writeOnly`.
ALTER TABLE execution ADD COLUMN IF NOT EXISTS args text;

ALTER TABLE session ADD COLUMN IF NOT EXISTS created_at bigint NOT NULL
  DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
-- Not through JSON functions, which refuse a record with a NUL. The last match is the record's own field: its state, which
-- may have a field of the same name, comes before it.
UPDATE session SET created_at = coalesce(substring(record FROM '.*"created_at":(-?[0-9]+)')::bigint, created_at);
CREATE INDEX IF NOT EXISTS session_age ON session (created_at, id);

ALTER TABLE audit ADD COLUMN IF NOT EXISTS at bigint;
ALTER TABLE audit ADD COLUMN IF NOT EXISTS event text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS session text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS execution text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS tool text COLLATE "C";
ALTER TABLE audit ADD COLUMN IF NOT EXISTS outcome text COLLATE "C";
-- The key of the principal.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS principal text COLLATE "C";

-- The fields of the rows of before. A row that somebody has damaged has none, and no field has a NUL.
CREATE OR REPLACE FUNCTION audit_fields(
  in_entry text, OUT at bigint, OUT event text, OUT session text, OUT execution text, OUT tool text, OUT outcome text
) LANGUAGE plpgsql AS $$
DECLARE
  fields json;
BEGIN
  fields := replace(in_entry, '\u0000', '\\0')::json;
  at := (fields ->> 'at')::bigint;
  event := fields ->> 'event';
  session := fields ->> 'session';
  execution := fields ->> 'executionId';
  tool := fields ->> 'tool';
  outcome := fields ->> 'outcome';
EXCEPTION WHEN others THEN
  NULL;
END
$$;
UPDATE audit a SET (at, event, session, execution, tool, outcome) =
  (SELECT f.at, f.event, f.session, f.execution, f.tool, f.outcome FROM audit_fields(a.entry) f);
DROP FUNCTION audit_fields;

CREATE INDEX IF NOT EXISTS audit_session ON audit (session, number);
CREATE INDEX IF NOT EXISTS audit_execution ON audit (session, execution);
CREATE INDEX IF NOT EXISTS audit_principal ON audit (principal, number);
CREATE INDEX IF NOT EXISTS audit_tool ON audit (tool, number);
CREATE INDEX IF NOT EXISTS audit_error ON audit (number)
  WHERE outcome <> 'ok' AND event IN ('called', 'refused', 'replayed', 'described');

-- The first number whose row has the time `in_time + in_slack` or a later one, by binary search. Rows are numbered when
-- calls end and have the time when they began, so times are in order only up to the duration of a call. With a negative
-- slack longer than that, all rows from `in_time` on have this number or a higher one; with a positive slack, all rows
-- before `in_time` have a lower one.
CREATE OR REPLACE FUNCTION audit_number_at(in_time bigint, in_slack bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  low bigint := 0;
  high bigint;
  middle bigint;
  found_at bigint;
BEGIN
  SELECT coalesce(max(number), 0) + 1 INTO high FROM audit;
  WHILE low < high LOOP
    middle := low + (high - low) / 2;
    SELECT a.at INTO found_at FROM audit a WHERE a.number >= middle AND a.at IS NOT NULL ORDER BY a.number LIMIT 1;
    IF found_at IS NULL OR found_at >= in_time + in_slack THEN
      high := middle;
    ELSE
      low := middle + 1;
    END IF;
  END LOOP;
  RETURN low;
END
$$;

-- As `settle` of the version before, with the arguments of calls and the fields by which audit rows are found:
-- a JSON object for each.
CREATE OR REPLACE FUNCTION settle(
  in_sessions text[], in_executions text[], in_envelopes text[], in_args text[],
  in_chain text, in_position bigint, in_previous text[], in_hashes text[], in_entries text[], in_fields text[],
  in_relaxed boolean
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
  INSERT INTO audit (chain, position, previous, hash, entry, at, event, session, execution, tool, outcome, principal)
    SELECT in_chain, in_position + t.place - 1, t.previous, t.hash, t.entry,
        f.at, f.event, f.session, f.execution, f.tool, f.outcome, f.principal
      FROM unnest(in_previous, in_hashes, in_entries, in_fields)
          WITH ORDINALITY AS t (previous, hash, entry, fields, place)
        CROSS JOIN LATERAL jsonb_to_record(t.fields::jsonb) AS f (
          at bigint, event text, session text, execution text, tool text, outcome text, principal text)
      ORDER BY t.place;
END
$$;
