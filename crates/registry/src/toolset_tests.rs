use std::sync::atomic::AtomicUsize;

use super::*;
use crate::build::{Options, Progress, Timestamp, compile};

fn reference() -> String {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let options = Options { out: tools.join("tool_registry.json"), tools, cache: None };
    let progress = Progress { total: AtomicUsize::new(0), done: AtomicUsize::new(0) };
    let bytes =
        compile(options, &progress).unwrap().to_bytes(None, &Timestamp::Now("now".to_owned())).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_toolset_gives_back_what_was_built() {
    let toolset = Toolset::from_text(reference()).unwrap();
    let ids: Vec<&str> = toolset.ids().collect();
    assert!(ids.is_sorted() && ids.len() >= 14, "{ids:?}");
    assert_eq!(ids, toolset.list().map(|tool| tool.spec.tool_id.as_str()).collect::<Vec<_>>());
    let tool = toolset.get("kb_search").unwrap();
    assert_eq!(
        (tool.spec.category, tool.handler_path.as_str()),
        (Category::Retrieval, "kb-search/handler.js")
    );
    assert!(toolset.documentation("kb_search").unwrap().contains("## Invariants"));
    assert_eq!(toolset.get("nothing_of_the_kind"), None);
    assert_eq!(toolset.documentation("nothing_of_the_kind"), None);
    assert!(toolset.by_category(Category::Utility).all(|tool| tool.spec.category == Category::Utility));
    assert!(toolset.for_mode(Mode::Text).all(|tool| tool.spec.tool_id != "end_voice_session"));
}

#[test]
fn every_changed_byte_of_a_tool_is_noticed() {
    let text = reference();
    let first = text.find("\n    {").unwrap() + 5;
    let end = text.len() - "\n  ]\n}\n".len();
    let mut noticed = 0;
    for at in (first..end).step_by(499).filter(|at| text.as_bytes()[*at].is_ascii_alphanumeric()) {
        // The handler's path may differ from place to place; the handler's own digest is covered.
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let path = text[..line_end].rfind(HANDLER_PATH).unwrap_or(line_end);
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'x' { b'y' } else { b'x' };
        let result = Toolset::from_text(String::from_utf8(changed).unwrap());
        if at < path {
            assert!(matches!(result, Err(Error::Tampered)), "{at}");
            noticed += 1;
        }
    }
    assert!(noticed > 50, "{noticed}");
}

#[test]
fn dropped_reordered_and_foreign_texts_are_refused() {
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
