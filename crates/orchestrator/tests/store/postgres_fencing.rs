//! Processes that were paused for longer than their lease: what they owned may belong to another process, and is never
//! theirs again.

use serde_json::json;
use toolwright_orchestrator::store::{
    Backend, Claim, ClaimOutcome, ConversationLog, Durability, ExecutionStatus, LogEntry, LogOpening,
    SettleOutcome, Settlement, TaskChange, TaskStatus,
};

use crate::postgres_store::{Database, Process, holds};
use crate::support::{
    NOW, approved, claim, confirmation, confirmed, envelope, idempotent, retrieval_charge, retrievals,
    session, settlement, status,
};
use crate::task_rules::task;

/// Two processes, and the lease of the first.
async fn two_processes() -> (Database, Process, Process, u64) {
    let database = Database::new();
    let (a, b) = (database.open().await, database.open().await);
    a.store.create_session(session("s"), Durability::Committed).await.unwrap();
    let lease = a.store.lease();
    (database, a, b, lease)
}

#[tokio::test]
async fn a_late_owner_does_not_settle_what_another_process_runs() {
    let (database, a, b, _) = two_processes().await;
    let call = idempotent("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    database.expire_lease(a.store.instance()).await;
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let late = Settlement { envelope: envelope("call", json!("late")), ..settlement(&call) };
    assert_eq!(a.store.settle(late.clone()).await, Ok(SettleOutcome::TakenOver));
    assert_eq!(status(&*a.store, "s", "call").await, Some(ExecutionStatus::Running));
    assert_eq!(b.store.settle(settlement(&call)).await, Ok(SettleOutcome::Recorded));
    let recorded = settlement(&call).envelope;
    assert_eq!(a.store.settle(late).await, Ok(SettleOutcome::AlreadySettled(recorded.clone())));
    assert_eq!(a.store.claim(call).await, Ok(ClaimOutcome::Finished(recorded)));
    assert_eq!(a.store.audit_rows(0, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn settlements_of_one_batch_are_refused_one_by_one() {
    let (database, a, b, _) = two_processes().await;
    let (taken, own) = (idempotent("s", "taken"), claim("s", "own"));
    for call in [&taken, &own] {
        assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    }
    database.expire_lease(a.store.instance()).await;
    assert_eq!(b.store.claim(taken.clone()).await, Ok(ClaimOutcome::New));
    let settle = |call: &Claim| {
        let (store, settlement) = (std::sync::Arc::clone(&a.store), settlement(call));
        async move { store.settle(settlement).await }
    };
    let outcomes = tokio::join!(settle(&taken), settle(&own), settle(&taken));
    assert_eq!(outcomes.0, Ok(SettleOutcome::TakenOver));
    assert_eq!(outcomes.1, Ok(SettleOutcome::Recorded));
    assert_eq!(outcomes.2, Ok(SettleOutcome::TakenOver));
}

#[tokio::test]
async fn a_claim_in_doubt_does_not_run_again() {
    let (database, a, b, lease) = two_processes().await;
    let call = claim("s", "call");
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert!(a.store.holds_lease(lease).await);
    database.expire_lease(a.store.instance()).await;
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::InDoubt));
    // The first process wakes up, and begins a new lease.
    a.store.flush().await.unwrap();
    assert!(!a.store.holds_lease(lease).await);
    assert!(a.store.holds_lease(a.store.lease()).await);
    for store in [&a.store, &b.store] {
        assert_eq!(status(&**store, "s", "call").await, Some(ExecutionStatus::InDoubt));
        assert_eq!(store.claim(call.clone()).await, Ok(ClaimOutcome::InDoubt));
    }
    // It runs new calls. What it knows about the earlier one is better than nothing.
    assert_eq!(a.store.claim(claim("s", "another")).await, Ok(ClaimOutcome::New));
    assert_eq!(b.store.claim(claim("s", "another")).await, Ok(ClaimOutcome::Running));
    assert_eq!(a.store.settle(settlement(&call)).await, Ok(SettleOutcome::Recorded));
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::Finished(settlement(&call).envelope)));
}

#[tokio::test]
async fn an_owner_that_was_found_gone_cannot_renew_its_lease() {
    let (database, a, b, lease) = two_processes().await;
    assert_eq!(a.store.claim(claim("s", "call")).await, Ok(ClaimOutcome::New));
    let client = database.client().await;
    // As long ago as a moment.
    let expire = "UPDATE instance SET lease_until = clock_timestamp() - interval '1 millisecond', lease = '0'
        WHERE id = $1";
    client.execute(expire, &[&a.store.instance()]).await.unwrap();
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::InDoubt));
    // The server restarts: everybody who was alive has the time of one lease again.
    let restart = "UPDATE server SET noticed_at = clock_timestamp() + interval '1 hour'";
    client.execute(restart, &[]).await.unwrap();
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::InDoubt));
    a.store.flush().await.unwrap();
    assert!(!a.store.holds_lease(lease).await);
    assert_eq!(status(&*b.store, "s", "call").await, Some(ExecutionStatus::InDoubt));
}

#[tokio::test]
async fn a_claim_belongs_to_the_lease_that_it_was_made_for() {
    let (database, a, b, lease) = two_processes().await;
    let call = Claim { lease: Some(lease), ..idempotent("s", "call") };
    database.expire_lease(a.store.instance()).await;
    for _ in 0..2 {
        assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::LeaseExpired));
    }
    assert_eq!(b.store.execution("s", "call").await, Ok(None));
    let call = Claim { lease: Some(a.store.lease()), ..call };
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(b.store.claim(Claim { lease: None, ..call }).await, Ok(ClaimOutcome::Running));
}

#[tokio::test]
async fn a_claim_is_taken_back_with_all_that_it_spent() {
    let (database, a, b, _) = two_processes().await;
    let approval = approved(&*a.store, confirmation("q", "s", "call")).await;
    let call = Claim { charges: retrieval_charge(1), ..confirmed(&approval) };
    assert_eq!(a.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    assert_eq!(retrievals(&*a.store).await, 1);
    database.expire_lease(a.store.instance()).await;
    a.store.flush().await.unwrap();
    a.store.take_back(&call).await.unwrap();
    assert_eq!(b.store.execution("s", "call").await, Ok(None));
    assert_eq!(retrievals(&*b.store).await, 0);
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    // Another process has it now.
    a.store.take_back(&call).await.unwrap();
    assert_eq!(status(&*a.store, "s", "call").await, Some(ExecutionStatus::Running));
}

#[tokio::test]
async fn a_task_that_was_adopted_is_changed_by_its_new_owner_only() {
    let (database, a, b, _) = two_processes().await;
    for id in ["taken", "kept"] {
        a.store.create_task(task(id, "s")).await.unwrap();
    }
    database.expire_lease(a.store.instance()).await;
    let adopted = b.store.adopt_tasks(1).await.unwrap();
    assert_eq!(adopted.len(), 1);
    let (taken, kept) = if adopted[0].id == "taken" { ("taken", "kept") } else { ("kept", "taken") };
    // The first process keeps those that nobody has adopted.
    a.store.flush().await.unwrap();
    assert_eq!(b.store.adopt_tasks(10).await, Ok(Vec::new()));
    let end = TaskChange::End { status: TaskStatus::Completed, unrecorded: None };
    let begin = TaskChange::Begin(TaskStatus::Running);
    for change in [begin, TaskChange::Progress { progress: 0.5, message: None }, end.clone()] {
        assert_eq!(a.store.change_task(taken, change, NOW + 1).await, Ok(None));
    }
    assert!(a.store.change_task(kept, end.clone(), NOW + 1).await.unwrap().is_some());
    // Anybody may ask for its end.
    assert!(a.store.change_task(taken, TaskChange::RequestCancel, NOW + 1).await.unwrap().is_some());
    assert!(b.store.change_task(taken, end, NOW + 1).await.unwrap().is_some());
}

/// While servers are replaced one by one, those of the version before still run.
#[tokio::test]
async fn a_server_of_the_version_before_is_fenced_too() {
    let (database, _a, b, _) = two_processes().await;
    let client = database.client().await;
    let call = idempotent("s", "theirs");
    let claimed =
        "SELECT verdict = 'new' FROM claim('s', 'theirs', 'mail_send', '1.2.0', $1, true, NULL::jsonb,
        NULL, 1, 'earlier', 60000, 1, false)";
    assert!(holds(&client, claimed, &[&call.digest.as_slice()]).await);
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::Running));
    database.expire_lease("earlier").await;
    assert_eq!(b.store.claim(call.clone()).await, Ok(ClaimOutcome::New));
    let refused = "SELECT count(*) = 1 AND bool_and(has_session IS NULL AND recorded IS NULL) FROM settle(
        ARRAY['s'], ARRAY['theirs'], ARRAY['{}'], ARRAY[NULL]::text[], 'earlier', 1, ARRAY['p'], ARRAY['h'],
        ARRAY['{}'], ARRAY['{}'], false)";
    assert!(holds(&client, refused, &[]).await);
    assert_eq!(b.store.settle(settlement(&call)).await, Ok(SettleOutcome::Recorded));
    assert!(holds(&client, "SELECT forget_executions(100, 2, 1000) >= 0", &[]).await);
}

#[tokio::test]
async fn a_conversation_goes_on_after_a_pause_if_nobody_has_taken_its_log() {
    let (database, a, b, _) = two_processes().await;
    assert_eq!(a.store.open_log("s", "writer").await, Ok(LogOpening::Opened { end: 0 }));
    database.expire_lease(a.store.instance()).await;
    a.store.flush().await.unwrap();
    let busy = LogOpening::Busy { writer: "writer".to_owned() };
    assert_eq!(b.store.open_log("s", "other").await, Ok(busy));
    let said = || vec![LogEntry { position: 1, body: "said".into() }];
    assert_eq!(a.store.append_log("s", "writer", said(), Durability::Committed).await, Ok(true));
    database.expire_lease(&format!("{}:2", a.store.instance())).await;
    assert_eq!(b.store.open_log("s", "other").await, Ok(LogOpening::Opened { end: 1 }));
    a.store.flush().await.unwrap();
    assert_eq!(a.store.append_log("s", "writer", said(), Durability::Committed).await, Ok(false));
}
