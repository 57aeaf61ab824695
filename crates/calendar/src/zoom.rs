//! Meetings at Zoom, by server-to-server OAuth. A meeting carries the event's id, so that a call that was interrupted
//! finds what it has made.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolwright_capabilities::Fault;

use crate::records::Event;
use crate::service::{self, Secret, harmless};
use crate::settings;

const NAME: &str = "Zoom";
/// A token is renewed a little before it ends.
const EARLY: Duration = Duration::from_secs(60);
/// Pages of meetings that are looked through.
const PAGES: usize = 20;
/// As long as Zoom lets an agenda be.
const AGENDA: usize = 2000;

/// A meeting that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    pub id: String,
    pub link: String,
}

/// Zoom's API.
#[derive(Debug)]
pub struct Zoom {
    settings: settings::Zoom,
    secret: Secret,
    client: Client,
    token: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Token {
    secret: Secret,
    until: Instant,
}

impl Zoom {
    pub fn new(settings: settings::Zoom, secret: Secret, client: Client) -> Self {
        Self { settings, secret, client, token: Mutex::new(None) }
    }

    /// Makes the meeting of an event.
    pub async fn create(&self, event: &Event, deadline: Instant) -> Result<Meeting, Fault> {
        let agenda = event.note.as_ref().map_or(event.id.clone(), |note| format!("{}\n{note}", event.id));
        let body = json!({
            "topic": event.title,
            "type": 2,
            "start_time": event.span.start.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "duration": (event.span.end - event.span.start).num_minutes(),
            "timezone": event.timezone,
            "agenda": agenda.chars().take(AGENDA).collect::<String>(),
        });
        let (status, answer) = self.call(Method::POST, &self.meetings(), Some(&body), deadline).await?;
        match meeting(&answer) {
            Some(meeting) if status == StatusCode::CREATED => Ok(meeting),
            _ if status.is_success() => Err(Fault::new("TIMEOUT", "Zoom's answer names no meeting")),
            _ => Err(refused(status, &answer, "TIMEOUT")),
        }
    }

    /// The meeting that was made for an event before, if there is one.
    pub async fn find(&self, event: &Event, deadline: Instant) -> Result<Option<Meeting>, Fault> {
        let mut next = String::new();
        for _ in 0..PAGES {
            let path = format!("{}?type=upcoming&page_size=300&next_page_token={next}", self.meetings());
            let (status, answer) = self.call(Method::GET, &path, None, deadline).await.map_err(harmless)?;
            if !status.is_success() {
                return Err(refused(status, &answer, "UNREACHABLE"));
            }
            let all = answer["meetings"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_ours = |meeting: &&Value| {
                meeting["agenda"].as_str().and_then(|agenda| agenda.lines().next()) == Some(&event.id)
            };
            if let Some(found) = all.iter().find(is_ours).and_then(meeting) {
                return Ok(Some(found));
            }
            next = answer["next_page_token"].as_str().unwrap_or_default().to_owned();
            if next.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    /// Removes a meeting; one that is gone already is as good.
    pub async fn cancel(&self, meeting: &str, deadline: Instant) -> Result<(), Fault> {
        let (status, answer) =
            self.call(Method::DELETE, &format!("meetings/{meeting}"), None, deadline).await?;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(refused(status, &answer, "UNREACHABLE"))
    }

    fn meetings(&self) -> String {
        format!("users/{}/meetings", self.settings.user)
    }

    /// One request. A token that is refused is replaced once.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        deadline: Instant,
    ) -> Result<(StatusCode, Value), Fault> {
        let url = format!("{}/{path}", self.settings.api.0.as_str().trim_end_matches('/'));
        for is_last in [false, true] {
            let token = self.token(deadline).await?;
            let mut request = self.client.request(method.clone(), &url).bearer_auth(&token.0);
            if let Some(body) = body {
                let text = body.to_string();
                request = request.header("content-type", "application/json").body(text);
            }
            let (status, answer) = service::ask(request, deadline, NAME).await?;
            if status == StatusCode::UNAUTHORIZED && !is_last {
                self.forget(&token).await;
                continue;
            }
            return Ok((status, serde_json::from_str(&answer).unwrap_or(Value::Null)));
        }
        Err(Fault::new("FORBIDDEN", "Zoom does not accept the token that it gave"))
    }

    /// The token in use, or a new one. Calls wait for one another, so that one token is asked for.
    async fn token(&self, deadline: Instant) -> Result<Secret, Fault> {
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref().filter(|token| Instant::now() < token.until) {
            return Ok(token.secret.clone());
        }
        let settings = &self.settings;
        let mut url = settings.oauth.0.clone();
        url.query_pairs_mut()
            .append_pair("grant_type", "account_credentials")
            .append_pair("account_id", &settings.account_id);
        let request = self.client.post(url).basic_auth(&settings.client_id, Some(&self.secret.0));
        let (status, answer) = service::ask(request.body(""), deadline, NAME).await.map_err(harmless)?;
        let answer: Value = serde_json::from_str(&answer).unwrap_or(Value::Null);
        let Some(secret) = answer["access_token"].as_str().filter(|_| status.is_success()) else {
            // Wrong credentials are told by 400 or 401.
            let code = if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
                tracing::error!("Zoom gives no token ({status}): check `[calendar.zoom]` and its secret");
                return Err(Fault::new("FORBIDDEN", "Zoom does not accept the server's credentials"));
            } else {
                "UNREACHABLE"
            };
            return Err(refused(status, &answer, code));
        };
        let secret = Secret(secret.to_owned());
        let lasts = Duration::from_secs(answer["expires_in"].as_u64().unwrap_or(3600));
        let until = Instant::now() + lasts.saturating_sub(EARLY);
        *kept = Some(Token { secret: secret.clone(), until });
        Ok(secret)
    }

    async fn forget(&self, refused: &Secret) {
        let mut kept = self.token.lock().await;
        if kept.as_ref().is_some_and(|token| token.secret.0 == refused.0) {
            *kept = None;
        }
    }
}

/// A meeting's id is a number of up to eleven digits.
fn meeting(value: &Value) -> Option<Meeting> {
    let id = match &value["id"] {
        Value::Number(number) => number.to_string(),
        Value::String(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.clone()
        }
        _ => return None,
    };
    let link = value["join_url"]
        .as_str()
        .filter(|link| link.starts_with("https://") || link.starts_with("http://"))?;
    Some(Meeting { id, link: link.to_owned() })
}

/// What Zoom refuses has had no effects; what it fails at may have had some, which `on_failure` says.
fn refused(status: StatusCode, answer: &Value, on_failure: &'static str) -> Fault {
    let (code, message) = match status {
        StatusCode::TOO_MANY_REQUESTS => ("RATE_LIMIT", "Zoom asks for a pause"),
        _ if status.is_server_error() => (on_failure, "Zoom has failed"),
        _ => ("FORBIDDEN", "Zoom does not allow this"),
    };
    tracing::warn!("Zoom answered {status}: {}", answer["message"].as_str().unwrap_or_default());
    Fault::new(code, message)
}
