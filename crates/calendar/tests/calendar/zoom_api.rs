//! A stand-in for Zoom's API: tokens by server-to-server OAuth, meetings with ids and links, and its troubles. Statuses
//! and bodies are those of Zoom's reference.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::loopback::{Reply, Request, serve};

/// What goes wrong with the next request for a meeting, before or after it has had its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Status(u16),
    SilenceAfterEffect,
    FailsAfterEffect,
}

#[derive(Debug, Default)]
pub struct State {
    pub meetings: Vec<Value>,
    pub tokens_given: u32,
    pub token: Option<String>,
    pub expires_in: u64,
    pub troubles: VecDeque<Trouble>,
    pub token_status: Option<u16>,
    pub lists: u32,
    made: u64,
}

#[derive(Debug, Clone)]
pub struct ZoomApi {
    pub state: Arc<Mutex<State>>,
    pub url: String,
}

impl ZoomApi {
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State { expires_in: 3599, ..State::default() }));
        let served = Arc::clone(&state);
        let url = serve(move |request| answer(&mut served.lock().unwrap(), &request)).await;
        Self { state, url }
    }

    /// The settings that lead here.
    pub fn settings(&self) -> Value {
        json!({ "zoom": {
            "account_id": "account 1", "client_id": "client", "client_secret_env": "SECRET",
            "api": format!("{}/v2", self.url), "oauth": format!("{}/oauth/token", self.url),
        } })
    }

    pub fn trouble(&self, trouble: Trouble) {
        self.state.lock().unwrap().troubles.push_back(trouble);
    }

    pub fn meetings(&self) -> usize {
        self.state.lock().unwrap().meetings.len()
    }
}

fn answer(state: &mut State, request: &Request) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let authorization = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
    if (request.method.as_str(), path) == ("POST", "/oauth/token") {
        return token(state, authorization, query);
    }
    if state.token.as_ref().is_none_or(|token| authorization != format!("Bearer {token}")) {
        return Reply::Answer(401, json!({ "code": 124, "message": "Invalid access token." }).to_string());
    }
    match (request.method.as_str(), path) {
        ("POST", "/v2/users/me/meetings") => create(state, &serde_json::from_str(&request.body).unwrap()),
        ("GET", "/v2/users/me/meetings") => list(state, query),
        ("DELETE", _) => {
            let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
            let before = state.meetings.len();
            state.meetings.retain(|meeting| meeting["id"] != id);
            Reply::Answer(if state.meetings.len() < before { 204 } else { 404 }, String::new())
        }
        _ => Reply::Answer(
            404,
            json!({ "code": 2300, "message": "This API endpoint is not recognized." }).to_string(),
        ),
    }
}

fn token(state: &mut State, authorization: &str, query: &str) -> Reply {
    if let Some(status) = state.token_status {
        return Reply::Answer(status, json!({ "reason": "busy", "error": "busy" }).to_string());
    }
    // "client:open sesame"
    let is_right = authorization == "Basic Y2xpZW50Om9wZW4gc2VzYW1l"
        && query == "grant_type=account_credentials&account_id=account+1";
    if !is_right {
        let wrong = json!({ "reason": "Invalid client_id or client_secret", "error": "invalid_client" });
        return Reply::Answer(401, wrong.to_string());
    }
    state.tokens_given += 1;
    let token = format!("token-{}", state.tokens_given);
    state.token = Some(token.clone());
    let body = json!({ "access_token": token, "token_type": "bearer", "expires_in": state.expires_in, "scope": "meeting:write" });
    Reply::Answer(200, body.to_string())
}

fn create(state: &mut State, asked: &Value) -> Reply {
    let trouble = state.troubles.pop_front();
    if let Some(Trouble::Status(status)) = trouble {
        return Reply::Answer(status, json!({ "code": status, "message": "trouble" }).to_string());
    }
    state.made += 1;
    let id = 85_000_000_000 + state.made;
    let meeting = json!({
        "id": id, "topic": asked["topic"], "type": asked["type"], "start_time": asked["start_time"],
        "duration": asked["duration"], "timezone": asked["timezone"], "agenda": asked["agenda"],
        "join_url": format!("https://zoom.example/j/{id}"),
    });
    state.meetings.push(meeting.clone());
    match trouble {
        Some(Trouble::SilenceAfterEffect) => Reply::Silence,
        Some(Trouble::FailsAfterEffect) => Reply::Answer(500, "{}".to_owned()),
        _ => Reply::Answer(201, meeting.to_string()),
    }
}

/// Pages of two, so that a second one is needed.
fn list(state: &mut State, query: &str) -> Reply {
    state.lists += 1;
    let begin: usize =
        query.rsplit_once("next_page_token=").map_or(0, |(_, token)| token.parse().unwrap_or(0));
    let page: Vec<_> = state.meetings.iter().skip(begin).take(2).collect();
    let next = begin + page.len();
    let token = if next < state.meetings.len() { next.to_string() } else { String::new() };
    Reply::Answer(200, json!({ "page_size": 2, "next_page_token": token, "meetings": page }).to_string())
}
