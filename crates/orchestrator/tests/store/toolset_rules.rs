//! Stored toolsets: written once, found again, and deleted when no session has them.

use toolwright_orchestrator::store::{
    Backend, Durability, SessionRecord, SessionStatus, ToolsetInfo, ToolsetRecord,
};

use crate::support::{DAY, HOUR, NOW, Restart, StoreFixture, session};

fn toolset(id: &str, used_at: i64, content: &[u8]) -> ToolsetRecord {
    let info =
        ToolsetInfo { id: id.to_owned(), created_at: NOW, used_at, tools: 3, bytes: content.len() as u64 };
    ToolsetRecord { info, content: content.into() }
}

async fn ids(store: &impl Backend) -> Vec<(String, u64)> {
    store.toolsets().await.unwrap().into_iter().map(|(info, sessions)| (info.id, sessions)).collect()
}

pub async fn a_toolset_is_stored_unchanged<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let stored = toolset("1.0.0+ab", NOW, &content);
    assert_eq!(store.toolset("1.0.0+ab").await, Ok(None));
    assert_eq!(store.touch_toolset("1.0.0+ab", NOW).await, Ok(false));
    store.put_toolset(stored.clone()).await.unwrap();
    assert_eq!(store.toolset("1.0.0+ab").await, Ok(Some(stored)));
    assert_eq!(store.toolset("1.0.0").await, Ok(None));
}

pub async fn a_toolset_is_written_once_and_its_use_is_recorded<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let first = toolset("1.0.0+ab", NOW, b"first");
    store.put_toolset(first.clone()).await.unwrap();
    store.put_toolset(toolset("1.0.0+ab", NOW + 5, b"second")).await.unwrap();
    let expected =
        |used_at| ToolsetRecord { info: ToolsetInfo { used_at, ..first.info.clone() }, ..first.clone() };
    assert_eq!(store.toolset("1.0.0+ab").await, Ok(Some(expected(NOW + 5))));
    assert_eq!(store.touch_toolset("1.0.0+ab", NOW + 9).await, Ok(true));
    assert_eq!(store.touch_toolset("1.0.0+ab", NOW + 7).await, Ok(true));
    assert_eq!(store.toolset("1.0.0+ab").await, Ok(Some(expected(NOW + 9))));
}

pub async fn unused_toolsets_are_deleted_and_others_are_not<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    for (id, used_at) in [("1.0.0+in_use", NOW), ("1.0.0+ended", NOW), ("1.0.0+recent", NOW + HOUR)] {
        store.put_toolset(toolset(id, used_at, b"content")).await.unwrap();
    }
    let with = |id: &str, toolset: &str| SessionRecord { toolset: toolset.to_owned(), ..session(id) };
    for (id, toolset) in [("a", "1.0.0+in_use"), ("b", "1.0.0+in_use"), ("c", "1.0.0+ended")] {
        store.create_session(with(id, toolset), Durability::Committed).await.unwrap();
    }
    let ended = SessionRecord { status: SessionStatus::Ended, ..with("c", "1.0.0+ended") };
    assert_eq!(store.update_session(&ended).await, Ok(true));
    let listed = [("1.0.0+recent", 0), ("1.0.0+ended", 0), ("1.0.0+in_use", 2)];
    let mut found = ids(&*store).await;
    found.sort();
    let mut expected = listed.map(|(id, sessions)| (id.to_owned(), sessions)).to_vec();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(store.toolsets().await.unwrap()[0].0.id, "1.0.0+recent");
    assert_eq!(store.delete_unused_toolsets(NOW).await, Ok(vec!["1.0.0+ended".to_owned()]));
    assert_eq!(store.delete_unused_toolsets(NOW).await, Ok(Vec::new()));
    assert_eq!(store.toolset("1.0.0+ended").await, Ok(None));
    assert!(store.toolset("1.0.0+in_use").await.unwrap().is_some());
}

pub async fn a_sweep_deletes_toolsets_a_day_after_their_last_use<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.put_toolset(toolset("1.0.0+ab", NOW, b"content")).await.unwrap();
    store.put_toolset(toolset("1.0.0+cd", NOW, b"content")).await.unwrap();
    let lasting = SessionRecord { toolset: "1.0.0+cd".to_owned(), expires_at: NOW + 9 * DAY, ..session("s") };
    store.create_session(lasting, Durability::Committed).await.unwrap();
    store.sweep(NOW + DAY - 1).await.unwrap();
    assert_eq!(ids(&*store).await.len(), 2);
    store.sweep(NOW + DAY).await.unwrap();
    assert_eq!(ids(&*store).await, [("1.0.0+cd".to_owned(), 1)]);
}

pub async fn toolsets_survive_a_restart<F: Restart>() {
    let fixture = F::fresh().await;
    let stored = toolset("1.0.0+ab", NOW, b"content");
    fixture.store().put_toolset(stored.clone()).await.unwrap();
    fixture.store().put_toolset(toolset("1.0.0+cd", NOW - 1, b"other")).await.unwrap();
    assert_eq!(fixture.store().delete_unused_toolsets(NOW - 1).await, Ok(vec!["1.0.0+cd".to_owned()]));
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().toolset("1.0.0+ab").await, Ok(Some(stored.clone())));
    assert_eq!(fixture.store().toolsets().await, Ok(vec![(stored.info, 0)]));
}
