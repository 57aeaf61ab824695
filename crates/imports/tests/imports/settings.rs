//! Settings that cannot be used are found before anything is started.

use serde_json::json;

use super::workshop::settings;

#[test]
fn a_server_is_reached_in_exactly_one_way() {
    for (server, why) in [
        (json!({ "name": "a" }), "neither"),
        (json!({ "name": "a", "command": ["x"], "url": "https://x.example" }), "both"),
        (json!({ "name": "a", "url": "ftp://x.example" }), "no address"),
        (json!({ "name": "", "command": ["x"] }), "name"),
        (json!({ "name": "a b", "command": ["x"] }), "name"),
        (json!({ "name": "a", "command": ["x"], "prefix": "ä" }), "prefix"),
    ] {
        let error = settings(server).check().unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(!error.help().is_empty());
    }
    settings(json!({ "name": "a", "command": ["x"] })).check().unwrap();
    settings(json!({ "name": "a", "url": "https://x.example/mcp", "prefix": "" })).check().unwrap();
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_named() {
    let server = settings(json!({ "name": "a", "command": ["true"], "env": { "X": "${NOBODY_SETS_THIS}" } }));
    let error = toolwright_imports::Import::new(server).definitions().await.unwrap_err();
    assert!(error.contains("NOBODY_SETS_THIS"), "{error}");
}
