//! Turns that wait for answers: several at once, after a restart, in requests with a history of their own, and in
//! messages that are replaced.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use toolwright_agent::{
    AssistantMessage, ClientResult, ClientTool, Error, EventBody, Message, Model, Part, Step, TurnInput,
    TurnOutcome, TurnRequest, UserMessage,
};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::confirmation_token::{self, AnswerProof, Approver};
use toolwright_orchestrator::store::sqlite::Options;
use toolwright_orchestrator::store::{Backend, Sqlite, Store};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, answer, options, outcome, settings, text, until};
use crate::wire_forms::{self, calls};

fn mail(text: &str) -> (&'static str, &'static str, serde_json::Value) {
    ("c1", "mail_send", json!({ "text": text }))
}

/// Approves in the store, as a process without an agent does.
pub async fn approve_in(orchestrator: &Orchestrator, session: &str, approval: &str) {
    let approver = Approver {
        token: confirmation_token::request_id(approval),
        proof: AnswerProof::Transport,
        session,
        client_id: "browser",
        by: "operator",
        principal: None,
    };
    assert!(orchestrator.approve(&approver, None).await.unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_to_several_calls_of_a_turn_may_come_at_once() {
    for approved in [[true, true], [true, false], [false, false]] {
        let both = [mail("one"), ("c2", "mail_send", json!({ "text": "two" }))];
        let server =
            ScriptedModel::start([Reply::Step(calls(both)), Reply::Step(wire_forms::text("Done."))]).await;
        let fixture = Fixture::new(&server, "openai-chat");
        let session = fixture.session().await;
        assert_eq!(outcome(&fixture.say(&session, "m1", "Write to both").await), TurnOutcome::AwaitsApproval);
        let reply = fixture.reply(&session).await;
        let ids: Vec<String> = reply.tools().map(|tool| tool.approval.clone().unwrap().id).collect();
        let (first, second, again) = tokio::join!(
            fixture.agent.answer(answer(&session, &ids[0], approved[0])),
            fixture.agent.answer(answer(&session, &ids[1], approved[1])),
            fixture.agent.answer(answer(&session, &ids[1], approved[1])),
        );
        for turn in [first, second, again] {
            assert_eq!(turn.unwrap().id, "m1");
        }
        fixture.agent.wait_until_idle().await;
        let reply = fixture.reply(&session).await;
        assert_eq!((reply.text().as_str(), reply.outcome.as_ref()), ("Done.", Some(&TurnOutcome::Completed)));
        let decided: Vec<bool> = reply.tools().map(|tool| tool.decision.as_ref().unwrap().approved).collect();
        assert_eq!(decided, approved);
        let expected = approved.iter().filter(|approved| **approved).count();
        assert_eq!((fixture.runs().len(), server.requests().len()), (expected, 2));
    }
}

#[tokio::test]
async fn a_continued_turn_has_the_history_instructions_and_tools_of_its_request() {
    let server = ScriptedModel::start([
        Reply::Step(calls([mail("Hi")])),
        Reply::Step(calls([("c2", "open_map", json!({ "place": "Studio B" }))])),
        Reply::Step(wire_forms::text("There it is.")),
        Reply::Step(wire_forms::text("And again.")),
    ])
    .await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let said = Part::Text { text: "We met in Oslo.".to_owned(), provider_data: None };
    let steps = vec![Step { parts: vec![said], finish: None }];
    let mut request = TurnRequest::message(&session, UserMessage::text("m1", "Write to Jon"));
    request.history = Some(vec![
        Message::User(UserMessage::text("h1", "Where did we meet?")),
        Message::Assistant(AssistantMessage { steps, ..AssistantMessage::default() }),
    ]);
    request.instructions = Some("Speak like a sailor.".to_owned());
    let schema = json!({ "type": "object", "properties": { "place": { "type": "string" } } });
    request.client_tools = vec![ClientTool {
        name: "open_map".to_owned(),
        description: "A map.".to_owned(),
        parameters: schema,
    }];
    let turn = fixture.agent.start(request).await.unwrap();
    assert_eq!(outcome(&fixture.events(&session, turn.start).await), TurnOutcome::AwaitsApproval);
    let approval = fixture.pending_approval(&session).await;
    let events = fixture.answer(&session, &approval, true).await;
    assert_eq!(outcome(&events), TurnOutcome::AwaitsClient, "the call is the client's");
    let result = ClientResult { call_id: "c2".to_owned(), content: json!("shown"), is_error: false };
    let turn = fixture.agent.start(TurnRequest::new(&session, TurnInput::ClientResults(vec![result])));
    let events = fixture.events(&session, turn.await.unwrap().resumed_at).await;
    assert_eq!(text(&events), "There it is.");
    // The next turn has no history of its own: the session's begins with the one that was sent.
    fixture.say(&session, "m2", "Again").await;
    let requests = server.requests();
    for (number, request) in requests.iter().enumerate() {
        let body = request.body.to_string();
        assert!(body.contains("We met in Oslo."), "request {number}: {body}");
        for own in ["Speak like a sailor.", "open_map"] {
            // The later turn declares no tools, but reads of the call.
            assert_eq!(body.contains(own), number < 3 || own == "open_map", "request {number}: {body}");
        }
    }
}

#[tokio::test]
async fn a_message_that_is_replaced_closes_its_approval() {
    let server =
        ScriptedModel::start([Reply::Step(calls([mail("Hi")])), Reply::Step(wire_forms::text("Then not."))])
            .await;
    let fixture = Fixture::new(&server, "gemini");
    let session = fixture.session().await;
    fixture.say(&session, "m1", "Write to Jon").await;
    let approval = fixture.pending_approval(&session).await;
    let mut request = TurnRequest::message(&session, UserMessage::text("m1~2", "Do not write to Jon"));
    request.replaces = Some("m1".to_owned());
    let turn = fixture.agent.start(request).await.unwrap();
    assert_eq!(text(&fixture.events(&session, turn.start).await), "Then not.");
    assert_eq!(fixture.orchestrator.pending_confirmations(Some(&session)).await.unwrap(), []);
    let late = fixture.agent.answer(answer(&session, &approval, true)).await;
    assert_eq!(late, Err(Error::Approval(confirmation_token::Error::Refused)));
    let approver = Approver {
        token: confirmation_token::request_id(&approval),
        proof: AnswerProof::Transport,
        session: &session,
        client_id: "browser",
        by: "operator",
        principal: None,
    };
    assert_eq!(fixture.orchestrator.approve(&approver, None).await, Err(confirmation_token::Error::Answered));
    fixture.agent.wait_until_idle().await;
    assert_eq!((fixture.runs().len(), server.requests().len()), (0, 2));
}

/// Runs `work` in a process that dies after it.
async fn in_process_that_dies<T: Send + 'static>(
    path: &std::path::Path,
    server: &ScriptedModel,
    work: impl AsyncFnOnce(&Fixture) -> T + Send + 'static,
) -> T {
    let (path, server) = (path.to_owned(), server.clone());
    let process = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let result = runtime.block_on(async {
            let fixture = open(&path, &server).await;
            work(&fixture).await
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        result
    });
    tokio::task::spawn_blocking(move || process.join().unwrap()).await.unwrap()
}

/// Opens a file whose last process has just died: its store may still be closing.
async fn open(path: &std::path::Path, server: &ScriptedModel) -> Fixture {
    loop {
        match Sqlite::open(path, Options::default()) {
            Ok(store) => {
                let model = Model::remote(settings(server, "openai-chat")).unwrap();
                return Fixture::on(Store::Sqlite(store), model, options());
            }
            Err(toolwright_orchestrator::store::Error::InUse(_)) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn after_a_start_a_turn_goes_on_whose_approved_write_was_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let server = ScriptedModel::start([
        Reply::Step(calls([("c1", "mail_send", json!({ "text": "Hi", "wait": true }))])),
        Reply::Step(wire_forms::text("I do not know whether it was sent.")),
    ])
    .await;
    let session = in_process_that_dies(&path, &server, async |fixture: &Fixture| {
        let session = fixture.session().await;
        fixture.say(&session, "m1", "Mail").await;
        let approval = fixture.pending_approval(&session).await;
        fixture.agent.answer(answer(&session, &approval, true)).await.unwrap();
        until(|| fixture.started.load(Ordering::SeqCst) == 1).await;
        session
    })
    .await;
    let fixture = open(&path, &server).await;
    fixture.agent.recover().await.unwrap();
    fixture.agent.wait_until_idle().await;
    let reply = fixture.reply(&session).await;
    assert_eq!(reply.outcome, Some(TurnOutcome::Completed));
    assert_eq!(reply.text(), "I do not know whether it was sent.");
    let result = reply.tools().next().unwrap().result.clone().unwrap();
    assert!(result.is_error && result.content.to_string().contains("its outcome is unknown"), "{result:?}");
    assert_eq!(fixture.runs().len(), 0);
    // Nothing is left to do.
    fixture.agent.recover().await.unwrap();
    fixture.agent.wait_until_idle().await;
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn after_a_start_a_turn_goes_on_that_was_answered_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let server =
        ScriptedModel::start([Reply::Step(calls([mail("Hi")])), Reply::Step(wire_forms::text("Sent."))])
            .await;
    let session = in_process_that_dies(&path, &server, async |fixture: &Fixture| {
        let session = fixture.session().await;
        fixture.say(&session, "m1", "Mail").await;
        session
    })
    .await;
    // A command approves while no server runs: its process has no agent.
    let command = open(&path, &server).await.without_agent();
    let approval = command.pending_confirmations(Some(&session)).await.unwrap().remove(0);
    approve_in(&command, &session, &approval.id).await;
    command.store().flush().await.unwrap();
    command.store().close().await;
    drop(command);
    let fixture = open(&path, &server).await;
    fixture.agent.recover().await.unwrap();
    fixture.agent.wait_until_idle().await;
    let reply = fixture.reply(&session).await;
    assert_eq!((reply.text().as_str(), reply.outcome), ("Sent.", Some(TurnOutcome::Completed)));
    assert_eq!(fixture.runs().len(), 0, "it ran in the command's process");
}

#[tokio::test]
async fn a_turn_that_the_model_was_answering_goes_on_when_its_client_returns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.db");
    let server = ScriptedModel::start([
        Reply::Slow(wire_forms::text("Never to be seen as a whole."), 2),
        Reply::Step(wire_forms::text("The answer.")),
    ])
    .await;
    let session = in_process_that_dies(&path, &server, async |fixture: &Fixture| {
        let session = fixture.session().await;
        let turn = fixture.start(&session, "m1", "Go").await;
        let mut events = fixture.agent.events(&session, turn.start).await.unwrap();
        while let Some(event) = events.next().await.unwrap() {
            if matches!(event.body, EventBody::Text { .. }) {
                break;
            }
        }
        session
    })
    .await;
    let fixture = open(&path, &server).await;
    fixture.agent.recover().await.unwrap();
    fixture.agent.wait_until_idle().await;
    assert_eq!((fixture.reply(&session).await.outcome, server.requests().len()), (None, 1));
    let principal = std::sync::Arc::new(Fixture::principal());
    let turn = fixture.agent.resume(&session, &principal).await.unwrap().unwrap();
    assert_eq!(text(&fixture.events(&session, turn.resumed_at).await), "The answer.");
    assert_eq!(fixture.agent.resume(&session, &principal).await.unwrap(), None);
}
