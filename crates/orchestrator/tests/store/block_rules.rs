//! Rules about blocks.

use toolwright_contract::Principal;
use toolwright_orchestrator::store::{Backend, BlockRecord, Durability, SessionRecord};

use crate::support::{NOW, Restart, StoreFixture, session};

fn principal(id: &str, org: Option<&str>) -> Principal {
    Principal { id: id.to_owned(), org: org.map(str::to_owned), roles: vec!["clerk".to_owned()] }
}

pub async fn a_client_is_blocked_until_the_latest_time<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let ada = principal("ada", Some("analytics"));
    assert_eq!(store.blocked_until(&ada, "phone").await, Ok(None));
    for (until, expected) in [(NOW + 10, NOW + 10), (NOW + 30, NOW + 30), (NOW + 20, NOW + 30)] {
        store.block(BlockRecord::new(&ada, "phone", until)).await.unwrap();
        assert_eq!(store.blocked_until(&ada, "phone").await, Ok(Some(expected)));
    }
    // Roles do not matter.
    let promoted = Principal { roles: vec!["admin".to_owned()], ..ada };
    assert_eq!(store.blocked_until(&promoted, "phone").await, Ok(Some(NOW + 30)));
}

pub async fn a_block_is_of_one_client_of_one_principal<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let clients = [
        ("ada", Some("analytics"), "phone"),
        ("ada", Some("analytics"), "desktop"),
        ("ada", Some("research"), "phone"),
        ("ada", None, "phone"),
        ("adaphone", Some("analytics"), ""),
        ("größe", Some("a\0b"), "\0"),
        ("größe", Some(r"a\0b"), "\0"),
        ("", None, ""),
    ];
    for (until, (id, org, client)) in (NOW..).zip(clients) {
        assert_eq!(store.blocked_until(&principal(id, org), client).await, Ok(None), "{id} {org:?} {client}");
        store.block(BlockRecord::new(&principal(id, org), client, until)).await.unwrap();
    }
    for (until, (id, org, client)) in (NOW..).zip(clients) {
        assert_eq!(store.blocked_until(&principal(id, org), client).await, Ok(Some(until)));
    }
}

pub async fn a_block_can_be_removed<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let ada = principal("ada", None);
    assert_eq!(store.unblock(&ada, "phone", NOW).await, Ok(false));
    store.block(BlockRecord::new(&ada, "phone", NOW + 1)).await.unwrap();
    assert_eq!(store.unblock(&ada, "phone", NOW).await, Ok(true));
    assert_eq!(store.blocked_until(&ada, "phone").await, Ok(None));
    assert_eq!(store.unblock(&ada, "phone", NOW).await, Ok(false));
    // One that is over is removed too, but did not block.
    store.block(BlockRecord::new(&ada, "phone", NOW)).await.unwrap();
    assert_eq!(store.unblock(&ada, "phone", NOW).await, Ok(false));
}

pub async fn a_sweep_deletes_blocks_that_are_over<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let ada = principal("ada", None);
    store.block(BlockRecord::new(&ada, "phone", NOW)).await.unwrap();
    store.block(BlockRecord::new(&ada, "desktop", NOW + 1)).await.unwrap();
    store.sweep(NOW).await.unwrap();
    assert_eq!(store.blocked_until(&ada, "phone").await, Ok(None));
    assert_eq!(store.blocked_until(&ada, "desktop").await, Ok(Some(NOW + 1)));
}

/// Blocks were once stored as sessions whose ids a client could compute.
pub async fn no_session_id_collides_with_a_block<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let ada = principal("ada", Some("analytics"));
    let named = SessionRecord { principal: ada.clone(), ..session("block_09analytics03ada06client") };
    store.create_session(named.clone(), Durability::Committed).await.unwrap();
    assert_eq!(store.blocked_until(&ada, "client").await, Ok(None));
    store.block(BlockRecord::new(&ada, "client", NOW + 1)).await.unwrap();
    assert_eq!(*store.session(&named.id).await.unwrap().unwrap(), named);
    store.unblock(&ada, "client", NOW).await.unwrap();
    assert_eq!(*store.session(&named.id).await.unwrap().unwrap(), named);
}

pub async fn blocks_survive_a_restart<F: Restart>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let ada = principal("ada", Some("a\0b"));
    for client in ["phone", "desktop"] {
        store.block(BlockRecord::new(&ada, client, NOW + 1)).await.unwrap();
    }
    store.block(BlockRecord::new(&ada, "phone", NOW + 2)).await.unwrap();
    store.unblock(&ada, "desktop", NOW).await.unwrap();
    drop(store);
    let fixture = fixture.restart().await;
    let store = fixture.store();
    assert_eq!(store.blocked_until(&ada, "phone").await, Ok(Some(NOW + 2)));
    assert_eq!(store.blocked_until(&ada, "desktop").await, Ok(None));
}
