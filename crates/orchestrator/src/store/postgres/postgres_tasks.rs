//! Tasks in PostgreSQL. A change reads the record, changes it by the rules that all stores share, and writes it if its
//! revision is still the same.

use std::sync::Arc;

use tokio_postgres::Row;
use toolwright_postgres::{Connection, Parameters};

use super::Postgres;
use super::postgres_rows::{get, json, key, parse, synchronous_commit};
use crate::store::task::{TaskChange, TaskQuery, TaskRecord, TaskScope};
use crate::store::{Error, Result};

const CREATE: &str = "INSERT INTO task (id, session, principal, record, created_at, owner, revision)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING RETURNING record";
const GET: &str = "SELECT record, instance_of(owner) AS instance FROM task WHERE id = $1";
/// A page of the tasks of a scope: its condition on `$4`, in an index of its own.
macro_rules! page {
    ($scope:literal) => {
        concat!(
            "SELECT record FROM task WHERE ",
            $scope,
            " AND (created_at, id) < ($1, $2) ORDER BY created_at DESC, id DESC LIMIT $3"
        )
    };
}
const PAGE: &str = page!("$4::text IS NOT NULL");
const PAGE_OF_SESSION: &str = page!("session = $4");
const PAGE_OF_PRINCIPAL: &str = page!("principal = $4");
const CHANGE: &str = "UPDATE task SET record = $2, ended_at = $3, revision = revision + 1
    FROM set_config('synchronous_commit', $5, true)
    WHERE id = $1 AND revision = $4 AND ($6::text IS NULL OR instance_of(owner) = $6) RETURNING id";
/// Few owners have open tasks, so the lease of each is looked up once.
const ADOPT: &str = "WITH owners AS MATERIALIZED (
        SELECT DISTINCT owner FROM task WHERE ended_at IS NULL AND owner <> $1
    ), gone AS MATERIALIZED (
        SELECT owner FROM owners WHERE is_gone(owner)
    ), orphaned AS (
        SELECT t.id FROM task t JOIN gone ON gone.owner = t.owner WHERE t.ended_at IS NULL
        ORDER BY t.created_at, t.id LIMIT $2 FOR UPDATE OF t SKIP LOCKED
    ), adopted AS (
        UPDATE task SET owner = $1 FROM orphaned WHERE task.id = orphaned.id
        RETURNING task.created_at, task.id, record
    ) SELECT record FROM adopted ORDER BY created_at, id";
pub(super) const DELETE_OLD: &str = "DELETE FROM task WHERE ended_at <= $1";

impl Postgres {
    pub(super) async fn insert_task(&self, task: TaskRecord) -> Result<Arc<TaskRecord>> {
        let principal = task.principal.key();
        let parameters: Parameters<'_> = &[
            &key(&task.id),
            &key(&task.session),
            &key(&principal),
            &json(&task)?,
            &task.created_at,
            &self.lease.epoch().owner,
            &task.revision.cast_signed(),
        ];
        if !self.pool.query(CREATE, parameters).await?.is_empty() {
            return Ok(Arc::new(task));
        }
        let known = self.read_task(&task.id).await?;
        known.ok_or_else(|| Error::Unavailable(format!("the task {} was deleted", task.id)))
    }

    pub(super) async fn read_task(&self, id: &str) -> Result<Option<Arc<TaskRecord>>> {
        self.pool.query(GET, &[&key(id)]).await?.first().map(task).transpose()
    }

    pub(super) async fn update_task(
        &self,
        id: &str,
        change: TaskChange,
        now: i64,
    ) -> Result<Option<Arc<TaskRecord>>> {
        let commit = synchronous_commit(change.durability());
        let owner = change.is_of_owner().then(|| self.lease.instance());
        loop {
            let rows = self.pool.query(GET, &[&key(id)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            if owner
                .is_some_and(|owner| get::<String>(row, "instance").is_ok_and(|instance| instance != owner))
            {
                return Ok(None);
            }
            let before = task(row)?;
            let Some(after) = before.after_change(change.clone(), now) else { return Ok(None) };
            let parameters: Parameters<'_> =
                &[&key(id), &json(&after)?, &after.ended_at, &before.revision.cast_signed(), &commit, &owner];
            if !self.pool.query(CHANGE, parameters).await?.is_empty() {
                return Ok(Some(Arc::new(after)));
            }
        }
    }

    pub(super) async fn take_orphaned_tasks(&self, limit: usize) -> Result<Vec<Arc<TaskRecord>>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.pool.query(ADOPT, &[&self.lease.epoch().owner, &limit]).await?.iter().map(task).collect()
    }
}

pub(super) async fn read_page(
    connection: &mut Connection,
    TaskQuery { scope, before, limit }: TaskQuery<'_>,
) -> Result<Vec<Arc<TaskRecord>>> {
    let (statement, scope) = match scope {
        TaskScope::All => (PAGE, key("")),
        TaskScope::Session(id) => (PAGE_OF_SESSION, key(id)),
        TaskScope::Principal(principal) => (PAGE_OF_PRINCIPAL, key(principal)),
    };
    let (at, id) = before.map_or((i64::MAX, key("")), |(at, id)| (at, key(id)));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection.query(statement, &[&at, &id, &limit, &scope]).await?.iter().map(task).collect()
}

fn task(row: &Row) -> Result<Arc<TaskRecord>> {
    parse::<TaskRecord>(&get::<String>(row, "record")?).map(Arc::new)
}
