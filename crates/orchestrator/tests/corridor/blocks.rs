//! Clients that are shut out: `ignore_user`'s message is kept to by the server.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode};
use toolwright_orchestrator::capabilities::{Client, Delivery};
use toolwright_orchestrator::clock::Clock;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Backend, Memory, Principal, Sqlite, Store};
use toolwright_orchestrator::{Context, Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{call, shown, tool};

const NOW: i64 = 1_000_000;

/// A client that keeps what it is sent.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<Value>>);

impl Client for Listener {
    fn send(&self, message: Value) -> Delivery {
        self.0.lock().unwrap().push(message);
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Door {
    orchestrator: Orchestrator,
    clock: Clock,
}

impl Door {
    fn on(store: Store) -> Self {
        let fields = [
            ("ban", json!({ "idempotent": false, "sideEffects": "writes" })),
            ("look", json!({ "idempotent": true, "sideEffects": "read_only", "category": "utility" })),
        ];
        let tools = fields.iter().map(|(id, fields)| tool(id, fields)).collect();
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools);
        assert_eq!(errors, []);
        let work = |args: Value, context: Context| async move {
            for message in args["messages"].as_array().into_iter().flatten() {
                let sent = context.call("messaging.send", vec![message.clone()]).await;
                sent.map_err(|error| Failure::new(ErrorKind::Transient, error.code))?;
            }
            Ok(json!("done").into())
        };
        let runtime = Runtime::builder(Arc::new(toolset), ".").native("work", work).build();
        let clock = Clock::manual(NOW);
        let orchestrator = Orchestrator::builder(runtime).store(store).clock(clock.clone()).build().unwrap();
        Self { orchestrator, clock }
    }

    fn new_session(user: &str, client: &str) -> NewSession {
        let principal = Principal { id: user.to_owned(), org: Some("studio".to_owned()), roles: Vec::new() };
        NewSession { principal, ..NewSession::new(client, Mode::Text) }
    }

    async fn session(&self, user: &str, client: &str) -> String {
        self.orchestrator.create_session(Self::new_session(user, client)).await.unwrap().id.clone()
    }

    async fn ban(&self, session: &str, id: &str, until: Value) -> Value {
        self.ban_each(session, id, vec![until]).await
    }

    async fn ban_each(&self, session: &str, id: &str, until: Vec<Value>) -> Value {
        let messages = until.into_iter().map(|until| json!({ "type": "timeout", "timeoutUntil": until }));
        let args = json!({ "messages": messages.collect::<Vec<_>>() });
        shown(&self.orchestrator.call(session, call(id, "ban", args)).await)
    }

    async fn look(&self, session: &str, id: &str) -> String {
        let envelope = shown(&self.orchestrator.call(session, call(id, "look", json!({}))).await);
        envelope["error"]["type"].as_str().unwrap_or("ok").to_owned()
    }
}

#[tokio::test]
async fn a_blocked_client_is_refused_in_all_of_its_sessions_until_the_block_ends() {
    let door = Door::on(Store::Memory(Memory::default()));
    let (session, other) = (door.session("mira", "phone").await, door.session("mira", "phone").await);
    let (elsewhere, somebody) = (door.session("mira", "desk").await, door.session("jon", "phone").await);
    let listener = Arc::new(Listener::default());
    door.orchestrator.attach(&session, Arc::clone(&listener) as Arc<dyn Client>);
    assert_eq!(door.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(listener.0.lock().unwrap().len(), 1);

    for session in [&session, &other, &door.session("mira", "phone").await] {
        let envelope = shown(&door.orchestrator.call(session, call("c1", "look", json!({}))).await);
        assert_eq!(envelope["error"]["type"], "AUTH");
        assert_eq!(envelope["error"]["message"], "The user is blocked for another 60 s.");
    }
    // A call with a session of its own is no way around it, nor is one that may leave nothing behind.
    let once =
        door.orchestrator.call_once(Door::new_session("mira", "phone"), call("", "look", json!({}))).await;
    assert_eq!(shown(&once.unwrap())["error"]["type"], "AUTH");
    assert_eq!([door.look(&elsewhere, "c1").await, door.look(&somebody, "c1").await], ["ok", "ok"]);
    // What was recorded is still told.
    assert_eq!(door.ban(&session, "b1", json!(NOW + 60_000)).await["meta"]["replayed"], true);

    door.clock.advance(59_999);
    assert_eq!(door.look(&session, "c2").await, "AUTH");
    door.clock.advance(1);
    assert_eq!(door.look(&session, "c3").await, "ok");
    door.orchestrator.sweep().await.unwrap();
    assert_eq!(door.look(&session, "c4").await, "ok");
    // A block that comes after one has ended holds, too.
    let until = NOW + 120_000;
    assert_eq!(door.ban(&session, "b2", json!(until)).await["ok"], true);
    assert_eq!(door.look(&session, "c5").await, "AUTH");
}

#[tokio::test]
async fn of_several_blocks_the_one_that_ends_last_holds() {
    let door = Door::on(Store::Memory(Memory::default()));
    let session = door.session("mira", "phone").await;
    let untils = vec![json!(NOW + 30_000), json!(NOW + 90_000), json!(NOW + 60_000)];
    assert_eq!(door.ban_each(&session, "b1", untils).await["ok"], true);
    door.clock.advance(89_999);
    assert_eq!(door.look(&session, "c1").await, "AUTH");
    door.clock.advance(1);
    assert_eq!(door.look(&session, "c2").await, "ok");
}

#[tokio::test]
async fn a_client_that_has_gone_away_is_blocked_all_the_same() {
    let door = Door::on(Store::Memory(Memory::default()));
    let session = door.session("mira", "phone").await;
    // Nobody listens: another message cannot be delivered, this one is kept to.
    assert_eq!(door.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(door.look(&session, "c1").await, "AUTH");
    let message = json!({ "messages": [{ "type": "image", "url": "https://x.example/y.png" }] });
    let other = door.session("jon", "phone").await;
    let envelope = shown(&door.orchestrator.call(&other, call("c1", "ban", message)).await);
    assert_eq!(envelope["error"]["message"], "CLOSED");
}

#[tokio::test]
async fn what_is_no_time_blocks_nobody() {
    let door = Door::on(Store::Memory(Memory::default()));
    let session = door.session("mira", "phone").await;
    for (id, until) in [("b1", json!("tomorrow")), ("b2", json!(null)), ("b3", json!(1.5))] {
        assert_eq!(door.ban(&session, id, until).await["error"]["message"], "INVALID_ARGUMENT");
    }
    // One that has ended already is no mistake.
    assert_eq!(door.ban(&session, "b4", json!(NOW)).await["ok"], true);
    assert_eq!(door.look(&session, "c1").await, "ok");
}

#[tokio::test]
async fn a_block_outlives_a_restart_and_can_be_lifted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let open = || Door::on(Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap()));
    let door = open();
    let session = door.session("mira", "phone").await;
    assert_eq!(door.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    drop(door);

    let door = open();
    assert_eq!(door.look(&session, "c1").await, "AUTH");
    let mira = Door::new_session("mira", "phone").principal;
    assert_eq!(door.orchestrator.blocked(&mira, "phone").await.unwrap(), Some(NOW + 60_000));
    assert!(door.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert!(!door.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert_eq!(door.look(&session, "c2").await, "ok");
    door.orchestrator.store().flush().await.unwrap();
}

#[tokio::test]
async fn a_block_is_no_session_that_its_client_could_use() {
    let door = Door::on(Store::Memory(Memory::default()));
    let session = door.session("mira", "phone").await;
    door.ban(&session, "b1", json!(NOW + 60_000)).await;
    // Its name can be worked out from what its client knows.
    let name = "block_06studio04mira05phone";
    assert!(door.orchestrator.store().session(name).await.unwrap().is_some());
    assert!(door.orchestrator.session(name).await.unwrap().is_none());
    assert_eq!(door.look(name, "c1").await, "SESSION_INACTIVE");
}
