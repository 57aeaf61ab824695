//! Ten tasks, each carried out once by a text model and once by a voice model that make the same calls: the same tools
//! run with the same arguments, and the models are told the same results.

use serde_json::{Value, json};
use toolwright_agent::Message;
use toolwright_agent::voice::{ClientInput, DecidedBy, Outcome};

use crate::scripted_model::{Reply, ScriptedModel};
use crate::support::Fixture;
use crate::voice_fixture::Voice;
use crate::wire_forms;

/// The user's words, the messages of calls that the model answers with, and the user's decision when asked.
struct Task {
    said: &'static str,
    messages: Vec<Vec<(&'static str, Value)>>,
    decides: Option<bool>,
}

/// The effects of a task: runs of tools, and the content of each call's result.
type Effects = (Vec<(String, Value)>, Vec<Value>);

fn task(said: &'static str, messages: Vec<Vec<(&'static str, Value)>>, decides: Option<bool>) -> Task {
    Task { said, messages, decides }
}

fn tasks() -> Vec<Task> {
    let search = |query: &str| ("kb_search", json!({ "query": query }));
    let note = |text: &str| ("note_add", json!({ "text": text }));
    let mail = |text: &str| ("mail_send", json!({ "text": text }));
    vec![
        task("which studio is quiet", vec![vec![search("quiet")]], None),
        task("look for nothing", vec![vec![search("nothing")]], None),
        task("note that I am late", vec![vec![note("late")]], None),
        task("find it and note it", vec![vec![search("quiet")], vec![note("Studio B")]], None),
        task("compare two rooms", vec![vec![search("a"), search("b")]], None),
        task("note two things", vec![vec![note("one"), note("two")]], None),
        task("write to Jon, yes", vec![vec![mail("Hello Jon")]], Some(true)),
        task("write to Jon, no", vec![vec![mail("Hello Jon")]], Some(false)),
        task("sign in", vec![vec![("login", json!({ "password": "hunter2" }))]], None),
        task("do what cannot be done", vec![vec![("nothing", json!({})), note("tried")]], None),
    ]
}

#[tokio::test]
async fn ten_tasks_make_the_same_calls_with_the_same_effects_by_voice_as_in_text() {
    for task in tasks() {
        let (by_text, by_voice) = (in_text(&task).await, by_voice(&task).await);
        assert_eq!(by_text.0, by_voice.0, "runs: {}", task.said);
        assert_eq!(by_text.1, by_voice.1, "results: {}", task.said);
        let count: usize = task.messages.iter().map(Vec::len).sum();
        assert_eq!(by_text.1.len(), count, "{}: every call has a result", task.said);
        let runs =
            if task.decides == Some(false) { 0 } else { count - usize::from(task.said.contains("cannot")) };
        assert_eq!(by_text.0.len(), runs, "{}", task.said);
    }
}

/// The messages with ids of the calls.
fn with_ids(task: &Task) -> Vec<Vec<(&'static str, &'static str, Value)>> {
    let mut ids = ["c1", "c2", "c3"].into_iter();
    let mut call = |(tool, args): &(&'static str, Value)| (ids.next().unwrap(), *tool, args.clone());
    task.messages.iter().map(|message| message.iter().map(&mut call).collect()).collect()
}

async fn in_text(task: &Task) -> Effects {
    let replies = with_ids(task).into_iter().map(|calls| Reply::Step(wire_forms::calls(calls)));
    let server = ScriptedModel::start(replies.chain([Reply::Step(wire_forms::text("Done."))])).await;
    let fixture = Fixture::new(&server, "openai-chat");
    let session = fixture.session().await;
    fixture.say(&session, "m1", task.said).await;
    if let Some(approved) = task.decides {
        let approval = fixture.pending_approval(&session).await;
        fixture.answer(&session, &approval, approved).await;
    }
    (fixture.runs(), logged_results(&fixture, &session).await)
}

async fn by_voice(task: &Task) -> Effects {
    let mut voice = Voice::new().await;
    let (mut caller, mut model) = voice.start().await;
    model.hears(task.said);
    let mut preview = String::new();
    for calls in with_ids(task) {
        model.calls(&calls);
        for _ in &calls {
            let (_, content) = model.result().await;
            preview = content["error"]["readBack"].as_str().unwrap_or_default().to_owned();
        }
    }
    if let Some(approved) = task.decides {
        model.says(&preview);
        caller.answer().await;
        model.hears(if approved { "yes, please" } else { "no, thanks" });
        model.says("All right.");
        let outcome = if approved { Outcome::Approved } else { Outcome::Rejected };
        assert_eq!(caller.decision().await, (outcome, DecidedBy::Voice));
        model.note().await;
    }
    model.says("Done.");
    caller.answer().await;
    caller.send(ClientInput::Stop).await;
    caller.end().await;
    (voice.fixture.runs(), logged_results(&voice.fixture, &caller.session).await)
}

/// The contents of the results that the conversation has, as both kinds of models are told them.
async fn logged_results(fixture: &Fixture, session: &str) -> Vec<Value> {
    let mut results = Vec::new();
    for message in fixture.agent.history(session).await.unwrap() {
        if let Message::Assistant(reply) = message {
            results.extend(
                reply.tools().filter_map(|tool| tool.result.as_ref()).map(|result| (*result.content).clone()),
            );
        }
    }
    results
}
