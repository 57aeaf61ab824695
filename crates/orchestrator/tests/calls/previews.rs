//! Previews that read through a capability: what the person approves is what runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_contract::Mode;
use toolwright_orchestrator::capabilities::{
    CallIdentity, Capabilities, Capability, CapabilityError, CapabilityFuture,
};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Backend, ConfirmationStatus};
use toolwright_orchestrator::{CallRequest, Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{call, to_json, tool, until};

/// A calendar with one draft, which a test changes.
#[derive(Debug)]
struct Drafts {
    draft: Mutex<Result<Value, CapabilityError>>,
    /// Calls wait for a permit, if there is one.
    gate: Mutex<Option<Arc<Semaphore>>>,
    waiting: AtomicUsize,
}

impl Capability for Drafts {
    fn call(&self, caller: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        assert_eq!((function, caller.user), ("getDraft", "mira"));
        let draft = match &args[0]["draftId"] {
            Value::String(id) if id == "d1" => self.draft.lock().unwrap().clone(),
            _ => Err(CapabilityError::new("NOT_FOUND", "there is no such draft")),
        };
        let gate = self.gate.lock().unwrap().clone();
        self.waiting.fetch_add(usize::from(gate.is_some()), Ordering::SeqCst);
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.acquire().await.unwrap().forget();
            }
            draft.map(Into::into)
        })
    }
}

struct Booking {
    orchestrator: Orchestrator,
    drafts: Arc<Drafts>,
    runs: Arc<Mutex<Vec<Value>>>,
    session: String,
}

fn draft(title: &str) -> Value {
    json!({ "title": title, "place": null, "attendees": ["jon@studio.example", "li@studio.example"],
        "slots": [{ "text": "Monday, 10:00 (Europe/Berlin)" }, { "text": "Tuesday, 14:00 (Europe/Berlin)" }] })
}

impl Booking {
    async fn new() -> Self {
        let rule = json!({ "when": "true",
            "read": { "draft": { "call": "calendar.getDraft", "with": { "draftId": "{{draft_id}}" } } },
            "preview": "{{draft.title}}, {{draft.slots[slot].text}}, with {{draft.attendees|nobody}}, at {{draft.place|no place}}" });
        let schema = json!({ "type": "object", "properties": { "draft_id": { "type": "string" },
            "slot": { "type": "integer", "default": 0 }, "note": { "type": "string" } } });
        let book = tool("book", &json!({ "requiresConfirmation": rule, "jsonSchema": schema }));
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), vec![book]);
        assert_eq!(errors, []);
        let drafts = Arc::new(Drafts {
            draft: Mutex::new(Ok(draft("Lighting review"))),
            gate: Mutex::default(),
            waiting: AtomicUsize::new(0),
        });
        let runs = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&runs);
        let runtime = Runtime::builder(Arc::new(toolset), ".")
            .native("work", move |args, _| {
                noted.lock().unwrap().push(args);
                async { Ok(json!("booked").into()) }
            })
            .capabilities(Capabilities::default().with("calendar", drafts.clone()))
            .build();
        let orchestrator = Orchestrator::builder(runtime).build().unwrap();
        let new = NewSession::new("mira", Mode::Text);
        let session = orchestrator.create_session(new).await.unwrap().id.clone();
        Self { orchestrator, drafts, runs, session }
    }

    async fn call(&self, id: &str, args: Value) -> Value {
        to_json(&self.orchestrator.call(CallRequest::new(&self.session, call(id, "book", args))).await)
    }

    async fn ask(&self, id: &str, args: Value) -> Value {
        let envelope = self.call(id, args).await;
        assert_eq!(envelope["error"]["type"], "CONFIRMATION_REQUIRED", "{envelope}");
        envelope["error"]["details"]["confirmation_request"].clone()
    }

    async fn approve(&self, request: &Value, edited: Option<Value>) -> Value {
        let token = request["confirmation_token"].as_str().unwrap();
        let (session, proof) = (self.session.as_str(), AnswerProof::Token);
        let approver = Approver { token, proof, session, client_id: "mira", by: "mira", principal: None };
        to_json(&self.orchestrator.approve(&approver, edited).await.unwrap())
    }
}

#[tokio::test]
async fn a_preview_shows_what_is_read_whatever_the_arguments_say() {
    let booking = Booking::new().await;
    let request = booking.ask("c1", json!({ "draft_id": "d1", "slot": 1, "title": "Harmless" })).await;
    let expected = "Lighting review, Tuesday, 14:00 (Europe/Berlin), with jon@studio.example, li@studio.example, at no place";
    assert_eq!(request["preview"], expected);
    assert_eq!(booking.approve(&request, None).await["data"], "booked");
    assert_eq!(booking.runs.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_call_whose_preview_cannot_be_read_asks_nobody() {
    let booking = Booking::new().await;
    let unknown = booking.call("c1", json!({ "draft_id": "d2" })).await;
    assert_eq!(unknown["error"]["type"], "NOT_FOUND");
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("`calendar.getDraft` failed: there is no such draft"), "{message}");
    let outside = booking.call("c2", json!({ "draft_id": "d1", "slot": 7 })).await;
    assert_eq!(outside["error"]["type"], "VALIDATION");
    *booking.drafts.draft.lock().unwrap() = Err(CapabilityError::new("UNREACHABLE", "no answer"));
    let later = booking.call("c3", json!({ "draft_id": "d1" })).await;
    assert_eq!((&later["error"]["type"], &later["error"]["retryable"]), (&json!("TRANSIENT"), &json!(true)));
    assert_eq!(booking.orchestrator.pending_confirmations(None).await.unwrap(), []);
}

#[tokio::test]
async fn a_draft_that_has_changed_since_asks_again() {
    let booking = Booking::new().await;
    let first = booking.ask("c1", json!({ "draft_id": "d1" })).await;
    *booking.drafts.draft.lock().unwrap() = Ok(draft("Board meeting"));
    let again = booking.approve(&first, None).await;
    assert_eq!(again["error"]["type"], "CONFIRMATION_REQUIRED", "{again}");
    let second = &again["error"]["details"]["confirmation_request"];
    assert_eq!(second["preview"].as_str().unwrap().split(',').next(), Some("Board meeting"));
    assert_eq!(*booking.runs.lock().unwrap(), Vec::<Value>::new());
    let store = booking.orchestrator.store();
    let before = store.confirmation(first["confirmation_id"].as_str().unwrap()).await.unwrap().unwrap();
    assert_eq!(before.status, ConfirmationStatus::Expired);
    assert_eq!(booking.orchestrator.resume().await, Ok(0));
    assert_eq!(booking.approve(second, None).await["data"], "booked");
    assert_eq!(booking.runs.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn edited_arguments_with_another_preview_ask_again() {
    let booking = Booking::new().await;
    let request = booking.ask("c1", json!({ "draft_id": "d1" })).await;
    let same_preview = json!({ "draft_id": "d1", "note": "Bring the cue sheets." });
    assert_eq!(booking.approve(&request, Some(same_preview.clone())).await["data"], "booked");
    let request = booking.ask("c2", json!({ "draft_id": "d1" })).await;
    let again = booking.approve(&request, Some(json!({ "draft_id": "d1", "slot": 1 }))).await;
    let second = &again["error"]["details"]["confirmation_request"];
    assert!(second["preview"].as_str().unwrap().contains("Tuesday"), "{again}");
    assert_eq!(booking.approve(second, None).await["data"], "booked");
    let slots: Vec<Value> = booking.runs.lock().unwrap().iter().map(|args| args["slot"].clone()).collect();
    assert_eq!(slots, [0, 1]);
}

#[tokio::test]
async fn an_approval_is_kept_while_its_preview_cannot_be_read() {
    let booking = Booking::new().await;
    let request = booking.ask("c1", json!({ "draft_id": "d1" })).await;
    *booking.drafts.draft.lock().unwrap() = Err(CapabilityError::new("UNREACHABLE", "no answer"));
    assert_eq!(booking.approve(&request, None).await["error"]["type"], "TRANSIENT");
    *booking.drafts.draft.lock().unwrap() = Ok(draft("Lighting review"));
    assert_eq!(booking.orchestrator.resume().await, Ok(1));
    assert_eq!(booking.runs.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_approval_that_is_in_flight_is_not_resumed() {
    let booking = Arc::new(Booking::new().await);
    let request = booking.ask("c1", json!({ "draft_id": "d1" })).await;
    let gate = Arc::new(Semaphore::new(0));
    *booking.drafts.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let theirs = Arc::clone(&booking);
    let approving = tokio::spawn(async move { theirs.approve(&request, None).await });
    // The call is approved and not claimed yet: it reads its preview again.
    until(|| booking.drafts.waiting.load(Ordering::SeqCst) == 1).await;
    assert_eq!(booking.orchestrator.store().approved_confirmations().await.unwrap().len(), 1);
    assert_eq!(booking.orchestrator.resume().await, Ok(0));
    gate.add_permits(1);
    assert_eq!(approving.await.unwrap()["data"], "booked");
    assert_eq!(booking.runs.lock().unwrap().len(), 1);
}
