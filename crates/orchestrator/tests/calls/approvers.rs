//! The audit says who has approved a call, and what that person has changed.

use serde_json::{Value, json};
use toolwright_contract::{Mode, Principal};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver};
use toolwright_orchestrator::store::{AuditEntry, AuditFilter, AuditQuery, Backend};

use crate::support::{Fixture, Setup};

fn careful() -> Fixture {
    let schema = json!({ "type": "object", "properties": {
        "amount": { "type": "integer" }, "to": { "type": "array", "items": { "type": "string" } },
        "password": { "type": "string", "writeOnly": true } } });
    Setup::new().tool("pay", json!({ "requiresConfirmation": true, "jsonSchema": schema })).build()
}

async fn token(fixture: &Fixture, session: &str, id: &str, args: Value) -> String {
    let envelope = fixture.call(session, id, "pay", args).await;
    let request = &envelope["error"]["details"]["confirmation_request"];
    request["confirmation_token"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

/// The entries that match, oldest first.
async fn entries(fixture: &Fixture, filter: AuditFilter) -> Vec<AuditEntry> {
    let query = AuditQuery { filter, before: None, limit: 100 };
    let page = fixture.orchestrator.store().audit_page(&query).await.unwrap();
    page.entries.into_iter().rev().map(|found| found.entry).collect()
}

fn events(entries: &[AuditEntry]) -> Vec<(&str, &str)> {
    entries.iter().map(|entry| (entry.event.as_str(), entry.execution_id.as_str())).collect()
}

#[tokio::test]
async fn the_approver_and_the_edits_are_in_the_entries_of_the_answer_and_of_the_call() {
    let fixture = careful();
    let session = fixture.session(Mode::Text).await;
    let grace = Principal { id: "grace".to_owned(), org: Some("audit".to_owned()), roles: Vec::new() };
    let approver = |token| Approver {
        token,
        proof: AnswerProof::Token,
        session: &session,
        client_id: "client",
        by: "grace",
        principal: Some(&grace),
    };
    let asked = json!({ "amount": 50, "to": ["ada"], "password": "hunter22" });
    let edited = json!({ "amount": 60, "to": ["ada", "mira"], "password": "hunter33" });
    let first = token(&fixture, &session, "edited", asked.clone()).await;
    let envelope = fixture.orchestrator.approve(&approver(&first), Some(edited)).await.unwrap();
    assert!(envelope.is_ok(), "{envelope:?}");
    let second = token(&fixture, &session, "same", asked).await;
    fixture.orchestrator.approve(&approver(&second), None).await.unwrap();
    let third = token(&fixture, &session, "no", json!({})).await;
    fixture.orchestrator.reject(&approver(&third), None).await.unwrap();
    fixture.orchestrator.store().flush().await.unwrap();

    let by_grace = AuditFilter { approver: Some("grace".to_owned()), ..AuditFilter::default() };
    let found = entries(&fixture, by_grace).await;
    let expected = [
        ("approved", "edited"),
        ("called", "edited"),
        ("approved", "same"),
        ("called", "same"),
        ("rejected", "no"),
    ];
    assert_eq!(events(&found), expected);
    for entry in &found {
        let json = serde_json::to_value(entry).unwrap();
        assert_eq!(json["approver"], json!({ "id": "grace", "org": "audit", "via": "token" }), "{json}");
        assert!(!json.to_string().contains("hunter"), "{json}");
    }
    let found = entries(&fixture, AuditFilter { edited: true, ..AuditFilter::default() }).await;
    assert_eq!(events(&found), [("approved", "edited"), ("called", "edited")]);
    for entry in &found {
        let edits = json!([
            { "path": "/amount", "from": 50, "to": 60 },
            { "path": "/password", "from": "(hidden)", "to": "(hidden)" },
            { "path": "/to/1", "to": "mira" },
        ]);
        assert_eq!(serde_json::to_value(&entry.edits).unwrap(), edits);
    }
    // A call that nobody had to approve names no approver.
    let refused = AuditFilter { event: Some("refused".to_owned()), ..AuditFilter::default() };
    assert!(entries(&fixture, refused).await.iter().all(|entry| entry.approver.is_none()));
}
