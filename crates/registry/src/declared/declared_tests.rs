use serde_json::{Value, json};
use toolwright_contract::{Category, Confirmation, Mode, SideEffects};

use super::*;
use crate::toolset::Toolset;

fn is_registered(name: &str) -> bool {
    matches!(name, "clock.now" | "crm.lookup")
}

fn mock(name: &str) -> Value {
    json!({
        "name": name,
        "description": "Tells the weather of a city.",
        "type": "function",
        "handler": "weather",
        "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        "implementation": { "type": "mock", "mock_response": { "sky": "clear" } },
    })
}

/// `mock` with one member changed, or removed.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut tool = mock("weather");
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let members = tool.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value)),
        None => drop(members.remove(name)),
    }
    tool
}

fn implemented(implementation: Value) -> Value {
    with("/implementation", Some(implementation))
}

/// The same content in each format. JSON is YAML as it stands; TOML has no null.
fn files(content: &Value) -> Vec<(&'static str, String)> {
    let json = serde_json::to_string_pretty(content).unwrap();
    let mut files = vec![("more.json", json.clone()), ("more.yaml", json.clone()), ("MORE.YML", json)];
    files.extend(toml::to_string(content).ok().map(|text| ("more.toml", text)));
    files
}

fn read_text(file: &str, text: &str) -> (Vec<Tool>, Vec<Error>) {
    read(Path::new(file), text, &is_registered)
}

/// The result, which must be the same for all formats.
fn read_all(content: &Value) -> (Vec<Tool>, Vec<(String, String)>) {
    let mut results = files(content).into_iter().map(|(file, text)| {
        let (tools, errors) = read_text(file, &text);
        for error in &errors {
            assert!(!error.help().is_empty() && error.to_string().starts_with(file), "{error}");
        }
        let errors = errors.into_iter().map(|error| match error {
            Error::Tool { tool, message, .. } => (tool, message),
            Error::File { message, .. } => (String::new(), message),
            Error::Exists { tool, .. } => (tool, "exists".to_owned()),
        });
        (tools, errors.collect::<Vec<_>>())
    });
    let first = results.next().unwrap();
    for other in results {
        assert_eq!(other, first);
    }
    first
}

fn accept(tool: Value) -> Tool {
    let (mut tools, errors) = read_all(&json!({ "tools": [tool] }));
    assert_eq!((tools.len(), errors), (1, vec![]));
    tools.remove(0)
}

/// The message of the only error of a single tool.
fn refuse(tool: Value) -> String {
    let (tools, mut errors) = read_all(&json!({ "tools": [tool] }));
    assert_eq!((tools, errors.len()), (vec![], 1), "{errors:?}");
    errors.remove(0).1
}

fn toolset(content: &Value) -> Toolset {
    let (tools, errors) = read_text("more.json", &content.to_string());
    assert_eq!(errors, []);
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("more.json"), tools);
    assert_eq!(errors, []);
    toolset
}

fn names<'a>(tools: impl Iterator<Item = &'a Tool>) -> Vec<&'a str> {
    tools.map(|tool| tool.spec.tool_id.as_str()).collect()
}

#[test]
fn register_tool_from_configuration() {
    let content = json!({ "version": 1, "tools": [
        mock("weather"), with("/description", None), 7, { "description": "?" }, mock("tides"),
    ]});
    let (tools, errors) = read_all(&content);
    assert_eq!(names(tools.iter()), ["weather", "tides"]);
    let about: Vec<&str> = errors.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(about, ["weather", "#3", "#4", "#4", "#4", "#4"]);
    assert_eq!(errors[0].1, "the required field `description` is missing");
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("more.json"), tools);
    assert_eq!((toolset.ids().collect::<Vec<_>>(), errors), (vec!["weather", "tides"], vec![]));
}

#[test]
fn reject_duplicate_tool_names() {
    let mut second = mock("weather");
    second["description"] = json!("Another one.");
    let (tools, errors) = read_all(&json!({ "tools": [mock("weather"), second, mock("tides")] }));
    assert_eq!((tools.len(), errors), (3, vec![]));
    let (toolset, errors) = Toolset::empty().with_declared(Path::new("a.json"), tools);
    let exists = |file: &str| Error::Exists { file: file.into(), tool: "weather".to_owned() };
    assert_eq!(errors, [exists("a.json")]);
    assert_eq!(errors[0].to_string(), "a.json: Tool already exists: weather");
    let version = toolset.version.clone();
    let (toolset, errors) = toolset.with_declared(Path::new("b.json"), vec![accept(mock("weather"))]);
    assert_eq!(errors, [exists("b.json")]);
    assert_eq!(toolset.get("weather").unwrap().spec.description, "Tells the weather of a city.");
    assert_eq!((names(toolset.list()), &toolset.version), (vec!["weather", "tides"], &version));
}

#[test]
fn validate_tool_definition() {
    let schema = |schema: Value| with("/parameters", Some(schema));
    let cases = [
        (with("/name", None), "the required field `name` is missing"),
        (with("/name", Some(json!(""))), "`name` must not be empty"),
        (with("/name", Some(json!(7))), "`name` must be a string, got 7"),
        (with("/name", Some(json!("get weather"))), "`name` is `get weather`, which models cannot call"),
        (with("/description", None), "the required field `description` is missing"),
        (with("/description", Some(json!(" \n"))), "`description` must not be empty"),
        (with("/parameters", None), "the required field `parameters` is missing"),
        (schema(json!("object")), "`parameters` must be a JSON Schema, got \"object\""),
        (schema(json!({})), "`parameters.type` must be `object`, got nothing"),
        (schema(json!({ "type": "array" })), "`parameters.type` must be `object`, got \"array\""),
        (schema(json!({ "type": ["object"] })), "`parameters.type` must be `object`, got an array"),
    ];
    for (tool, message) in cases {
        assert_eq!(refuse(tool), message);
    }
    for broken in [
        json!({ "type": "object", "properties": [] }),
        json!({ "type": "object", "required": "city" }),
        json!({ "type": "object", "properties": { "a": { "type": "text" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/nothing" } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
    ] {
        let message = refuse(schema(broken));
        assert!(message.starts_with("`parameters` is not a JSON Schema: "), "{message}");
    }
    let lenient = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "x-order": 3,
        "definitions": { "a": { "example": 1 } },
        "properties": { "a": { "$ref": "#/definitions/a" }, "b": { "format": "colour", "default": 7 } },
        "required": ["c"],
    });
    assert_eq!(accept(schema(lenient.clone())).spec.json_schema, lenient);
}

#[test]
fn get_tool_by_name() {
    let many: Vec<Value> = (0..2000).map(|number| mock(&format!("weather_{number}"))).collect();
    let toolset = toolset(&json!({ "tools": many }));
    let tool = toolset.get("weather_1999").unwrap();
    assert_eq!(tool.implementation, Implementation::Mock(json!({ "sky": "clear" })));
    assert_eq!(toolset.metadata("weather_1999"), Some(&tool.spec));
    assert_eq!(toolset.documentation("weather_7").as_deref(), Some("Tells the weather of a city."));
}

#[test]
fn tool_not_found() {
    let toolset = toolset(&json!({ "tools": [mock("weather")] }));
    for name in ["tides", "", "Weather", "weather "] {
        assert_eq!((toolset.get(name), toolset.metadata(name)), (None, None));
        assert_eq!(toolset.documentation(name), None);
    }
}

#[test]
fn list_all_tools() {
    let mut voice = mock("voice_only");
    voice["allowedModes"] = json!(["voice"]);
    let toolset = toolset(&json!({ "tools": [mock("weather"), voice, mock("alarm")] }));
    let all = ["weather", "voice_only", "alarm"];
    assert_eq!(names(toolset.list()), all);
    assert_eq!(toolset.ids().collect::<Vec<_>>(), all);
    assert_eq!(toolset.summaries().nth(2), Some(("alarm", "Tells the weather of a city.")));
    assert_eq!(names(toolset.by_category(Category::Utility)), all);
    assert_eq!(toolset.by_category(Category::Action).count(), 0);
    assert_eq!(names(toolset.for_mode(Mode::Text)), ["weather", "alarm"]);
    assert_eq!(Toolset::empty().list().count(), 0);
}

#[test]
fn filter_by_allowed_tools() {
    let toolset = toolset(&json!({ "tools": [mock("weather"), mock("tides"), mock("alarm")] }));
    assert_eq!(names(toolset.filter(None::<&[&str]>)), ["weather", "tides", "alarm"]);
    let allowed = ["alarm", "nothing", "weather", "alarm"];
    assert_eq!(names(toolset.filter(Some(&allowed))), ["weather", "alarm"]);
    assert_eq!(toolset.filter(Some(&[] as &[String])).count(), 0);
}

#[test]
fn tool_definition_structure() {
    assert_eq!(refuse(with("/type", None)), "the required field `type` is missing");
    assert_eq!(refuse(with("/type", Some(json!("tool")))), "`type` must be `function`, got \"tool\"");
    assert_eq!(refuse(with("/handler", Some(json!(7)))), "`handler` must be a string, got 7");
    assert_eq!(refuse(with("/implementation", None)), "the required field `implementation` is missing");
    assert_eq!(
        refuse(implemented(json!("mock"))),
        "`implementation` must be an object with `type`, got \"mock\""
    );
    assert_eq!(refuse(implemented(json!({}))), "the required field `implementation.type` is missing");
    let message = "`implementation.type` must be one of `mock`, `builtin`, `internal`, got `script`";
    assert_eq!(refuse(implemented(json!({ "type": "script" }))), message);
    let message = "`implementation.type` must be one of `mock`, `builtin`, `internal`, got true";
    assert_eq!(refuse(implemented(json!({ "type": true }))), message);
    let file = |content: Value| read_all(&content).1.remove(0).1;
    assert_eq!(file(json!({ "version": 3, "tools": [] })), "`version` of the file must be 1 or 2");
    assert_eq!(file(json!({ "version": "1", "tools": [] })), "`version` of the file must be 1 or 2");
    assert_eq!(file(json!({ "tools": {} })), "`tools` must be an array");
    assert_eq!(file(json!({})), "`tools` is missing");
    assert_eq!(read_all(&json!({ "tools": [] })), (vec![], vec![]));
}

#[test]
fn mock_tool_implementation() {
    let message = "the required field `implementation.mock_response` is missing";
    assert_eq!(refuse(implemented(json!({ "type": "mock" }))), message);
    for response in
        [json!(null), json!(false), json!(0), json!("no"), json!([1, [2.5]]), json!({ "a": { "b": [] } })]
    {
        let tool = accept(implemented(json!({ "type": "mock", "mock_response": response })));
        assert_eq!(tool.implementation, Implementation::Mock(response));
    }
    let spec = accept(with("/handler", None)).spec;
    assert_eq!((spec.side_effects, spec.idempotent), (SideEffects::None, true));
}

/// Both types name a registered handler, under the same rules.
fn check_native(kind: &str) {
    let tool = accept(implemented(json!({ "type": kind, "handler": "clock.now" })));
    assert_eq!(tool.implementation, Implementation::Native("clock.now".to_owned()));
    assert_eq!((tool.spec.side_effects, tool.spec.idempotent), (SideEffects::Writes, false));
    let message = "no handler `clock.later` is registered";
    assert_eq!(refuse(implemented(json!({ "type": kind, "handler": "clock.later" }))), message);
    let message = "`implementation.handler` must not be empty";
    assert_eq!(refuse(implemented(json!({ "type": kind, "handler": "" }))), message);
    let mut outer = implemented(json!({ "type": kind }));
    assert_eq!(refuse(outer.clone()), "no handler `weather` is registered");
    outer["handler"] = json!(" ");
    assert_eq!(refuse(outer.clone()), "`handler` must not be empty");
    outer["handler"] = json!("crm.lookup");
    assert_eq!(accept(outer.clone()).implementation, Implementation::Native("crm.lookup".to_owned()));
    outer.as_object_mut().unwrap().remove("handler");
    assert_eq!(refuse(outer), "the required field `implementation.handler` is missing");
}

#[test]
fn builtin_tool_implementation() {
    check_native("builtin");
}

#[test]
fn internal_tool_implementation() {
    check_native("internal");
}

#[test]
fn http_tool_implementation_validation() {
    let http = implemented(json!({ "type": "http", "url": "https://api.example.com", "method": "GET" }));
    for version in [None, Some(1)] {
        let mut content = json!({ "tools": [http.clone(), mock("tides")] });
        if let Some(version) = version {
            content["version"] = json!(version);
        }
        let (tools, errors) = read_all(&content);
        assert_eq!(names(tools.iter()), ["tides"]);
        let message = "HTTP tools not yet supported (coming in v2)";
        assert_eq!(errors, [("weather".to_owned(), message.to_owned())]);
    }
    let (tools, errors) = read_all(&json!({ "version": 2, "tools": [http, mock("tides")] }));
    assert_eq!(names(tools.iter()), ["weather", "tides"]);
    assert!(errors.is_empty(), "{errors:?}");
}

/// Errors that would otherwise appear in a call.
#[test]
fn an_http_tool_is_checked_when_it_is_read() {
    let sound = json!({
        "type": "http", "method": "POST", "url": "https://api.example.com/v1/{city}?fixed=1",
        "query": { "units": "metric", "day": "{day}", "key": "${WEATHER_KEY}" },
        "headers": { "authorization": "Bearer ${WEATHER_TOKEN}" },
        "body": { "note": "for {day}", "list": ["{city}"] },
        "response": { "data": "/results/0" },
    });
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut how = sound.clone();
        change(&mut how);
        let mut tool = implemented(how);
        tool["parameters"] = json!({
            "type": "object", "required": ["city"],
            "properties": { "city": { "type": "string" }, "day": { "type": "string" } },
        });
        let (tools, errors) = read_all(&json!({ "version": 2, "tools": [tool] }));
        (tools.len(), errors.into_iter().map(|(_, message)| message).collect::<Vec<_>>().join("; "))
    };
    assert_eq!(broken(&|_| {}), (1, String::new()));
    type Change<'a> = &'a dyn Fn(&mut Value);
    let table: &[(Change<'_>, &str)] = &[
        (&|how| how["url"] = "https://{city}.example.com/".into(), "which is not fixed"),
        (&|how| how["url"] = "https://user@api.example.com/".into(), "which is not fixed"),
        (&|how| how["url"] = "ftp://api.example.com/".into(), "must begin with https://"),
        (&|how| how["url"] = "https://api.example.com/{town}".into(), "`{town}`, which is not a parameter"),
        (&|how| how["url"] = "https://api.example.com/{day}".into(), "which a call may leave out"),
        (&|how| how["url"] = "https://api.example.com/${KEY}".into(), "has a variable in it"),
        (&|how| how["url"] = "https://api.example.com/#x".into(), "has a fragment"),
        (&|how| how["method"] = "GET".into(), "a GET request has no body"),
        (&|how| how["method"] = "FETCH".into(), "got `FETCH`"),
        (&|how| how["query"] = json!(["a"]), "`implementation.query` must be an object"),
        (&|how| how["headers"] = json!({ "x": {} }), "`implementation.headers.x` must be a string"),
        (&|how| how["body"] = json!({ "x": "{nothing}" }), "`{nothing}`, which is not a parameter"),
        (&|how| how["body"] = json!({ "x": "${SECRET}" }), "has a variable in it"),
        (&|how| how["response"] = json!({ "data": "results" }), "must be a JSON pointer"),
        (&|how| how["respond"] = json!({}), "unknown field `implementation.respond`"),
    ];
    for (change, expected) in table {
        let (count, message) = broken(change);
        assert!(count == 0 && message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn policy_fields_can_be_declared_and_have_careful_defaults() {
    let spec = accept(implemented(json!({ "type": "builtin", "handler": "clock.now" }))).spec;
    assert_eq!((spec.version.as_str(), spec.category), ("1.0.0", Category::Utility));
    assert_eq!(spec.requires_confirmation, Confirmation::Always(false));
    assert_eq!(spec.allowed_modes, [Mode::Text, Mode::Voice]);
    assert_eq!((spec.latency_budget_ms, spec.timeout_ms), (1000.into(), None));
    let mut full = mock("weather");
    for (name, value) in [
        ("version", json!("2.1.0")),
        ("category", json!("action")),
        ("sideEffects", json!("writes")),
        ("idempotent", json!(false)),
        ("requiresConfirmation", json!(true)),
        ("allowedModes", json!(["text"])),
        ("latencyBudgetMs", json!(250)),
        ("timeoutMs", json!(900)),
        ("tags", json!(["sky", "sea"])),
        ("summary", json!("The sky\nabove a city.")),
    ] {
        full[name] = value;
    }
    let tool = accept(full);
    assert_eq!(tool.summary, "The sky above a city.");
    let spec = serde_json::to_value(&tool.spec).unwrap();
    assert_eq!(
        spec,
        json!({
            "toolId": "weather", "version": "2.1.0", "description": "Tells the weather of a city.",
            "category": "action", "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true,
            "allowedModes": ["text"], "latencyBudgetMs": 250, "timeoutMs": 900, "tags": ["sky", "sea"],
            "jsonSchema": { "type": "object", "properties": { "city": { "type": "string" } } },
        })
    );
}

#[test]
fn a_retrieval_tool_reads_and_may_be_repeated() {
    let mut tool = implemented(json!({ "type": "internal", "handler": "crm.lookup" }));
    tool["category"] = json!("retrieval");
    let spec = accept(tool.clone()).spec;
    assert_eq!((spec.side_effects, spec.idempotent), (SideEffects::ReadOnly, true));
    tool["sideEffects"] = json!("writes");
    assert_eq!(
        refuse(tool.clone()),
        "`sideEffects` of a retrieval tool must be `none` or `read_only`, got `writes`"
    );
    tool["sideEffects"] = json!("none");
    tool["idempotent"] = json!(false);
    assert_eq!(refuse(tool), "`idempotent` of a retrieval tool must be true, got false");
}

#[test]
fn wrong_values_and_unknown_fields_are_named_with_a_fix() {
    let cases = [
        ("version", json!("1.0"), "`version` must be a semantic version, got `1.0`"),
        ("version", json!(1.0), "`version` must be a string, got 1.0"),
        ("category", json!("tool"), "`category` must be one of `retrieval`, `action`, `utility`, got `tool`"),
        (
            "sideEffects",
            json!("write"),
            "`sideEffects` must be one of `none`, `read_only`, `writes`, got `write`",
        ),
        ("idempotent", json!("yes"), "`idempotent` must be true or false, got \"yes\""),
        ("requiresConfirmation", json!({}), "`requiresConfirmation` must be true or false, got an object"),
        ("allowedModes", json!([]), "`allowedModes` must name at least one mode"),
        ("allowedModes", json!(["text", "text"]), "`allowedModes` lists \"text\" twice"),
        ("allowedModes", json!("text"), "`allowedModes` must be an array of"),
        ("latencyBudgetMs", json!(0), "`latencyBudgetMs` must be greater than 0, got 0"),
        ("timeoutMs", json!("1s"), "`timeoutMs` must be a number of milliseconds greater than 0, got \"1s\""),
        ("tags", json!(["a", "a"]), "`tags` lists \"a\" twice"),
        ("tags", json!([""]), "`tags[0]` must not be empty"),
        ("summary", json!("x".repeat(251)), "`summary` has 251 characters, at most 250 are allowed"),
        ("side_effects", json!("none"), "unknown field `side_effects`"),
    ];
    for (name, value, message) in cases {
        let found = refuse(with(&format!("/{name}"), Some(value)));
        assert!(found.starts_with(message), "{found}");
    }
    let unknown = |pointer| {
        let content = json!({ "tools": [with(pointer, Some(json!(1)))] }).to_string();
        let errors = read_text("more.json", &content).1;
        (errors[0].to_string(), errors[0].help().to_owned())
    };
    let expected = "more.json: tool `weather`: unknown field `side_effects`";
    assert_eq!(unknown("/side_effects"), (expected.to_owned(), "did you mean `sideEffects`?".to_owned()));
    assert_eq!(unknown("/implementation/mockResponse").1, "did you mean `mock_response`?");
    let errors = read_text("more.yaml", "tool: []\n").1;
    assert_eq!(errors[0].help(), "did you mean `tools`?");
}

#[test]
fn hidden_characters_are_refused_where_a_model_reads_them() {
    let hidden = "clear\u{202e}sky";
    for pointer in ["/description", "/summary", "/parameters/title"] {
        let message = refuse(with(pointer, Some(json!(hidden))));
        assert!(message.ends_with("has the hidden character U+202E"), "{message}");
    }
    let (_, errors) = read_all(&json!({ "tools": [with("/name", Some(json!("we\u{200b}ather")))] }));
    assert_eq!(errors.len(), 2, "{errors:?}");
    accept(implemented(json!({ "type": "mock", "mock_response": hidden })));
}

#[test]
fn a_long_description_is_cut_at_a_word() {
    let tool = accept(with("/description", Some(json!("Hot and\n\n  cold. ".repeat(40)))));
    assert!(tool.summary.starts_with("Hot and cold. Hot and cold."), "{}", tool.summary);
    assert!(tool.summary.ends_with("cold…") || tool.summary.ends_with("and…"), "{}", tool.summary);
    assert!(tool.summary.chars().count() <= 250);
    let tool = accept(with("/description", Some(json!("ü".repeat(251)))));
    assert_eq!(tool.summary, "ü".repeat(249) + "…");
}

#[test]
fn the_version_follows_every_declared_tool() {
    let empty = Toolset::empty().version;
    let first = toolset(&json!({ "tools": [mock("weather")] }));
    assert_eq!((first.version.len(), &first.version[..4]), ("1.0.12345678".len(), "1.0."));
    assert!(first.content_digest.starts_with(&format!("sha256:{}", &first.version[4..])));
    let mut seen = vec![empty, first.version.clone()];
    for (pointer, value) in [
        ("/implementation/mock_response", json!(null)),
        ("/description", json!("Another.")),
        ("/parameters/title", json!("City")),
        ("/tags", json!(["sky"])),
        ("/summary", json!("Short.")),
        ("/implementation", json!({ "type": "builtin", "handler": "clock.now" })),
    ] {
        let version = toolset(&json!({ "tools": [with(pointer, Some(value))] })).version;
        assert!(!seen.contains(&version), "{pointer}");
        seen.push(version);
    }
    let again = toolset(&json!({ "tools": [with("/parameters", Some(json!({
        "properties": { "city": { "type": "string" } }, "type": "object",
    })))] }));
    assert_eq!(again.version, first.version);
    let (same, _) = Toolset::empty().with_declared(Path::new("more.json"), Vec::new());
    assert_eq!(same.version, seen[0]);
}

#[test]
fn the_documented_examples_are_the_same_tools_in_each_format() {
    let page = include_str!("../../../../docs/reference/declared-tools.md");
    let example = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        let (text, _) = rest.split_once("\n```").unwrap();
        let (tools, errors) = read_text(&format!("more.{language}"), &format!("{text}\n"));
        assert_eq!(errors, []);
        tools
    };
    let tools = example("yaml");
    assert_eq!(names(tools.iter()), ["get_weather", "current_time"]);
    assert_eq!((example("json"), example("toml")), (tools.clone(), tools));
}
