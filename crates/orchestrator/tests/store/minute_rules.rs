//! The counts of each minute: by process, for a day.

use toolwright_orchestrator::store::{Backend, MinuteRecord};

use crate::support::{DAY, NOW, Restart, StoreFixture};

const MINUTE: i64 = 60_000;

fn minute(at: i64, process: &str, content: &str) -> MinuteRecord {
    MinuteRecord { at, process: process.to_owned(), content: content.into() }
}

pub async fn minutes_are_stored_by_process_and_replaced<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    assert_eq!(store.minutes(0).await, Ok(Vec::new()));
    let second = minute(NOW + MINUTE, "b", "{\"later\":1}");
    store.put_minute(second.clone()).await.unwrap();
    store.put_minute(minute(NOW, "b", "{}")).await.unwrap();
    store.put_minute(minute(NOW, "a", "old")).await.unwrap();
    store.put_minute(minute(NOW, "a", "new")).await.unwrap();
    let expected = [minute(NOW, "a", "new"), minute(NOW, "b", "{}"), second];
    assert_eq!(store.minutes(NOW).await.unwrap(), expected);
    assert_eq!(store.minutes(NOW + 1).await.unwrap(), expected[2..]);
}

pub async fn minutes_of_more_than_a_day_ago_are_deleted<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    for at in [NOW - 1, NOW, NOW + DAY] {
        store.put_minute(minute(at, "a", "{}")).await.unwrap();
    }
    assert_eq!(store.minutes(0).await.unwrap(), [minute(NOW, "a", "{}"), minute(NOW + DAY, "a", "{}")]);
}

pub async fn minutes_survive_a_restart<F: Restart>() {
    let fixture = F::fresh().await;
    fixture.store().put_minute(minute(NOW, "a", "{}")).await.unwrap();
    fixture.store().flush().await.unwrap();
    let fixture = fixture.restart().await;
    assert_eq!(fixture.store().minutes(0).await.unwrap(), [minute(NOW, "a", "{}")]);
}
