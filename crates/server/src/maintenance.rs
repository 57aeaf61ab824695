//! The periodic jobs of a server: what other processes or an earlier one have left is continued, and what is over is
//! closed.

use std::time::Duration;

use tokio::task::JoinSet;
use toolwright_orchestrator::Orchestrator;

/// How often expired sessions and confirmation requests are closed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// How many rounds of approved calls may run beside each other. A call runs in one of them.
const MAX_ROUNDS: usize = 8;

/// Every few seconds: runs approved calls that have not run, because their process ended or the store could not be
/// reached, adopts tasks of processes that are gone, closes expired sessions and confirmation requests, and stores what
/// was counted. Stores each toolset as it is installed.
pub(crate) async fn maintain(orchestrator: &Orchestrator) {
    let mut interval = tokio::time::interval(SWEEP_INTERVAL);
    let mut installs = orchestrator.installs();
    let mut approved_calls = JoinSet::new();
    loop {
        tokio::select! {
            _ = interval.tick() => {}
            Ok(()) = installs.changed() => {}
        }
        if let Err(error) = orchestrator.store_current_toolset().await {
            tracing::error!("could not store the current toolset: {error}");
        }
        if let Err(error) = orchestrator.exchange_minutes().await {
            tracing::error!("could not store the numbers of the last minute: {error}");
        }
        // Beside the other jobs, which must not wait until the calls have ended.
        while approved_calls.try_join_next().is_some() {}
        if approved_calls.len() < MAX_ROUNDS {
            approved_calls.spawn(resume_approved_calls(orchestrator.clone()));
        }
        match orchestrator.resume_tasks().await {
            Ok(0) => {}
            Ok(count) => tracing::info!("adopted {count} tasks of processes that are gone"),
            Err(error) => tracing::error!("could not adopt tasks of other processes: {error}"),
        }
        if let Err(error) = orchestrator.sweep().await {
            tracing::error!("could not close expired sessions and confirmation requests: {error}");
        }
    }
}

async fn resume_approved_calls(orchestrator: Orchestrator) {
    match orchestrator.resume().await {
        Ok(0) => {}
        Ok(count) => tracing::info!("resumed {count} approved calls"),
        Err(error) => tracing::error!("could not resume approved calls: {error}"),
    }
}
