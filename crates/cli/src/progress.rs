//! A progress bar on the terminal, for work that takes longer than a second.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// The counters of some work, and how they are shown.
#[derive(Debug, Clone, Copy)]
pub struct Counters<'a> {
    pub done: &'a AtomicUsize,
    pub total: &'a AtomicUsize,
    /// Such as `checking`.
    pub verb: &'a str,
    /// Such as `{pos}/{len} tools`.
    pub amount: &'a str,
}

/// Runs `work`, with a progress bar if stderr is a terminal.
pub fn run_with_bar<T>(counters: Counters<'_>, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        scope.spawn(move || show_bar(counters, &finished));
        let result = work();
        drop(done);
        result
    })
}

fn show_bar(counters: Counters<'_>, finished: &mpsc::Receiver<()>) {
    let is_finished = |wait| !matches!(finished.recv_timeout(wait), Err(mpsc::RecvTimeoutError::Timeout));
    if is_finished(SHOW_AFTER) {
        return;
    }
    let bar = new_bar(&format!("{} {{bar:30}} {}, {{eta}} left", counters.verb, counters.amount));
    loop {
        bar.set_length(counters.total.load(Ordering::Relaxed) as u64);
        bar.set_position(counters.done.load(Ordering::Relaxed) as u64);
        if is_finished(REFRESH_INTERVAL) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// A bar on stderr, hidden if that is not a terminal.
pub fn new_bar(template: &str) -> ProgressBar {
    let is_terminal = std::io::stderr().is_terminal();
    let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
