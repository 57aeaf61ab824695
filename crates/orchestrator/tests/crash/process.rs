//! A worker as its parent sees it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::instructions::{DIRECTORY, Instructions};

/// No step of a worker takes longer, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a worker: this same program with an environment variable.
    pub fn start(directory: &Path, instructions: &Instructions) -> Self {
        Self::start_worker(directory, instructions, "worker::runs_the_instructions_of_its_parent")
    }

    /// As [`Self::start`], with the test that is the worker.
    pub fn start_worker(directory: &Path, instructions: &Instructions, worker: &str) -> Self {
        instructions.write(directory);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", worker, "--nocapture"]);
        command.env(DIRECTORY, directory).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // After a kill, the receiver is gone.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    /// Waits until it prints this line.
    pub fn wait_for(&self, line: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while let Ok(printed) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if printed == line {
                return;
            }
        }
        panic!("the worker never printed: {line}");
    }

    /// Sends the line that a worker waits for.
    pub fn start_calls(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }

    /// SIGSTOP: it does nothing until it is resumed.
    pub fn pause(&self) {
        self.signal("-STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "kill {signal}");
    }

    /// SIGKILL, after this time.
    pub fn kill_after(mut self, delay: Duration) {
        thread::sleep(delay);
        assert_eq!(self.child.try_wait().unwrap(), None, "the worker has ended on its own");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends on its own.
    pub fn wait(mut self) {
        let deadline = Instant::now() + TIMEOUT;
        // Its output ends when it does.
        while self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {}
        assert!(Instant::now() < deadline, "the worker does not end");
        assert!(self.child.wait().unwrap().success(), "the worker failed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
