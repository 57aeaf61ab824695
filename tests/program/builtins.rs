//! Declared tools with Toolwright's own handlers, and projects whose tools are all declared.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::mcp::Host;
use super::serve::Serving;
use super::support::Project;

const TOOLS: &str = "tools:
  - name: time
    description: The time.
    type: function
    parameters: { type: object, properties: { timezone: { type: string } } }
    implementation: { type: builtin, handler: clock.now }
    sideEffects: none
  - name: search
    description: Searches the notes.
    type: function
    category: retrieval
    parameters: { type: object, required: [query], properties: { query: { type: string }, top_k: { type: integer, default: 2 }, return_fields: { type: array } } }
    implementation: { type: builtin, handler: kb.search }
  - name: fetch_notes
    description: Fetches notes.
    type: function
    category: retrieval
    parameters: { type: object, properties: { ids: { type: array, items: { type: string } }, return_fields: { type: array } } }
    implementation: { type: internal, handler: kb.get }
  - name: plan
    description: Proposes times.
    type: function
    category: retrieval
    parameters: { type: object, properties: { title: {}, attendees: {}, duration_minutes: {}, timezone: {} } }
    implementation: { type: internal, handler: calendar.propose }
  - name: post
    description: Sends a request.
    type: function
    category: action
    parameters: { type: object, properties: { url: {}, method: {}, body: {} } }
    implementation: { type: builtin, handler: http.request }
";

/// A project with declared tools only; `allow` are the hosts of `post`.
fn project(allow: &str) -> Project {
    let project = Project::empty();
    fs::remove_dir(project.tools()).unwrap();
    fs::write(project.dir().join("tools.yaml"), TOOLS).unwrap();
    write_prompts(&project);
    let config = format!("[tools]\ndeclared = [\"tools.yaml\"]\n[tool.post.http]\nallow = [\"{allow}\"]\n");
    fs::write(project.dir().join("toolwright.toml"), config).unwrap();
    project
}

fn write_prompts(project: &Project) {
    fs::create_dir(project.dir().join("prompts")).unwrap();
    for name in ["core.md", "voice-behavior.md"] {
        fs::write(project.dir().join("prompts").join(name), "Be brief.\n").unwrap();
    }
}

fn call(project: &Project, tool: &str, args: Value) -> Value {
    project.run(&["call", tool, &args.to_string(), "--format", "json"]).json()
}

#[test]
fn the_clock_tells_the_time_in_a_zone() {
    let project = project("127.0.0.1:9");
    let now = call(&project, "time", json!({ "timezone": "Europe/Berlin" }));
    assert_eq!((&now["ok"], &now["data"]["timezone"]), (&json!(true), &json!("Europe/Berlin")), "{now}");
    assert!(now["data"]["unix_ms"].as_i64().unwrap() > 1_700_000_000_000, "{now}");
    let refused = call(&project, "time", json!({ "timezone": "Europe/Atlantis" }));
    assert_eq!(refused["error"]["type"], "VALIDATION", "{refused}");
}

#[test]
fn the_knowledge_base_and_the_calendar_answer_declared_tools() {
    let project = project("127.0.0.1:9");
    fs::write(project.dir().join("hours.md"), "# Opening hours\n\nThe studio opens at nine.\n").unwrap();
    project.run(&["kb", "add", "hours.md"]).expect_code(0);
    let found = call(&project, "search", json!({ "query": "opening hours studio" }));
    let first = &found["data"]["results"][0];
    assert_eq!(first["title"], "Opening hours", "{found}");
    assert!(first.get("source_type").is_some() && first.get("sourceType").is_none(), "{found}");
    let fetched = call(&project, "fetch_notes", json!({ "ids": [first["id"], "none"] }));
    assert!(
        fetched["data"]["records"][0]["full_text"].as_str().unwrap().contains("opens at nine"),
        "{fetched}"
    );
    assert_eq!(fetched["data"]["not_found"], json!(["none"]));

    let wish = json!({ "title": "Review", "attendees": ["mira@studio.example"], "duration_minutes": 30, "timezone": "UTC" });
    let plan = call(&project, "plan", wish);
    assert!(plan["data"]["draft_id"].is_string(), "{plan}");
    assert_eq!(plan["data"]["slots"][1]["index"], 1);
}

#[test]
fn in_voice_no_whole_text_is_returned() {
    let project = project("127.0.0.1:9");
    fs::write(project.dir().join("hours.md"), "# Opening hours\n\nThe studio opens at nine.\n").unwrap();
    project.run(&["kb", "add", "hours.md"]).expect_code(0);
    let spoken = |tool: &str, args: Value| {
        let run = project.run(&["call", tool, &args.to_string(), "--mode", "voice", "--format", "json"]);
        run.json()["data"].clone()
    };
    let wanted = json!({ "query": "opening hours studio", "return_fields": ["full_text", "url"] });
    let found = spoken("search", wanted);
    let first = &found["results"][0];
    assert!(first["snippet"].is_string() && first.get("full_text").is_none(), "{found}");
    assert_eq!(found["omitted_fields"], json!(["full_text"]));
    // By default a fetch returns whole texts, elsewhere.
    let fetched = spoken("fetch_notes", json!({ "ids": [first["id"]] }));
    let record = &fetched["records"][0];
    assert!(record["snippet"].is_string() && record.get("full_text").is_none(), "{fetched}");
    assert!(fetched.get("omitted_fields").is_none(), "{fetched}");
    let asked = json!({ "ids": [first["id"]], "return_fields": ["full_text"] });
    let fetched = spoken("fetch_notes", asked.clone());
    assert_eq!(fetched["omitted_fields"], json!(["full_text"]), "{fetched}");
    let written = call(&project, "fetch_notes", asked);
    assert!(written["data"]["records"][0]["full_text"].is_string(), "{written}");
    assert!(written["data"].get("omitted_fields").is_none(), "{written}");
}

/// Answers one request with this status, and returns its head and body.
fn serve_once(listener: TcpListener, status: &'static str) -> std::thread::JoinHandle<(String, String)> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).unwrap() > 2 {
            head.push_str(&std::mem::take(&mut line));
        }
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let reply = r#"{"id":7}"#;
        let head_of_reply = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            reply.len()
        );
        stream.write_all((head_of_reply + reply).as_bytes()).unwrap();
        (head, String::from_utf8(body).unwrap())
    })
}

#[test]
fn a_request_reaches_only_allowed_hosts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let project = project(&address);
    let server = serve_once(listener, "201 Created");
    let url = format!("http://{address}/orders");
    let sent = call(&project, "post", json!({ "url": url, "method": "POST", "body": { "n": 1 } }));
    assert_eq!(
        (&sent["data"]["status"], &sent["data"]["json"]),
        (&json!(201), &json!({ "id": 7 })),
        "{sent}"
    );
    assert!(sent["data"].get("body").is_none(), "{sent}");
    let (head, body) = server.join().unwrap();
    assert!(head.starts_with("POST /orders "), "{head}");
    assert_eq!(body, r#"{"n":1}"#);
    let refused = call(&project, "post", json!({ "url": "http://127.0.0.1:9/" }));
    assert_eq!(refused["error"]["type"], "PERMANENT", "{refused}");

    let listener = TcpListener::bind(&address).or_else(|_| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let project = self::project(&address);
    let server = serve_once(listener, "503 Service Unavailable");
    let failed = call(&project, "post", json!({ "url": format!("http://{address}/") }));
    server.join().unwrap();
    assert_eq!(
        (&failed["error"]["type"], &failed["error"]["retryable"]),
        (&json!("TRANSIENT"), &json!(true))
    );
}

/// `serve` and `mcp` list these tools, and the one that every toolset has.
fn has_tools_in_every_server(project: &Project, tools: &[&str]) {
    let mut expected = [tools, &["reg_describe"]].concat();
    expected.sort_unstable();
    let names = |list: &Value, field: &str| {
        let tools = list["tools"].as_array().unwrap_or_else(|| panic!("{list}")).iter();
        let mut names: Vec<_> = tools.map(|tool| tool[field].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    };
    let serving = Serving::start(project, &["--store", "memory:"]);
    assert_eq!(names(&serving.ask("GET /v1/tools", "", "").1, "toolId"), expected);
    drop(serving);
    let mut host = Host::start(project, &["--store", "memory:"]);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let listed = host.ask(1, "tools/list", json!({ "_meta": meta }));
    assert_eq!(names(&listed["result"], "name"), expected);
    host.close();
}

#[test]
fn a_project_with_only_declared_tools_works_with_every_command() {
    for with_empty_directory in [false, true] {
        let project = project("127.0.0.1:9");
        if with_empty_directory {
            fs::create_dir(project.tools()).unwrap();
        }
        for (args, expected) in [
            (&["check"][..], "a session gets 5 tools: 0 built, 5 declared"),
            (&["build"], "a session gets 5 tools: 0 built, 5 declared"),
            (&["build", "--emit-views", "views"], "a session gets 5 tools: 0 built, 5 declared"),
            (&["list"], "fetch_notes"),
            (&["describe", "search"], "Searches the notes."),
            (&["prompt", "--mode", "text"], "Be brief."),
            (&["schema", "--provider", "openai-chat"], "\"search\""),
            (&["test"], "no tests: there is no tool with a directory"),
            (&["doctor"], "workers"),
        ] {
            let run = project.run(args).expect_code(0);
            assert!(!run.stderr.contains("warning"), "{args:?}: {run:?}");
            assert!(run.stderr.contains(expected) || run.stdout.contains(expected), "{args:?}: {run:?}");
        }
        has_tools_in_every_server(&project, &["time", "search", "fetch_notes", "plan", "post"]);
        let said = project.run(&["chat", "--agent", "offline", "/time {}"]).expect_code(0);
        assert!(said.stdout.contains("unix_ms"), "{said:?}");
        let list = project.run(&["list"]);
        assert!(list.stdout.starts_with("TOOL") && list.stdout.lines().count() == 6, "{list:?}");
        assert_eq!(project.run(&["build", "--format", "json"]).expect_code(0).json()["ok"], true);
        assert_eq!(
            project.run(&["check", "--format", "json"]).expect_code(0).json()["diagnostics"],
            json!([])
        );
    }
}

#[test]
fn an_empty_tools_directory_works_with_every_command() {
    let project = Project::empty();
    write_prompts(&project);
    project.run(&["check"]).expect_code(0).expect_stderr(&["has no tools", "toolwright new my-tool"]);
    project.run(&["build"]).expect_code(0);
    assert_eq!(project.artifact_json()["tools"], json!([]));
    assert_eq!(project.run(&["list", "--format", "json"]).expect_code(0).json(), json!([]));
    project.run(&["prompt", "--mode", "text"]).expect_code(0);
    project.run(&["schema", "--provider", "mcp"]).expect_code(0);
    project.run(&["doctor"]).expect_code(0);
    project.run(&["test"]).expect_code(0);
    project.run(&["build", "--emit-views", "views"]).expect_code(0);
    assert!(project.dir().join("views").is_dir());
    has_tools_in_every_server(&project, &[]);
    project.run(&["chat", "--agent", "offline", "hello"]).expect_code(0);
}

#[test]
fn an_unknown_handler_is_refused_with_the_names_of_the_builtin_ones() {
    let project = project("127.0.0.1:9");
    let edit = |from: &str, to: &str| {
        fs::write(project.dir().join("tools.yaml"), TOOLS.replace(from, to)).unwrap();
        project.run(&["check"])
    };
    edit("clock.now", "clock.noow").expect_code(1).expect_stderr(&[
        "no handler `clock.noow` is registered",
        "did you mean `clock.now`?",
        "failed: 1 error",
    ]);
    // Another name may be registered by a program, which `check` cannot know.
    edit("clock.now", "weather")
        .expect_code(0)
        .expect_stderr(&["1 only in a program that registers the handler"]);
    let names = "`calendar.propose`, `clock.now`, `http.request`, `kb.get`, `kb.search`";
    project.run(&["list"]).expect_code(0).expect_stderr(&["no handler `weather` is registered", names]);
}
