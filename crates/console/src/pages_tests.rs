//! Every page with plain data and with hostile data, and rules about all templates.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolwright_contract::escape::escape_page;

use crate::call_list::CallRow;
use crate::chart::{BarChart, Line, LineChart, Point, Sparkline};
use crate::diff::Diff;
use crate::home::{CheckRow, Finding, HomePage, StatusRow};
use crate::layout::{Layout, Page};
use crate::markdown::Markdown;
use crate::parts::{Chip, Choice, Code, Notice, Pager, Time, Tone, Words};
use crate::recipe::recipes;
use crate::schema_form::{FormValues, build};
use crate::tool_list::{Health, ToolRow, ToolsPage};
use crate::tool_page::{Tab, TabContent, ToolPage, TryContent, TryResult};
use crate::toolsets::{ChangedTool, Comparison, ToolsetRow, ToolsetsPage};
use crate::voice::{VoicePage, VoiceTool};
use crate::{error_page::ErrorPage, sign_in::SignInPage};

/// Text that would be markup, a script, or turn the direction of what follows.
const HOSTILE: &str = "</pre>\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}javascript:";

fn layout(text: &str) -> Layout {
    Layout {
        title: text.to_owned(),
        page: Page::Tools,
        user: text.to_owned(),
        is_admin: true,
        is_signed_in: true,
        toolset: text.to_owned(),
        model: text.to_owned(),
        pending: 3,
        csrf: "0123".to_owned(),
        may_search: true,
        scripts: &[],
    }
}

fn pages(text: &str) -> Vec<(&'static str, String)> {
    let page = |tab, content| tool_page(text, tab, content);
    let whole = Some("/v1/tools/t".to_owned());
    let documentation = TabContent::Documentation { text: Markdown::new(text), whole };
    let mut pages = vec![
        ("home", home(text).to_string()),
        ("tools", tools(text).to_string()),
        ("tool", page(Tab::Try, try_content(text)).to_string()),
        ("tool documentation", page(Tab::Documentation, documentation).to_string()),
        ("toolsets", toolsets(text).to_string()),
        ("error", ErrorPage { status: 404, title: "Not found", detail: text, request_id: text }.to_string()),
        ("sign-in", SignInPage { next: text, error: Some(text) }.to_string()),
        ("charts", charts(text)),
    ];
    pages.extend(voice_pages(text));
    pages.into_iter().map(|(name, page)| (name, escape_page(&page).into_owned())).collect()
}

fn home(text: &str) -> HomePage {
    let own = || text.to_owned();
    HomePage {
        layout: layout(text),
        headline: own(),
        subline: own(),
        notices: vec![Notice::new(Tone::Warn, own(), own()).with_fix(own())],
        findings: vec![Finding {
            is_error: true,
            code: own(),
            place: own(),
            message: Words(own()),
            help: Some(Words(own())),
            source: Some(own()),
        }],
        is_watching: true,
        facts: vec![StatusRow::new("Toolset", own(), own())],
        checks: vec![CheckRow {
            name: own(),
            state: Chip::new(Tone::Ok, "ok"),
            message: Words(own()),
            help: Some(Words(format!("run `{text}` again"))),
        }],
        recipes: recipes(text, true, None),
        calls: vec![call_row(text)],
    }
}

fn call_row(text: &str) -> CallRow {
    let own = || text.to_owned();
    CallRow {
        time: Time(0),
        tool: own(),
        href: "/calls/c1?session=s".to_owned(),
        outcome: Chip::outcome("ok"),
        event: Some(Chip::new(Tone::Plain, own())),
        duration: own(),
        user: own(),
        session: own(),
        session_href: "/sessions/s".to_owned(),
    }
}

fn tools(text: &str) -> ToolsPage {
    let own = || text.to_owned();
    ToolsPage {
        layout: layout(text),
        subline: own(),
        query: own(),
        categories: Choice::words("All", &["action"], None),
        effects: Vec::new(),
        modes: Vec::new(),
        confirmations: Vec::new(),
        is_filtered: true,
        rows: vec![tool_row(text)],
        pager: Pager { summary: own(), first: None, previous: None, next: Some("/tools?page=2".to_owned()) },
    }
}

fn tool_row(text: &str) -> ToolRow {
    let sparkline =
        Sparkline { label: text.to_owned(), values: vec![Some(1.0), None, Some(3.0)], limit: Some(2.0) };
    let own = || text.to_owned();
    ToolRow {
        id: own(),
        summary: own(),
        category: own(),
        effects: own(),
        asks_first: true,
        modes: own(),
        version: own(),
        budget: "800 ms".to_owned(),
        health: Health {
            calls: own(),
            errors: own(),
            p95: own(),
            is_over_budget: true,
            sparkline: Some(sparkline),
        },
    }
}

fn tool_page(text: &str, tab: Tab, content: TabContent) -> ToolPage {
    let own = || text.to_owned();
    ToolPage {
        layout: layout(text),
        id: own(),
        summary: own(),
        category: own(),
        properties: vec![Chip::new(Tone::Plain, own())],
        tab,
        content,
    }
}

fn try_content(text: &str) -> TabContent {
    let schema =
        json!({ "type": "object", "properties": { text: { "type": "string", "description": text } } });
    let own = || text.to_owned();
    let result = TryResult {
        outcome: Chip::outcome(text),
        duration_ms: 41,
        execution_id: own(),
        href: "/calls/c1?session=s".to_owned(),
        envelope: Code::new("Envelope", own()),
        curl: Some(own()),
        args_json: own(),
        mode: own(),
        expect_json: own(),
        is_waiting: true,
    };
    TabContent::Try(Box::new(TryContent {
        form: build(&schema, &FormValues::from_args(json!({ text: text })), &[]),
        modes: Choice::words("any", &["text"], Some("text")),
        json: own(),
        json_error: Some(own()),
        notices: Vec::new(),
        result: Some(result),
        cannot_save: None,
        calls: vec![call_row(text)],
    }))
}

fn toolsets(text: &str) -> ToolsetsPage {
    let own = || text.to_owned();
    let diffs = Diff::new(own(), "a\nb", &format!("a\n{text}")).into_iter().collect();
    let changed = ChangedTool { id: own(), versions: own(), diffs };
    let row = ToolsetRow {
        id: own(),
        is_current: true,
        tools: "14".to_owned(),
        size: "1 KB".to_owned(),
        sessions: 2,
        stored_at: Time(0),
        used_at: Time(1000),
    };
    let comparison = Comparison {
        title: own(),
        added: vec![own()],
        removed: vec![own()],
        changed: vec![changed],
        more_changed: vec![own()],
        counts: ["1", "1", "1", "3"].map(str::to_owned),
    };
    ToolsetsPage {
        layout: layout(text),
        rows: vec![row],
        from: Vec::new(),
        to: Vec::new(),
        comparison: Some(comparison),
    }
}

fn voice_pages(text: &str) -> [(&'static str, String); 2] {
    let page = |has_model| voice(text, has_model).to_string();
    [("voice", page(true)), ("voice without a model", page(false))]
}

fn voice(text: &str, has_model: bool) -> VoicePage {
    let own = || text.to_owned();
    VoicePage {
        layout: layout(text),
        subline: own(),
        notices: vec![Notice::new(Tone::Info, own(), own()).with_fix(own())],
        has_model,
        tools: vec![VoiceTool { id: own(), summary: own(), asks_first: true }],
        more_tools: 2,
    }
}

fn charts(text: &str) -> String {
    let own = || text.to_owned();
    let point = |value: f64| Point { label: own(), value, text: own() };
    let bars = BarChart { title: own(), x_name: own(), y_name: own(), points: vec![point(1.0), point(2.0)] };
    let line = Line { name: own(), values: vec![Some(1.0), None], texts: vec![own(), own()] };
    let lines = LineChart { title: own(), x_name: own(), labels: vec![own(), own()], lines: vec![line] };
    format!("{bars}\n{lines}")
}

#[test]
fn hostile_text_stays_text_on_every_page() {
    let plain = pages("plain");
    for ((name, page), (_, expected)) in pages(HOSTILE).iter().zip(&plain) {
        for markup in ["<script>", "<img", "</pre>\"", "onerror=alert(1)>"] {
            assert!(!page.contains(markup), "{name} has {markup}: {page}");
        }
        let shown: String =
            page.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
        assert!(!shown.contains('\u{202e}'), "{name} has reordered text: {shown}");
        let count = |page: &str| page.matches(['<']).count();
        assert_eq!(count(page), count(expected), "{name} has other elements with hostile text");
    }
}

#[test]
fn pages_look_as_before() {
    for (name, page) in pages("plain") {
        // The digests of assets change with every edit of a style.
        let page =
            page.split("?v=").enumerate().map(|(index, part)| if index == 0 { part } else { &part[16..] });
        insta::assert_snapshot!(name, page.collect::<String>());
    }
}

#[test]
fn templates_have_no_script_style_or_unescaped_value_of_their_own() {
    let mut files = Vec::new();
    for folder in ["templates", "templates/parts"] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let found = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        files.extend(found.filter(|path| path.is_file()));
    }
    assert!(files.len() > 12);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for refused in [
            "|safe",
            "| safe",
            "style=",
            "<style",
            "<script>",
            "javascript:",
            "http://",
            "https://",
            "autoescape",
        ] {
            assert!(!text.contains(refused), "{} has {refused}", file.display());
        }
        let has_handler = text.split_whitespace().any(|word| word.starts_with("on") && word.contains("=\""));
        assert!(!has_handler, "{} has an event handler", file.display());
    }
}
