//! Fixtures: a project in a temporary directory, and runs of the program on it.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longer than any run takes, even on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

pub const SCHEMA: &str = include_str!("template/schema.json");
pub const DOC: &str = include_str!("template/doc.md");
pub const SUMMARY: &str = "Find notes by their meaning.\n";
pub const HANDLER: &str =
    "export async function execute({ args }) {\n  return { ok: true, data: { query: args.query } };\n}\n";

/// A temporary directory with `tools/` in it.
#[derive(Debug)]
pub struct Project {
    dir: TempDir,
}

impl Project {
    /// Without any tool.
    pub fn empty() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("tools")).unwrap();
        Self { dir }
    }

    /// With valid tools of these names.
    pub fn with(tools: &[&str]) -> Self {
        let project = Self::empty();
        for tool in tools {
            project.add_tool(tool);
        }
        project
    }

    /// With a copy of the reference toolset.
    pub fn reference() -> Self {
        let project = Self::empty();
        let tools = repository().join("tools");
        for entry in fs::read_dir(&tools).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
            copy_dir(&entry.path(), &project.tools().join(entry.file_name()));
        }
        project
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn tools(&self) -> PathBuf {
        self.dir().join("tools")
    }

    /// A path below `tools/`.
    pub fn path(&self, path: &str) -> PathBuf {
        self.tools().join(path)
    }

    pub fn artifact(&self) -> PathBuf {
        self.path("tool_registry.json")
    }

    pub fn artifact_bytes(&self) -> Vec<u8> {
        fs::read(self.artifact()).unwrap()
    }

    pub fn artifact_json(&self) -> Value {
        serde_json::from_slice(&self.artifact_bytes()).unwrap()
    }

    /// Adds a valid tool.
    pub fn add_tool(&self, name: &str) {
        self.write(&format!("{name}/schema.json"), SCHEMA.replace("TOOL_ID", &name.replace('-', "_")));
        self.write(&format!("{name}/doc_summary.md"), SUMMARY);
        self.write(&format!("{name}/doc.md"), DOC);
        self.write(&format!("{name}/handler.js"), HANDLER);
    }

    /// Writes a file below `tools/`.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Replaces a text in a file below `tools/`, which must contain it.
    pub fn edit(&self, path: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(path)).unwrap();
        assert!(text.contains(from), "{path} has no {from}");
        self.write(path, text.replacen(from, to, 1));
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    pub fn remove_link(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    /// The program, in the project's directory and a clean environment.
    pub fn command(&self, args: &[&str]) -> Command {
        command_in(self.dir(), args)
    }

    pub fn run(&self, args: &[&str]) -> Run {
        run(self.command(args))
    }

    /// Builds successfully.
    pub fn build(&self) -> Run {
        self.run(&["build"]).expect_code(0)
    }

    /// Builds with a fixed timestamp, and returns the artifact's bytes.
    pub fn pinned_bytes(&self, args: &[&str]) -> Vec<u8> {
        let mut command = self.command(&["build"]);
        run(pin(command.args(args))).expect_code(0);
        self.artifact_bytes()
    }

    /// Builds until the files are old enough for the build to trust their timestamps.
    pub fn settle(&self) {
        let started = Instant::now();
        while !self.build().stderr.contains(" from the cache") {
            assert!(started.elapsed() < TIMEOUT, "the build never used the cache");
        }
    }

    /// Runs `check --format json`.
    pub fn check(&self) -> Run {
        self.run(&["check", "--format", "json"]).expect_names_in_messages()
    }

    /// The files directly in `tools/`, to find leftover ones.
    pub fn loose_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tools()).unwrap().flatten();
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let mut names: Vec<_> = files.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// stderr contains each of `parts`.
    pub fn expect_stderr(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in:\n{}", self.stderr);
        }
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Every diagnostic names a field, file, keyword or tool in its own message: JSON consumers do not see the source.
    pub fn expect_names_in_messages(self) -> Self {
        for diagnostic in self.json()["diagnostics"].as_array().unwrap() {
            let message = diagnostic["message"].as_str().unwrap();
            let mut quoted = message.split('`').skip(1).step_by(2);
            let is_name = |text: &str| text.contains(|c: char| c.is_ascii_alphanumeric());
            assert!(quoted.any(is_name), "no name in backquotes: {diagnostic}");
        }
        self
    }

    /// `tool/file:line:column code` of each diagnostic, sorted.
    pub fn found(&self) -> Vec<String> {
        let report = self.json();
        let mut found: Vec<_> = report["diagnostics"].as_array().unwrap().iter().map(place).collect();
        found.sort();
        found
    }
}

/// A message about `schema.json` names, in backquotes, the field that it is about: where programs read it, the text of
/// the file is not beside it. `text` is the file.
#[track_caller]
pub fn assert_message_names_field(diagnostic: &Value, text: &str) {
    let number = |name: &str| usize::try_from(diagnostic[name].as_u64().unwrap()).unwrap();
    let Some(field) = field_at(text, number("line"), number("column")) else { return };
    let message = diagnostic["message"].as_str().unwrap();
    let names_field = message.split('`').skip(1).step_by(2).any(|quoted| quoted.contains(field));
    // Text that is no JSON has no fields.
    assert!(names_field || diagnostic["code"] == "json-syntax", "`{field}` is not named: {diagnostic}");
}

/// The key at a position, or the last one before it.
fn field_at(text: &str, line: usize, column: usize) -> Option<&str> {
    let before: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let columns = text[before..].chars().take(column - 1).map(char::len_utf8).sum::<usize>();
    let position = before + columns;
    // Every second piece is within quotes: the files have no escaped ones.
    let mut start = 0;
    let mut found = None;
    for (index, piece) in text.split('"').enumerate() {
        let end = start + piece.len();
        let is_key =
            index % 2 == 1 && text.get(end + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'));
        if is_key && start <= position + 1 {
            found = Some(piece);
        }
        start = end + 1;
    }
    found
}

fn place(diagnostic: &Value) -> String {
    let text = |name: &str| diagnostic[name].as_str().unwrap().to_owned();
    let number = |name: &str| diagnostic[name].as_u64().unwrap();
    format!("{}/{}:{}:{} {}", text("tool"), text("file"), number("line"), number("column"), text("code"))
}

/// The directory of the embedding model.
pub fn models() -> PathBuf {
    let named = std::env::var_os("TOOLWRIGHT_MODELS").map(PathBuf::from);
    let models = named.unwrap_or_else(|| repository().join("target/models"));
    let is_there = models.join("all-MiniLM-L6-v2/model.safetensors").exists();
    assert!(is_there, "the model is not in {}: run scripts/model", models.display());
    models
}

/// The program, in `dir` and without the caller's settings.
pub fn command_in(dir: &Path, args: &[&str]) -> Command {
    clean(Command::new(program()), dir, args)
}

/// The same through a shell script that runs `"$@"`.
pub fn shell_in(dir: &Path, script: &str, args: &[&str]) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg("sh").arg(program());
    clean(shell, dir, args)
}

fn clean(mut command: Command, dir: &Path, args: &[&str]) -> Command {
    command.args(args).current_dir(dir).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if ["TOOLWRIGHT_", "GIT_", "CLICOLOR", "NO_COLOR"].iter().any(|prefix| shown.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.env_remove("SOURCE_DATE_EPOCH");
    // The embedding model that the caller has installed.
    command.env("XDG_DATA_HOME", dir.join(".data"));
    command
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_toolwright")
}

/// With a fixed timestamp.
pub fn pin(command: &mut Command) -> Command {
    command.env("SOURCE_DATE_EPOCH", "1700000000");
    std::mem::replace(command, Command::new("true"))
}

/// Runs until the program ends, at most [`TIMEOUT`].
pub fn run(command: Command) -> Run {
    run_within(command, TIMEOUT)
}

pub fn run_within(mut command: Command, timeout: Duration) -> Run {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = ended.recv_timeout(timeout) else {
        let _ = Command::new("kill").args(["-9", &id]).status();
        panic!("{command:?} did not end within {timeout:?}");
    };
    let output = output.unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A child process that is killed at the end of its test.
#[derive(Debug)]
pub struct Guard(pub Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Asserts that two artifacts are equal; otherwise prints the first line in which they differ.
pub fn assert_same(left: &[u8], right: &[u8], what: impl Display) {
    if left != right {
        let (left, right) = (String::from_utf8_lossy(left), String::from_utf8_lossy(right));
        let differs = |(_, (left, right)): &(usize, (&str, &str))| left != right;
        let first = left.lines().zip(right.lines()).enumerate().find(differs);
        panic!("{what}: {} and {} bytes, first difference: {first:?}", left.len(), right.len());
    }
}

/// Pseudo-random numbers, the same in every run.
#[derive(Debug)]
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
