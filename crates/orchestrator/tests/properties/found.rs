//! Histories that once broke a rule, in short.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolwright_orchestrator::confirm::{Answerer, Proof};
use toolwright_orchestrator::store::{Backend, Memory, Sqlite, Store, sqlite};

use crate::desk::{Desk, session};
use crate::player::token;
use crate::rules::in_postgres;
use crate::steps::{Ask, Kind, Tool};

const PAY: Ask = Ask { id: 0, tool: Tool::Pay, kind: Kind::Plain };

fn on_disk(directory: &Path) -> Store {
    Store::Sqlite(Sqlite::open(&directory.join("state.db"), sqlite::Options::default()).unwrap())
}

fn answerer<'a>(token: &'a str, session: &'a str) -> Answerer<'a> {
    Answerer { token, proof: Proof::Token, session, client_id: session, by: "mira" }
}

async fn call(desk: &Desk, ask: Ask) -> Value {
    serde_json::to_value(&desk.orchestrator.call(&session(0), ask.call()).await).unwrap()
}

/// Asks, and gives the token.
async fn asked(desk: &Desk) -> String {
    token(&desk.orchestrator.call(&session(0), PAY.call()).await).unwrap().0
}

async fn an_id_that_waits_for_an_answer_stands_for_one_call(store: Store) {
    let desk = Desk::new(store).await;
    let token = asked(&desk).await;
    let other = call(&desk, Ask { kind: Kind::Other, ..PAY }).await;
    assert_eq!(other["error"]["type"], "CONFLICT", "{other}");
    // Whoever asked first was not disturbed.
    let envelope = desk.orchestrator.approve(&answerer(&token, "s0"), None).await.unwrap();
    assert!(envelope.is_ok(), "{envelope:?}");
}

#[tokio::test]
async fn an_id_that_waits_in_memory_stands_for_one_call() {
    an_id_that_waits_for_an_answer_stands_for_one_call(Store::Memory(Memory::default())).await;
}

#[tokio::test]
async fn an_id_that_waits_on_disk_stands_for_one_call() {
    let directory = tempfile::tempdir().unwrap();
    an_id_that_waits_for_an_answer_stands_for_one_call(on_disk(directory.path())).await;
}

#[tokio::test]
async fn an_id_that_waits_in_postgres_stands_for_one_call() {
    an_id_that_waits_for_an_answer_stands_for_one_call(in_postgres().await).await;
}

#[tokio::test]
async fn an_approved_call_runs_also_when_whoever_approved_it_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let desk = Desk::new(on_disk(directory.path())).await;
    let token = asked(&desk).await;
    {
        let answerer = answerer(&token, "s0");
        let approval = desk.orchestrator.approve(&answerer, None);
        // Gone as soon as the answer is on its way to the disk.
        tokio::select! {
            biased;
            _ = approval => panic!("it did not wait for the disk"),
            () = std::future::ready(()) => {}
        }
    }
    let until_it_runs = async {
        while desk.history.events().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), until_it_runs).await.expect("it never runs");
    let again = call(&desk, PAY).await;
    assert_eq!((&again["ok"], &again["meta"]["replayed"]), (&json!(true), &json!(true)), "{again}");
    assert_eq!(desk.orchestrator.store().approved().await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_no_is_in_the_audit_also_when_the_id_was_used_for_another_call() {
    let desk = Desk::new(Store::Memory(Memory::default())).await;
    let token = asked(&desk).await;
    assert_eq!(call(&desk, Ask { tool: Tool::Note, ..PAY }).await["ok"], true);
    desk.orchestrator.reject(&answerer(&token, "s0"), None).await.unwrap();
    let rows = desk.orchestrator.store().audit(0, 100).await.unwrap();
    let events: Vec<_> =
        rows.iter().map(|row| serde_json::from_str::<Value>(&row.entry).unwrap()["event"].clone()).collect();
    assert_eq!(events, ["refused", "called", "rejected"]);
}

#[tokio::test]
async fn a_call_is_replayed_also_while_its_id_is_tried_for_another_call() {
    let desk = Desk::new(in_postgres().await).await;
    let note = Ask { tool: Tool::Note, ..PAY };
    let first = call(&desk, note).await;
    let (other, again) = tokio::join!(call(&desk, Ask { kind: Kind::Other, ..note }), call(&desk, note));
    assert_eq!(other["error"]["type"], "CONFLICT", "{other}");
    assert_eq!(again["data"], first["data"], "{again}");
}
