//! Blocked clients: the server enforces the `timeout` message of `ignore_user`.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_contract::{ErrorKind, Failure, Mode, Principal};
use toolwright_orchestrator::capabilities::{Client, SendFuture};
use toolwright_orchestrator::clock::Clock;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Backend, Memory, Sqlite, Store};
use toolwright_orchestrator::{CallRequest, Context, Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;

use crate::support::{call, to_json, tool};

const NOW: i64 = 1_000_000;
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A client that records its messages.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<Value>>);

impl Client for Listener {
    fn send(&self, message: Value) -> SendFuture {
        self.0.lock().unwrap().push(message);
        Box::pin(std::future::ready(Ok(())))
    }
}

struct BlockFixture {
    orchestrator: Orchestrator,
    clock: Clock,
}

impl BlockFixture {
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

    /// Of a service that speaks for its clients.
    fn new_session(user: &str, client: &str) -> NewSession {
        Self::new_session_with(user, client, &["speaks-for-clients"])
    }

    fn new_session_with(user: &str, client: &str, roles: &[&str]) -> NewSession {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        let principal = Principal { id: user.to_owned(), org: Some("studio".to_owned()), roles };
        NewSession { principal, ..NewSession::new(client, Mode::Text) }
    }

    async fn session(&self, user: &str, client: &str) -> String {
        self.orchestrator.create_session(Self::new_session(user, client)).await.unwrap().id.clone()
    }

    async fn session_with(&self, user: &str, client: &str, roles: &[&str]) -> String {
        let new = Self::new_session_with(user, client, roles);
        self.orchestrator.create_session(new).await.unwrap().id.clone()
    }

    async fn ban(&self, session: &str, id: &str, until: Value) -> Value {
        self.ban_each(session, id, vec![until]).await
    }

    async fn ban_each(&self, session: &str, id: &str, until: Vec<Value>) -> Value {
        let messages = until.into_iter().map(|until| json!({ "type": "timeout", "timeoutUntil": until }));
        let args = json!({ "messages": messages.collect::<Vec<_>>() });
        to_json(&self.orchestrator.call(CallRequest::new(session, call(id, "ban", args))).await)
    }

    async fn look(&self, session: &str, id: &str) -> String {
        let envelope =
            to_json(&self.orchestrator.call(CallRequest::new(session, call(id, "look", json!({})))).await);
        envelope["error"]["type"].as_str().unwrap_or("ok").to_owned()
    }
}

#[tokio::test]
async fn a_blocked_client_is_refused_in_all_of_its_sessions_until_the_block_ends() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let (session, other) = (fixture.session("mira", "phone").await, fixture.session("mira", "phone").await);
    let (other_client, other_user) =
        (fixture.session("mira", "desk").await, fixture.session("jon", "phone").await);
    let listener = Arc::new(Listener::default());
    fixture.orchestrator.attach(&session, Arc::clone(&listener) as Arc<dyn Client>);
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(listener.0.lock().unwrap().len(), 1);

    for session in [&session, &other, &fixture.session("mira", "phone").await] {
        let envelope = to_json(
            &fixture.orchestrator.call(CallRequest::new(session, call("c1", "look", json!({})))).await,
        );
        assert_eq!(envelope["error"]["type"], "AUTH");
        assert_eq!(envelope["error"]["message"], "The user is blocked for another 60 s.");
    }
    // An ephemeral session does not bypass the block.
    let ephemeral = CallRequest::new(BlockFixture::new_session("mira", "phone"), call("", "look", json!({})));
    assert_eq!(to_json(&fixture.orchestrator.call(ephemeral).await)["error"]["type"], "AUTH");
    assert_eq!(
        [fixture.look(&other_client, "c1").await, fixture.look(&other_user, "c1").await],
        ["ok", "ok"]
    );
    // Recorded results are still replayed.
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["meta"]["replayed"], true);

    fixture.clock.advance(59_999);
    assert_eq!(fixture.look(&session, "c2").await, "AUTH");
    fixture.clock.advance(1);
    assert_eq!(fixture.look(&session, "c3").await, "ok");
    fixture.orchestrator.sweep().await.unwrap();
    assert_eq!(fixture.look(&session, "c4").await, "ok");
    // A second block works after the first has ended.
    let until = NOW + 120_000;
    assert_eq!(fixture.ban(&session, "b2", json!(until)).await["ok"], true);
    assert_eq!(fixture.look(&session, "c5").await, "AUTH");
}

#[tokio::test]
async fn the_block_that_ends_last_counts() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let session = fixture.session("mira", "phone").await;
    let untils = vec![json!(NOW + 30_000), json!(NOW + 90_000), json!(NOW + 60_000)];
    assert_eq!(fixture.ban_each(&session, "b1", untils).await["ok"], true);
    fixture.clock.advance(89_999);
    assert_eq!(fixture.look(&session, "c1").await, "AUTH");
    fixture.clock.advance(1);
    assert_eq!(fixture.look(&session, "c2").await, "ok");
}

#[tokio::test]
async fn a_disconnected_client_is_blocked_too() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let session = fixture.session("mira", "phone").await;
    // No client is attached: other messages cannot be delivered, but a block is recorded.
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(fixture.look(&session, "c1").await, "AUTH");
    let message = json!({ "messages": [{ "type": "image", "url": "https://x.example/y.png" }] });
    let other = fixture.session("jon", "phone").await;
    let envelope =
        to_json(&fixture.orchestrator.call(CallRequest::new(&other, call("c1", "ban", message))).await);
    assert_eq!(envelope["error"]["message"], "CLOSED");
}

#[tokio::test]
async fn an_invalid_time_blocks_no_client() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let session = fixture.session("mira", "phone").await;
    for (id, until) in [("b1", json!("tomorrow")), ("b2", json!(null)), ("b3", json!(1.5))] {
        assert_eq!(fixture.ban(&session, id, until).await["error"]["message"], "INVALID_ARGUMENT");
    }
    // A time in the past is valid.
    assert_eq!(fixture.ban(&session, "b4", json!(NOW)).await["ok"], true);
    assert_eq!(fixture.look(&session, "c1").await, "ok");
}

#[tokio::test]
async fn a_block_outlives_a_restart_and_can_be_lifted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let open = || BlockFixture::on(Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap()));
    let fixture = open();
    let session = fixture.session("mira", "phone").await;
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    drop(fixture);

    let fixture = open();
    assert_eq!(fixture.look(&session, "c1").await, "AUTH");
    let mira = BlockFixture::new_session("mira", "phone").principal;
    assert_eq!(fixture.orchestrator.blocked_for(&mira, "phone", None).await.unwrap(), Some(60_000));
    assert!(fixture.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert!(!fixture.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert_eq!(fixture.look(&session, "c2").await, "ok");
    fixture.orchestrator.store().flush().await.unwrap();
}

#[tokio::test]
async fn no_session_id_collides_with_a_block() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    // In earlier versions the block of this client was a session with this id.
    let id = "block_06studio04mira05phone";
    assert!(fixture.orchestrator.session(id).await.unwrap().is_none());
    let new = NewSession { id: Some(id.to_owned()), ..BlockFixture::new_session("mira", "phone") };
    fixture.orchestrator.create_session(new).await.unwrap();
    assert_eq!(fixture.look(id, "c1").await, "ok");
    assert_eq!(fixture.ban(id, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(fixture.look(id, "c2").await, "AUTH");
    let mira = BlockFixture::new_session("mira", "phone").principal;
    assert!(fixture.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert_eq!(fixture.look(id, "c3").await, "ok");
}

#[tokio::test]
async fn another_client_id_does_not_escape_a_block() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let (phone, desk) =
        (fixture.session_with("mira", "phone", &[]).await, fixture.session_with("mira", "desk", &[]).await);
    let other = fixture.session_with("jon", "phone", &[]).await;
    assert_eq!(fixture.ban(&phone, "b1", json!(NOW + 60_000)).await["ok"], true);
    let new = fixture.session_with("mira", "new", &[]).await;
    for session in [&phone, &desk, &new] {
        assert_eq!(fixture.look(session, "c1").await, "AUTH");
    }
    assert_eq!(fixture.look(&other, "c1").await, "ok");
    let mira = BlockFixture::new_session_with("mira", "phone", &[]).principal;
    assert_eq!(fixture.orchestrator.blocked_for(&mira, "another", None).await.unwrap(), Some(60_000));
    assert!(fixture.orchestrator.unblock(&mira, "phone").await.unwrap());
    assert_eq!(fixture.look(&desk, "c2").await, "ok");
}

#[tokio::test]
async fn a_block_never_shuts_out_an_operator_or_everyone_on_an_open_server() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    // Without keys every request is that of the operator `local`, who is also the client unless one is named.
    let (session, other) = (
        fixture.session_with("local", "local", &["admin"]).await,
        fixture.session_with("local", "local", &["admin"]).await,
    );
    let visitor = fixture.session_with("local", "visitor", &["admin"]).await;
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    assert_eq!(
        [
            fixture.look(&session, "c1").await,
            fixture.look(&other, "c1").await,
            fixture.look(&visitor, "c1").await
        ],
        ["AUTH", "ok", "ok"]
    );
    // A named client is blocked in all of its sessions, and no other.
    assert_eq!(fixture.ban(&visitor, "b1", json!(NOW + 60_000)).await["ok"], true);
    let again = fixture.session_with("local", "visitor", &["admin"]).await;
    assert_eq!([fixture.look(&again, "c1").await, fixture.look(&other, "c2").await], ["AUTH", "ok"]);
}

#[tokio::test]
async fn a_block_has_an_upper_bound() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let session = fixture.session("mira", "phone").await;
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 3_650 * DAY)).await["ok"], true);
    let mira = BlockFixture::new_session("mira", "phone").principal;
    assert_eq!(fixture.orchestrator.blocked_for(&mira, "phone", None).await.unwrap(), Some(DAY));
    fixture.clock.advance(DAY);
    assert_eq!(fixture.orchestrator.blocked_for(&mira, "phone", None).await.unwrap(), None);
}

#[tokio::test]
async fn a_block_ends_after_its_time_even_if_the_clock_is_set_back() {
    let fixture = BlockFixture::on(Store::Memory(Memory::default()));
    let session = fixture.session("mira", "phone").await;
    assert_eq!(fixture.ban(&session, "b1", json!(NOW + 60_000)).await["ok"], true);
    fixture.clock.advance(-DAY);
    assert_eq!(fixture.look(&session, "c1").await, "AUTH");
    fixture.clock.advance(60_000);
    assert_eq!(fixture.look(&session, "c2").await, "ok");
}
