//! `/images/{imageName}`: images, and no other files.

use std::fs;

use tempfile::TempDir;

use super::support::TestServer;

const NAME: &str = "0123456789abcdef0123456789abcdef";

/// A server with a directory of images.
async fn server_with_images() -> (TestServer, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    fs::create_dir(&images).unwrap();
    fs::write(images.join(format!("{NAME}.png")), b"an image").unwrap();
    fs::write(images.join(format!("{NAME}.json")), b"a record").unwrap();
    fs::write(images.join("notes.png"), b"something else").unwrap();
    fs::write(dir.path().join("keys.json"), b"secrets").unwrap();
    let server = TestServer::with(|options| options.images = Some(images), None).await;
    (server, dir)
}

#[tokio::test]
async fn an_image_is_served_with_its_type_to_anyone_with_its_url() {
    let (server, _dir) = server_with_images().await;
    // Other routes require authentication, because a key exists.
    server.create_key("mira", &[]);
    server.client.get("/v1/tools").await.problem(401, "");
    let answer = server.client.get(&format!("/images/{NAME}.png")).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"an image"[..]));
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, max-age=31536000, immutable"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    let head = server.client.request("HEAD", &format!("/images/{NAME}.png"), "").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("8")));
    // A page of another site may embed it; its scripts may not read it.
    let page = server.client.with("sec-fetch-site", "cross-site");
    assert_eq!(page.get(&format!("/images/{NAME}.png")).await.status, 200);
    let script =
        server.client.with("origin", "https://other.example").get(&format!("/images/{NAME}.png")).await;
    assert_eq!((script.status, script.header("access-control-allow-origin")), (200, None));
    let rebound = server.client.with("host", "evil.example").get(&format!("/images/{NAME}.png")).await;
    rebound.problem(403, "loopback");
}

#[tokio::test]
async fn no_other_file_is_served() {
    let (server, _dir) = server_with_images().await;
    for name in [
        format!("{NAME}.json"),
        format!("{NAME}.webp"),
        format!("{NAME}.PNG"),
        "notes.png".to_owned(),
        format!("%2e%2e%2f{NAME}.png"),
        "..%2fkeys.json".to_owned(),
        "%2e%2e%2fkeys.json".to_owned(),
        format!("{NAME}.png%00.json"),
        format!("{NAME}.png%2f"),
        "ffffffffffffffffffffffffffffffff.png".to_owned(),
        "x".repeat(5000),
    ] {
        server.client.get(&format!("/images/{name}")).await.problem(404, "Image `");
    }
    for path in ["/images", "/images/", "/images/../keys.json", "/images/x/y.png"] {
        server.client.get(path).await.problem(404, "Path `");
    }
    server.client.post(&format!("/images/{NAME}.png"), serde_json::json!({})).await.problem(405, "GET");
    let without = TestServer::start().await;
    without.client.get(&format!("/images/{NAME}.png")).await.problem(404, "Image `");
}
