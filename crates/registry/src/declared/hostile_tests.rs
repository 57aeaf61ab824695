use std::fmt::Write;

use serde_json::{Value, json};

use super::*;
use crate::corpora::corpus;
use crate::toolset::Toolset;

/// The message of the only error, which is about the file. There are no tools.
fn reject(file: &str, text: &str) -> String {
    let (tools, errors) = read(Path::new(file), text, &|_| true);
    assert_eq!((tools, errors.len()), (vec![], 1), "{file}: {errors:?}");
    assert!(matches!(errors[0], Error::File { .. }), "{errors:?}");
    let message = errors[0].to_string();
    assert!(message.len() < 1000 && !message.contains('\n'), "{message}");
    message
}

const TOOL: &str = r#"{"name":"t","description":"d","type":"function","handler":"h",
    "parameters":{"type":"object"},"implementation":{"type":"mock","mock_response":RESPONSE}}"#;

fn mocked(response: &str) -> String {
    format!("{{\"tools\":[{}]}}", TOOL.replace("RESPONSE", response))
}

#[test]
fn a_file_that_cannot_be_parsed_is_one_error() {
    for (file, text) in [
        ("a.json", ""),
        ("a.json", "{\"tools\": [}"),
        ("a.json", "tools: []"),
        ("a.json", "[]"),
        ("a.yaml", ""),
        ("a.yaml", "- a"),
        ("a.yaml", "tools: [\n"),
        ("a.yaml", "tools: []\n---\ntools: []\n"),
        ("a.yaml", "tools: *nothing\n"),
        ("a.yaml", "tools:\n\t- a\n"),
        ("a.toml", "tools = ["),
        ("a.toml", "tools"),
        ("a.txt", "tools: []"),
        ("tools", "tools: []"),
    ] {
        reject(file, text);
    }
    assert_eq!(
        reject("a.json", "{\n  \"tools\": [}"),
        "a.json: not JSON: expected value at line 2, column 13"
    );
    assert!(reject("a.toml", "tools = [").contains("line 1"));
    assert!(reject("a.yaml", "a: [\n").contains("line"));
}

#[test]
fn repeated_keys_are_rejected() {
    let message = reject("a.json", "{\"tools\": [],\n \"tools\": []}");
    assert_eq!(message, "a.json: the key `tools` is repeated at line 2, column 2");
    reject("a.json", &mocked("{\"a\": 1, \"\\u0061\": 2}"));
    reject("a.yaml", "tools: []\ntools: []\n");
    reject("a.yaml", &mocked("{a: 1, \"a\": 2}"));
    reject("a.toml", "tools = []\ntools = []\n");
}

#[test]
fn numbers_without_a_json_form_are_rejected() {
    for number in ["NaN", "Infinity", "1e999"] {
        reject("a.json", &mocked(number));
    }
    for number in [".nan", "-.inf", "1e999", "!!float nan"] {
        reject("a.yaml", &mocked(number));
    }
    for number in ["nan", "-inf"] {
        reject("a.toml", &format!("tools = []\nversion = {number}\n"));
    }
}

#[test]
fn yaml_1_2_words_are_strings_and_not_booleans() {
    let text = mocked("[no, off, y, true, 012, 0o14, 1_000, ~, 2001-01-01, 1e3]");
    let (tools, errors) = read(Path::new("a.yaml"), &text, &|_| true);
    assert_eq!(errors, []);
    let Implementation::Mock(Value::Array(values)) = &tools[0].implementation else { panic!() };
    assert_eq!(values[..4], [json!("no"), json!("off"), json!("y"), json!(true)]);
    assert_eq!((&values[7], &values[8], &values[9]), (&Value::Null, &json!("2001-01-01"), &json!(1000.0)));
}

#[test]
fn a_toml_date_becomes_a_string() {
    let text = "[[tools]]\nname = 't'\ndescription = 'd'\ntype = 'function'\nparameters.type = 'object'\n\
                implementation = { type = 'mock', mock_response = 2026-01-02T03:04:05Z }\n";
    let (tools, errors) = read(Path::new("a.toml"), text, &|_| true);
    assert_eq!(errors, []);
    assert_eq!(tools[0].implementation, Implementation::Mock(json!("2026-01-02T03:04:05Z")));
}

#[test]
fn the_expansion_of_aliases_and_merges_is_limited() {
    let text = "version: 1\ntools:\n  - &base\n    name: a\n    description: d\n    type: function\n    \
                parameters: &none { type: object }\n    implementation: { type: mock, mock_response: 1 }\n  \
                - { name: b, description: d, type: function, parameters: *none, implementation: { type: mock, mock_response: 2 } }\n  \
                - { <<: *base, name: c }\n";
    let (tools, errors) = read(Path::new("a.yaml"), text, &|_| true);
    assert_eq!((tools.len(), errors), (3, vec![]));

    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    let mut merges = "a0: &a0 { k0: 1 }\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        let _ = writeln!(laughs, "a{level}: &a{level} [{}]", [below.as_str(); 9].join(", "));
        let _ = writeln!(
            merges,
            "a{level}: &a{level} {{ <<: [{}], k{level}: 1 }}",
            [below.as_str(); 9].join(", ")
        );
    }
    assert!(reject("a.yaml", &laughs).contains("limit exceeded"));
    assert!(reject("a.yaml", &merges).contains("MergeKeys"));
    // Few aliases, each of something long.
    let mut long = format!("a: &a {}\nb:\n", "x".repeat(1 << 20));
    for _ in 0..90 {
        long.push_str("  - *a\n");
    }
    assert!(reject("a.yaml", &long).contains("grows too large"));
    reject("a.yaml", "a: &a [*a]\n");
}

#[test]
fn deep_nesting_is_rejected() {
    for depth in [200, 5_000, 400_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{{\"tools\": {}0{}}}", open.repeat(depth), close.repeat(depth));
            reject("a.json", &text);
            reject("a.yaml", &text);
        }
        reject("a.toml", &format!("a = {}{}", "[".repeat(depth), "]".repeat(depth)));
        reject("a.toml", &format!("a = {}0{}", "{a=".repeat(depth), "}".repeat(depth)));
        for text in [format!("a{} = 1", ".a".repeat(depth)), format!("[a{}]", ".a".repeat(depth))] {
            let (tools, errors) = read(Path::new("a.toml"), &text, &|_| true);
            assert!(tools.is_empty() && !errors.is_empty());
        }
        reject("a.yaml", &"- ".repeat(depth));
        let ladder: String = (0..depth.min(1500)).map(|level| " ".repeat(level) + "a:\n").collect();
        reject("a.yaml", &ladder);
    }
}

#[test]
fn large_files_are_rejected() {
    for file in ["a.json", "a.yaml", "a.toml"] {
        assert!(reject(file, &mocked(&"1".repeat(10_000_000))).contains("bytes"));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.json");
    std::fs::write(&path, " ".repeat(10_000_000)).unwrap();
    for path in [path.as_path(), dir.path(), &dir.path().join("absent.json")] {
        let (tools, errors) = load(path, &|_| true);
        assert!(tools.is_empty() && matches!(errors[..], [Error::File { .. }]), "{errors:?}");
    }
    std::fs::write(&path, mocked("1")).unwrap();
    assert_eq!((load(&path, &|_| true).0.len(), load(&path, &|_| true).1), (1, vec![]));
    std::fs::write(&path, b"{\"tools\": [\"\xff\"]}").unwrap();
    assert!(load(&path, &|_| true).1[0].to_string().contains("not UTF-8 at byte 12"));
}

#[test]
fn the_number_of_errors_is_limited_and_valid_tools_are_used() {
    let bad = "1,".repeat(10_000);
    let text = format!("{{\"tools\":[{bad}{}]}}", TOOL.replace("RESPONSE", "0"));
    for file in ["a.json", "a.yaml"] {
        let (tools, errors) = read(Path::new(file), &text, &|_| true);
        assert_eq!((tools.len(), errors.len()), (1, MAX_ERRORS + 1));
        assert!(errors[MAX_ERRORS].to_string().contains("9900 more problems"), "{}", errors[MAX_ERRORS]);
    }
}

const POINTERS: &str = "
    /version /tools /tools/0 /tools/0/name
    /tools/0/description /tools/0/type /tools/0/handler /tools/0/parameters
    /tools/0/parameters/type /tools/0/parameters/properties /tools/0/implementation /tools/0/implementation/type
    /tools/0/implementation/mock_response /tools/0/version /tools/0/category /tools/0/sideEffects
    /tools/0/idempotent /tools/0/requiresConfirmation /tools/0/allowedModes /tools/0/latencyBudgetMs
    /tools/0/timeoutMs /tools/0/tags /tools/0/summary
";

/// Every part of a definition is replaced by every type of value.
#[test]
fn a_value_of_any_type_in_any_place_is_an_error_or_a_tool() {
    let whole: Value = serde_json::from_str(&mocked("0")).unwrap();
    let strange = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}\n\u{202e}"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({ "": { "type": {} } }),
    ];
    for pointer in POINTERS.split_whitespace().chain([""]) {
        for value in &strange {
            let mut content = whole.clone();
            match pointer.rsplit_once('/') {
                Some((parent, "0")) => content.pointer_mut(parent).unwrap()[0] = value.clone(),
                Some((parent, name)) => content.pointer_mut(parent).unwrap()[name] = value.clone(),
                None => content = value.clone(),
            }
            let (tools, errors) = read(Path::new("a.json"), &content.to_string(), &|_| true);
            assert!(tools.len() <= 1 && (tools.is_empty() || errors.is_empty()), "{content}: {errors:?}");
            assert!(errors.iter().all(|error| !error.to_string().contains(['\n', '\u{202e}'])), "{errors:?}");
            let (again, _) = read(Path::new("a.yaml"), &content.to_string(), &|_| true);
            assert_eq!(again, tools, "{content}");
        }
    }
}

#[test]
fn real_tools_are_accepted() {
    let Some(path) = corpus("real_tools.jsonl") else { return };
    let lines = std::fs::read_to_string(path).unwrap();
    let tools: Vec<Value> = lines
        .lines()
        .map(|line| {
            let tool: Value = serde_json::from_str(line).unwrap();
            json!({
                "name": tool["name"], "description": tool["description"], "type": "function",
                "handler": "real", "parameters": tool["inputSchema"],
                "implementation": { "type": "mock", "mock_response": null },
            })
        })
        .collect();
    let text = json!({ "tools": tools }).to_string();
    assert!(text.len() > 1_000_000);
    let (from_json, errors) = read(Path::new("real.json"), &text, &|_| true);
    assert_eq!(errors, []);
    let (from_yaml, errors) = read(Path::new("real.yaml"), &text, &|_| true);
    assert_eq!((errors, from_yaml == from_json), (vec![], true));
    let mut in_toml = 0;
    for (mut tool, read_before) in tools.into_iter().zip(&from_json).step_by(7) {
        tool["implementation"]["mock_response"] = json!(0);
        // TOML has no null.
        let Ok(text) = toml::to_string(&json!({ "tools": [tool] })) else { continue };
        let (from_toml, errors) = read(Path::new("real.toml"), &text, &|_| true);
        let from_toml: Vec<_> = from_toml.iter().map(|tool| &tool.spec).collect();
        assert_eq!((errors, from_toml), (vec![], vec![&read_before.spec]), "{text}");
        in_toml += 1;
    }
    let total = from_json.len();
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("real.json"), from_json);
    println!("{total} tools accepted, {in_toml} of them in TOML too; {} names are taken", errors.len());
    assert_eq!(toolset.ids().count() + errors.len(), total);
}
