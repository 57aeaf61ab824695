//! The verification of the audit that an admin asks for. It reads all entries, so it runs beside the requests, one at a
//! time; the page shows how far it is, and then the result of the last one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use toolwright_orchestrator::store::chain::{ChainError, Head, Verifier};
use toolwright_orchestrator::store::{self, Backend};

use crate::app::App;

/// Entries that are read at a time.
const BATCH: usize = 1000;
/// How long a request waits for the result, which is there at once for a short audit.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The verification that runs, or the result of the last one.
#[derive(Debug, Default)]
pub(crate) struct AuditCheck(watch::Sender<CheckState>);

#[derive(Debug, Clone, Default)]
pub(crate) enum CheckState {
    #[default]
    Never,
    /// With the number of entries that were checked so far.
    Running(u64),
    Done(Arc<Verdict>),
}

/// The result of a verification.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// When it began: later entries may be missing.
    pub at: i64,
    pub outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Intact {
        entries: u64,
        heads: Vec<Head>,
    },
    Changed(ChainError),
    /// The store could not be read, or the server was shut down.
    Unknown,
}

impl AuditCheck {
    pub fn state(&self) -> CheckState {
        self.0.borrow().clone()
    }

    /// Begins a verification unless one runs, and waits a short time for its result.
    pub async fn run(&self, app: &Arc<App>) {
        let is_new = self.0.send_if_modified(|state| {
            let is_new = !matches!(state, CheckState::Running(_));
            if is_new {
                *state = CheckState::Running(0);
            }
            is_new
        });
        if is_new {
            let app = Arc::clone(app);
            tokio::spawn(async move {
                let at = app.orchestrator.now();
                let outcome = verify(&app).await;
                app.audit_check.0.send_replace(CheckState::Done(Arc::new(Verdict { at, outcome })));
            });
        }
        let mut state = self.0.subscribe();
        let done = state.wait_for(|state| matches!(state, CheckState::Done(_)));
        let _ = tokio::time::timeout(MAX_WAIT, done).await;
    }
}

async fn verify(app: &App) -> Outcome {
    let verified = match verify_chains(app).await {
        // A server may have begun its chain after the register was read.
        Ok(Some(Err(ChainError::Unregistered { .. }))) => verify_chains(app).await,
        verified => verified,
    };
    match verified {
        Ok(Some(Ok(verifier))) => {
            Outcome::Intact { entries: verifier.rows, heads: verifier.heads().collect() }
        }
        Ok(Some(Err(error))) => Outcome::Changed(error),
        Ok(None) => Outcome::Unknown,
        Err(error) => {
            tracing::error!("cannot verify the audit: {error}");
            Outcome::Unknown
        }
    }
}

/// Checks all chains from their beginning; `None` if the server shuts down before the end.
async fn verify_chains(app: &App) -> store::Result<Option<Result<Verifier, ChainError>>> {
    let store = app.orchestrator.store();
    let register = store.audit_register().await?;
    let mut verifier = match Verifier::new(register.as_deref(), Vec::new()) {
        Ok(verifier) => verifier,
        Err(error) => return Ok(Some(Err(error))),
    };
    let mut after = 0;
    loop {
        if app.is_shutting_down() {
            return Ok(None);
        }
        let rows = store.audit_rows(after, BATCH).await?;
        let Some(last) = rows.last() else { break };
        after = last.number;
        if let Err(error) = rows.iter().try_for_each(|row| verifier.check(row)) {
            return Ok(Some(Err(error)));
        }
        app.audit_check.0.send_replace(CheckState::Running(verifier.rows));
    }
    Ok(Some(verifier.finish().map(|()| verifier)))
}
