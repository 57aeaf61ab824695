//! Tasks: stored before their call is answered, ended once, and adopted when their process is gone.

use std::sync::Arc;

use serde_json::json;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{
    Backend, Durability, TaskChange, TaskQuery, TaskRecord, TaskScope, TaskStatus,
};

use crate::support::{DAY, HOUR, NOW, Restart, StoreFixture, envelope, session, with_session};

pub fn task(id: &str, session: &str) -> TaskRecord {
    TaskRecord {
        id: id.to_owned(),
        session: session.to_owned(),
        call: "call".to_owned(),
        principal: crate::support::session(session).principal,
        tool: "mail_send".to_owned(),
        tool_version: "1.2.0".to_owned(),
        args: json!({"to": "größe", "copies": 1.5}),
        redacted_args: None,
        status: TaskStatus::Queued,
        progress: None,
        message: None,
        is_cancel_requested: false,
        unrecorded: None,
        created_at: NOW,
        updated_at: NOW,
        ended_at: None,
        revision: 0,
    }
}

const fn end(status: TaskStatus) -> TaskChange {
    TaskChange::End { status, unrecorded: None }
}

async fn ids(store: &impl Backend, query: TaskQuery<'_>) -> Vec<String> {
    store.task_page(query).await.unwrap().iter().map(|task| task.id.clone()).collect()
}

const ALL: TaskQuery<'static> = TaskQuery { scope: TaskScope::All, before: None, limit: 100 };

pub async fn a_task_is_stored_unchanged<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    assert_eq!(store.task("t").await, Ok(None));
    let created = store.create_task(task("t", "s")).await.unwrap();
    assert_eq!(*created, task("t", "s"));
    assert_eq!(store.task("t").await, Ok(Some(created)));
}

pub async fn an_existing_task_stays_as_it_is<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let first = store.create_task(task("t", "s")).await.unwrap();
    let again = TaskRecord { created_at: NOW + 5, args: json!({}), ..task("t", "s") };
    assert_eq!(store.create_task(again).await, Ok(first.clone()));
    assert_eq!(store.task_page(ALL).await, Ok(vec![first]));
}

pub async fn a_task_changes_until_it_ends<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_task(task("t", "s")).await.unwrap();
    let report = TaskChange::Progress { progress: 0.25, message: Some("half of a half".to_owned()) };
    store.change_task("t", TaskChange::Begin(TaskStatus::Running), NOW + 1).await.unwrap();
    store.change_task("t", report.clone(), NOW + 2).await.unwrap();
    store.change_task("t", TaskChange::RequestCancel, NOW + 3).await.unwrap();
    let unrecorded = Some(envelope("t", json!({"sent": 1})));
    let last = TaskChange::End { status: TaskStatus::Cancelled, unrecorded: unrecorded.clone() };
    let ended = store.change_task("t", last, NOW + 4).await.unwrap().unwrap();
    let expected = TaskRecord {
        status: TaskStatus::Cancelled,
        progress: Some(0.25),
        message: Some("half of a half".to_owned()),
        is_cancel_requested: true,
        unrecorded,
        updated_at: NOW + 4,
        ended_at: Some(NOW + 4),
        revision: 4,
        ..task("t", "s")
    };
    assert_eq!(*ended, expected);
    for change in [report, TaskChange::RequestCancel, end(TaskStatus::Completed)] {
        assert_eq!(store.change_task("t", change, NOW + 5).await, Ok(None));
    }
    assert_eq!(store.change_task("unknown", TaskChange::RequestCancel, NOW).await, Ok(None));
    assert_eq!(store.task("t").await, Ok(Some(ended)));
}

pub async fn an_ended_task_stores_no_secrets<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let secret = TaskRecord { redacted_args: Some(json!({"to": "ada"})), ..task("t", "s") };
    store.create_task(secret).await.unwrap();
    store.change_task("t", end(TaskStatus::Failed), NOW + 1).await.unwrap();
    let stored = store.task("t").await.unwrap().unwrap();
    assert_eq!((&stored.args, &stored.redacted_args), (&json!({"to": "ada"}), &None));
}

pub async fn tasks_are_listed_newest_first_in_pages<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_session(session("other"), Durability::Committed).await.unwrap();
    let bob = Principal { id: "bob".to_owned(), org: None, roles: Vec::new() };
    for (id, of, at) in [("a", "s", 1), ("b", "s", 2), ("c", "s", 2), ("d", "other", 3)] {
        let principal = if id == "c" { bob.clone() } else { task(id, of).principal };
        store.create_task(TaskRecord { created_at: NOW + at, principal, ..task(id, of) }).await.unwrap();
    }
    let of = |scope| TaskQuery { scope, ..ALL };
    assert_eq!(ids(&*store, ALL).await, ["d", "c", "b", "a"]);
    assert_eq!(ids(&*store, of(TaskScope::Session("s"))).await, ["c", "b", "a"]);
    assert_eq!(ids(&*store, of(TaskScope::Principal(&bob.key()))).await, ["c"]);
    let page = TaskQuery { before: Some((NOW + 2, "c")), limit: 1, ..ALL };
    assert_eq!(ids(&*store, page).await, ["b"]);
    assert_eq!(ids(&*store, TaskQuery { limit: 2, ..ALL }).await, ["d", "c"]);
}

pub async fn a_task_of_a_living_process_is_not_adopted<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_task(task("t", "s")).await.unwrap();
    assert_eq!(store.adopt_tasks(10).await, Ok(Vec::new()));
}

pub async fn one_of_many_ends_counts<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_task(task("t", "s")).await.unwrap();
    let ends = (0..16).map(|number| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let change = match number % 3 {
                0 => end(TaskStatus::Completed),
                1 => end(TaskStatus::Failed),
                _ => TaskChange::Progress { progress: 0.5, message: None },
            };
            let changed = store.change_task("t", change, NOW + number).await.unwrap();
            changed.filter(|task| task.has_ended())
        })
    });
    let mut counted = Vec::new();
    for ended in ends.collect::<Vec<_>>() {
        counted.extend(ended.await.unwrap());
    }
    assert_eq!(counted.len(), 1);
    assert_eq!(store.task("t").await.unwrap(), counted.pop());
}

pub async fn an_ended_task_is_deleted_after_a_day<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let long = toolwright_orchestrator::store::SessionRecord { expires_at: NOW + 9 * DAY, ..session("s") };
    store.create_session(long, Durability::Committed).await.unwrap();
    for id in ["ended", "open"] {
        store.create_task(task(id, "s")).await.unwrap();
    }
    store.change_task("ended", end(TaskStatus::Completed), NOW + HOUR).await.unwrap();
    store.sweep(NOW + HOUR + DAY - 1).await.unwrap();
    assert_eq!(ids(&*store, ALL).await.len(), 2);
    store.sweep(NOW + HOUR + DAY).await.unwrap();
    assert_eq!(ids(&*store, ALL).await, ["open"]);
}

pub async fn a_task_is_deleted_with_its_session<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    store.create_task(task("t", "s")).await.unwrap();
    for _ in 0..2 {
        store.sweep(NOW + 3 * DAY).await.unwrap();
    }
    assert_eq!(store.session("s").await, Ok(None));
    assert_eq!(store.task("t").await, Ok(None));
}

pub async fn tasks_survive_and_are_adopted_once<F: Restart>() {
    let (fixture, store) = with_session::<F>().await;
    for (id, at) in [("second", 2), ("first", 1), ("third", 3), ("ended", 0)] {
        store.create_task(TaskRecord { created_at: NOW + at, ..task(id, "s") }).await.unwrap();
    }
    let ended = store.change_task("ended", end(TaskStatus::Completed), NOW + 9).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.task("ended").await, Ok(ended));
    let adopted = |tasks: Vec<Arc<TaskRecord>>| tasks.iter().map(|task| task.id.clone()).collect::<Vec<_>>();
    assert_eq!(adopted(store.adopt_tasks(2).await.unwrap()), ["first", "second"]);
    assert_eq!(adopted(store.adopt_tasks(2).await.unwrap()), ["third"]);
    assert_eq!(store.adopt_tasks(2).await, Ok(Vec::new()));
    let cancelled = store.change_task("first", end(TaskStatus::Cancelled), NOW + 9).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(adopted(store.adopt_tasks(10).await.unwrap()), ["second", "third"]);
    assert_eq!(store.task("first").await, Ok(cancelled));
}
