//! `toolwright doctor`: checks and suggested fixes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::Value;

use super::support::{Project, models, run};

fn status<'a>(report: &'a Value, check: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|row| row["check"] == check).unwrap_or_else(|| panic!("no {check} in {report}"))
}

#[test]
fn a_new_project_misses_only_external_services() {
    let project = Project::empty();
    project.run(&["init", "agent"]).expect_code(0);
    let mut command = project.command(&["doctor", "--format", "json"]);
    command.current_dir(project.dir().join("agent"));
    let report = run(command).expect_code(0).json();
    for check in ["configuration", "tools", "prompts", "store", "imports", "calendar"] {
        assert_eq!(status(&report, check)["status"], "ok", "{report}");
    }
    // A worker has been started; whether the kernel has all of its confinement depends on the machine.
    let workers = status(&report, "workers");
    let message = workers["message"].as_str().unwrap();
    assert!(message.starts_with("confined by limits of resources"), "{report}");
    if cfg!(target_os = "linux") {
        assert!(message.contains("seccomp"), "{report}");
    }
    let is_complete = message.ends_with("seccomp and Landlock");
    assert_eq!(workers["status"], if is_complete { "ok" } else { "missing" }, "{report}");
    assert_eq!(workers["help"].is_string(), !is_complete, "{report}");
    assert_eq!(status(&report, "images")["status"], "missing");
    let embedder = status(&report, "embedder");
    assert_eq!(embedder["status"], "missing");
    assert_eq!(embedder["help"], "run `toolwright kb model install`");
    assert!(!project.dir().join("agent/.toolwright").exists(), "doctor must not create files");
}

#[test]
fn the_installed_model_embeds_a_text() {
    let project = Project::with(&["one"]);
    let mut command = project.command(&["doctor", "--format", "json"]);
    command.env("TOOLWRIGHT_MODELS", models());
    let report = run(command).expect_code(0).json();
    let embedder = status(&report, "embedder");
    assert_eq!(embedder["status"], "ok", "{report}");
    assert!(embedder["message"].as_str().unwrap().contains("384 dimensions"), "{report}");
}

#[test]
fn a_broken_check_suggests_a_fix() {
    let project = Project::with(&["one"]);
    project.edit("one/schema.json", "\"object\"", "\"objekt\"");
    fs::create_dir(project.dir().join(".toolwright")).unwrap();
    fs::write(
        project.dir().join(".toolwright/state.db"),
        "no database, and longer than its head would be".repeat(9),
    )
    .unwrap();
    let text = "[kb.embedder]\nurl = \"http://127.0.0.1:9\"\nmodel = \"m\"\nkey_env = \"NO_SUCH_KEY\"\n\
        [calendar]\nurl = \"http://127.0.0.1:9/studio/\"\norganizer = \"mira@example.com\"\n";
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    let report = project.run(&["doctor", "--format", "json"]).expect_code(1).json();
    for (check, help) in [
        ("tools", "toolwright check"),
        ("store", "[store] url"),
        ("embedder", "set NO_SUCH_KEY"),
        ("calendar", "fix `[calendar]`"),
    ] {
        assert_eq!(status(&report, check)["status"], "broken", "{report}");
        assert!(status(&report, check)["help"].as_str().unwrap().contains(help), "{report}");
    }
    let lines = project.run(&["doctor"]).expect_code(1).stdout;
    assert!(lines.contains("broken") && lines.contains("help: set NO_SUCH_KEY"), "{lines}");
}

#[test]
fn an_invalid_configuration_is_the_only_check() {
    let project = Project::with(&["one"]);
    fs::write(project.dir().join("toolwright.toml"), "[kb]\nmodel = 1\n").unwrap();
    let report = project.run(&["doctor", "--format", "json"]).expect_code(1).json();
    assert_eq!(report["checks"].as_array().unwrap().len(), 1);
    assert_eq!(status(&report, "configuration")["status"], "broken");
}

/// Answers every request by its path and whether its head contains the secret; returns the server's URL.
fn serve(secret: &'static str, routes: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                head.push_str(&std::mem::take(&mut line));
            }
            let route = routes.iter().find(|(path, _)| head.contains(path));
            let (status, body) = match route {
                _ if !head.contains(secret) => ("401 Unauthorized", "{}"),
                Some((_, body)) => ("200 OK", *body),
                None => ("404 Not Found", "{}"),
            };
            let length = body.len();
            let reply = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(reply.as_bytes()).unwrap();
        }
    });
    url
}

fn doctor_with(project: &Project, config: &str, variables: &[(&str, &str)]) -> Value {
    fs::write(project.dir().join("toolwright.toml"), config).unwrap();
    let mut command = project.command(&["doctor", "--format", "json"]);
    command.envs(variables.iter().copied());
    run(command).json()
}

#[test]
fn what_keeps_serve_from_starting_is_found() {
    let project = Project::with(&["one"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let config = format!(
        "[agent]\nprovider = \"anthropic\"\nkey_env = \"NO_SUCH_KEY\"\n\
         [voice]\nprovider = \"gemini-live\"\nkey_env = \"NO_SUCH_KEY\"\n[server]\nlisten = \"{listen}\"\n"
    );
    let expect = |report: &Value, check: &str, wanted: &str, part: &str| {
        let row = status(report, check);
        assert!(row["status"] == wanted && row.to_string().contains(part), "{part}: {report}");
    };
    let report = doctor_with(&project, &config, &[]);
    expect(&report, "agent", "broken", "set NO_SUCH_KEY");
    expect(&report, "voice", "broken", "NO_SUCH_KEY");
    expect(&report, "server", "broken", "--listen ADDR:PORT");
    let report =
        doctor_with(&project, &config, &[("NO_SUCH_KEY", "x"), ("TOOLWRIGHT_LISTEN", "127.0.0.1:0")]);
    expect(&report, "agent", "ok", "anthropic");
    expect(&report, "voice", "ok", "gemini-live");
    expect(&report, "server", "ok", "no keys: anyone on this machine");
    let open = "[agent]\nprovider = \"offline\"\n[server]\nlisten = \"0.0.0.0:0\"\n";
    let report = doctor_with(&project, open, &[]);
    expect(&report, "agent", "ok", "offline");
    expect(&report, "server", "broken", "toolwright keys create NAME");
    fs::create_dir_all(project.dir().join(".toolwright")).unwrap();
    fs::write(project.dir().join(".toolwright/keys.json"), "{").unwrap();
    expect(&doctor_with(&project, "", &[]), "server", "broken", "keys.json");
    let report = doctor_with(&project, "", &[("TOOLWRIGHT_AGENT", "foo"), ("TOOLWRIGHT_LISTEN", "foo")]);
    expect(&report, "agent", "broken", "environment variable TOOLWRIGHT_AGENT=foo");
    expect(&report, "server", "broken", "correct or unset TOOLWRIGHT_LISTEN");
}

#[test]
fn a_model_that_ollama_has_not_pulled_is_found() {
    let project = Project::with(&["one"]);
    let url = serve("/api/tags", &[("GET /api/tags ", r#"{"models":[{"name":"qwen3:latest"}]}"#)]);
    for (url, model, status_wanted, part) in [
        (url.as_str(), "qwen3", "ok", "qwen3 of ollama"),
        (url.as_str(), "llama3", "broken", "run `ollama pull llama3`"),
        ("http://127.0.0.1:1", "qwen3", "broken", "start it with `ollama serve`"),
    ] {
        let config = format!("[agent]\nprovider = \"ollama\"\nmodel = \"{model}\"\nbase_url = \"{url}\"\n");
        let report = doctor_with(&project, &config, &[]);
        let row = status(&report, "agent");
        assert!(row["status"] == status_wanted && row.to_string().contains(part), "{part}: {report}");
    }
}

#[test]
fn the_key_and_the_model_of_the_image_service_are_tried() {
    let project = Project::with(&["one"]);
    let url = serve("Bearer right", &[("GET /v1/models ", r#"{"data":[{"id":"paint-2"}]}"#)]);
    let config = |model: &str| format!("[images]\nurl = \"{url}/v1\"\nmodel = \"{model}\"\n");
    let images = |model: &str, variables: &[(&str, &str)]| {
        status(&doctor_with(&project, &config(model), variables), "images").clone()
    };
    let right = [("TOOLWRIGHT_IMAGES_KEY", "right")];
    assert_eq!(images("paint-2", &right)["status"], "ok");
    let unknown = images("paint-3", &right);
    assert_eq!((&unknown["status"], &unknown["help"]), (&"broken".into(), &"did you mean `paint-2`?".into()));
    let refused = images("paint-2", &[("TOOLWRIGHT_IMAGES_KEY", "wrong")]);
    assert!(refused["message"].as_str().unwrap().contains("the service refuses the key"), "{refused}");
    let missing = images("paint-2", &[]);
    assert_eq!(
        (&missing["status"], &missing["help"]),
        (&"broken".into(), &"set TOOLWRIGHT_IMAGES_KEY to the key".into())
    );
}

#[test]
fn the_account_at_zoom_is_tried() {
    let project = Project::with(&["one"]);
    // "id:right" and "t1".
    let oauth = serve("Basic aWQ6cmlnaHQ=", &[("POST /token", r#"{"access_token":"t1","expires_in":3600}"#)]);
    let api = serve("Bearer t1", &[("GET /v2/users/me/meetings", r#"{"meetings":[]}"#)]);
    let config = format!(
        "[calendar.zoom]\naccount_id = \"a\"\nclient_id = \"id\"\napi = \"{api}/v2\"\noauth = \"{oauth}/token\"\n"
    );
    let zoom =
        |variables: &[(&str, &str)]| status(&doctor_with(&project, &config, variables), "zoom").clone();
    let right = zoom(&[("ZOOM_CLIENT_SECRET", "right")]);
    assert_eq!(right["status"], "ok", "{right}");
    let wrong = zoom(&[("ZOOM_CLIENT_SECRET", "wrong")]);
    assert_eq!(wrong["status"], "broken");
    assert!(wrong["message"].as_str().unwrap().contains("Zoom rejects the server's credentials"), "{wrong}");
    let missing = zoom(&[]);
    assert!(
        missing["message"].as_str().unwrap().contains("ZOOM_CLIENT_SECRET, which is not set"),
        "{missing}"
    );
}
