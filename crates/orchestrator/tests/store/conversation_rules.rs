//! Rules about conversation logs.

use toolwright_orchestrator::store::{Backend, ConversationLog, Durability, Error, LogEntry, LogOpening};

use crate::support::{DAY, HOUR, NOW, Restart, StoreFixture, session};

fn entry(position: u64, body: &str) -> LogEntry {
    LogEntry { position, body: body.into() }
}

fn opened(end: u64) -> Result<LogOpening, Error> {
    Ok(LogOpening::Opened { end })
}

pub async fn entries_are_read_in_order_from_any_position<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    for id in ["s", "t\0\\"] {
        store.create_session(session(id), Durability::Committed).await.unwrap();
        assert_eq!(store.log_entries(id, 0, 10).await, Ok(vec![]));
        assert_eq!(store.open_log(id, "w").await, opened(0));
        let first = vec![entry(1, r#"{"a":"größe \u0000"}"#), entry(7, "b")];
        assert_eq!(store.append_log(id, "w", first.clone(), Durability::Relaxed).await, Ok(true));
        let second = vec![entry(8, "c")];
        assert_eq!(store.append_log(id, "w", second.clone(), Durability::Committed).await, Ok(true));
        assert_eq!(store.log_entries(id, 0, 2).await, Ok(first));
        assert_eq!(store.log_entries(id, 7, 10).await, Ok(second));
        assert_eq!(store.log_entries(id, 3, 1).await, Ok(vec![entry(7, "b")]));
        assert_eq!(store.log_entries(id, 8, 10).await, Ok(vec![]));
        store.close_log(id, "w").await.unwrap();
        assert_eq!(store.open_log(id, "x").await, opened(8));
    }
}

pub async fn the_last_entries_of_all_logs_are_read_in_pages<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    assert_eq!(store.last_log_entries("", 10).await, Ok(vec![]));
    let ids = ["a", "b", "empty", "s\0", "s\\", "t"];
    for (number, id) in ids.iter().enumerate() {
        store.create_session(session(id), Durability::Committed).await.unwrap();
        store.open_log(id, "w").await.unwrap();
        let last = 3 + number as u64;
        let entries = vec![entry(2, "first"), entry(last, "last")];
        let entries = if *id == "empty" { vec![] } else { entries };
        assert_eq!(store.append_log(id, "w", entries, Durability::Relaxed).await, Ok(true));
    }
    for page in [1, 2, 100] {
        let (mut read, mut after) = (Vec::new(), String::new());
        loop {
            let entries = store.last_log_entries(&after, page).await.unwrap();
            let Some((last, _)) = entries.last() else { break };
            assert!(entries.len() <= page);
            after.clone_from(last);
            read.extend(entries);
        }
        read.sort_by_key(|(_, entry)| entry.position);
        let expected = ids.iter().enumerate().filter(|(_, id)| **id != "empty");
        let expected: Vec<_> =
            expected.map(|(number, id)| ((*id).to_owned(), entry(3 + number as u64, "last"))).collect();
        assert_eq!(read, expected, "in pages of {page}");
    }
}

pub async fn a_log_has_one_writer<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    assert_eq!(store.open_log("s", "a").await, Err(Error::NoSession("s".to_owned())));
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    assert_eq!(store.log_writer("s").await, Ok(None));
    assert_eq!(store.open_log("s", "a").await, opened(0));
    assert_eq!(store.log_writer("s").await, Ok(Some("a".to_owned())));
    assert_eq!(store.open_log("s", "b").await, Ok(LogOpening::Busy { writer: "a".to_owned() }));
    let append = |writer: &'static str, position| {
        let (store, entries) = (&store, vec![entry(position, writer)]);
        async move { store.append_log("s", writer, entries, Durability::Committed).await }
    };
    assert_eq!(append("b", 1).await, Ok(false));
    assert_eq!(append("a", 1).await, Ok(true));
    // The writer itself may open it again.
    assert_eq!(store.open_log("s", "a").await, opened(1));
    store.close_log("s", "b").await.unwrap();
    assert_eq!(store.log_writer("s").await, Ok(Some("a".to_owned())));
    store.close_log("s", "a").await.unwrap();
    assert_eq!(append("a", 2).await, Ok(false));
    assert_eq!(store.open_log("s", "b").await, opened(1));
    assert_eq!(append("b", 2).await, Ok(true));
    assert_eq!(store.log_entries("s", 0, 9).await, Ok(vec![entry(1, "a"), entry(2, "b")]));
}

pub async fn a_log_that_was_taken_refuses_the_writer_before<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    assert_eq!(store.take_log("s", "a").await, Err(Error::NoSession("s".to_owned())));
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    store.open_log("s", "a").await.unwrap();
    store.append_log("s", "a", vec![entry(3, "a")], Durability::Relaxed).await.unwrap();
    assert_eq!(store.take_log("s", "b").await, Ok(3));
    assert_eq!(store.append_log("s", "a", vec![entry(4, "late")], Durability::Relaxed).await, Ok(false));
    assert_eq!(store.append_log("s", "b", vec![entry(4, "b")], Durability::Relaxed).await, Ok(true));
    store.close_log("s", "a").await.unwrap();
    assert_eq!(store.log_writer("s").await, Ok(Some("b".to_owned())));
    assert_eq!(store.log_entries("s", 0, 9).await, Ok(vec![entry(3, "a"), entry(4, "b")]));
}

pub async fn one_of_many_writers_opens_a_log<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|number| {
            let store = fixture.store();
            tokio::spawn(async move { store.open_log("s", &format!("w{number}")).await.unwrap() })
        })
        .collect();
    let mut opened = 0;
    for task in tasks {
        opened += usize::from(matches!(task.await.unwrap(), LogOpening::Opened { .. }));
    }
    assert_eq!(opened, 1);
}

pub async fn a_log_is_deleted_with_its_session<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    store.open_log("s", "w").await.unwrap();
    store.append_log("s", "w", vec![entry(1, "a")], Durability::Committed).await.unwrap();
    store.close_log("s", "w").await.unwrap();
    store.sweep(NOW + HOUR).await.unwrap();
    assert_eq!(store.log_entries("s", 0, 9).await.unwrap().len(), 1);
    store.sweep(NOW + HOUR + DAY).await.unwrap();
    assert_eq!(store.session("s").await, Ok(None));
    assert_eq!(store.log_entries("s", 0, 9).await, Ok(vec![]));
}

pub async fn committed_entries_survive_and_their_writer_does_not<F: Restart>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    store.open_log("s", "w").await.unwrap();
    store.append_log("s", "w", vec![entry(1, "a"), entry(5, "b")], Durability::Committed).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.log_writer("s").await, Ok(None));
    assert_eq!(store.open_log("s", "x").await, opened(5));
    let late = store.append_log("s", "w", vec![entry(6, "late")], Durability::Committed).await;
    assert_eq!(late, Ok(false));
    assert_eq!(store.log_entries("s", 0, 9).await, Ok(vec![entry(1, "a"), entry(5, "b")]));
}

pub async fn a_relaxed_session_survives_with_its_first_committed_entry<F: Restart>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Relaxed).await.unwrap();
    store.begin_turn("s").await.unwrap();
    store.open_log("s", "w").await.unwrap();
    store.append_log("s", "w", vec![entry(1, "a")], Durability::Committed).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.session("s").await.unwrap().unwrap().turn, 1);
    assert_eq!(store.log_entries("s", 0, 9).await, Ok(vec![entry(1, "a")]));
}
