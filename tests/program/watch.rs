//! `build --watch`: builds at the start and after each change, except its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::support::{Guard, Project, run};

const SOON: Duration = Duration::from_secs(20);
/// Several times the debounce time of the program.
const QUIET: Duration = Duration::from_millis(1_000);

/// A running `build --watch`, and its output.
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

    /// Waits for a line that begins like this, and returns it.
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

    /// All lines until there is none for a while.
    fn until_quiet(&self) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(QUIET) {
                Ok(line) => seen.push(line),
                Err(RecvTimeoutError::Timeout) => return seen,
                Err(RecvTimeoutError::Disconnected) => panic!("the watch ended: {seen:#?}"),
            }
            assert!(seen.len() < 100, "the build repeats for ever: {seen:#?}");
        }
    }
}

fn summary(project: &Project) -> String {
    project.artifact_json()["tools"][0]["summary"].as_str().unwrap().to_owned()
}

#[test]
fn a_changed_file_triggers_a_build() {
    let project = Project::with(&["note-find"]);
    let watch = Watch::start(&project, &[]);
    assert_eq!(summary(&project), "Find notes by their meaning.");
    project.write("note-find/doc_summary.md", "Find them all.\n");
    watch.expect("built ");
    assert_eq!(summary(&project), "Find them all.");
}

#[test]
fn a_broken_file_is_reported_and_fixing_it_builds_again() {
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
fn added_and_removed_tools_trigger_a_build() {
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
fn a_watch_ignores_the_files_of_the_build_itself() {
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
fn a_watch_continues_after_a_failed_build() {
    let project = Project::with(&["note-find"]);
    project.remove("note-find/doc_summary.md");
    let watch = Watch::start(&project, &[]);
    assert!(!project.artifact().exists());
    project.write("note-find/doc_summary.md", "Find them all.\n");
    watch.expect("built ");
    assert_eq!(summary(&project), "Find them all.");
}

/// Editors write another file and rename it.
fn replace_declared(project: &Project, tools: usize) {
    let tool = |number: usize| {
        format!(
            "  - {{ name: t{number}, description: d, type: function, parameters: {{ type: object }}, \
            implementation: {{ type: mock, mock_response: 1 }} }}\n"
        )
    };
    let text = format!("tools:\n{}", (0..tools).map(tool).collect::<String>());
    fs::write(project.dir().join("more.yaml.new"), text).unwrap();
    fs::rename(project.dir().join("more.yaml.new"), project.dir().join("more.yaml")).unwrap();
}

#[test]
fn a_changed_file_of_declared_tools_triggers_a_build() {
    let project = Project::empty();
    fs::remove_dir(project.tools()).unwrap();
    fs::write(project.dir().join("toolwright.toml"), "[tools]\ndeclared = [\"more.yaml\"]\n").unwrap();
    replace_declared(&project, 1);
    let watch = Watch::start(&project, &[]);
    for tools in [2, 3] {
        replace_declared(&project, tools);
        watch.expect(&format!("a session gets {tools} tools"));
    }
}

#[test]
fn a_missing_tools_directory_cannot_be_watched() {
    let project = Project::empty();
    let command = project.command(&["build", "nowhere", "--watch"]);
    run(command).expect_code(1).expect_stderr(&["cannot watch nowhere", "help: "]);
}
