//! The reference tools called from the terminal: real handlers, real capabilities.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::serve::Serving;
use super::support::{Project, Run};

fn run(project: &Project, tool: &str, args: &Value, flags: &[&str]) -> Run {
    let args = args.to_string();
    project.run(&[&["call", tool, args.as_str(), "--format", "json"], flags].concat())
}

fn data(project: &Project, tool: &str, args: Value) -> Value {
    run(project, tool, &args, &[]).expect_code(0).json()["data"].clone()
}

/// A server of the images API that always returns the same image.
fn image_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(send_image));
    url
}

fn send_image(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    // The body is JSON and ends with its bracket.
    while !request.ends_with(b"}") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    // A PNG of one pixel.
    let picture =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let body = json!({ "created": 1, "data": [{ "b64_json": picture, "revised_prompt": "A quiet lake" }] })
        .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes());
}

fn with_images(settings: &str) -> Project {
    let project = Project::reference();
    let text = format!("[images]\nurl = \"{}\"\nmodel = \"test\"\n{settings}", image_service());
    fs::write(project.dir().join("toolwright.toml"), text).unwrap();
    project
}

#[test]
fn contacts_addresses_and_dates_are_read_and_written() {
    let project = Project::reference();
    let text = "Mira Okafor <mira@studio.example>, tel. 030 23125014, GitHub: @miraok";
    let found = data(&project, "extract_contacts", json!({ "text": text, "region": "DE" }));
    assert_eq!(found["emails"][0]["name"], "Mira Okafor");
    assert_eq!(found["phones"][0]["e164"], "+493023125014");
    assert_eq!((&found["profiles"][0]["handle"], &found["total"]), (&json!("miraok"), &json!(3)));
    let unknown =
        run(&project, "extract_contacts", &json!({ "text": "x", "region": "XX" }), &[]).expect_code(1);
    assert_eq!(unknown.json()["error"]["type"], "VALIDATION");

    let checked = data(&project, "validate_email", json!({ "email": " Mira@GMIAL.com" }));
    assert_eq!(
        (&checked["normalized"], &checked["did_you_mean"]),
        (&json!("Mira@gmial.com"), &json!("Mira@gmail.com"))
    );

    let when = json!({ "datetime": "2026-03-01T14:05:00Z", "timezone": "Europe/Berlin", "locale": "de-DE" });
    assert_eq!(data(&project, "format_datetime", when)["formatted"], "Sonntag, 1. März 2026 um 15:05 CET");
    let nowhere = json!({ "datetime": "2026-03-01T14:05:00Z", "timezone": "Berlin" });
    let nowhere = run(&project, "format_datetime", &nowhere, &[]).expect_code(1).json();
    assert_eq!(nowhere["error"]["type"], "VALIDATION");

    let ranked = data(
        &project,
        "rank_results",
        json!({ "results": [{ "id": "a", "score": 0.5 }, { "id": "b", "score": 0.9 }] }),
    );
    assert_eq!(ranked["ranked"][0]["id"], "b");
}

#[test]
fn prompts_are_drafted_and_a_missing_service_is_reported_with_its_setting() {
    let project = Project::reference();
    let drafted = data(&project, "image_draft_prompt", json!({ "idea": "a quiet lake", "variants": 4 }));
    let mut styles: Vec<_> =
        drafted["variants"].as_array().unwrap().iter().map(|one| one["style"].to_string()).collect();
    styles.dedup();
    assert_eq!(styles.len(), 4);
    let asked = json!({ "prompt": drafted["variants"][0]["prompt"], "user_requested": true });
    let error = run(&project, "image_generate", &asked, &[]).expect_code(1).json()["error"].clone();
    assert_eq!((&error["type"], &error["retryable"]), (&json!("PERMANENT"), &json!(false)));
    assert!(error["message"].as_str().unwrap().contains("[images] url"), "{error}");
}

#[test]
fn sensitive_unrequested_and_costly_images_need_confirmation() {
    let project = with_images("sensitive_words = [\"dragon*\"]\n");
    let outcome = |args: Value| {
        let envelope = run(&project, "image_generate", &args, &[]).json();
        envelope["error"]["type"].as_str().unwrap_or("ok").to_owned()
    };
    assert_eq!(outcome(json!({ "prompt": "A quiet lake", "user_requested": true })), "ok");
    // A word of the default list, which the configured list replaces.
    assert_eq!(outcome(json!({ "prompt": "A gun in a museum", "user_requested": true })), "ok");
    for args in [
        json!({ "prompt": "A quiet lake" }),
        json!({ "prompt": "A quiet lake", "user_requested": false }),
        json!({ "prompt": "A lake with DRAGONS", "user_requested": true }),
        json!({ "prompt": "A quiet lake", "user_requested": true, "count": 2 }),
        json!({ "prompt": "A quiet lake", "user_requested": true, "quality": "hd" }),
    ] {
        assert_eq!(outcome(args.clone()), "CONFIRMATION_REQUIRED", "{args}");
    }
    let made = run(&project, "image_generate", &json!({ "prompt": "A lake with dragons" }), &["--yes"])
        .expect_code(0);
    assert_eq!(made.json()["data"]["images"][0]["mime_type"], "image/png");
}

#[test]
fn an_image_is_stored_and_served() {
    let project = with_images("");
    let serving = Serving::start(&project, &[]);
    let body = json!({ "args": { "prompt": "A quiet lake", "user_requested": true }, "executionId": "lake" })
        .to_string();
    let (_, envelope) = serving.ask("POST /v1/tools/image_generate/call", "", &body);
    let image = &envelope["data"]["images"][0];
    assert_eq!((&image["width"], &image["mime_type"]), (&json!(1), &json!("image/png")), "{envelope}");
    assert_eq!(image["revised_prompt"], "A quiet lake");
    let url = image["url"].as_str().unwrap();
    let path = url.strip_prefix(&format!("http://{}", serving.address)).unwrap();
    let mut answer = Vec::new();
    serving.send(&format!("GET {path}"), "", "").read_to_end(&mut answer).unwrap();
    let text = String::from_utf8_lossy(&answer);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("content-type: image/png"), "{text}");
    assert!(answer.ends_with(b"IEND\xaeB`\x82"), "{text}");
}

#[test]
fn messages_are_printed_at_the_terminal() {
    let project = Project::reference();
    let sent =
        run(&project, "send_image", &json!({ "image_url": "https://x.example/a.png" }), &[]).expect_code(0);
    let sent = sent.expect_stderr(&["message", "\"type\":\"image\"", "https://x.example/a.png"]);
    assert_eq!(sent.json()["data"]["sent"], true);
    let ended = run(&project, "end_voice_session", &json!({}), &["--mode", "voice"]).expect_code(0).json();
    assert_eq!(
        (&ended["data"]["ending"], &ended["intents"][0]["type"]),
        (&json!(true), &json!("END_VOICE_SESSION"))
    );
    let text = run(&project, "end_voice_session", &json!({}), &[]).expect_code(1).json();
    assert_eq!(text["error"]["type"], "MODE_RESTRICTED");
}

#[test]
fn a_blocked_user_is_refused_until_the_operator_lifts_it() {
    let project = Project::reference();
    let block = json!({ "duration_seconds": 600, "farewell_message": "Let us pause." });
    let blocked = run(&project, "ignore_user", &block, &["--user", "eve"]).expect_code(0);
    let blocked = blocked.expect_stderr(&["message", "\"type\":\"timeout\"", "Let us pause."]);
    assert!(blocked.json()["data"]["timeoutUntil"].is_i64());
    let check = |user: &str| {
        let envelope =
            run(&project, "validate_email", &json!({ "email": "a@b.co" }), &["--user", user]).json();
        envelope["error"]["type"].as_str().unwrap_or("ok").to_owned()
    };
    assert_eq!([check("eve"), check("mira")], ["AUTH", "ok"]);
    project.run(&["unblock", "mira"]).expect_code(1).expect_stderr(&["is not blocked", "help: "]);
    project
        .run(&["unblock", "eve", "--client", "terminal"])
        .expect_code(0)
        .expect_stderr(&["no longer blocked"]);
    assert_eq!(check("eve"), "ok");
}

#[test]
fn a_tool_cannot_block_the_operator_at_the_terminal() {
    let project = Project::reference();
    let block = json!({ "duration_seconds": 600, "farewell_message": "Let us pause." });
    run(&project, "ignore_user", &block, &[]).expect_code(0);
    run(&project, "validate_email", &json!({ "email": "a@b.co" }), &[]).expect_code(0);
}
