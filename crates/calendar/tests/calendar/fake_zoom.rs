//! A fake of Zoom's API: OAuth tokens, meetings and failures. Statuses and bodies are those of Zoom's reference.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::test_server::{Reply, Request, serve};

/// How the next request for a meeting fails: before or after the meeting is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    Status(u16),
    NoResponseAfterEffect,
    ErrorAfterEffect,
}

#[derive(Debug, Default)]
pub struct State {
    pub meetings: Vec<Value>,
    pub tokens_given: u32,
    pub token: Option<String>,
    pub expires_in: u64,
    pub failures: VecDeque<Failure>,
    pub token_status: Option<u16>,
    pub lists: u32,
    made: u64,
}

#[derive(Debug, Clone)]
pub struct FakeZoom {
    pub state: Arc<Mutex<State>>,
    pub url: String,
}

impl FakeZoom {
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State { expires_in: 3599, ..State::default() }));
        let served = Arc::clone(&state);
        let url = serve(move |request| respond(&mut served.lock().unwrap(), &request)).await;
        Self { state, url }
    }

    /// The settings for this server.
    pub fn settings(&self) -> Value {
        json!({ "zoom": {
            "account_id": "account 1", "client_id": "client", "client_secret_env": "SECRET",
            "api": format!("{}/v2", self.url), "oauth": format!("{}/oauth/token", self.url),
        } })
    }

    pub fn fail_next(&self, failure: Failure) {
        self.state.lock().unwrap().failures.push_back(failure);
    }

    pub fn meetings(&self) -> usize {
        self.state.lock().unwrap().meetings.len()
    }
}

fn respond(state: &mut State, request: &Request) -> Reply {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let authorization = request.headers.get("authorization").map(String::as_str).unwrap_or_default();
    if (request.method.as_str(), path) == ("POST", "/oauth/token") {
        return token(state, authorization, query);
    }
    if state.token.as_ref().is_none_or(|token| authorization != format!("Bearer {token}")) {
        return Reply::Response(401, json!({ "code": 124, "message": "Invalid access token." }).to_string());
    }
    match (request.method.as_str(), path) {
        ("POST", "/v2/users/me/meetings") => create(state, &serde_json::from_str(&request.body).unwrap()),
        ("GET", "/v2/users/me/meetings") => list(state, query),
        ("DELETE", _) => {
            let id: u64 = path.rsplit('/').next().unwrap().parse().unwrap();
            let before = state.meetings.len();
            state.meetings.retain(|meeting| meeting["id"] != id);
            Reply::Response(if state.meetings.len() < before { 204 } else { 404 }, String::new())
        }
        _ => Reply::Response(
            404,
            json!({ "code": 2300, "message": "This API endpoint is not recognized." }).to_string(),
        ),
    }
}

fn token(state: &mut State, authorization: &str, query: &str) -> Reply {
    if let Some(status) = state.token_status {
        return Reply::Response(status, json!({ "reason": "busy", "error": "busy" }).to_string());
    }
    // "client:open sesame"
    let is_right = authorization == "Basic Y2xpZW50Om9wZW4gc2VzYW1l"
        && query == "grant_type=account_credentials&account_id=account+1";
    if !is_right {
        let wrong = json!({ "reason": "Invalid client_id or client_secret", "error": "invalid_client" });
        return Reply::Response(401, wrong.to_string());
    }
    state.tokens_given += 1;
    let token = format!("token-{}", state.tokens_given);
    state.token = Some(token.clone());
    let body = json!({ "access_token": token, "token_type": "bearer", "expires_in": state.expires_in, "scope": "meeting:write" });
    Reply::Response(200, body.to_string())
}

fn create(state: &mut State, args: &Value) -> Reply {
    let failure = state.failures.pop_front();
    if let Some(Failure::Status(status)) = failure {
        return Reply::Response(status, json!({ "code": status, "message": "failed" }).to_string());
    }
    state.made += 1;
    let id = 85_000_000_000 + state.made;
    let meeting = json!({
        "id": id, "topic": args["topic"], "type": args["type"], "start_time": args["start_time"],
        "duration": args["duration"], "timezone": args["timezone"], "agenda": args["agenda"],
        "join_url": format!("https://zoom.example/j/{id}"),
    });
    state.meetings.push(meeting.clone());
    match failure {
        Some(Failure::NoResponseAfterEffect) => Reply::None,
        Some(Failure::ErrorAfterEffect) => Reply::Response(500, "{}".to_owned()),
        _ => Reply::Response(201, meeting.to_string()),
    }
}

/// Returns pages of two meetings, so that a second page is needed.
fn list(state: &mut State, query: &str) -> Reply {
    state.lists += 1;
    let begin: usize =
        query.rsplit_once("next_page_token=").map_or(0, |(_, token)| token.parse().unwrap_or(0));
    let page: Vec<_> = state.meetings.iter().skip(begin).take(2).collect();
    let next = begin + page.len();
    let token = if next < state.meetings.len() { next.to_string() } else { String::new() };
    Reply::Response(200, json!({ "page_size": 2, "next_page_token": token, "meetings": page }).to_string())
}
