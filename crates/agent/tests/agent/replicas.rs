//! Two servers on one PostgreSQL database share their conversations.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use toolwright_agent::{EventBody, Model, TurnOutcome};
use toolwright_orchestrator::store::{Postgres, Store, postgres};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, options, outcome, settings, text};
use crate::wire_forms::{self, calls};

fn url() -> String {
    std::env::var("TOOLWRIGHT_TEST_POSTGRES").expect("TOOLWRIGHT_TEST_POSTGRES: see `scripts/postgres start`")
}

async fn servers(model: &ScriptedModel) -> [Fixture; 2] {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    servers_in(&format!("agent {} {time}", std::process::id()), model).await
}

async fn servers_in(schema: &str, model: &ScriptedModel) -> [Fixture; 2] {
    let url = url();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let settings_of_store =
            postgres::Options { schema: schema.to_owned(), ..postgres::Options::default() };
        let store = Store::Postgres(Postgres::connect(&url, settings_of_store).await.unwrap());
        servers.push(Fixture::on(store, Model::remote(settings(model, "openai-chat")).unwrap(), options()));
    }
    servers.try_into().ok().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_follows_and_stops_a_turn() {
    let model = ScriptedModel::start([
        Reply::Slow(wire_forms::text("A long answer."), 2),
        Reply::Step(wire_forms::text("Next.")),
    ])
    .await;
    let [first, second] = servers(&model).await;
    let session = first.session().await;
    let turn = first.start(&session, "m1", "Go").await;
    let mut events = second.agent.events(&session, turn.start).await.unwrap();
    while let Some(event) = events.next().await.unwrap() {
        if matches!(event.body, EventBody::StepStarted { .. } | EventBody::TurnStarted { .. }) {
            break;
        }
    }
    assert_eq!(second.agent.running_turn(&session).await.unwrap().unwrap().id, "m1");
    assert!(second.agent.stop(&session).await.unwrap());
    // The first server may still send what it has; then its log is refused.
    model.open.add_permits(1);
    first.agent.wait_until_idle().await;
    assert_eq!(second.reply(&session).await.outcome, Some(TurnOutcome::Stopped));
    assert_eq!(first.reply(&session).await.outcome, Some(TurnOutcome::Stopped));
    let next = second.say(&session, "m2", "Next").await;
    assert_eq!((text(&next).as_str(), outcome(&next)), ("Next.", TurnOutcome::Completed));
    assert_eq!(text(&first.events(&session, turn.start).await).matches("Next.").count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_answers_an_approval_and_continues_the_turn() {
    let model = ScriptedModel::start([
        Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi" }))])),
        Reply::Step(wire_forms::text("Sent.")),
    ])
    .await;
    let [first, second] = servers(&model).await;
    let session = first.session().await;
    assert_eq!(outcome(&first.say(&session, "m1", "Mail").await), TurnOutcome::AwaitsApproval);
    let approval = second.pending_approval(&session).await;
    let events = second.answer(&session, &approval, true).await;
    assert_eq!((text(&events).as_str(), outcome(&events)), ("Sent.", TurnOutcome::Completed));
    assert_eq!((first.runs().len(), second.runs().len()), (0, 1));
    assert_eq!(first.agent.history(&session).await.unwrap(), second.agent.history(&session).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_in_a_process_without_an_agent_continues_the_turn() {
    let model = ScriptedModel::start([
        Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi" }))])),
        Reply::Step(wire_forms::text("Sent.")),
    ])
    .await;
    let [first, second] = servers(&model).await;
    let session = first.session().await;
    assert_eq!(outcome(&first.say(&session, "m1", "Mail").await), TurnOutcome::AwaitsApproval);
    let runs = std::sync::Arc::clone(&second.runs);
    let command = second.without_agent();
    let approval = command.pending_confirmations(Some(&session)).await.unwrap().remove(0);
    crate::waiting::approve_in(&command, &session, &approval.id).await;
    // The server that has the turn asks the store.
    loop {
        let events = first.events(&session, 0).await;
        if outcome(&events) == TurnOutcome::Completed {
            assert_eq!(text(&events), "Sent.");
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((first.runs().len(), runs.lock().unwrap().len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_could_not_be_closed_is_closed_later() {
    let model =
        ScriptedModel::start([Reply::Step(wire_forms::text("One.")), Reply::Step(wire_forms::text("Two."))])
            .await;
    let schema = format!("agent close {}", std::process::id());
    let [first, second] = servers_in(&schema, &model).await;
    let (client, driver) = tokio_postgres::connect(&url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(driver);
    let table = format!("ALTER TABLE \"{schema}\".conversation");
    let session = first.session().await;
    let refuse = format!("{table} ADD CONSTRAINT stays_open CHECK (writer IS NOT NULL) NOT VALID");
    client.batch_execute(&refuse).await.unwrap();
    assert_eq!(text(&first.say(&session, "m1", "Go").await), "One.");
    first.agent.wait_until_idle().await;
    assert!(second.agent.running_turn(&session).await.unwrap().is_some());
    client.batch_execute(&format!("{table} DROP CONSTRAINT stays_open")).await.unwrap();
    while second.agent.running_turn(&session).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&second.say(&session, "m2", "Next").await), "Two.");
}
