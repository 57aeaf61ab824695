//! `toolwright chat` in a pseudo-terminal, with a scripted model: alone, and beside a server that uses the store.

use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;
use tokio::runtime::Runtime;

use super::scripted_model::ScriptedModel;
use super::serve::Serving;
use super::support::{Guard, Project, TIMEOUT, program};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// A project with a scripted model, a tool that needs approval, `send_note`, and one that does not, `find_note`.
struct ScriptedChat {
    project: Project,
    model: ScriptedModel,
    _runtime: Runtime,
}

impl ScriptedChat {
    fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let model = runtime.block_on(ScriptedModel::start());
        let project = Project::with(&["find-note", "send-note"]);
        let confirmed = "\"requiresConfirmation\": true";
        project.edit("send-note/schema.json", "\"requiresConfirmation\": false", confirmed);
        let address = model.address;
        let config = format!(
            "[agent]\nprovider = \"openai-chat\"\nmodel = \"scripted\"\nbase_url = \"http://{address}/v1\"\n"
        );
        std::fs::write(project.dir().join("toolwright.toml"), config).unwrap();
        Self { project, model, _runtime: runtime }
    }

    fn chat(&self, args: &[&str]) -> Terminal {
        Terminal::start(&self.project, &[&["chat"], args].concat())
    }
}

/// The program in a pseudo-terminal, which `script` (util-linux) makes.
struct Terminal {
    child: Guard,
    keyboard: ChildStdin,
    output: Receiver<Vec<u8>>,
    /// Output that was not expected yet.
    shown: String,
}

impl Terminal {
    fn start(project: &Project, args: &[&str]) -> Self {
        let words = [&[program()], args].concat();
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        // A shell in between would end by the signal of Ctrl-C.
        let line = format!("exec {}", words.join(" "));
        let mut command: Command = project.command(&[]);
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        command = Command::new("script");
        command.args(["--quiet", "--return", "--echo", "never", "--command", &line, "/dev/null"]);
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(project.dir()).env("TERM", "xterm").env("SHELL", "/bin/sh");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = Guard(child.expect("`script` of util-linux makes the pseudo-terminal"));
        let (keyboard, mut screen) = (child.0.stdin.take().unwrap(), child.0.stdout.take().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, keyboard, output, shown: String::new() }
    }

    /// Waits until a text is shown. Returns everything before it.
    fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let (before, after) = (before.to_owned(), after.to_owned());
                self.shown = after;
                return before;
            }
            match self.output.recv_timeout(TIMEOUT) {
                Ok(bytes) => self.shown.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("no {text:?} ({error}) in:\n{}", self.shown),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn enter(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Ends the chat by Ctrl-D.
    fn quit(mut self) {
        self.expect("> ");
        self.press(CTRL_D);
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.0.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < TIMEOUT, "it goes on:\n{}", self.shown);
            std::thread::yield_now();
        };
        assert!(status.success(), "{status}");
    }
}

/// The time of a call: `✓ find_note 3 ms`.
fn expect_timed(chat: &mut Terminal, tool: &str) {
    chat.expect("✓");
    let time = chat.expect(" ms");
    let (name, number) = time.trim().rsplit_once(' ').unwrap();
    assert!(name.contains(tool) && number.parse::<u64>().is_ok(), "{time}");
}

/// Text, a call, approvals, a stopped answer, a continued chat.
fn converse(chat: &ScriptedChat) {
    let mut terminal = chat.chat(&[]);
    let greeting = terminal.expect("> ");
    let session = greeting.split("session ").nth(1).unwrap().split(['\x1b', '\r']).next().unwrap().to_owned();
    terminal.enter("say Good morning");
    terminal.expect("Good morning\r\n");

    terminal.expect("> ");
    terminal.enter(r#"call find_note {"query": "blue"}"#);
    terminal.expect(r#"→ find_note {"query":"blue"}"#);
    expect_timed(&mut terminal, "find_note");
    terminal.expect("The result is");

    terminal.expect("> ");
    terminal.enter(r#"call send_note {"query": "first"}"#);
    terminal.expect("approve?");
    assert!(terminal.expect("y/n ").contains("first"));
    terminal.enter("perhaps");
    terminal.expect("y/n ");
    terminal.enter("y");
    expect_timed(&mut terminal, "send_note");
    terminal.expect("The result is");

    terminal.expect("> ");
    terminal.enter(r#"call send_note {"query": "second"}"#);
    terminal.expect("y/n ");
    terminal.enter("n");
    terminal.expect("✗");
    terminal.expect("The result is");

    terminal.expect("> ");
    terminal.enter("wait");
    // The model has not said the rest.
    terminal.expect("begun");
    terminal.press(CTRL_C);
    let rest = terminal.expect("stopped");
    assert!(!rest.contains("ended"), "{rest}");
    terminal.expect("> ");
    terminal.enter("say Still here");
    terminal.expect("Still here\r\n");

    // A question that nobody has answered is asked again.
    terminal.expect("> ");
    terminal.enter(r#"call send_note {"query": "third"}"#);
    terminal.expect("y/n ");
    terminal.press(CTRL_C);
    terminal.expect("toolwright approve conf_");
    terminal.quit();
    let mut terminal = chat.chat(&["--continue"]);
    assert!(terminal.expect("approve?").contains(&session));
    assert!(terminal.expect("y/n ").contains("third"));
    terminal.enter("yes");
    expect_timed(&mut terminal, "send_note");
    terminal.expect("The result is");
    terminal.quit();
}

/// The writes that ran.
fn sent(project: &Project) -> Vec<Value> {
    let audit = project.run(&["audit", "tail", "--format", "json"]).expect_code(0).stdout;
    let entries = audit.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ran = |entry: &Value| entry["entry"]["tool"] == "send_note" && entry["entry"]["outcome"] == "ok";
    entries.filter(ran).collect()
}

#[test]
fn a_chat_streams_shows_calls_asks_and_is_stopped() {
    let chat = ScriptedChat::start();
    converse(&chat);
    assert_eq!(sent(&chat.project).len(), 2);
}

#[test]
fn a_chat_beside_a_server_goes_through_it() {
    let chat = ScriptedChat::start();
    let mut serving = Serving::start(&chat.project, &[]);
    converse(&chat);
    assert_eq!(sent(&chat.project).len(), 2);
    let project = &chat.project;
    let through = project.run(&["chat", "--continue", "--format", "json", "say Hello"]).expect_code(0);
    let events: Vec<Value> = through.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<_> = events.iter().map(|event| event["event"]["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("turn_started", "turn_ended"), "{kinds:?}");
    let failed = project.run(&["chat", "fail 500"]).expect_code(1);
    assert!(!failed.stderr.contains("provider-secret"), "{}", failed.stderr);
    let url = format!("through the server at http://{}", serving.address);
    failed.expect_stderr(&[&url, "does not work at the moment"]);
    project
        .run(&["chat", "--agent", "offline", "hi"])
        .expect_code(2)
        .expect_stderr(&["--agent", "`offline`"]);
    project.run(&["chat", "--session", "none", "hi"]).expect_code(2).expect_stderr(&["no session `none`"]);

    // The chat goes on without the server, with its whole history.
    serving.terminate();
    assert!(serving.ended().success());
    let mut terminal = chat.chat(&["--continue"]);
    terminal.expect("> ");
    terminal.enter("say Alone");
    terminal.expect("Alone\r\n");
    terminal.quit();
    assert!(chat.model.requests() > 0);
}
