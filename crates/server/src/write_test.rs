//! Tests whether the store can be written, for `/readyz`. All requests within a second share one test.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::time::timeout;
use toolwright_orchestrator::store;

/// How long an outcome is valid. A caller without a key cannot make the server write more often.
const INTERVAL: Duration = Duration::from_secs(1);
/// A store that takes longer counts as not ready.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The problem of a store that cannot be written; its cause is only in the log.
type Outcome = Result<(), &'static str>;

#[derive(Debug, Default)]
pub(crate) struct WriteTest(Mutex<Option<(Instant, Outcome)>>);

impl WriteTest {
    /// The outcome of the last test, or of a new one if that is too old.
    pub async fn outcome(
        &self,
        now: impl Fn() -> Instant,
        write: impl Future<Output = store::Result<()>>,
    ) -> Outcome {
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && now().saturating_duration_since(*at) < INTERVAL
        {
            return *outcome;
        }
        let outcome = match timeout(TIMEOUT, write).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                tracing::error!("not ready: the store cannot be written: {error}");
                Err(
                    "The store cannot be written, so calls cannot be recorded. The server's log has the cause.",
                )
            }
            Err(_) => Err("The store did not answer in time."),
        };
        *last = Some((now(), outcome));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn the_store_is_written_at_most_once_a_second() {
        let (test, writes, start) = (WriteTest::default(), AtomicUsize::new(0), Instant::now());
        let write = async |outcome| {
            writes.fetch_add(1, Ordering::SeqCst);
            outcome
        };
        let failed = Err(store::Error::Unavailable("the disk is full".to_owned()));
        let (first, second) = tokio::join!(
            test.outcome(|| start, write(Ok(()))),
            test.outcome(|| start, write(failed.clone()))
        );
        assert_eq!((first, second, writes.load(Ordering::SeqCst)), (Ok(()), Ok(()), 1));
        let later = start + INTERVAL;
        let reason = test.outcome(|| later, write(failed)).await.unwrap_err();
        assert!(reason.contains("cannot be written") && !reason.contains("disk"), "{reason}");
        assert_eq!(test.outcome(|| later + INTERVAL / 2, write(Ok(()))).await, Err(reason));
        assert_eq!(writes.load(Ordering::SeqCst), 2);
        assert_eq!(test.outcome(|| later + INTERVAL, write(Ok(()))).await, Ok(()));
    }
}
