//! The SQL statements of the store. Functions in them are those of `migrations/`. Columns are listed, because a
//! prepared `SELECT *` fails once a migration has added a column.

use super::postgres_rows::{confirmation_columns, session_columns};

pub(super) const CREATE_SESSION: &str =
    "INSERT INTO session (id, record, turn, spent, standing, expires_at, revision, created_at)
    SELECT $1, $2, $3, $4::text::jsonb, $5, $6, $7, $8 FROM set_config('synchronous_commit', $9, true)
    ON CONFLICT DO NOTHING RETURNING true";
pub(super) const SESSION: &str = concat!("SELECT ", session_columns!(), " FROM session WHERE id = $1");
pub(super) const SESSIONS: &str = concat!(
    "SELECT ",
    session_columns!(),
    " FROM session WHERE (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3"
);
pub(super) const BEGIN_TURN: &str = concat!(
    "UPDATE session SET turn = turn + 1, retrievals = 0, spent = spent - 'turn'
    FROM set_config('synchronous_commit', 'off', true) WHERE id = $1 RETURNING ",
    session_columns!()
);
pub(super) const UPDATE_SESSION: &str = "WITH changed AS (
        UPDATE session SET record = $2, standing = $3, expires_at = $4, revision = revision + 1
        WHERE id = $1 AND revision = $5 RETURNING true)
    SELECT EXISTS (SELECT FROM changed) AS is_changed, EXISTS (SELECT FROM session WHERE id = $1) AS is_known";
pub(super) const INACTIVE_SESSIONS: &str = "SELECT wanted.id FROM unnest($1::text[]) AS wanted (id)
    LEFT JOIN session s ON s.id = wanted.id AND s.standing = 'active' AND s.expires_at > $2
    WHERE s.id IS NULL";
pub(super) const IS_TOOLSET_IN_USE: &str =
    "SELECT EXISTS (SELECT FROM session WHERE standing = 'active' AND toolset = $1) AS is_in_use";

pub(super) const PUT_TOOLSET: &str =
    "INSERT INTO toolset (id, created_at, used_at, tools, content) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (id) DO UPDATE SET used_at = greatest(toolset.used_at, excluded.used_at)";
pub(super) const TOUCH_TOOLSET: &str = "UPDATE toolset SET used_at = greatest(used_at, $2)
    FROM set_config('synchronous_commit', 'off', true) WHERE id = $1 RETURNING id";
pub(super) const TOOLSET: &str = "SELECT id, created_at, used_at, tools, content, length(content)::bigint AS bytes FROM toolset WHERE id = $1";
pub(super) const TOOLSETS: &str = "SELECT id, created_at, used_at, tools, length(content)::bigint AS bytes, (
        SELECT count(*) FROM session WHERE standing = 'active' AND session.toolset = toolset.id
    ) AS sessions FROM toolset ORDER BY used_at DESC, id";
pub(super) const DELETE_TOOLSETS: &str = "WITH deleted AS (
        DELETE FROM toolset WHERE used_at <= $1 AND NOT EXISTS (
            SELECT FROM session WHERE standing = 'active' AND session.toolset = toolset.id)
        RETURNING id
    ) SELECT id FROM deleted ORDER BY id";

pub(super) const PUT_MINUTE: &str = "WITH deleted AS (DELETE FROM minute WHERE at < $4)
    INSERT INTO minute (at, process, content)
    SELECT $1, $2, $3 FROM set_config('synchronous_commit', 'off', true)
    ON CONFLICT (at, process) DO UPDATE SET content = excluded.content";
pub(super) const MINUTES: &str =
    "SELECT at, process, content FROM minute WHERE at >= $1 ORDER BY at, process";

/// A claim of the current owner, `$3`, runs; that of any other does so while its lease lasts.
pub(super) const EXECUTION: &str = "SELECT digest, envelope, args, idempotent,
        CASE WHEN envelope IS NOT NULL OR owner IS NULL THEN false WHEN owner = $3 THEN true
            ELSE NOT is_gone(owner) END AS is_owned
    FROM execution WHERE session = $1 AND id = $2";
pub(super) const CLAIM: &str =
    "SELECT verdict, recorded, exceeded_meter, exceeded_spent, exceeded_place, wait_ms
    FROM claim_execution($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb, $9, $10, $11, $12, $13)";
pub(super) const TAKE_BACK_CLAIM: &str = "SELECT take_back_claim($1, $2, $3, $4, $5, $6) AS is_done";
pub(super) const TAKE_BACK_LOST_CLAIM: &str = "SELECT take_back_lost_claim($1, $2, $3, $4, $5)";
pub(super) const SPEND_RATES: &str = "SELECT place AS exceeded_place, wait_ms
    FROM set_config('synchronous_commit', 'off', true), spend_rates($1::text::jsonb, $2, $3, $4)";
pub(super) const RELEASE: &str =
    "UPDATE execution SET owner = NULL FROM set_config('synchronous_commit', 'off', true)
    WHERE session = $1 AND id = $2 AND instance_of(owner) = $3 AND idempotent AND envelope IS NULL";
pub(super) const ABANDON: &str = "UPDATE execution SET owner = NULL
    WHERE session = $1 AND id = $2 AND instance_of(owner) = $3 AND envelope IS NULL";
pub(super) const SETTLE: &str =
    "SELECT place, has_session, recorded FROM settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
/// The same for the first rows of a chain: if they are recorded, so is the chain.
pub(super) const SETTLE_AND_REGISTER: &str = "WITH settled AS MATERIALIZED (
        SELECT place, has_session, recorded FROM settle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ), registered AS (
        INSERT INTO audit_chain (position, chain, previous, hash)
        SELECT $12, $5, $13, $14 WHERE NOT EXISTS (SELECT FROM settled)
    ) SELECT place, has_session, recorded FROM settled";

pub(super) const CREATE_CONFIRMATION: &str = concat!(
    "SELECT ",
    confirmation_columns!(),
    " FROM ask($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
);
pub(super) const CONFIRMATION: &str =
    concat!("SELECT ", confirmation_columns!(), " FROM confirmation WHERE id = $1");
/// A page of the pending confirmations of a scope: its condition on `$4`, in an index of its own.
macro_rules! pending {
    ($scope:literal) => {
        concat!(
            "SELECT ",
            confirmation_columns!(),
            " FROM confirmation WHERE answer = 'pending' AND ",
            $scope,
            " AND (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT $3"
        )
    };
}
pub(super) const PENDING: &str = pending!("$4::text IS NOT NULL");
pub(super) const PENDING_OF_SESSION: &str = pending!("session = $4");
/// Servers of the version before store no principal: the caller checks the session of those.
pub(super) const PENDING_OF_PRINCIPAL: &str = pending!("(principal = $4 OR principal IS NULL)");
pub(super) const COUNT_PENDING: &str = "SELECT count(*) FROM (
    SELECT FROM confirmation WHERE answer = 'pending' AND principal = $1 AND expires_at > $2 LIMIT $3) AS pending";
pub(super) const CLOSED_CONFIRMATIONS: &str = "SELECT wanted.id FROM unnest($1::text[]) AS wanted (id)
    LEFT JOIN confirmation c ON c.id = wanted.id AND c.answer = 'pending' AND c.expires_at > $2
    WHERE c.id IS NULL";
pub(super) const APPROVED_CONFIRMATIONS: &str = concat!(
    "SELECT ",
    confirmation_columns!(),
    " FROM confirmation WHERE answer = 'approved' ORDER BY created_at, id"
);
pub(super) const DECIDE_CONFIRMATION: &str = concat!(
    "UPDATE confirmation SET answer = $2, decided = $3, secrets = $5
    WHERE id = $1 AND answer = 'pending' AND expires_at > $4 RETURNING ",
    confirmation_columns!()
);

pub(super) const WITHDRAW_APPROVAL: &str = "UPDATE confirmation SET answer = 'expired', secrets = NULL
    WHERE id = $1 AND answer = 'approved' RETURNING id";

pub(super) const BLOCK: &str = "INSERT INTO block (org, principal, client_id, until) VALUES ($1, $2, $3, $4)
    ON CONFLICT (org, principal, client_id) DO UPDATE SET until = greatest(block.until, excluded.until)";
pub(super) const BLOCKED_UNTIL: &str =
    "SELECT until FROM block WHERE org = $1 AND principal = $2 AND client_id = $3";
pub(super) const UNBLOCK: &str =
    "DELETE FROM block WHERE org = $1 AND principal = $2 AND client_id = $3 RETURNING until";
/// Blocks that servers of the version before have stored as sessions.
pub(super) const SESSION_BLOCKS: &str =
    concat!("SELECT ", session_columns!(), " FROM session WHERE id LIKE 'block\\_%' AND standing = 'active'");
/// The row is kept until the sweep for servers of the version before, which do not read `standing`.
pub(super) const END_SESSION_BLOCK: &str = "UPDATE session SET standing = 'ended' WHERE id = $1";

/// The last number up to which no row of an open transaction is missing.
pub(super) const AUDIT_HORIZON: &str = "SELECT audit_horizon() AS last";
pub(super) const AUDIT_ROWS: &str = "SELECT number, chain, position, previous, hash, entry FROM audit
    WHERE number > $1 AND number <= $2 ORDER BY number LIMIT $3";
pub(super) const CHAIN_HEAD: &str =
    "SELECT position, hash FROM audit WHERE chain = $1 ORDER BY position DESC LIMIT 1";
pub(super) const REGISTER_HEAD: &str =
    "SELECT position, hash FROM audit_chain ORDER BY position DESC LIMIT 1";
pub(super) const REGISTER: &str = "SELECT position, chain, previous, hash FROM audit_chain ORDER BY position";

pub(super) const DELETE_SESSIONS: &str = "SELECT forget_sessions($1, $2) AS count";
pub(super) const DELETE_EXECUTIONS: &str = "SELECT forget_executions($1, $2, $3) AS count";
/// Rows are locked in order, so that two sweeps at once cannot deadlock. The status is as in
/// `SessionRecord::status_at`; inside a JSON string the quotation marks of the field would be escaped.
pub(super) const EXPIRE_SESSIONS: &str = "WITH late AS (
        SELECT id FROM session WHERE standing = 'active' AND expires_at <= $1 ORDER BY id FOR NO KEY UPDATE
    ), expired AS (
        UPDATE session SET revision = revision + 1,
            standing = CASE WHEN position('\"pendingEndVoiceSession\":' IN record) > 0 THEN 'ended' ELSE 'expired' END
        FROM late WHERE session.id = late.id RETURNING 1
    ) SELECT count(*) FROM expired";
pub(super) const EXPIRE_CONFIRMATIONS: &str = concat!(
    "WITH late AS (
        SELECT id FROM confirmation WHERE answer = 'pending' AND expires_at <= $1 ORDER BY id FOR NO KEY UPDATE
    ), expired AS (
        UPDATE confirmation SET answer = 'expired', secrets = NULL FROM late WHERE confirmation.id = late.id
        RETURNING ",
    confirmation_columns!(),
    ", created_at, confirmation.id
    ) SELECT * FROM expired ORDER BY created_at, id"
);
/// Of used confirmations whose execution was never settled.
pub(super) const DELETE_SECRETS: &str = "UPDATE confirmation SET secrets = NULL
    WHERE secrets IS NOT NULL AND answer = 'used' AND expires_at <= $1";
pub(super) const DELETE_CONFIRMATIONS: &str =
    "DELETE FROM confirmation WHERE answer IN ('rejected', 'expired', 'used') AND expires_at <= $1";
pub(super) const DELETE_BLOCKS: &str = "DELETE FROM block WHERE until <= $1";
/// A missing row means the same as an expired lease; rows stay for a day so that people can look at them.
pub(super) const DELETE_INSTANCES: &str =
    "DELETE FROM instance WHERE lease_until < clock_timestamp() - interval '1 day' AND NOT is_alive(id)";

/// A minute longer than they count, because the clocks of servers differ.
pub(super) const DELETE_RATES: &str = "DELETE FROM rate WHERE until <= $1::bigint - 60000";

/// Renews the lease. A synchronous commit also flushes all earlier commits.
pub(super) const KEEP_LEASE: &str =
    "SELECT keep_lease($1, $2) AS is_kept FROM set_config('synchronous_commit', $3, true)";
pub(super) const BEGIN_EPOCH: &str = "SELECT begin_epoch($1, $2, $3)";
pub(super) const END_LEASE: &str = "DELETE FROM instance WHERE instance_of(id) = $1";
