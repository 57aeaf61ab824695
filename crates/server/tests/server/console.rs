//! The console: pages for browsers, sign-in, and what it refuses.

use super::client::{Client, Response};
use super::support::TestServer;

/// A browser: it accepts pages, names the origin of its forms, and holds cookies.
#[derive(Debug, Clone)]
pub struct Browser {
    client: Client,
    origin: String,
    cookie: Option<String>,
}

impl Browser {
    pub fn new(client: &Client) -> Self {
        let origin = format!("http://{}", client.address);
        Self { client: client.with("accept", "text/html,*/*;q=0.8"), origin, cookie: None }
    }

    fn client(&self) -> Client {
        match &self.cookie {
            Some(cookie) => self.client.with("cookie", format!("other=1; {cookie}")),
            None => self.client.clone(),
        }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.client().get(path).await
    }

    /// The page at a path, which must be there.
    pub async fn page(&self, path: &str) -> String {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
        response.text().to_owned()
    }

    /// Sends a form with the token of the page at `from`.
    pub async fn submit(&self, from: &str, to: &str, fields: &[(&str, &str)]) -> Response {
        let token = csrf(&self.page(from).await);
        let fields: Vec<_> = [("csrf", token.as_str())].into_iter().chain(fields.iter().copied()).collect();
        self.post(to, &fields).await
    }

    /// Sends a form as it is.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Response {
        let client = self.client().with("origin", &self.origin);
        post_form(&client, path, fields).await
    }

    pub async fn sign_in(&mut self, key: &str) -> Response {
        let response = self.post("/sign-in", &[("key", key), ("next", "/?")]).await;
        if let Some(cookie) = response.header("set-cookie") {
            self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        }
        response
    }
}

async fn post_form(client: &Client, path: &str, fields: &[(&str, &str)]) -> Response {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    client.with("content-type", "application/x-www-form-urlencoded").request("POST", path, &body).await
}

/// The token that a page's forms and scripts send.
pub fn csrf(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"csrf\" content=\"").unwrap();
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_local_browser_sees_the_first_page_within_100_kilobytes() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    let page = browser.get("/").await;
    assert_eq!(page.status, 200);
    let mut bytes = page.body.len();
    let assets = page.text().split('"').filter(|part| part.starts_with("/assets/"));
    for path in assets.collect::<std::collections::BTreeSet<_>>() {
        let asset = browser.get(path).await;
        assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"), "{path}");
        bytes += asset.body.len();
    }
    assert!((10_000..100_000).contains(&bytes), "{bytes} bytes");
}

#[tokio::test]
async fn every_response_of_the_console_has_the_policy() {
    let server = TestServer::start().await;
    let browser = Browser::new(&server.client);
    for (path, status) in [("/", 200), ("/assets/console.css", 200), ("/assets/none", 404), ("/none", 404)] {
        let response = browser.get(path).await;
        assert_eq!(response.status, status, "{path}");
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("form-action 'self'"));
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.header("referrer-policy"), Some("same-origin"));
    }
    assert_eq!(browser.get("/").await.header("cache-control"), Some("no-store"));
    assert!(server.client.get("/v1/tools").await.header("content-security-policy").is_none());
}

#[tokio::test]
async fn an_unchanged_asset_is_not_sent_again() {
    let server = TestServer::start().await;
    let first = server.client.get("/assets/console.js").await;
    assert_eq!((first.status, first.header("cache-control")), (200, Some("no-cache")));
    assert_eq!(first.header("content-type"), Some("text/javascript; charset=utf-8"));
    let tag = first.header("etag").unwrap();
    let again = server.client.with("if-none-match", tag).get("/assets/console.js").await;
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[tokio::test]
async fn errors_are_pages_for_browsers_and_problems_for_programs() {
    let server = TestServer::start().await;
    let missing = Browser::new(&server.client).get("/none").await;
    assert_eq!((missing.status, missing.header("content-type")), (404, Some("text/html; charset=utf-8")));
    assert!(missing.text().contains("<h1>Not found</h1>"), "{}", missing.text());
    server.client.get("/none").await.problem(404, "openapi.json");
}

#[tokio::test]
async fn a_server_with_keys_asks_browsers_to_sign_in() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &["admin"]);
    let mut browser = Browser::new(&server.client);
    let refused = browser.get("/?").await;
    assert_eq!((refused.status, refused.header("location")), (303, Some("/sign-in?next=%2F%3F")));
    assert!(browser.page("/sign-in").await.contains("name=\"key\""));
    let wrong = browser.sign_in("twk_a_b").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (422, None));
    assert!(wrong.text().contains("This key is unknown"), "{}", wrong.text());
    let right = browser.sign_in(&key).await;
    assert_eq!((right.status, right.header("location")), (303, Some("/?")));
    let cookie = right.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"), "{cookie}");
    let (_, secret) = key.rsplit_once('_').unwrap();
    assert!(!cookie.contains(secret));
    assert!(browser.page("/").await.contains("<bdi>mira</bdi> · admin"));
    // Whoever has signed in does not have to again.
    assert_eq!(browser.get("/sign-in?next=/").await.status, 303);
    let out = browser.submit("/", "/sign-out", &[]).await;
    assert_eq!((out.status, out.header("location")), (303, Some("/sign-in")));
    assert_eq!(browser.get("/").await.status, 303, "the sign-in has ended on the server too");
}

#[tokio::test]
async fn a_cookie_is_limited_to_tls_where_the_page_came_over_it() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &[]);
    let client = server.client.with("origin", format!("https://{}", server.client.address));
    let response = post_form(&client, "/sign-in", &[("key", &key)]).await;
    assert!(response.header("set-cookie").unwrap().ends_with("; SameSite=Strict; Secure"));
}

#[tokio::test]
async fn a_sign_in_ends_with_its_key() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &[]);
    let mut browser = Browser::new(&server.client);
    browser.sign_in(&key).await;
    assert_eq!(browser.get("/").await.status, 200);
    server.keys.revoke(&key).unwrap();
    // Running servers notice within a second.
    let started = std::time::Instant::now();
    while browser.get("/").await.status == 200 {
        assert!(started.elapsed().as_secs() < 30, "the revoked key still works");
    }
}

#[tokio::test]
async fn a_form_without_the_token_or_from_elsewhere_is_refused() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &[]);
    let mut browser = Browser::new(&server.client);
    browser.sign_in(&key).await;
    let cookie = browser.cookie.clone().unwrap();
    let token = csrf(&browser.page("/").await);
    let without = browser.post("/sign-out", &[]).await;
    assert_eq!(without.status, 403);
    assert!(without.text().contains("The token of the page is missing"), "{}", without.text());
    assert_eq!(browser.post("/sign-out", &[("csrf", "0")]).await.status, 403);
    let own = format!("http://{}", server.client.address);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let client = server.client.with("cookie", &cookie).with("origin", origin);
        assert_eq!(post_form(&client, "/sign-out", &[("csrf", &token)]).await.status, 403, "{origin}");
        let client = server.client.with("origin", origin);
        assert_eq!(post_form(&client, "/sign-in", &[("key", &key)]).await.status, 403, "{origin}");
    }
    let client = server.client.with("cookie", &cookie);
    assert_eq!(post_form(&client, "/sign-out", &[("csrf", &token)]).await.status, 403, "no origin");
    assert_eq!(browser.get("/").await.status, 200, "nothing has signed out");
    let client = client.with("origin", own).with("x-csrf-token", token);
    assert_eq!(post_form(&client, "/sign-out", &[]).await.status, 303, "a script sends it in a header");
}

#[tokio::test]
async fn a_signed_in_browser_uses_the_api_only_with_the_token_of_a_page() {
    let server = TestServer::start().await;
    let key = server.create_key("mira", &[]);
    let mut browser = Browser::new(&server.client);
    browser.sign_in(&key).await;
    let token = csrf(&browser.page("/").await);
    let client = server.client.with("cookie", browser.cookie.clone().unwrap());
    client.get("/v1/tools").await.expect(200);
    let call = serde_json::json!({ "args": { "message": "hello" } });
    client.post("/v1/tools/echo/call", call.clone()).await.problem(403, "token of the page");
    assert_eq!(client.with("x-csrf-token", token).call("echo", call).await["ok"], true);
}
