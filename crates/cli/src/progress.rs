//! A progress bar for builds that take longer than a second, on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use toolwright_registry::build::Progress;

const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// Runs `work`; shows how far it is if it takes long and somebody is looking.
pub fn watch<T>(progress: &Progress, work: impl FnOnce() -> T) -> T {
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

fn show(progress: &Progress, finished: &mpsc::Receiver<()>) {
    let is_over = |wait| !matches!(finished.recv_timeout(wait), Err(mpsc::RecvTimeoutError::Timeout));
    if is_over(PATIENCE) {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("checking {bar:30} {pos}/{len} tools, {eta} left") {
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
