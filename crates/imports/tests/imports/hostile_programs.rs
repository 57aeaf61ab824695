//! Programs that send too much: reading stops at the limit.

use serde_json::json;
use tempfile::TempDir;
use toolwright_contract::ErrorKind;
use toolwright_imports::{Import, Pins};

use super::support::{example, far_deadline, handler, import, settings};

struct HostileProgram {
    dir: TempDir,
    scenario: &'static str,
}

impl HostileProgram {
    fn new(scenario: &'static str) -> Self {
        Self { dir: TempDir::new().unwrap(), scenario }
    }

    fn import(&self) -> Import {
        let done = self.dir.path().join("done").display().to_string();
        let command = [example("mcp_hostile").display().to_string(), self.scenario.to_owned(), done];
        let limits = json!({ "message_kb": 64, "pages": 5 });
        import(settings(json!({ "name": "fix", "command": command, "limits": limits })))
    }

    /// Whether the program could send everything that it wanted to send.
    fn is_done(&self) -> bool {
        self.dir.path().join("done").exists()
    }
}

#[tokio::test]
async fn a_line_that_does_not_end_is_not_read_to_its_end() {
    let program = HostileProgram::new("line");
    let error = program.import().definitions().await.unwrap_err();
    assert_eq!(
        error,
        "the MCP server `fix` sent a message of more than 64 KiB; if that is right, raise `message_kb` in its \
         `[mcp_servers.limits]`"
    );
    assert!(!program.is_done());
}

#[tokio::test]
async fn a_result_that_does_not_end_fails_its_call() {
    let program = HostileProgram::new("call");
    let import = program.import();
    let mut pins = Pins::default();
    pins.accept("fix", import.definitions().await.unwrap());
    let failure = handler(&import, &pins, "echo").call(json!({}), far_deadline()).await.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Permanent);
    assert!(failure.partial_side_effects && !failure.retryable);
    assert!(failure.message.contains("`fix`") && failure.message.contains("`message_kb`"), "{failure:?}");
    assert!(!program.is_done());
}

#[tokio::test]
async fn requests_of_a_server_that_does_not_read_the_replies_are_bounded() {
    let program = HostileProgram::new("pings");
    let error = program.import().definitions().await.unwrap_err();
    assert!(error.contains("`fix` sent more than 256 requests without reading the replies"), "{error}");
    assert!(!program.is_done());
}

#[tokio::test]
async fn pages_that_do_not_end_are_refused() {
    let error = HostileProgram::new("pages").import().definitions().await.unwrap_err();
    assert!(
        error.contains("`fix` lists its tools on more than 5 pages") && error.contains("`pages`"),
        "{error}"
    );
}
