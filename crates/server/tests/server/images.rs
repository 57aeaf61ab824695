//! `/images/{imageName}`: pictures, and nothing but pictures.

use std::fs;

use tempfile::TempDir;

use super::support::Served;

const NAME: &str = "0123456789abcdef0123456789abcdef";

/// A server with a directory of pictures.
async fn gallery() -> (Served, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let images = dir.path().join("images");
    fs::create_dir(&images).unwrap();
    fs::write(images.join(format!("{NAME}.png")), b"a picture").unwrap();
    fs::write(images.join(format!("{NAME}.json")), b"a record").unwrap();
    fs::write(images.join("notes.png"), b"something else").unwrap();
    fs::write(dir.path().join("keys.json"), b"secrets").unwrap();
    let served = Served::with(|options| options.images = Some(images), None).await;
    (served, dir)
}

#[tokio::test]
async fn a_picture_is_served_as_what_it_is_to_whoever_has_its_address() {
    let (served, _dir) = gallery().await;
    // There is a key, so others have to say who they are.
    served.key_of("mira", &[]);
    served.client.get("/v1/tools").await.problem(401, "");
    let answer = served.client.get(&format!("/images/{NAME}.png")).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"a picture"[..]));
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "private, max-age=31536000, immutable"),
        ("content-security-policy", "default-src 'none'; sandbox"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{}", answer.head);
    }
    let head = served.client.ask("HEAD", &format!("/images/{NAME}.png"), "").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("9")));
    // A page of another site shows it; only its scripts may not read it.
    let page = served.client.with("sec-fetch-site", "cross-site");
    assert_eq!(page.get(&format!("/images/{NAME}.png")).await.status, 200);
    let script =
        served.client.with("origin", "https://other.example").get(&format!("/images/{NAME}.png")).await;
    assert_eq!((script.status, script.header("access-control-allow-origin")), (200, None));
    let rebound = served.client.with("host", "evil.example").get(&format!("/images/{NAME}.png")).await;
    rebound.problem(403, "loopback");
}

#[tokio::test]
async fn nothing_else_is_served() {
    let (served, _dir) = gallery().await;
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
        served.client.get(&format!("/images/{name}")).await.problem(404, "no such image");
    }
    for path in ["/images", "/images/", "/images/../keys.json", "/images/x/y.png"] {
        served.client.get(path).await.problem(404, "no such path");
    }
    served.client.post(&format!("/images/{NAME}.png"), serde_json::json!({})).await.problem(405, "GET");
    let without = Served::start().await;
    without.client.get(&format!("/images/{NAME}.png")).await.problem(404, "no such image");
}
