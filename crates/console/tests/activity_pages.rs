//! The pages about what was done: calls, confirmations, sessions, metrics, audit, knowledge base. Hostile texts stay
//! texts.

#![allow(clippy::unwrap_used)]

use serde_json::json;
use toolwright_console::audit::{AuditEntryRow, AuditFilters, AuditPage};
use toolwright_console::call_list::{CallFilters, CallRow, CallsPage};
use toolwright_console::call_page::{CallPage, HistoryRow, NestedRow, RepeatForm, waterfall};
use toolwright_console::chart::{BarChart, Line, LineChart, Point};
use toolwright_console::confirmations::{ConfirmationsPage, WaitingRequest};
use toolwright_console::knowledge_base::{AddText, KnowledgeBasePage, RecordPage, SearchResult};
use toolwright_console::parts::{Chip, Choice, Code, CsrfField, Notice, Pager, Time, Tone};
use toolwright_console::session_list::{SessionRow, SessionsPage};
use toolwright_console::session_page::{MeterRow, SessionPage, TranscriptPart, TranscriptTurn};
use toolwright_console::usage::{ModelChart, UsagePage, UsageRow};
use toolwright_console::{Layout, Page, Template, render};

const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}<img src=x onerror=alert(2)>";

fn layout(page: Page) -> Layout {
    Layout {
        title: "Page".to_owned(),
        page,
        user: "mira".to_owned(),
        is_admin: true,
        is_signed_in: true,
        toolset: "1.0.abcdef12".to_owned(),
        model: "offline".to_owned(),
        pending: 2,
        csrf: "token".to_owned(),
        may_search: true,
        scripts: &[],
    }
}

/// The part of a page that is its own.
fn main_of(page: &impl Template) -> String {
    let html = render(page).unwrap();
    let (_, rest) = html.split_once("<main id=\"main\" tabindex=\"-1\">").unwrap();
    rest.split("</main>").next().unwrap().trim().to_owned()
}

/// No text of the data has become markup.
fn assert_harmless(page: &impl Template) {
    let html = render(page).unwrap();
    assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
    assert!(html.contains("&#60;script&#62;") || html.contains("&lt;script&gt;"), "{html}");
    let shown = text_of(&html);
    assert!(!shown.contains('\u{202e}') && shown.contains("\\u202e"), "text is reordered: {shown}");
}

/// The text of a page, without tags and what is in a field to be edited.
fn text_of(html: &str) -> String {
    let without_fields =
        html.split("<textarea").enumerate().map(|(index, part)| match part.split_once("</textarea>") {
            Some((_, after)) if index > 0 => after,
            _ => part,
        });
    let parts: String = without_fields.collect();
    parts.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect()
}

fn call_row(tool: &str) -> CallRow {
    CallRow {
        time: Time(1_780_000_000_000),
        tool: tool.to_owned(),
        href: "/calls/c1?session=s".to_owned(),
        outcome: Chip::outcome("ok"),
        event: Some(Chip::new(Tone::Plain, "replayed")),
        duration: "3 ms".to_owned(),
        user: format!("studio/{tool}"),
        session: tool.to_owned(),
        session_href: "/sessions/s".to_owned(),
    }
}

fn calls(text: &str) -> CallsPage {
    CallsPage {
        layout: layout(Page::Calls),
        filters: CallFilters {
            tool: text.to_owned(),
            tools: vec![text.to_owned()],
            outcomes: Choice::words("Any outcome", &["ok", "error"], Some("error")),
            events: Choice::words("However it ended", &["called"], None),
            times: Vec::new(),
            session: text.to_owned(),
            principal: Some(text.to_owned()),
            clear: Some("/calls".to_owned()),
        },
        calls: vec![call_row(text)],
        pager: Pager { next: Some("/calls?before=7".to_owned()), ..Pager::default() },
        is_live: true,
        empty: String::new(),
    }
}

fn call(text: &str) -> CallPage {
    let steps =
        [("resolve", 12), ("admit", 30), ("run", 1500), ("backoff", 120_000), ("run", 900), ("settle", 8)];
    CallPage {
        layout: layout(Page::Calls),
        tool: text.to_owned(),
        tool_href: "/tools/t".to_owned(),
        execution: text.to_owned(),
        session: text.to_owned(),
        session_href: "/sessions/s".to_owned(),
        outcome: Chip::outcome("TRANSIENT"),
        time: Time(1_780_000_000_000),
        facts: vec![("User", text.to_owned())],
        notices: vec![Notice::new(Tone::Bad, "TRANSIENT", text)],
        steps: waterfall(steps.into_iter()),
        parent_href: Some("/calls/c0?session=s".to_owned()),
        args: Some(Code::json("Arguments", &json!({ "text": text }))),
        args_note: String::new(),
        envelope: Some(Code::json("Envelope", &json!({ "ok": true, "data": text }))),
        envelope_note: text.to_owned(),
        history: vec![HistoryRow {
            number: 7,
            time: Time(1_780_000_000_000),
            event: text.to_owned(),
            outcome: Some(Chip::outcome(text)),
            duration: "3 ms".to_owned(),
            note: text.to_owned(),
        }],
        nested: vec![NestedRow {
            depth: 1,
            tool: text.to_owned(),
            href: "/calls/c1.1?session=s".to_owned(),
            execution: text.to_owned(),
            outcome: Chip::outcome("ok"),
            duration: "1 ms".to_owned(),
        }],
        again: Some(RepeatForm {
            csrf: CsrfField("token".to_owned()),
            action: "/calls/c1/again?session=s".to_owned(),
            args: text.to_owned(),
            error: Some(text.to_owned()),
        }),
    }
}

fn confirmations(text: &str) -> ConfirmationsPage {
    ConfirmationsPage {
        layout: layout(Page::Confirmations),
        notices: Vec::new(),
        requests: vec![WaitingRequest {
            id: "q 1".to_owned(),
            tool: text.to_owned(),
            tool_href: "/tools/t".to_owned(),
            version: "1.0.0".to_owned(),
            preview: text.to_owned(),
            args: Code::json("Arguments", &json!({ "to": text })),
            editable: Some(text.to_owned()),
            whole_preview: None,
            user: text.to_owned(),
            session: text.to_owned(),
            session_href: "/sessions/s".to_owned(),
            call_href: "/calls/c1?session=s".to_owned(),
            created: Time(1_780_000_000_000),
            expires: Time(1_780_000_600_000),
            expires_at: 1_780_000_600_000,
            remaining: "9 min 3 s".to_owned(),
            error: Some(text.to_owned()),
            csrf: CsrfField("token".to_owned()),
            can_answer: true,
        }],
        pager: Pager::default(),
        hint: String::new(),
    }
}

fn sessions(text: &str) -> SessionsPage {
    SessionsPage {
        layout: layout(Page::Sessions),
        sessions: vec![SessionRow {
            id: text.to_owned(),
            href: "/sessions/s".to_owned(),
            status: Chip::new(Tone::Ok, "active"),
            mode: "text".to_owned(),
            user: text.to_owned(),
            client: text.to_owned(),
            turns: "3".to_owned(),
            toolset: text.to_owned(),
            created: Time(1_780_000_000_000),
        }],
        pager: Pager::default(),
    }
}

fn session(text: &str) -> SessionPage {
    let part = |role, href: Option<&str>| TranscriptPart {
        role,
        text: text.to_owned(),
        href: href.map(str::to_owned),
    };
    SessionPage {
        layout: layout(Page::Sessions),
        id: text.to_owned(),
        status: Chip::new(Tone::Ok, "active"),
        created: Time(1_780_000_000_000),
        expires: Time(1_780_000_600_000),
        facts: vec![("User", text.to_owned())],
        notices: Vec::new(),
        meters: vec![MeterRow {
            name: "retrieval".to_owned(),
            scope: "turn",
            spent: "2".to_owned(),
            limit: "5".to_owned(),
        }],
        state: Code::json("State", &json!({ "text": text })),
        turns: vec![TranscriptTurn {
            parts: vec![
                part("user", None),
                part("assistant", None),
                part("tool", Some("/calls/c1?session=s")),
            ],
            outcome: Some(Chip::new(Tone::Warn, "awaits approval")),
        }],
        is_truncated: true,
        calls: vec![call_row(text)],
        calls_href: "/calls?session=s".to_owned(),
        chat_href: Some("/chat/s".to_owned()),
        end: Some(CsrfField("token".to_owned())),
    }
}

fn usage(text: &str) -> UsagePage {
    let bars = |title: &str| BarChart {
        title: title.to_owned(),
        x_name: "Time (UTC)".to_owned(),
        y_name: "Calls".to_owned(),
        points: vec![Point { label: "10:00".to_owned(), value: 4.0, text: "4".to_owned() }],
    };
    UsagePage {
        layout: layout(Page::Metrics),
        notices: Vec::new(),
        spans: Choice::words("Last hour", &["6h"], None),
        tool: text.to_owned(),
        tools: vec![text.to_owned()],
        facts: vec![("Calls", "4".to_owned())],
        calls: bars("Calls"),
        latency: LineChart {
            title: "Latency".to_owned(),
            x_name: "Time (UTC)".to_owned(),
            labels: vec!["10:00".to_owned(), "10:01".to_owned()],
            lines: vec![Line {
                name: "p50".to_owned(),
                values: vec![Some(2.0), None],
                texts: vec!["2 ms".to_owned(), "–".to_owned()],
            }],
        },
        errors: bars("Errors"),
        versions: Choice::words("All versions", &["1.0.0"], None),
        models: vec![ModelChart { title: "Tokens", note: "per minute", chart: None, empty: "No tokens." }],
        rows: vec![UsageRow {
            tool: text.to_owned(),
            href: "/calls?tool=t".to_owned(),
            version: "1.0.0".to_owned(),
            version_href: "/usage?tool=t&version=1.0.0".to_owned(),
            calls: "4".to_owned(),
            errors: "1".to_owned(),
            refusals: "0".to_owned(),
            replays: "0".to_owned(),
            p50: "2 ms".to_owned(),
            p90: "3 ms".to_owned(),
            p99: "4 ms".to_owned(),
        }],
        agent: vec![("Model", text.to_owned())],
    }
}

fn audit(text: &str) -> AuditPage {
    AuditPage {
        layout: layout(Page::Audit),
        is_verifying: false,
        verify: "/audit/verify".to_owned(),
        verified: Some(Notice::new(Tone::Ok, "The audit is intact.", "7 entries checked.")),
        heads: Some(Code::new("Heads", text)),
        csrf: CsrfField("token".to_owned()),
        filters: AuditFilters { tool: text.to_owned(), ..AuditFilters::default() },
        entries: vec![AuditEntryRow {
            number: 7,
            time: Time(1_780_000_000_000),
            event: text.to_owned(),
            tool: text.to_owned(),
            outcome: Chip::new(Tone::Plain, text),
            user: text.to_owned(),
            session: text.to_owned(),
            href: "/calls/c1?session=s".to_owned(),
            duration: "3 ms".to_owned(),
            more: text.to_owned(),
        }],
        pager: Pager::default(),
        export: "/audit/export".to_owned(),
    }
}

fn knowledge_base(text: &str) -> KnowledgeBasePage {
    KnowledgeBasePage {
        layout: layout(Page::KnowledgeBase),
        notices: Vec::new(),
        facts: vec![("Records".to_owned(), "12".to_owned())],
        query: text.to_owned(),
        namespaces: Choice::words("The team", &["public"], None),
        results: Some(vec![SearchResult {
            id: text.to_owned(),
            href: "/kb/doc%3Aa".to_owned(),
            title: text.to_owned(),
            kind: text.to_owned(),
            snippet: text.to_owned(),
            score: "0.83".to_owned(),
            share: 83,
        }]),
        summary: "1 record in 2 ms (hybrid)".to_owned(),
        add: Some(AddText {
            csrf: CsrfField("token".to_owned()),
            name: text.to_owned(),
            text: text.to_owned(),
            namespaces: Vec::new(),
            error: Some(text.to_owned()),
        }),
    }
}

fn record(text: &str) -> RecordPage {
    RecordPage {
        layout: layout(Page::KnowledgeBase),
        id: text.to_owned(),
        title: text.to_owned(),
        chips: vec![Chip::new(Tone::Info, text)],
        facts: vec![("Address", "javascript:alert(1)".to_owned())],
        text: text.to_owned(),
        metadata: Some(Code::json("Metadata", &json!({ "text": text }))),
    }
}

#[test]
fn pages_are_as_they_were_seen() {
    insta::assert_snapshot!("calls", main_of(&calls("kb_search")));
    insta::assert_snapshot!("call", main_of(&call("kb_search")));
    insta::assert_snapshot!("confirmations", main_of(&confirmations("mail_send")));
    insta::assert_snapshot!("sessions", main_of(&sessions("sess_1")));
    insta::assert_snapshot!("session", main_of(&session("sess_1")));
    insta::assert_snapshot!("usage", main_of(&usage("kb_search")));
    insta::assert_snapshot!("audit", main_of(&audit("kb_search")));
    insta::assert_snapshot!("knowledge_base", main_of(&knowledge_base("tea")));
    insta::assert_snapshot!("record", main_of(&record("doc:tea")));
}

#[test]
fn hostile_texts_stay_texts() {
    assert_harmless(&calls(HOSTILE));
    assert_harmless(&call(HOSTILE));
    assert_harmless(&confirmations(HOSTILE));
    assert_harmless(&sessions(HOSTILE));
    assert_harmless(&session(HOSTILE));
    assert_harmless(&usage(HOSTILE));
    assert_harmless(&audit(HOSTILE));
    assert_harmless(&knowledge_base(HOSTILE));
    assert_harmless(&record(HOSTILE));
    let html = record(HOSTILE).render().unwrap();
    assert!(!html.contains("href=\"javascript:"), "an address of a record is no link");
}
