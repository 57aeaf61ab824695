//! Single mistakes in `schema.json` and in documented envelopes, each reported at its position.

use super::support::{Project, assert_message_names_field};

/// The text to replace in a valid `schema.json`, its replacement, and the expected `line:column code` and further
/// codes.
#[rustfmt::skip] // a table
const MISTAKES: &[(&str, &str, &str)] = &[
    ("\"toolId\": \"", "\"toolId\": \"9", "2:13 tool-id-form"),
    ("\"1.0.0\"", "1", "3:14 field-type"),
    ("\"1.0.0\"", "\"v1.0.0\"", "3:14 field-value"),
    ("\"Find notes.\"", "\"  \"", "4:18 field-value"),
    ("\"Find notes.\"", "null", "4:18 field-type"),
    ("\"retrieval\"", "\"Retrieval\"", "5:15 field-value"),
    ("\"read_only\"", "\"readonly\"", "6:18 field-value"),
    ("\"idempotent\": true", "\"idempotent\": 1", "7:17 field-type"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": \"no\"", "8:27 field-type"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {}", "8:27 field-missing"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {\"when\": \"true\", \"if\": 1}", "8:44 field-unknown"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {\"when\": \"\"}", "8:36 field-value"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {\"when\": \"true\", \"preview\": \"{{query\"}", "8:55 preview-syntax"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {\"when\": \"true\", \"preview\": \"{{x}}\", \"read\": {\"x\": {\"call\": \"kb.serch\"}}}", "8:87 field-value"),
    ("\"requiresConfirmation\": false", "\"requiresConfirmation\": {\"when\": \"true\", \"preview\": \"{{x}}\", \"read\": {\"x\": {\"call\": \"kb.get\", \"with\": {\"ids\": \"{{qury}}\"}}}}", "8:113 preview-unknown-name"),
    ("[\"text\", \"voice\"]", "\"text\"", "9:19 field-type"),
    ("[\"text\", \"voice\"]", "[\"text\", \"text\"]", "9:28 field-value"),
    ("[\"text\", \"voice\"]", "[\"text\", \"video\"]", "9:28 field-value"),
    ("800", "-1", "10:22 field-value"),
    ("800", "\"800\"", "10:22 field-type"),
    ("800,", "800, \"timeoutMs\": 0,", "10:40 field-value timeout-below-budget"),
    ("800,", "800, \"execution\": \"later\",", "10:40 field-value"),
    ("800,", "800, \"availability\": {},", "10:43 field-missing"),
    ("800,", "800, \"availability\": \"true\",", "10:43 field-type"),
    ("800,", "800, \"availability\": {\"condition\": \"1 +\"},", "10:57 cel-syntax"),
    ("800,", "800, \"availability\": {\"condition\": \"usr.id == 1\"},", "10:57 cel-unknown-name"),
    ("800,", "800, \"availability\": {\"condition\": \"args.qury == 1\"},", "10:57 cel-unknown-parameter"),
    ("800,", "800, \"availability\": {\"condition\": \"args.query == 1\"},", "10:57 cel-type"),
    ("800,", "800, \"permissions\": {\"role\": []},", "10:43 field-unknown"),
    ("800,", "800, \"permissions\": {\"roles\": [\"a\", \"a\"]},", "10:58 field-value"),
    ("800,", "800, \"permissions\": {\"rateLimit\": {\"calls\": 1.5, \"window\": 1}},", "10:66 field-value"),
    ("800,", "800, \"clamp\": {\"text\": {\"query\": 3}},", "10:46 clamp-target"),
    ("800,", "800, \"clamp\": {\"text\": {\"top_k\": \"3\"}},", "10:55 field-type"),
    ("800,", "800, \"clamp\": {\"text\": {\"top_k\": 0}},", "10:55 clamp-target"),
    ("800,", "800, \"clamp\": {\"sms\": {}},", "10:37 field-unknown"),
    ("800,", "800, \"tags\": [\"\"],", "10:36 field-value"),
    ("800,", "800, \"output\": [],", "10:37 field-type"),
    ("800,", "800, \"output\": {\"typ\": \"object\"},", "10:38 schema-unknown-keyword"),
    ("800,", "800, \"output\": {\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\", \"default\": \"x\"}}},", "10:107 default-refused"),
    ("    \"type\": \"object\",\n", "", "11:3 parameters-not-object"),
    ("\"type\": \"object\"", "\"type\": \"array\"", "12:13 parameters-not-object"),
    ("\"additionalProperties\": false", "\"additionalProperties\": true", "13:5 parameters-open"),
    ("\"minLength\": 1 }", "\"minLength\": -1 }", "16:84 schema-invalid"),
    ("\"default\": 3", "\"default\": \"3\"", "17:77 default-refused"),
];

#[test]
fn each_mistake_in_a_field_is_reported_at_its_position() {
    let project = Project::empty();
    for (number, (from, to, _)) in MISTAKES.iter().enumerate() {
        let tool = format!("t{number:02}");
        project.add_tool(&tool);
        project.edit(&format!("{tool}/schema.json"), from, to);
    }
    let report = project.check().expect_code(1).json();
    let mut wrong = Vec::new();
    for (number, (from, to, expected)) in MISTAKES.iter().enumerate() {
        let mut found: Vec<String> = Vec::new();
        for entry in report["diagnostics"].as_array().unwrap() {
            if entry["tool"] == format!("t{number:02}") && entry["file"] == "schema.json" {
                assert_message_names_field(entry, &project.read(&format!("t{number:02}/schema.json")));
                let code = entry["code"].as_str().unwrap().to_owned();
                let place = format!("{}:{} {code}", entry["line"], entry["column"]);
                found.push(if found.is_empty() { place } else { code });
            }
        }
        if found.join(" ") != *expected {
            wrong.push(format!("{from} → {to}: {} instead of {expected}", found.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A documented envelope, and the expected `column code` on the line of the example.
#[rustfmt::skip] // a table
const ENVELOPES: &[(&str, &str)] = &[
    (r#"{"ok": true, "data": {}}"#, ""),
    (r#"{"ok": true, "data": {}, "intents": [{"type": "SUPPRESS_AUDIO", "value": true}], "meta": {}}"#, ""),
    (r#"{"ok": false, "error": {"type": "AUTH", "message": "no"}}"#, ""),
    (r#"{"ok": true}"#, "2 example-envelope"),
    (r#"{"ok": false}"#, "2 example-envelope"),
    (r#"{"ok": true, "data": {}, "error": {}}"#, "26 example-envelope"),
    (r#"{"ok": true, "data": {}, "intents": [{"type": "SUPRESS_AUDIO"}]}"#, "47 example-envelope"),
    (r#"{"ok": true, "data": {}, "intents": [{}]}"#, "38 example-envelope"),
    (r#"{"ok": false, "error": "no"}"#, "15 example-envelope"),
    (r#"{"ok": false, "error": {"message": "no"}}"#, "15 example-envelope"),
    (r#"{"ok": false, "error": {"type": "AUTH"}}"#, "15 example-envelope"),
    (r#"{"ok": false, "error": {"type": "AUTH", "message": "no", "retryable": "yes"}}"#, "71 example-envelope"),
    (r#"{"ok": "yes"}"#, "1 example-refused"),
    (r#"["query"]"#, "1 example-refused"),
    (r#"{"query": ""}"#, "11 example-refused"),
    (r#"{}"#, "1 example-refused"),
];

#[test]
fn each_mistake_in_a_documented_example_is_reported_at_its_position() {
    let project = Project::empty();
    for (number, (envelope, _)) in ENVELOPES.iter().enumerate() {
        let tool = format!("t{number:02}");
        project.add_tool(&tool);
        let call = "```json\n{ \"query\": \"opening hours\" }\n```";
        let doc = format!("{tool}/doc.md");
        project.edit(&doc, call, &format!("{call}\n\n```json\n{envelope}\n```"));
    }
    let report = project.check().expect_code(1).json();
    let mut wrong = Vec::new();
    for (number, (envelope, expected)) in ENVELOPES.iter().enumerate() {
        let all = report["diagnostics"].as_array().unwrap().iter();
        let own = all.filter(|entry| entry["tool"] == format!("t{number:02}"));
        let first = own.map(|entry| {
            assert_eq!((&entry["file"], &entry["line"]), (&"doc.md".into(), &24.into()), "{entry}");
            format!("{} {}", entry["column"], entry["code"].as_str().unwrap())
        });
        let first = first.min().unwrap_or_default();
        if first != *expected {
            wrong.push(format!("{envelope}: {first} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn intents_of_a_documented_envelope_are_a_list() {
    let project = Project::with(&["note-find"]);
    let envelope = "{\"ok\": true, \"data\": {}, \"intents\": {}}";
    project.edit("note-find/doc.md", "{ \"query\": \"opening hours\" }", envelope);
    let found = project.check().expect_code(1).found();
    assert_eq!(found, ["note-find/doc.md:20:37 example-envelope"]);
}
