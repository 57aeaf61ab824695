//! `images.*` against a server on loopback: images in base64 and as URLs, errors, timeouts and oversized responses.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{BaseUrl, ImageFormat, ImageStore, Images, Options, is_image_name};
use crate::http::tests::test_server::{Reply, Server, reply};
use crate::{CallIdentity, Capability, Result};

/// The first bytes of a PNG of this size: no more is read.
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
        key: Some("sk-test".to_owned().into()),
        timeout: Duration::from_secs(5),
        max_bytes: 100_000,
        dir: dir.join("images"),
        base: BaseUrl::new("http://tools.example:7300/"),
    }
}

#[test]
fn debug_output_hides_the_key() {
    let shown = format!("{:?}", Images::new(options(None, Path::new("."))));
    assert!(shown.contains("key: Some(***)") && !shown.contains("sk-test"), "{shown}");
}

/// The capability with an image service and a directory.
struct ImageService {
    images: Images,
    server: Server,
    dir: TempDir,
}

impl ImageService {
    async fn responding(respond: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start("127.0.0.1", respond).await;
        let url = format!("http://{}/v1", server.address);
        let images = Images::new(options(Some(url), dir.path()));
        Self { images, server, dir }
    }

    async fn with(status: &'static str, body: Value) -> Self {
        Self::responding(move |_| {
            Reply::Close(reply(status, "content-type: application/json\r\n", body.to_string()))
        })
        .await
    }

    async fn generate(&self, execution: &str, change: Value) -> Result<Value> {
        call_generate(&self.images, "session", execution, change).await
    }

    async fn generate_error(&self) -> (&'static str, String) {
        let error = self.generate("call", json!({})).await.unwrap_err();
        (error.code, error.message)
    }

    fn store(&self) -> ImageStore {
        ImageStore::new(&self.dir.path().join("images"))
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("images")).map_or(0, Iterator::count)
    }
}

async fn call_generate(images: &Images, session: &str, execution: &str, change: Value) -> Result<Value> {
    let mut args = json!({
        "prompt": "A calm lake", "size": "1024x1024", "count": 1, "quality": "standard", "executionId": execution
    });
    for (name, value) in change.as_object().unwrap() {
        args[name] = value.clone();
    }
    let caller = CallIdentity {
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
    images.call(&caller, "generate", vec![args]).await.map(|output| output.value)
}

fn base64_of(images: &[Vec<u8>]) -> Value {
    let one =
        |bytes: &Vec<u8>| json!({ "b64_json": STANDARD.encode(bytes), "revised_prompt": "A very calm lake" });
    json!({ "created": 1, "data": images.iter().map(one).collect::<Vec<_>>() })
}

fn name_of(image: &Value) -> String {
    let url = image["url"].as_str().unwrap();
    url.strip_prefix("http://tools.example:7300/images/").unwrap().to_owned()
}

#[tokio::test]
async fn images_in_base64_are_stored_and_have_a_url() {
    let service = ImageService::with("200 OK", base64_of(&[png(1024, 1024), jpeg(640, 480)])).await;
    let made = service.generate("call", json!({ "count": 2, "quality": "hd" })).await.unwrap();
    let images = made["images"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    for (image, (format, media_type, width, bytes)) in images.iter().zip([
        (ImageFormat::Png, "image/png", 1024, png(1024, 1024)),
        (ImageFormat::Jpeg, "image/jpeg", 640, jpeg(640, 480)),
    ]) {
        assert_eq!((&image["mimeType"], &image["width"]), (&json!(media_type), &json!(width)));
        assert_eq!(image["revisedPrompt"], "A very calm lake");
        assert_eq!(service.store().read(&name_of(image)), Some((format, bytes)));
    }
    let request = &service.server.requests()[0];
    assert!(request.starts_with("POST /v1/images/generations "), "{request}");
    assert!(request.contains("authorization: Bearer sk-test"), "{request}");
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let expected = json!({
        "prompt": "A calm lake", "n": 2, "size": "1024x1024", "model": "dall-e-3", "quality": "hd", "response_format": "b64_json"
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn gpt_image_models_get_their_own_sizes_and_quality() {
    let mut service = ImageService::with("200 OK", base64_of(&[png(1536, 1024)])).await;
    service.images.options =
        Options { model: Some("gpt-image-1".to_owned()), ..(*service.images.options).clone() }.into();
    for (call, size, own) in [("wide", "1792x1024", "1536x1024"), ("tall", "1024x1792", "1024x1536")] {
        service.generate(call, json!({ "size": size, "quality": "hd" })).await.unwrap();
        let requests = service.server.requests();
        let body: Value =
            serde_json::from_str(requests.last().unwrap().split_once("\r\n\r\n").unwrap().1).unwrap();
        let expected = json!({
            "prompt": "A calm lake", "n": 1, "size": own, "model": "gpt-image-1", "quality": "high"
        });
        assert_eq!(body, expected);
    }
}

#[tokio::test]
async fn the_same_call_gets_the_same_images_also_after_a_restart() {
    let service = ImageService::with("200 OK", base64_of(&[png(8, 8)])).await;
    let first = service.generate("call", json!({})).await.unwrap();
    assert_eq!(service.generate("call", json!({})).await.unwrap(), first);
    let again = Images::new(options(service.images.options.url.clone(), service.dir.path()));
    assert_eq!(call_generate(&again, "session", "call", json!({})).await.unwrap(), first);
    assert_eq!(service.server.requests().len(), 1);

    // An execution id belongs to one session and one request.
    let other = call_generate(&again, "other session", "call", json!({})).await.unwrap();
    assert_ne!(other, first);
    assert_eq!(
        service.generate("call", json!({ "prompt": "A storm" })).await.unwrap_err().code,
        "INVALID_ARGUMENT"
    );
    assert_eq!(service.server.requests().len(), 2);
}

#[tokio::test]
async fn images_returned_as_urls_are_fetched_from_the_service() {
    let service = ImageService::responding(|request| {
        if request.starts_with("GET /files/lake.png ") {
            assert!(!request.contains("sk-test"), "the key is sent to the endpoint alone");
            return Reply::Close(reply("200 OK", "content-type: text/html\r\n", png(4, 2)));
        }
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let data = json!({ "data": [{ "url": format!("http://{host}/files/lake.png") }] });
        Reply::Close(reply("200 OK", "content-type: application/json\r\n", data.to_string()))
    })
    .await;
    // The content type says text, so the fetcher has converted the bytes and they are no longer an image.
    assert_eq!(service.generate_error().await.0, "TIMEOUT");

    let service = ImageService::responding(|request| {
        if request.starts_with("GET ") {
            return Reply::Close(reply("200 OK", "content-type: application/octet-stream\r\n", png(4, 2)));
        }
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let data = json!({ "data": [{ "url": format!("http://{host}/files/lake.png") }] });
        Reply::Close(reply("200 OK", "content-type: application/json\r\n", data.to_string()))
    })
    .await;
    let made = service.generate("call", json!({})).await.unwrap();
    assert_eq!(made["images"][0]["mimeType"], "image/png");
    assert_eq!((&made["images"][0]["width"], &made["images"][0]["height"]), (&json!(4), &json!(2)));
}

#[tokio::test]
async fn a_returned_url_cannot_reach_private_addresses() {
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
        let service = ImageService::with("200 OK", json!({ "data": [{ "url": address }] })).await;
        let (code, message) = service.generate_error().await;
        assert_eq!(code, "TIMEOUT", "{address}");
        assert!(
            message.contains("not fetched") || message.contains("list of images"),
            "{address}: {message}"
        );
        assert_eq!((service.server.requests().len(), service.files()), (1, 0), "{address}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_an_image_are_not_stored() {
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>".to_vec();
    for bytes in [
        svg,
        b"<html>".to_vec(),
        b"GIF89a\x01\x00\x01\x00\x00\x00\x00".to_vec(),
        vec![],
        b"\x89PNG\r\n\x1a\n".to_vec(),
    ] {
        let service = ImageService::with("200 OK", base64_of(std::slice::from_ref(&bytes))).await;
        assert_eq!(service.generate_error().await.0, "TIMEOUT", "{bytes:?}");
        assert_eq!(service.files(), 0);
    }
    for body in [
        json!({}),
        json!({ "data": [] }),
        json!({ "data": [{}] }),
        json!({ "data": [{ "b64_json": "%%%" }] }),
        json!([]),
    ] {
        let service = ImageService::with("200 OK", body.clone()).await;
        assert_eq!(service.generate_error().await.0, "TIMEOUT", "{body}");
    }
}

#[tokio::test]
async fn oversized_and_missing_responses_are_timeouts() {
    let large = [png(9, 9), vec![0; 100_000]].concat();
    let service = ImageService::with("200 OK", base64_of(&[large])).await;
    assert_eq!(
        service.generate_error().await,
        ("TIMEOUT", "an image is larger than the limit of 100000 bytes".to_owned())
    );

    let service = ImageService::with("200 OK", json!({ "data": "x".repeat(2_000_000) })).await;
    let (code, message) = service.generate_error().await;
    assert!(code == "TIMEOUT" && message.contains("larger"), "{code} {message}");

    let mut service = ImageService::responding(|_| Reply::Silence).await;
    service.images.options =
        Options { timeout: Duration::from_millis(200), ..(*service.images.options).clone() }.into();
    assert_eq!(service.generate_error().await.0, "TIMEOUT");
}

#[tokio::test]
async fn errors_of_the_service_are_mapped_to_capability_codes() {
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
        let service = ImageService::with(status, body.clone()).await;
        assert_eq!(service.generate_error().await.0, code, "{status} {body}");
        assert_eq!(service.server.requests().len(), 1, "nothing is sent twice");
    }
}

#[tokio::test]
async fn without_a_service_the_error_explains_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let error =
        call_generate(&Images::new(options(None, dir.path())), "s", "c", json!({})).await.unwrap_err();
    assert_eq!(error.code, "NOT_CONFIGURED");
    assert!(error.message.contains("[images] url") && error.message.contains("key_env"), "{}", error.message);
    let nowhere = Images::new(options(Some("http://127.0.0.1:1/v1".to_owned()), dir.path()));
    assert_eq!(call_generate(&nowhere, "s", "c", json!({})).await.unwrap_err().code, "UNREACHABLE");
    let wrong = Images::new(options(Some("api.example".to_owned()), dir.path()));
    assert_eq!(call_generate(&wrong, "s", "c", json!({})).await.unwrap_err().code, "NOT_CONFIGURED");
}

#[tokio::test]
async fn image_urls_begin_with_the_address_that_was_set_last() {
    let service = ImageService::with("200 OK", base64_of(&[png(8, 8)])).await;
    service.images.options.base.set("http://127.0.0.1:4711");
    let made = service.generate("call", json!({})).await.unwrap();
    assert!(
        made["images"][0]["url"].as_str().unwrap().starts_with("http://127.0.0.1:4711/images/"),
        "{made}"
    );
}

#[test]
fn only_names_of_images_are_served() {
    let stem = "0123456789abcdef0123456789abcdef";
    assert!(is_image_name(&format!("{stem}.png")) && is_image_name(&format!("{stem}.webp")));
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
        assert!(!is_image_name(&name), "{name}");
    }
}

fn drafted(args: Value) -> Vec<(String, String)> {
    let drafted = super::prompt_draft::draft(&args).unwrap();
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
    let args = json!({
        "idea": "a small  boat\non a lake.", "style": "any", "orientation": "landscape", "avoid": ["people", "text"], "count": 4
    });
    let variants = drafted(args.clone());
    assert_eq!(variants, drafted(args));
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
    for (idea, opening) in [
        ("A lighthouse at dawn", "A photograph of a lighthouse at dawn. "),
        ("The Moon!", "A photograph of the Moon. "),
        ("Anna at sea", "A photograph of Anna at sea. "),
        ("A", "A photograph of A. "),
    ] {
        let prompt = &drafted(json!({ "idea": idea, "style": "photo" }))[0].1;
        assert!(prompt.starts_with(opening), "{prompt}");
    }
}

#[test]
fn a_style_and_a_mood_apply_to_all_variants() {
    let args = json!({ "idea": "a lake", "style": "watercolor", "mood": "calm evening", "orientation": "square", "avoid": [], "count": 3 });
    let variants = drafted(args);
    assert_eq!(variants.len(), 3);
    assert!(variants.iter().all(|(style, prompt)| style == "watercolor" && prompt.contains("Calm evening,")));
    assert_ne!(variants[0].1, variants[1].1);
    let error_code = |args: Value| super::prompt_draft::draft(&args).unwrap_err().code;
    assert_eq!(error_code(json!({ "idea": "x", "style": "oil" })), "INVALID_ARGUMENT");
    assert_eq!(error_code(json!({ "idea": "  " })), "INVALID_ARGUMENT");
}
