//! Invalid settings are reported before anything is started.

use serde_json::json;

use super::support::{import, settings};

#[test]
fn a_server_has_either_a_command_or_a_url() {
    for (server, expected) in [
        (json!({ "name": "a" }), "neither"),
        (json!({ "name": "a", "command": ["x"], "url": "https://x.example" }), "both"),
        (json!({ "name": "a", "url": "ftp://x.example" }), "not an http(s) URL"),
        (json!({ "name": "", "command": ["x"] }), "name"),
        (json!({ "name": "a b", "command": ["x"] }), "name"),
        (json!({ "name": "a", "command": ["x"], "prefix": "ä" }), "prefix"),
        (
            json!({ "name": "a", "command": ["x"], "limits": { "pages": 0 } }),
            "`limits.pages` must be greater than 0",
        ),
    ] {
        let error = settings(server).check().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!error.help.is_empty());
    }
    settings(json!({ "name": "a", "command": ["x"] })).check().unwrap();
    settings(json!({ "name": "a", "url": "https://x.example/mcp", "prefix": "" })).check().unwrap();
}

#[tokio::test]
async fn the_error_names_a_missing_variable() {
    let server = settings(json!({ "name": "a", "command": ["true"], "env": { "X": "${UNSET_VARIABLE}" } }));
    let error = import(server).definitions().await.unwrap_err();
    assert!(error.contains("UNSET_VARIABLE"), "{error}");
}
