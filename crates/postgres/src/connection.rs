//! A connection of a pool. One caller uses it at a time.

use std::time::{Duration, Instant};

use deadpool_postgres::{ClientWrapper, Object};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::Error;

/// How often a statement is sent that deadlocks or conflicts with others.
const MAX_ATTEMPTS: usize = 3;

/// Goes back to its pool when it is dropped.
pub struct Connection {
    /// `None` only while it is dropped.
    client: Option<Object>,
    /// Longer than the server's own timeout, for a server that does not reply any more.
    query_timeout: Duration,
    is_broken: bool,
}

pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Connection {
    pub(crate) const fn new(client: Object, query_timeout: Duration) -> Self {
        Self { client: Some(client), query_timeout, is_broken: false }
    }

    /// Runs a statement in its own transaction. Its text is a constant: values are parameters.
    pub async fn query(&mut self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        let mut attempt = 1;
        loop {
            match self.send(sql, parameters).await {
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => attempt += 1,
                outcome => return self.checked(outcome),
            }
        }
    }

    async fn send(&mut self, sql: &'static str, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        let query_timeout = self.query_timeout;
        let client = self.client()?;
        within(query_timeout, async {
            let statement = client.prepare_cached(sql).await.map_err(|error| match Error::from(error) {
                Error::NoReply(text) => Error::NotSent(text),
                rejected => rejected,
            })?;
            Ok(client.query(&statement, parameters).await?)
        })
        .await
    }

    /// Runs statements without parameters and rows. Their text must not contain values from outside.
    pub async fn run(&mut self, sql: &str) -> Result<(), Error> {
        let query_timeout = self.query_timeout;
        let client = self.client()?;
        let outcome = within(query_timeout, async { Ok(client.batch_execute(sql).await?) }).await;
        self.checked(outcome)
    }

    /// Runs statements that belong together, such as those of a transaction. If they fail, or if the future is
    /// dropped, the state of the connection is unknown, and it is closed.
    pub async fn unit_of_work<T, E: From<Error>>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let was_broken = std::mem::replace(&mut self.is_broken, true);
        let outcome = work(self).await;
        self.is_broken = was_broken || outcome.is_err();
        outcome
    }

    /// Closes it instead of giving it back to its pool.
    pub fn close(mut self) {
        self.is_broken = true;
    }

    /// When it was opened: another time is another connection.
    pub fn opened_at(&self) -> Option<Instant> {
        self.client.as_ref().map(|client| Object::metrics(client).created)
    }

    pub(crate) fn client(&mut self) -> Result<&mut ClientWrapper, Error> {
        let client = self.client.as_deref_mut();
        client.ok_or_else(|| Error::NotSent("the connection is closed".to_owned()))
    }

    fn checked<T>(&mut self, outcome: Result<T, Error>) -> Result<T, Error> {
        self.is_broken |= outcome.as_ref().is_err_and(Error::breaks_connection);
        outcome
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(client) = self.client.take_if(|_| self.is_broken) {
            drop(Object::take(client));
        }
    }
}

async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Err(Error::NoReply(format!("no reply within {limit:?}")));
    timeout(limit, work).await.unwrap_or_else(late)
}
