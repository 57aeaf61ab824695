//! The client of Zoom's API, with server-to-server OAuth. The agenda of a meeting begins with the event's id, so that
//! an interrupted call finds the meeting that it has created.

use std::time::{Duration, Instant};

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolwright_capabilities::{CapabilityError, Result, Secret};

use crate::records::Event;
use crate::remote_service::{send_request, without_effects};
use crate::settings;

const NAME: &str = "Zoom";
/// How long before its expiry a token is renewed.
const TOKEN_RENEWAL_MARGIN: Duration = Duration::from_secs(60);
/// The number of pages of meetings that are searched.
const MAX_PAGES: usize = 20;
/// Zoom's limit.
const MAX_AGENDA_CHARS: usize = 2000;

/// An existing meeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    pub id: String,
    pub link: String,
}

/// The API of one Zoom account.
#[derive(Debug)]
pub struct ZoomClient {
    settings: settings::Zoom,
    secret: Secret,
    client: Client,
    token: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Token {
    secret: Secret,
    expires: Instant,
}

impl ZoomClient {
    pub fn new(settings: settings::Zoom, secret: Secret, client: Client) -> Self {
        Self { settings, secret, client, token: Mutex::new(None) }
    }

    /// Creates the meeting of an event.
    pub async fn create(&self, event: &Event, deadline: Instant) -> Result<Meeting> {
        let agenda = event.note.as_ref().map_or(event.id.clone(), |note| format!("{}\n{note}", event.id));
        let body = json!({
            "topic": event.title,
            "type": 2,
            "start_time": event.span.start.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "duration": (event.span.end - event.span.start).num_minutes(),
            "timezone": event.timezone,
            "agenda": agenda.chars().take(MAX_AGENDA_CHARS).collect::<String>(),
        });
        let (status, body) = self.send(Method::POST, &self.meetings_path(), Some(&body), deadline).await?;
        match parse_meeting(&body) {
            Some(meeting) if status == StatusCode::CREATED => Ok(meeting),
            _ if status.is_success() => Err(CapabilityError::timeout("Zoom's response contains no meeting")),
            _ => Err(status_error(status, &body, "TIMEOUT")),
        }
    }

    /// The meeting that an earlier call has created for the event, if there is one.
    pub async fn find(&self, event: &Event, deadline: Instant) -> Result<Option<Meeting>> {
        let mut page_token = String::new();
        for _ in 0..MAX_PAGES {
            let path =
                format!("{}?type=upcoming&page_size=300&next_page_token={page_token}", self.meetings_path());
            let (status, body) =
                self.send(Method::GET, &path, None, deadline).await.map_err(without_effects)?;
            if !status.is_success() {
                return Err(status_error(status, &body, "UNREACHABLE"));
            }
            let all = body["meetings"].as_array().map(Vec::as_slice).unwrap_or_default();
            let is_ours = |meeting: &&Value| {
                meeting["agenda"].as_str().and_then(|agenda| agenda.lines().next()) == Some(&event.id)
            };
            if let Some(found) = all.iter().find(is_ours).and_then(parse_meeting) {
                return Ok(Some(found));
            }
            page_token = body["next_page_token"].as_str().unwrap_or_default().to_owned();
            if page_token.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    /// Deletes a meeting. It is no error if the meeting does not exist.
    pub async fn cancel(&self, meeting: &str, deadline: Instant) -> Result<()> {
        let (status, body) =
            self.send(Method::DELETE, &format!("meetings/{meeting}"), None, deadline).await?;
        if status.is_success() || status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(status_error(status, &body, "UNREACHABLE"))
    }

    /// Requests a token and reads the user's meetings: shows that the credentials and the user are right.
    pub async fn check(&self, deadline: Instant) -> Result<()> {
        let path = format!("{}?page_size=1", self.meetings_path());
        let (status, body) = self.send(Method::GET, &path, None, deadline).await?;
        if status.is_success() { Ok(()) } else { Err(status_error(status, &body, "UNREACHABLE")) }
    }

    fn meetings_path(&self) -> String {
        format!("users/{}/meetings", self.settings.user)
    }

    /// Sends one request. A rejected token is replaced once.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        deadline: Instant,
    ) -> Result<(StatusCode, Value)> {
        let url = format!("{}/{path}", self.settings.api.0.as_str().trim_end_matches('/'));
        for is_last in [false, true] {
            let token = self.token(deadline).await?;
            let mut request = self.client.request(method.clone(), &url).bearer_auth(&token.0);
            if let Some(body) = body {
                let text = body.to_string();
                request = request.header("content-type", "application/json").body(text);
            }
            let (status, body) = send_request(request, deadline, NAME).await?;
            if status == StatusCode::UNAUTHORIZED && !is_last {
                self.discard_token(&token).await;
                continue;
            }
            return Ok((status, serde_json::from_str(&body).unwrap_or(Value::Null)));
        }
        Err(CapabilityError::new("FORBIDDEN", "Zoom rejects its own access token"))
    }

    /// The cached token, or a new one. The lock is held during the request, so that only one token is requested.
    async fn token(&self, deadline: Instant) -> Result<Secret> {
        let mut cached = self.token.lock().await;
        if let Some(token) = cached.as_ref().filter(|token| Instant::now() < token.expires) {
            return Ok(token.secret.clone());
        }
        let settings = &self.settings;
        let mut url = settings.oauth.0.clone();
        url.query_pairs_mut()
            .append_pair("grant_type", "account_credentials")
            .append_pair("account_id", &settings.account_id);
        let request = self.client.post(url).basic_auth(&settings.client_id, Some(&self.secret.0));
        let (status, body) = send_request(request.body(""), deadline, NAME).await.map_err(without_effects)?;
        let body: Value = serde_json::from_str(&body).unwrap_or(Value::Null);
        let Some(secret) = body["access_token"].as_str().filter(|_| status.is_success()) else {
            // Zoom responds with 400 or 401 to wrong credentials.
            if status.is_client_error() {
                tracing::error!("Zoom issues no token ({status}): check `[calendar.zoom]` and its secret");
                return Err(CapabilityError::new("FORBIDDEN", "Zoom rejects the server's credentials"));
            }
            return Err(status_error(status, &body, "UNREACHABLE"));
        };
        let secret = Secret(secret.to_owned());
        let lifetime = Duration::from_secs(body["expires_in"].as_u64().unwrap_or(3600));
        let expires = Instant::now() + lifetime.saturating_sub(TOKEN_RENEWAL_MARGIN);
        *cached = Some(Token { secret: secret.clone(), expires });
        Ok(secret)
    }

    async fn discard_token(&self, rejected: &Secret) {
        let mut cached = self.token.lock().await;
        if cached.as_ref().is_some_and(|token| token.secret.0 == rejected.0) {
            *cached = None;
        }
    }
}

/// The id of a meeting is a number, as JSON number or string.
fn parse_meeting(value: &Value) -> Option<Meeting> {
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

/// A refusal has no side effects. A server error has the code `on_failure`, which depends on the request.
fn status_error(status: StatusCode, body: &Value, on_failure: &'static str) -> CapabilityError {
    let (code, message) = match status.is_server_error() {
        true => (on_failure, "Zoom failed"),
        false => ("FORBIDDEN", "Zoom refuses the request"),
    };
    tracing::warn!("{message} ({status}): {}", body["message"].as_str().unwrap_or_default());
    CapabilityError::new(code, message)
}
