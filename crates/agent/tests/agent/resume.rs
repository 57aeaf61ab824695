//! A conversation survives its listeners, its process and its server.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use toolwright_agent::{AgentOptions, Error, EventBody, Model, TurnOutcome, TurnRequest, UserMessage};
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{ConversationLog, LogOpening, Memory, Sqlite, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, options, outcome, results, settings, text, until};
use crate::wire_forms::{self, PROVIDERS, calls};

fn on(store: Store, server: &ScriptedModel, options: AgentOptions) -> Fixture {
    Fixture::on(store, Model::remote(settings(server, "openai-chat")).unwrap(), options)
}

#[tokio::test]
async fn events_can_be_read_again_from_every_position() {
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "kb_search", json!({ "query": "x" }))])),
        Reply::Slow(wire_forms::text("Größe – 日本語 and more."), 3),
    ])
    .await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let turn = fixture.start(&session, "m1", "Go").await;
    let mut live = fixture.agent.events(&session, turn.start).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = live.next().await.unwrap() {
        if matches!(event.body, EventBody::Text { .. })
            && seen.iter().all(|seen: &toolwright_agent::Event| !matches!(seen.body, EventBody::Text { .. }))
        {
            // In the middle of the text, a second listener reads everything again and follows.
            let mut second = fixture.agent.events(&session, 0).await.unwrap();
            for expected in &seen {
                assert_eq!(second.next().await.unwrap().as_ref(), Some(expected));
            }
            server.open.add_permits(1);
        }
        seen.push(event);
    }
    assert_eq!(outcome(&seen), TurnOutcome::Completed);
    let whole = text(&seen);
    let stored = fixture.events(&session, 0).await;
    assert_eq!(text(&stored), whole);
    let first = stored.iter().position(|event| matches!(event.body, EventBody::Text { .. })).unwrap();
    let start = stored[first - 1].position;
    for offset in 0..=whole.len() {
        let rest = text(&fixture.events(&session, start + offset as u64).await);
        assert_eq!(rest, whole[whole.floor_char_boundary(offset)..]);
    }
}

#[tokio::test]
async fn a_message_that_is_sent_again_runs_nothing_twice() {
    for provider in PROVIDERS {
        let server = ScriptedModel::start([
            Reply::Step(calls([("c1", "note_add", json!({ "text": "one", "wait": true }))])),
            Reply::Step(wire_forms::text("Done.")),
        ])
        .await;
        let fixture = Fixture::new(&server, provider);
        let session = fixture.session().await;
        let turn = fixture.start(&session, "m1", "Note it").await;
        until(|| fixture.started.load(Ordering::SeqCst) == 1).await;
        // While it runs, and afterwards.
        let again = fixture.start(&session, "m1", "Note it").await;
        assert_eq!((again.is_new, again.start, again.reply.clone()), (false, turn.start, turn.reply.clone()));
        let other = TurnRequest::message(&session, UserMessage::text("m2", "Else"));
        assert_eq!(fixture.agent.start(other).await, Err(Error::Busy { turn: "m1".to_owned() }));
        assert_eq!(fixture.agent.running_turn(&session).await.unwrap().unwrap().id, "m1");
        fixture.open.add_permits(1);
        assert_eq!(text(&fixture.events(&session, turn.start).await), "Done.");
        let again = fixture.say(&session, "m1", "Note it").await;
        assert_eq!((text(&again).as_str(), outcome(&again)), ("Done.", TurnOutcome::Completed));
        assert_eq!((fixture.runs().len(), server.requests().len()), (1, 2), "{provider}");
        assert_eq!(fixture.agent.running_turn(&session).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_stopped_turn_cancels_reads_and_records_writes() {
    let both = [
        ("r", "kb_search", json!({ "query": "wait" })),
        ("w", "note_add", json!({ "text": "x", "wait": true })),
    ];
    for (script, tools) in [(calls([both[0].clone()]), 1), (calls([both[1].clone(), both[0].clone()]), 2)] {
        let server =
            ScriptedModel::start([Reply::Step(script), Reply::Step(wire_forms::text("Next."))]).await;
        let fixture = Fixture::new(&server, "openai-chat");
        let session = fixture.session().await;
        let turn = fixture.start(&session, "m1", "Go").await;
        until(|| fixture.started.load(Ordering::SeqCst) == 1).await;
        assert!(fixture.agent.stop(&session).await.unwrap());
        if tools == 2 {
            // The write finishes.
            fixture.open.add_permits(1);
        }
        let events = fixture.events(&session, turn.start).await;
        assert_eq!(outcome(&events), TurnOutcome::Stopped);
        let results = results(&events);
        assert_eq!(results.len(), tools);
        assert!(results[tools - 1]["error"].as_str().unwrap().contains("stopped"), "{results:?}");
        if tools == 2 {
            assert_eq!(results[0]["data"]["done"], "note_add");
        }
        assert_eq!(fixture.runs().len(), tools - 1);
        assert!(!fixture.agent.stop(&session).await.unwrap());
        assert_eq!(text(&fixture.say(&session, "m2", "Next").await), "Next.");
    }
}

#[tokio::test]
async fn stopping_a_streaming_answer_keeps_what_was_said() {
    let server = ScriptedModel::start([Reply::Slow(wire_forms::text("A long answer."), 2)]).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let turn = fixture.start(&session, "m1", "Go").await;
    let mut events = fixture.agent.events(&session, turn.start).await.unwrap();
    while let Some(event) = events.next().await.unwrap() {
        if matches!(event.body, EventBody::Text { .. }) {
            fixture.agent.stop(&session).await.unwrap();
        }
    }
    let reply = fixture.reply(&session).await;
    assert_eq!((reply.text().as_str(), reply.outcome), ("A long ", Some(TurnOutcome::Stopped)));
}

#[tokio::test]
async fn a_turn_that_nobody_listens_to_is_stopped_after_the_grace_time() {
    let server = ScriptedModel::start([Reply::Silence]).await;
    let options = AgentOptions { grace: Duration::from_millis(50), ..options() };
    let fixture = on(Store::Memory(Memory::default()), &server, options);
    let session = fixture.session().await;
    fixture.start(&session, "m1", "Go").await;
    fixture.agent.wait_until_idle().await;
    assert_eq!(fixture.reply(&session).await.outcome, Some(TurnOutcome::Stopped));
}

#[tokio::test]
async fn another_process_continues_a_turn_whose_process_died() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "kb_search", json!({ "query": "one" }))])),
        // The process dies in the middle of this answer.
        Reply::Slow(wire_forms::text("Never to be seen as a whole."), 2),
        Reply::Step(wire_forms::text("The answer.")),
    ])
    .await;
    let session = {
        // A runtime of its own, which is dropped with everything in it.
        let (path, server) = (path.clone(), server.clone());
        let task = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let session = runtime.block_on(async {
                let fixture =
                    on(Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap()), &server, options());
                let session = fixture.session().await;
                let turn = fixture.start(&session, "m1", "Go").await;
                let mut events = fixture.agent.events(&session, turn.start).await.unwrap();
                while let Some(event) = events.next().await.unwrap() {
                    if matches!(event.body, EventBody::Text { .. }) {
                        break;
                    }
                }
                session
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
            session
        });
        tokio::task::spawn_blocking(move || task.join().unwrap()).await.unwrap()
    };
    let fixture = on(Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap()), &server, options());
    let reply = fixture.reply(&session).await;
    assert_eq!((reply.outcome, reply.steps.is_empty()), (None, false));
    let events = fixture.say(&session, "m1", "Go").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    let reply = fixture.reply(&session).await;
    assert_eq!((reply.text().as_str(), reply.steps.len()), ("The answer.", 2));
    assert_eq!(fixture.runs().len(), 0, "the search ran in the first process only");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_message_that_is_sent_again_while_results_are_recorded_continues_its_turn() {
    let replies = [Reply::Status(401, "", "no"), Reply::Step(wire_forms::text("Here I am."))];
    let server = ScriptedModel::start(replies).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let failed = outcome(&fixture.say(&session, "m1", "Go").await);
    assert!(matches!(failed, TurnOutcome::Failed { .. }), "{failed:?}");
    // A writer that runs no turn, as after the start of a process.
    let store = fixture.orchestrator.store();
    let writer = "recorder:";
    assert!(matches!(store.open_log(&session, writer).await.unwrap(), LogOpening::Opened { .. }));
    let recorded = async { store.close_log(&session, writer).await.unwrap() };
    let (events, ()) = tokio::join!(fixture.say(&session, "m1", "Go"), recorded);
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    assert_eq!(fixture.reply(&session).await.text(), "Here I am.");
}

#[tokio::test]
async fn a_pending_approval_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let open = || Store::Sqlite(Sqlite::open(&path, Options::default()).unwrap());
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi" }))])),
        Reply::Step(wire_forms::text("Sent.")),
    ])
    .await;
    let first = on(open(), &server, options());
    let session = first.session().await;
    assert_eq!(outcome(&first.say(&session, "m1", "Mail").await), TurnOutcome::AwaitsApproval);
    first.orchestrator.store().close().await;
    drop(first);
    let second = on(open(), &server, options());
    let approval = second.pending_approval(&session).await;
    let events = second.answer(&session, &approval, true).await;
    assert_eq!((text(&events).as_str(), outcome(&events)), ("Sent.", TurnOutcome::Completed));
    assert_eq!(second.runs().len(), 1);
}

/// Opens a file whose last process has just died: its store may still be closing.
async fn reopen(path: &std::path::Path) -> Store {
    loop {
        match Sqlite::open(path, Options::default()) {
            Ok(store) => return Store::Sqlite(store),
            Err(toolwright_orchestrator::store::Error::InUse(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A process that dies after it has sent this many events of a turn with a write that needs approval. If `approves`, it
/// dies while it continues the turn after the approval.
fn die_after(
    path: std::path::PathBuf,
    server: ScriptedModel,
    events: usize,
    approves: bool,
) -> (String, usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let fixture = on(reopen(&path).await, &server, options());
        let session = fixture.session().await;
        let mut turn = fixture.start(&session, "m1", "Mail").await;
        if approves {
            fixture.events(&session, turn.start).await;
            let approval = fixture.pending_approval(&session).await;
            turn = fixture.agent.answer(crate::support::answer(&session, &approval, true)).await.unwrap();
        }
        let mut stream = fixture.agent.events(&session, turn.resumed_at).await.unwrap();
        for _ in 0..events {
            stream.next().await.unwrap();
        }
        (session, fixture.runs())
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    (result.0, result.1.len())
}

/// The last message, when its turn has ended. A call that was approved in an earlier process continues it by itself.
async fn ended_reply(fixture: &Fixture, session: &str) -> toolwright_agent::AssistantMessage {
    loop {
        fixture.agent.wait_until_idle().await;
        let reply = fixture.reply(session).await;
        if reply.outcome.as_ref().is_some_and(|outcome| !outcome.is_pause()) {
            return reply;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_process_may_die_after_any_event_and_an_approved_write_runs_once() {
    for approves in [false, true] {
        for events in 0..8 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.db");
            let mail = || Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi" }))]));
            let script = [mail(), Reply::Step(wire_forms::text("Sent."))];
            let server = ScriptedModel::start(script).await;
            let (server_of_first, path_of_first) = (server.clone(), path.clone());
            let first =
                std::thread::spawn(move || die_after(path_of_first, server_of_first, events, approves));
            let (session, runs) = tokio::task::spawn_blocking(move || first.join().unwrap()).await.unwrap();
            // The second process has a script of its own: the first may have used up any part of the other.
            let asked = server.requests().len();
            let rest = match asked {
                0 => vec![mail(), Reply::Step(wire_forms::text("Sent."))],
                _ => vec![Reply::Step(wire_forms::text("Sent.")), Reply::Step(wire_forms::text("Sent."))],
            };
            let server = ScriptedModel::start(rest).await;
            let fixture = on(reopen(&path).await, &server, options());
            // As a server does at its start: it runs approved calls that have not run.
            fixture.orchestrator.resume().await.unwrap();
            let reply = fixture.reply(&session).await;
            assert_eq!(reply.turn, "m1", "the conversation is there");
            let is_asked_again = asked > 0 && reply.tools().next().is_none();
            if is_asked_again {
                // The first response was lost: the model is asked again, and now only talks.
                assert!(!approves, "after {events} events");
                continue;
            }
            if reply.outcome.is_none() || matches!(reply.outcome, Some(TurnOutcome::Failed { .. })) {
                fixture.say(&session, "m1", "Mail").await;
            }
            let waits = fixture.reply(&session).await.tools().any(|tool| tool.awaits_approval());
            if waits {
                let approval = fixture.pending_approval(&session).await;
                fixture.answer(&session, &approval, true).await;
            }
            let reply = ended_reply(&fixture, &session).await;
            let case = format!("approves: {approves}, after {events} events: {reply:?}");
            assert_eq!(reply.outcome, Some(TurnOutcome::Completed), "{case}");
            let tool = reply.tools().next().unwrap();
            let result = tool.result.as_ref().unwrap();
            // It ran in one of the processes, or is in doubt: never twice.
            let record = fixture.orchestrator.recorded_envelope(&session, "c1").await.unwrap();
            assert!(record.is_some_and(|envelope| envelope.is_ok()) != result.is_error, "{case}");
            assert!(runs + fixture.runs().len() <= 1, "{case}");
        }
    }
}

#[tokio::test]
async fn a_write_whose_process_died_while_it_ran_is_reported_as_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi", "wait": true }))])),
        Reply::Step(wire_forms::text("I do not know whether it was sent.")),
    ])
    .await;
    let (path_of_first, server_of_first) = (path.clone(), server.clone());
    let first = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let session = runtime.block_on(async {
            let fixture = on(reopen(&path_of_first).await, &server_of_first, options());
            let session = fixture.session().await;
            fixture.say(&session, "m1", "Mail").await;
            let approval = fixture.pending_approval(&session).await;
            fixture.agent.answer(crate::support::answer(&session, &approval, true)).await.unwrap();
            until(|| fixture.started.load(Ordering::SeqCst) == 1).await;
            session
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        session
    });
    let session = tokio::task::spawn_blocking(move || first.join().unwrap()).await.unwrap();
    let fixture = on(reopen(&path).await, &server, options());
    assert_eq!(fixture.orchestrator.resume().await.unwrap(), 0);
    let reply = fixture.reply(&session).await;
    let tool = reply.tools().next().unwrap();
    assert!(!tool.awaits_approval(), "{tool:?}");
    assert!(tool.decision.as_ref().unwrap().approved, "{tool:?}");
    let result = tool.result.as_ref().unwrap();
    assert!(result.is_error && !result.is_declined, "{result:?}");
    assert!(result.content.to_string().contains("its outcome is unknown"), "{result:?}");
    // The client sends the message again, and the model learns it.
    let events = fixture.say(&session, "m1", "Mail").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    assert_eq!(fixture.reply(&session).await.text(), "I do not know whether it was sent.");
    assert_eq!(fixture.runs().len(), 0);
}
