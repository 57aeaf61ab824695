//! Calls of tools that run in the background: the model goes on with a task, and reads the result later.

use serde_json::{Value, json};
use toolwright_agent::{EventBody, TurnOutcome};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::{Fixture, outcome, results};
use crate::wire_forms::{self, calls};

/// The content of the result that the history has of the only call.
async fn content(fixture: &Fixture, session: &str) -> Value {
    let reply = fixture.reply(session).await;
    let content = reply.tools().next().and_then(|tool| tool.result.as_ref()).unwrap().content.clone();
    (*content).clone()
}

#[tokio::test]
async fn the_result_of_a_task_replaces_the_answer_and_the_model_reads_it_in_the_next_turn() {
    let call = calls([("c1", "report_write", json!({ "text": "sales", "wait": true }))]);
    let replies = [
        Reply::Step(call),
        Reply::Step(wire_forms::text("It is being written.")),
        Reply::Step(wire_forms::text("Here it is.")),
    ];
    let server = ScriptedModel::start(replies).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Write the report").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    let answered = results(&events);
    assert_eq!((answered.len(), &answered[0]["data"]["task"]["status"]), (1, &json!("queued")));
    let id = answered[0]["data"]["task"]["taskId"].as_str().unwrap().to_owned();
    fixture.open.add_permits(1);
    fixture.orchestrator.wait_for_task(&id).await.unwrap();
    assert_eq!(content(&fixture, &session).await["data"], json!({ "done": "report_write" }));
    fixture.say(&session, "m2", "Is it there?").await;
    let asked = server.requests()[2].body.to_string();
    assert!(asked.contains("report_write") && asked.contains("done"), "{asked}");
    assert!(!asked.contains(&id), "the model reads the result instead of the task: {asked}");
    // It is in the log once.
    let log = fixture.events(&session, 0).await;
    let finished = log.iter().filter(|event| matches!(event.body, EventBody::ToolFinished { .. }));
    assert_eq!(finished.count(), 2);
}
