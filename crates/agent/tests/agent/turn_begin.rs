//! The begin of a turn: the model is asked while the message is written to the disk, and nothing is acknowledged
//! before.

use toolwright_agent::{Error, Model, TurnOutcome, TurnRequest, UserMessage};
use toolwright_orchestrator::store::sqlite::{Fault, FaultSwitch, Options};
use toolwright_orchestrator::store::{self, Sqlite, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, options, outcome, settings, text, until};
use crate::wire_forms;

fn fixture(server: &ScriptedModel, directory: &tempfile::TempDir) -> (Fixture, FaultSwitch) {
    let faults = FaultSwitch::default();
    let path = directory.path().join("state.db");
    let store = Sqlite::open(&path, Options { faults: faults.clone(), ..Options::default() }).unwrap();
    let model = Model::remote(settings(server, "openai-chat")).unwrap();
    (Fixture::on(Store::Sqlite(store), model, options()), faults)
}

fn hello(session: &str) -> TurnRequest {
    TurnRequest::message(session, UserMessage::text("m1", "Hello"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_is_asked_while_the_message_is_written() {
    let server = ScriptedModel::start([Reply::Step(wire_forms::text("Hi."))]).await;
    let directory = tempfile::tempdir().unwrap();
    let (fixture, faults) = fixture(&server, &directory);
    let session = fixture.session().await;
    faults.set(Fault::CommitWaits);
    let starting = tokio::spawn({
        let (agent, request) = (fixture.agent.clone(), hello(&session));
        async move { agent.start(request).await }
    });
    until(|| server.requests().len() == 1).await;
    assert!(!starting.is_finished(), "the message is not on the disk");
    faults.set(Fault::None);
    let turn = starting.await.unwrap().unwrap();
    let events = fixture.events(&session, turn.start).await;
    assert_eq!((text(&events).as_str(), outcome(&events)), ("Hi.", TurnOutcome::Completed));
    assert_eq!(server.requests().len(), 1, "it is asked once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_written_is_refused_and_can_be_sent_again() {
    let server = ScriptedModel::repeating(Reply::Step(wire_forms::text("Hi."))).await;
    let directory = tempfile::tempdir().unwrap();
    let (fixture, faults) = fixture(&server, &directory);
    let session = fixture.session().await;
    faults.set(Fault::CommitFails);
    let refused = fixture.agent.start(hello(&session)).await;
    assert!(matches!(refused, Err(Error::Store(store::Error::Unavailable(_)))), "{refused:?}");
    faults.set(Fault::None);
    fixture.agent.wait_until_idle().await;
    assert_eq!(fixture.agent.history(&session).await.unwrap(), []);
    let turn = loop {
        match fixture.agent.start(hello(&session)).await {
            Ok(turn) => break turn,
            // The writer of the refused turn is being closed.
            Err(Error::Busy { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let events = fixture.events(&session, turn.start).await;
    assert_eq!((text(&events).as_str(), outcome(&events)), ("Hi.", TurnOutcome::Completed));
}
