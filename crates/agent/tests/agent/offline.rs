//! The offline agent: no language model, and it says so.

use serde_json::json;
use toolwright_agent::{Model, TurnOutcome};
use toolwright_orchestrator::store::{Memory, Store};

use crate::support::{Fixture, options, outcome, text};

fn fixture() -> Fixture {
    Fixture::on(Store::Memory(Memory::default()), Model::Offline, options())
}

#[tokio::test]
async fn it_quotes_the_knowledge_base_with_ids() {
    let fixture = fixture();
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", "Which studio is quiet?").await;
    assert_eq!(outcome(&events), TurnOutcome::Completed);
    let answer = text(&events);
    assert!(answer.contains("not a language model"), "{answer}");
    assert!(answer.contains("**Quiet room** [doc:quiet-room]\n> Studio B is quiet."), "{answer}");
    assert_eq!(fixture.runs(), [("kb_search".to_owned(), json!({ "query": "Which studio is quiet?" }))]);
    let nothing = text(&fixture.say(&session, "m2", "nothing").await);
    assert!(nothing.contains("has nothing on this"), "{nothing}");
}

#[tokio::test]
async fn it_runs_tools_by_name() {
    let fixture = fixture();
    let session = fixture.session().await;
    let done = text(&fixture.say(&session, "m1", r#"/note_add {"text": "buy tape"}"#).await);
    assert!(done.contains("`note_add` returned:") && done.contains(r#""done": "note_add""#), "{done}");
    let invalid = text(&fixture.say(&session, "m2", r#"/note_add {"txt": "x"}"#).await);
    assert!(invalid.contains("`note_add` failed: Invalid parameters"), "{invalid}");
    let unreadable = text(&fixture.say(&session, "m3", "/note_add {oops").await);
    assert!(unreadable.contains("not readable"), "{unreadable}");
    let unknown = text(&fixture.say(&session, "m4", "/note_ad {}").await);
    assert!(unknown.contains("There is no tool `note_ad`") && unknown.contains("note_add"), "{unknown}");
    assert_eq!(fixture.runs().len(), 1);
}

#[tokio::test]
async fn its_calls_need_approval_too() {
    let fixture = fixture();
    let session = fixture.session().await;
    let events = fixture.say(&session, "m1", r#"/mail_send {"text": "Hi"}"#).await;
    assert_eq!(outcome(&events), TurnOutcome::AwaitsApproval);
    let approval = fixture.pending_approval(&session).await;
    let events = fixture.answer(&session, &approval, true).await;
    assert!(text(&events).contains("`mail_send` returned"), "{}", text(&events));
}
