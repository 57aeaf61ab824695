//! A worker as its parent sees it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::orders::{Orders, PLACE};

/// Nothing that a worker does takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a worker: this same program, told to be something else.
    pub fn start(directory: &Path, orders: &Orders) -> Self {
        orders.write(directory);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker::a_server_at_work", "--nocapture"]);
        command.env(PLACE, directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Whoever has killed it does not listen any more.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits until it says this.
    pub fn wait_for(&self, line: &str) {
        let until = Instant::now() + PATIENCE;
        while let Ok(said) = self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if said == line {
                return;
            }
        }
        panic!("it never said: {line}");
    }

    /// Lets a worker go that waits for a line.
    pub fn tell_to_go(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// SIGKILL, after this time.
    pub fn kill_after(mut self, delay: Duration) {
        thread::sleep(delay);
        assert_eq!(self.child.try_wait().unwrap(), None, "it has ended by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it has come to its end by itself.
    pub fn wait(mut self) {
        let until = Instant::now() + PATIENCE;
        // Its output ends when it does.
        while self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        assert!(Instant::now() < until, "it does not come to its end");
        assert!(self.child.wait().unwrap().success(), "it failed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
