-- Pending confirmations are found by principal, and listed in pages.
--
-- Servers of the version before may still run: they call `ask` without a principal, which stays NULL.

ALTER TABLE confirmation ADD COLUMN principal text COLLATE "C";

CREATE INDEX confirmation_principal ON confirmation (principal, created_at, id) WHERE answer = 'pending';
CREATE INDEX confirmation_session_pending ON confirmation (session, created_at, id) WHERE answer = 'pending';

-- As `ask` of the version before, with the principal.
CREATE FUNCTION ask(
  in_id text, in_session text, in_execution text, in_tool text, in_tool_version text, in_digest bytea,
  in_asked text, in_secrets text, in_token_hash bytea, in_answer text, in_created_at bigint, in_expires_at bigint,
  in_principal text
) RETURNS SETOF confirmation LANGUAGE plpgsql AS $$
BEGIN
  UPDATE confirmation c SET answer = 'expired', secrets = NULL
    WHERE c.session = in_session AND c.execution = in_execution AND c.answer = 'pending'
      AND c.expires_at <= in_created_at;
  RETURN QUERY
    INSERT INTO confirmation AS c
      (id, session, execution, tool, tool_version, digest, asked, secrets, token_hash, answer, created_at, expires_at,
        principal)
      VALUES (in_id, in_session, in_execution, in_tool, in_tool_version, in_digest,
        in_asked, in_secrets, in_token_hash, in_answer, in_created_at, in_expires_at, in_principal)
      ON CONFLICT (session, execution) WHERE answer = 'pending' DO UPDATE
        -- Another call with the same id is a conflict, and must not void the token that the person holds.
        SET token_hash = CASE WHEN c.digest = excluded.digest THEN excluded.token_hash ELSE c.token_hash END
      RETURNING c.*;
END
$$;
