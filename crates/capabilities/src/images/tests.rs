//! Against a server on loopback that behaves like the API: pictures in base64 and as addresses, errors, silence, floods.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Address, Images, Kind, Options, Shelf, is_name};
use crate::http::tests::server::{Reply, Server, reply};
use crate::{Asker, Capability, Fault};

/// The first bytes of a PNG of this size: all that is looked at.
fn png(width: u32, height: u32) -> Vec<u8> {
    let head = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR";
    [&head[..], &width.to_be_bytes(), &height.to_be_bytes(), b"\x08\x06\x00\x00\x00", &[0; 64]].concat()
}

fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let head = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x11\x08";
    [
        &head[..],
        &height.to_be_bytes(),
        &width.to_be_bytes(),
        b"\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01",
        &[0; 64],
    ]
    .concat()
}

fn options(url: Option<String>, dir: &Path) -> Options {
    Options {
        url,
        model: Some("dall-e-3".to_owned()),
        key: Some("sk-test".to_owned()),
        timeout: Duration::from_secs(5),
        max_bytes: 100_000,
        dir: dir.join("images"),
        base: Address::new("http://tools.example:7300/"),
    }
}

/// A service that answers everything alike, and what makes pictures with it.
struct Studio {
    images: Images,
    server: Server,
    dir: TempDir,
}

impl Studio {
    async fn answering(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start("127.0.0.1", answer).await;
        let url = format!("http://{}/v1", server.address);
        let images = Images::new(options(Some(url), dir.path()));
        Self { images, server, dir }
    }

    async fn with(status: &'static str, body: Value) -> Self {
        Self::answering(move |_| {
            Reply::Close(reply(status, "content-type: application/json\r\n", body.to_string()))
        })
        .await
    }

    async fn ask(&self, execution: &str, change: Value) -> Result<Value, Fault> {
        generate(&self.images, "session", execution, change).await
    }

    async fn failed(&self) -> (&'static str, String) {
        let fault = self.ask("call", json!({})).await.unwrap_err();
        (fault.code, fault.message)
    }

    fn shelf(&self) -> Shelf {
        Shelf::new(&self.dir.path().join("images"))
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("images")).map_or(0, Iterator::count)
    }
}

async fn generate(images: &Images, session: &str, execution: &str, change: Value) -> Result<Value, Fault> {
    let mut asked = json!({
        "prompt": "A calm lake", "size": "1024x1024", "count": 1, "quality": "standard", "executionId": execution
    });
    for (name, value) in change.as_object().unwrap() {
        asked[name] = value.clone();
    }
    let asker = Asker {
        tool: "image_generate",
        execution_id: execution,
        client_id: "client",
        session: Some(session),
        user: "mira",
        org: None,
        roles: &[],
        deadline: Instant::now() + Duration::from_secs(20),
        now: None,
    };
    images.call(&asker, "generate", vec![asked]).await.map(|answered| answered.value)
}

fn base64_of(pictures: &[Vec<u8>]) -> Value {
    let one =
        |bytes: &Vec<u8>| json!({ "b64_json": STANDARD.encode(bytes), "revised_prompt": "A very calm lake" });
    json!({ "created": 1, "data": pictures.iter().map(one).collect::<Vec<_>>() })
}

fn name_of(image: &Value) -> String {
    let url = image["url"].as_str().unwrap();
    url.strip_prefix("http://tools.example:7300/images/").unwrap().to_owned()
}

#[tokio::test]
async fn pictures_in_base64_are_kept_and_have_an_address() {
    let studio = Studio::with("200 OK", base64_of(&[png(1024, 1024), jpeg(640, 480)])).await;
    let made = studio.ask("call", json!({ "count": 2, "quality": "hd" })).await.unwrap();
    let images = made["images"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    for (image, (kind, media_type, width, bytes)) in images.iter().zip([
        (Kind::Png, "image/png", 1024, png(1024, 1024)),
        (Kind::Jpeg, "image/jpeg", 640, jpeg(640, 480)),
    ]) {
        assert_eq!((&image["mimeType"], &image["width"]), (&json!(media_type), &json!(width)));
        assert_eq!(image["revisedPrompt"], "A very calm lake");
        assert_eq!(studio.shelf().read(&name_of(image)), Some((kind, bytes)));
    }
    let request = &studio.server.requests()[0];
    assert!(request.starts_with("POST /v1/images/generations "), "{request}");
    assert!(request.contains("authorization: Bearer sk-test"), "{request}");
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = json!({
        "prompt": "A calm lake", "n": 2, "size": "1024x1024", "model": "dall-e-3", "quality": "hd", "response_format": "b64_json"
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_model_is_asked_in_its_own_words() {
    let mut studio = Studio::with("200 OK", base64_of(&[png(1536, 1024)])).await;
    studio.images.options =
        Options { model: Some("gpt-image-1".to_owned()), ..(*studio.images.options).clone() }.into();
    for (call, size, own) in [("wide", "1792x1024", "1536x1024"), ("tall", "1024x1792", "1024x1536")] {
        studio.ask(call, json!({ "size": size, "quality": "hd" })).await.unwrap();
        let requests = studio.server.requests();
        let body: Value =
            serde_json::from_str(requests.last().unwrap().split_once("\r\n\r\n").unwrap().1).unwrap();
        let expected = json!({
            "prompt": "A calm lake", "n": 1, "size": own, "model": "gpt-image-1", "quality": "high"
        });
        assert_eq!(body, expected);
    }
}

#[tokio::test]
async fn the_same_call_gets_the_same_pictures_also_after_a_restart() {
    let studio = Studio::with("200 OK", base64_of(&[png(8, 8)])).await;
    let first = studio.ask("call", json!({})).await.unwrap();
    assert_eq!(studio.ask("call", json!({})).await.unwrap(), first);
    let again = Images::new(options(studio.images.options.url.clone(), studio.dir.path()));
    assert_eq!(generate(&again, "session", "call", json!({})).await.unwrap(), first);
    assert_eq!(studio.server.requests().len(), 1);

    // The id is the session's own, and stands for one request.
    let other = generate(&again, "other session", "call", json!({})).await.unwrap();
    assert_ne!(other, first);
    assert_eq!(
        studio.ask("call", json!({ "prompt": "A storm" })).await.unwrap_err().code,
        "INVALID_ARGUMENT"
    );
    assert_eq!(studio.server.requests().len(), 2);
}

#[tokio::test]
async fn pictures_that_come_as_addresses_are_fetched_from_the_service_itself() {
    let studio = Studio::answering(|request| {
        if request.starts_with("GET /files/lake.png ") {
            assert!(!request.contains("sk-test"), "the key is for the endpoint alone");
            return Reply::Close(reply("200 OK", "content-type: text/html\r\n", png(4, 2)));
        }
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let data = json!({ "data": [{ "url": format!("http://{host}/files/lake.png") }] });
        Reply::Close(reply("200 OK", "content-type: application/json\r\n", data.to_string()))
    })
    .await;
    // Its word for the type does not count: the bytes were handed on as text, and are no picture any more.
    assert_eq!(studio.failed().await.0, "TIMEOUT");

    let studio = Studio::answering(|request| {
        if request.starts_with("GET ") {
            return Reply::Close(reply("200 OK", "content-type: application/octet-stream\r\n", png(4, 2)));
        }
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let data = json!({ "data": [{ "url": format!("http://{host}/files/lake.png") }] });
        Reply::Close(reply("200 OK", "content-type: application/json\r\n", data.to_string()))
    })
    .await;
    let made = studio.ask("call", json!({})).await.unwrap();
    assert_eq!(made["images"][0]["mimeType"], "image/png");
    assert_eq!((&made["images"][0]["width"], &made["images"][0]["height"]), (&json!(4), &json!(2)));
}

#[tokio::test]
async fn an_answer_cannot_lead_anywhere_else() {
    for address in [
        "http://127.0.0.1:1/secret",
        "https://127.0.0.1/secret",
        "https://10.0.0.1/x",
        "https://localhost/x",
        "https://localhost./x",
        "https://x.localhost/x",
        "https://[::1]/x",
        "https://0x7f.1/x",
        "http://public.example/x.png",
        "file:///etc/passwd",
        "ftp://public.example/x",
        "nonsense",
        "",
    ] {
        let studio = Studio::with("200 OK", json!({ "data": [{ "url": address }] })).await;
        let (code, message) = studio.failed().await;
        assert_eq!(code, "TIMEOUT", "{address}");
        assert!(
            message.contains("not fetched") || message.contains("list of pictures"),
            "{address}: {message}"
        );
        assert_eq!((studio.server.requests().len(), studio.files()), (1, 0), "{address}");
    }
}

#[tokio::test]
async fn what_is_no_picture_is_not_kept() {
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>".to_vec();
    for bytes in [
        svg,
        b"<html>".to_vec(),
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00".to_vec(),
        vec![],
        b"\x89PNG\r\n\x1a\n".to_vec(),
    ] {
        let studio = Studio::with("200 OK", base64_of(std::slice::from_ref(&bytes))).await;
        assert_eq!(studio.failed().await.0, "TIMEOUT", "{bytes:?}");
        assert_eq!(studio.files(), 0);
    }
    for body in [
        json!({}),
        json!({ "data": [] }),
        json!({ "data": [{}] }),
        json!({ "data": [{ "b64_json": "%%%" }] }),
        json!([]),
    ] {
        let studio = Studio::with("200 OK", body.clone()).await;
        assert_eq!(studio.failed().await.0, "TIMEOUT", "{body}");
    }
}

#[tokio::test]
async fn floods_and_silence_end() {
    let large = [png(9, 9), vec![0; 100_000]].concat();
    let studio = Studio::with("200 OK", base64_of(&[large])).await;
    assert_eq!(studio.failed().await, ("TIMEOUT", "a picture has more than 100000 bytes".to_owned()));

    let studio = Studio::with("200 OK", json!({ "data": "x".repeat(2_000_000) })).await;
    let (code, message) = studio.failed().await;
    assert!(code == "TIMEOUT" && message.contains("larger"), "{code} {message}");

    let mut studio = Studio::answering(|_| Reply::Silence).await;
    studio.images.options =
        Options { timeout: Duration::from_millis(200), ..(*studio.images.options).clone() }.into();
    assert_eq!(studio.failed().await.0, "TIMEOUT");
}

#[tokio::test]
async fn errors_of_the_service_have_codes_of_ours() {
    let error =
        |code: &str, kind: &str| json!({ "error": { "code": code, "type": kind, "message": "Because." } });
    for (status, body, code) in [
        ("400 Bad Request", error("content_policy_violation", "invalid_request_error"), "REJECTED"),
        ("400 Bad Request", error("moderation_blocked", "image_generation_user_error"), "REJECTED"),
        ("400 Bad Request", error("invalid_size", "invalid_request_error"), "INVALID_ARGUMENT"),
        ("404 Not Found", error("model_not_found", "invalid_request_error"), "NOT_CONFIGURED"),
        ("404 Not Found", json!("no such page"), "NOT_CONFIGURED"),
        ("405 Method Not Allowed", Value::Null, "NOT_CONFIGURED"),
        ("401 Unauthorized", error("invalid_api_key", "x"), "FORBIDDEN"),
        ("403 Forbidden", error("", ""), "FORBIDDEN"),
        ("429 Too Many Requests", error("rate_limit_exceeded", "requests"), "RATE_LIMIT"),
        ("429 Too Many Requests", error("insufficient_quota", "insufficient_quota"), "FORBIDDEN"),
        ("500 Internal Server Error", error("", "server_error"), "TIMEOUT"),
        ("503 Service Unavailable", json!("busy"), "TIMEOUT"),
    ] {
        let studio = Studio::with(status, body.clone()).await;
        assert_eq!(studio.failed().await.0, code, "{status} {body}");
        assert_eq!(studio.server.requests().len(), 1, "nothing is sent twice");
    }
}

#[tokio::test]
async fn without_a_service_the_error_says_how_to_set_one_up() {
    let dir = tempfile::tempdir().unwrap();
    let fault = generate(&Images::new(options(None, dir.path())), "s", "c", json!({})).await.unwrap_err();
    assert_eq!(fault.code, "NOT_CONFIGURED");
    assert!(fault.message.contains("[images] url") && fault.message.contains("key_env"), "{}", fault.message);
    let nowhere = Images::new(options(Some("http://127.0.0.1:1/v1".to_owned()), dir.path()));
    assert_eq!(generate(&nowhere, "s", "c", json!({})).await.unwrap_err().code, "UNREACHABLE");
    let wrong = Images::new(options(Some("api.example".to_owned()), dir.path()));
    assert_eq!(generate(&wrong, "s", "c", json!({})).await.unwrap_err().code, "NOT_CONFIGURED");
}

#[tokio::test]
async fn a_server_that_listens_elsewhere_gives_its_own_address() {
    let studio = Studio::with("200 OK", base64_of(&[png(8, 8)])).await;
    studio.images.options.base.set("http://127.0.0.1:4711");
    let made = studio.ask("call", json!({})).await.unwrap();
    assert!(
        made["images"][0]["url"].as_str().unwrap().starts_with("http://127.0.0.1:4711/images/"),
        "{made}"
    );
}

#[test]
fn only_names_of_pictures_are_served() {
    let stem = "0123456789abcdef0123456789abcdef";
    assert!(is_name(&format!("{stem}.png")) && is_name(&format!("{stem}.webp")));
    for name in [
        format!("{stem}.json"),
        format!("../{stem}.png"),
        format!("{stem}.png/.."),
        format!("{stem}.PNG"),
        format!("{}.png", stem.to_uppercase()),
        format!("{stem}.png.svg"),
        stem.to_owned(),
        "a.png".to_owned(),
        String::new(),
    ] {
        assert!(!is_name(&name), "{name}");
    }
}

fn drafted(asked: Value) -> Vec<(String, String)> {
    let drafted = super::draft::draft(&asked).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    drafted["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["style"]), text(&one["prompt"])))
        .collect()
}

#[test]
fn variants_differ_and_are_the_same_each_time() {
    let asked = json!({
        "idea": "a small  boat\non a lake.", "style": "any", "orientation": "landscape", "avoid": ["people", "text"], "count": 4
    });
    let variants = drafted(asked.clone());
    assert_eq!(variants, drafted(asked));
    let distinct = |part: fn(&(String, String)) -> &String| {
        variants.iter().map(part).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((distinct(|one| &one.0), distinct(|one| &one.1)), (4, 4));
    for (_, prompt) in &variants {
        assert!(
            prompt.contains("a small boat on a lake. ") && prompt.contains("wide landscape format"),
            "{prompt}"
        );
        assert!(prompt.ends_with("Without: people, text."), "{prompt}");
        assert_eq!(prompt.matches("people").count(), 1);
    }
}

#[test]
fn an_idea_becomes_part_of_the_sentence() {
    for (idea, told) in [
        ("A lighthouse at dawn", "A photograph of a lighthouse at dawn. "),
        ("The Moon!", "A photograph of the Moon. "),
        ("Anna at sea", "A photograph of Anna at sea. "),
        ("A", "A photograph of A. "),
    ] {
        let prompt = &drafted(json!({ "idea": idea, "style": "photo" }))[0].1;
        assert!(prompt.starts_with(told), "{prompt}");
    }
}

#[test]
fn a_style_and_a_mood_hold_for_all_variants() {
    let asked = json!({ "idea": "a lake", "style": "watercolor", "mood": "calm evening", "orientation": "square", "avoid": [], "count": 3 });
    let variants = drafted(asked);
    assert_eq!(variants.len(), 3);
    assert!(variants.iter().all(|(style, prompt)| style == "watercolor" && prompt.contains("Calm evening,")));
    assert_ne!(variants[0].1, variants[1].1);
    let wrong = |asked: Value| super::draft::draft(&asked).unwrap_err().code;
    assert_eq!(wrong(json!({ "idea": "x", "style": "oil" })), "INVALID_ARGUMENT");
    assert_eq!(wrong(json!({ "idea": "  " })), "INVALID_ARGUMENT");
}
