//! The standard error of a program in the log.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncWriteExt, duplex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{STDERR_WINDOW, log_stderr};

/// Collects the messages of the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_flood_on_the_standard_error_is_read_and_logged_in_part() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let (mut program, stderr) = duplex(1 << 16);
    let logging = tokio::spawn(log_stderr("flood".to_owned(), stderr, 64 << 10));
    for _ in 0..1024 {
        program.write_all(&[b'x'; 1024]).await.unwrap();
    }
    // On one thread, the other task reads what is in the pipe.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    tokio::time::advance(STDERR_WINDOW).await;
    program.write_all(b"\nlater\n").await.unwrap();
    drop(program);
    logging.await.unwrap();
    let messages = std::mem::take(&mut *log.0.lock().unwrap());
    let logged: usize = messages.iter().filter(|text| text.starts_with('x')).map(String::len).sum();
    assert_eq!(logged, 64 << 10);
    assert!(messages.iter().any(|text| text.contains("more than 64 KiB") && text.contains("stderr_kb")));
    let dropped = (1 << 20) - (64 << 10);
    assert!(
        messages.contains(&format!("{dropped} bytes of its standard error were not logged")),
        "{messages:?}"
    );
    assert_eq!(messages.last().unwrap(), "later");
}
