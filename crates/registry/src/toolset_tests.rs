use std::sync::atomic::AtomicUsize;

use super::*;
use crate::build::{Options, Progress, Timestamp, compile};
use crate::formats::Formats;

fn reference() -> String {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let options =
        Options { out: tools.join("tool_registry.json"), tools, formats: Formats::default(), cache: None };
    let progress = Progress { total: AtomicUsize::new(0), done: AtomicUsize::new(0) };
    let bytes =
        compile(options, &progress).unwrap().to_bytes(None, &Timestamp::Now("now".to_owned())).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_toolset_has_the_tools_that_were_built() {
    let toolset = Toolset::from_text(reference()).unwrap();
    let ids: Vec<&str> = toolset.ids().collect();
    assert!(ids.is_sorted() && ids.len() >= 14, "{ids:?}");
    assert_eq!(ids, toolset.list().map(|tool| tool.spec.tool_id.as_str()).collect::<Vec<_>>());
    let tool = toolset.get("kb_search").unwrap();
    assert_eq!(tool.spec.category, Category::Retrieval);
    let Implementation::Module(module) = &tool.implementation else { panic!("{tool:?}") };
    assert_eq!((module.path.as_str(), module.sha256.len()), ("kb-search/handler.js", 64));
    assert!(toolset.documentation("kb_search").unwrap().contains("## Invariants"));
    assert_eq!(toolset.get("unknown_tool"), None);
    assert_eq!(toolset.documentation("unknown_tool"), None);
    assert!(toolset.by_category(Category::Utility).all(|tool| tool.spec.category == Category::Utility));
    assert!(toolset.for_mode(Mode::Text).all(|tool| tool.spec.tool_id != "end_voice_session"));
}

#[test]
fn every_changed_byte_of_a_tool_is_detected() {
    let text = reference();
    let first = text.find("\n    {").unwrap() + 5;
    let end = text.len() - "\n  ]\n}\n".len();
    let mut detected = 0;
    for at in (first..end).step_by(499).filter(|at| text.as_bytes()[*at].is_ascii_alphanumeric()) {
        // The digest does not cover the handler's path; it does cover the handler's own digest.
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let path = text[..line_end].rfind(HANDLER_PATH).unwrap_or(line_end);
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'x' { b'y' } else { b'x' };
        let result = Toolset::from_text(String::from_utf8(changed).unwrap());
        if at < path {
            assert!(matches!(result, Err(Error::Tampered)), "{at}");
            detected += 1;
        }
    }
    assert!(detected > 50, "{detected}");
}

#[test]
fn truncated_reordered_and_unrelated_texts_are_rejected() {
    let text = reference();
    let mut lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.starts_with("    {")).unwrap();
    lines.swap(first, first + 1);
    let whole = |lines: &[&str]| lines.join("\n") + "\n";
    assert!(matches!(Toolset::from_text(whole(&lines)), Err(Error::Tampered)));
    lines.remove(first);
    assert!(matches!(Toolset::from_text(whole(&lines)), Err(Error::Tampered)));
    assert!(matches!(Toolset::from_text(text[..text.len() - 9].to_owned()), Err(Error::Malformed(_))));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap() + "\n";
    assert!(matches!(Toolset::from_text(pretty), Err(Error::Tampered)));
    for foreign in ["", "{}", "[]", "{\"tools\": [", "\u{feff}"] {
        assert!(matches!(Toolset::from_text(foreign.to_owned()), Err(Error::Malformed(_))), "{foreign}");
    }
    let newer = text.replacen("\"formatVersion\": 1", "\"formatVersion\": 2", 1);
    assert!(matches!(Toolset::from_text(newer), Err(Error::Format { found: 2 })));
}

fn declared(names: &[&str]) -> Vec<Tool> {
    let tools: Vec<Value> = names
        .iter()
        .map(|name| {
            serde_json::json!({
                "name": name, "description": "Declared.", "type": "function", "handler": "h",
                "parameters": { "type": "object" }, "implementation": { "type": "mock", "mock_response": null },
            })
        })
        .collect();
    let text = serde_json::json!({ "tools": tools }).to_string();
    let (tools, errors) = declared::read(Path::new("more.json"), &text, &|_| false);
    assert_eq!(errors, []);
    tools
}

#[test]
fn declared_tools_follow_the_built_ones_in_one_toolset() {
    let built = Toolset::from_text(reference()).unwrap();
    let before: Vec<String> = built.ids().map(str::to_owned).collect();
    let (version, digest) = (built.version.clone(), built.content_digest.clone());
    let (toolset, errors) = built.with_declared(Path::new("none.json"), Vec::new());
    assert_eq!((&toolset.version, &toolset.content_digest, errors.len()), (&version, &digest, 0));

    let tools = declared(&["weather", "kb_search", "alarm"]);
    let (toolset, errors) = toolset.with_declared(Path::new("more.json"), tools);
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["more.json: Tool already exists: kb_search"]);
    assert_ne!(toolset.version, version);
    let mut all: Vec<&str> = before.iter().map(String::as_str).collect();
    all.extend(["weather", "alarm"]);
    assert_eq!(toolset.ids().collect::<Vec<_>>(), all);
    assert_eq!(toolset.summaries().map(|(id, _)| id).collect::<Vec<_>>(), all);
    assert_eq!(toolset.list().count(), all.len());
    assert!(matches!(toolset.get("kb_search").unwrap().implementation, Implementation::Module(_)));
    assert_eq!(toolset.get("alarm").unwrap().implementation, Implementation::Mock(Value::Null));
    assert_eq!(toolset.documentation("alarm").as_deref(), Some("Declared."));
    assert!(toolset.documentation("kb_search").unwrap().contains("## Invariants"));
    let allowed = ["alarm", "kb_search", "nothing"];
    let found: Vec<&str> = toolset.filter(Some(&allowed)).map(|tool| tool.spec.tool_id.as_str()).collect();
    assert_eq!(found, ["kb_search", "alarm"]);

    // Several files give the same version as one.
    let at_once = toolset.version;
    let (toolset, _) =
        Toolset::from_text(reference()).unwrap().with_declared(Path::new("a"), declared(&["weather"]));
    let (toolset, _) = toolset.with_declared(Path::new("b"), declared(&["alarm"]));
    assert_eq!(toolset.version, at_once);
}
