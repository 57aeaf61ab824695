//! A progress bar for work that takes longer than a second, on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// How far something is, and in which words it is told.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub done: &'a AtomicUsize,
    pub total: &'a AtomicUsize,
    /// As in "checking".
    pub doing: &'a str,
    /// How far, as in "{pos}/{len} tools".
    pub amount: &'a str,
}

/// How far a build is.
pub fn of_tools(progress: &toolwright_registry::build::Progress) -> Shown<'_> {
    Shown { done: &progress.done, total: &progress.total, doing: "checking", amount: "{pos}/{len} tools" }
}

/// Runs `work`; shows how far it is if it takes long and somebody is looking.
pub fn watch<T>(progress: Shown<'_>, work: impl FnOnce() -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, finished) = mpsc::channel::<()>();
        scope.spawn(move || show(progress, &finished));
        let result = work();
        drop(done);
        result
    })
}

fn show(progress: Shown<'_>, finished: &mpsc::Receiver<()>) {
    let is_over = |wait| !matches!(finished.recv_timeout(wait), Err(mpsc::RecvTimeoutError::Timeout));
    if is_over(PATIENCE) {
        return;
    }
    let template = format!("{} {{bar:30}} {}, {{eta}} left", progress.doing, progress.amount);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    loop {
        bar.set_length(progress.total.load(Ordering::Relaxed) as u64);
        bar.set_position(progress.done.load(Ordering::Relaxed) as u64);
        if is_over(TICK) {
            break;
        }
    }
    bar.finish_and_clear();
}
