//! `build --watch`: builds at the start and after each change, and never because of itself.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::support::{Guard, Project, run};

const SOON: Duration = Duration::from_secs(20);
/// Longer than the program waits for editors, several times over.
const QUIET: Duration = Duration::from_millis(1_000);

/// A watching build, and what it says.
struct Watch {
    lines: Receiver<String>,
    _child: Guard,
}

impl Watch {
    fn start(project: &Project, args: &[&str]) -> Self {
        let mut command = project.command(&[&["build", "--watch"], args].concat());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let watch = Self { lines, _child: Guard(child) };
        watch.expect("watching ");
        watch
    }

    /// Waits for a line that begins like this, and gives it.
    fn expect(&self, beginning: &str) -> String {
        let started = Instant::now();
        let mut seen = Vec::new();
        while let Some(left) = SOON.checked_sub(started.elapsed()) {
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(beginning) => return line,
                Ok(line) => seen.push(line),
                Err(_) => break,
            }
        }
        panic!("no line began with {beginning:?}: {seen:#?}");
    }

    /// What is said until nothing is said for a while.
    fn until_quiet(&self) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(QUIET) {
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => return seen,
                Err(RecvTimeoutError::Disconnected) => panic!("the watch ended: {seen:#?}"),
            }
            assert!(seen.len() < 100, "it never rests: {seen:#?}");
        }
    }
}

fn summary(project: &Project) -> String {
    project.artifact_json()["tools"][0]["summary"].as_str().unwrap().to_owned()
}

#[test]
fn a_changed_file_leads_to_a_new_artifact() {
    let project = Project::with(&["note-find"]);
    let watch = Watch::start(&project, &[]);
    assert_eq!(summary(&project), "Find notes by their meaning.");
    project.write("note-find/doc_summary.md", "Find them all.\n");
    watch.expect("built ");
    assert_eq!(summary(&project), "Find them all.");
}

#[test]
fn a_broken_file_is_reported_and_mending_it_builds_again() {
    let project = Project::with(&["note-find"]);
    let watch = Watch::start(&project, &[]);
    project.edit("note-find/schema.json", "\"1.0.0\"", "\"one\"");
    watch.expect("error[field-value]");
    watch.expect("failed: 1 error in 1 tool; nothing was written");
    project.edit("note-find/schema.json", "\"one\"", "\"1.2.0\"");
    watch.expect("built ");
    assert_eq!(project.artifact_json()["tools"][0]["version"], "1.2.0");
}

#[test]
fn tools_that_come_and_go_are_followed() {
    let project = Project::with(&["note-find"]);
    let watch = Watch::start(&project, &[]);
    project.add_tool("note-read");
    while !watch.expect("built ").contains(": 2 tools") {}
    project.edit("note-read/doc_summary.md", "meaning", "sense");
    watch.expect("built ");
    project.remove("note-find");
    while !watch.expect("built ").contains(": 1 tool,") {}
}

#[test]
fn a_watch_does_not_follow_what_it_writes_itself() {
    for args in [&[][..], &["--out", "tools/other.json"], &["--no-cache"], &["--out", "elsewhere.json"]] {
        let project = Project::with(&["note-find"]);
        let watch = Watch::start(&project, args);
        watch.until_quiet();
        project.write("note-find/doc_summary.md", "Find them all.\n");
        let builds = watch.until_quiet();
        assert!((1..=2).contains(&builds.len()), "{args:?}: {builds:#?}");
    }
}

#[test]
fn a_watch_that_begins_with_a_mistake_goes_on() {
    let project = Project::with(&["note-find"]);
    project.remove("note-find/doc_summary.md");
    let watch = Watch::start(&project, &[]);
    assert!(!project.artifact().exists());
    project.write("note-find/doc_summary.md", "Find them all.\n");
    watch.expect("built ");
    assert_eq!(summary(&project), "Find them all.");
}

#[test]
fn a_tools_directory_that_is_not_there_cannot_be_watched() {
    let project = Project::empty();
    let command = project.command(&["build", "nowhere", "--watch"]);
    run(command).expect_code(1).expect_stderr(&["cannot watch nowhere", "help: "]);
}
