//! The register of the audit's chains: the deletion of a chain is detected.

use tokio_postgres::Client;
use toolwright_orchestrator::store::chain::{ChainError, Head, REGISTER, Verifier};
use toolwright_orchestrator::store::{Backend, Durability, Postgres};

use crate::postgres_store::{Database, Process};
use crate::support::{entry, session};

/// Verifies the audit as `toolwright audit verify` does, and returns the heads.
async fn verify(database: &Database, saved: Vec<Head>) -> Result<Vec<Head>, ChainError> {
    let reader = Postgres::read_only(&database.url, database.options()).await.unwrap();
    let mut verifier = Verifier::new(Some(&reader.register().await.unwrap()), saved)?;
    for row in reader.audit_rows(0, usize::MAX).await.unwrap() {
        verifier.check(&row)?;
    }
    verifier.finish()?;
    Ok(verifier.heads().collect())
}

/// Three processes that have each written two entries.
async fn three_chains() -> (Database, Vec<Process>, Client) {
    let database = Database::new();
    let mut processes = Vec::new();
    for _ in 0..3 {
        let process = database.open().await;
        for number in 0..2 {
            process.store.append_audit(entry("s", &number.to_string())).await.unwrap();
        }
        processes.push(process);
    }
    let client = database.client().await;
    (database, processes, client)
}

async fn delete_chain(client: &Client, chain: &str) {
    assert_eq!(client.execute("DELETE FROM audit WHERE chain = $1", &[&chain]).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_chain_is_registered_and_a_deleted_one_is_detected() {
    let (database, processes, client) = three_chains().await;
    let heads = verify(&database, Vec::new()).await.unwrap();
    assert_eq!(heads.len(), 4);
    let register = heads.iter().find(|head| head.chain == REGISTER).unwrap();
    assert_eq!(register.position, 3);
    let [second, third] = [1, 2].map(|place: usize| processes[place].store.instance().to_owned());
    delete_chain(&client, &second).await;
    let missing = Err(ChainError::MissingChain { chain: second.clone() });
    assert_eq!(verify(&database, Vec::new()).await, missing);
    // Its registration cannot be deleted without a trace either, unless it is the last.
    client.execute("DELETE FROM audit_chain WHERE chain = $1", &[&second]).await.unwrap();
    assert_eq!(verify(&database, Vec::new()).await, Err(ChainError::Register { position: 3 }));
    client.execute("DELETE FROM audit_chain WHERE position = 3", &[]).await.unwrap();
    assert_eq!(verify(&database, Vec::new()).await, Err(ChainError::Unregistered { chain: third }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn saved_heads_show_a_deleted_end_and_a_deleted_last_chain() {
    let (database, processes, client) = three_chains().await;
    let saved = verify(&database, Vec::new()).await.unwrap();
    processes[0].store.append_audit(entry("s", "later")).await.unwrap();
    verify(&database, saved.clone()).await.unwrap();

    let (second, last) = (processes[1].store.instance(), processes[2].store.instance());
    client.execute("DELETE FROM audit WHERE chain = $1 AND position = 2", &[&second]).await.unwrap();
    verify(&database, Vec::new()).await.unwrap();
    let truncated = ChainError::HeadMismatch { chain: second.to_owned(), position: 2 };
    assert_eq!(verify(&database, saved.clone()).await, Err(truncated));

    let saved: Vec<Head> = saved.into_iter().filter(|head| head.chain != second).collect();
    delete_chain(&client, last).await;
    client.execute("DELETE FROM audit_chain WHERE chain = $1", &[&last]).await.unwrap();
    verify(&database, Vec::new()).await.unwrap();
    assert!(matches!(verify(&database, saved).await, Err(ChainError::HeadMismatch { .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chains_that_begin_at_the_same_time_are_all_registered() {
    let database = Database::new();
    let mut processes = Vec::new();
    for _ in 0..8 {
        processes.push(database.open().await);
    }
    let writes = processes.iter().map(|process| {
        let store = std::sync::Arc::clone(&process.store);
        tokio::spawn(async move { store.append_audit(entry("s", "first")).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap().unwrap();
    }
    assert_eq!(verify(&database, Vec::new()).await.unwrap().len(), 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_wrote_nothing_has_no_chain() {
    let database = Database::new();
    let process = database.open().await;
    process.store.create_session(session("s"), Durability::Committed).await.unwrap();
    assert_eq!(verify(&database, Vec::new()).await, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chains_of_an_older_version_are_registered_by_the_migration() {
    let (database, _processes, client) = three_chains().await;
    let heads = verify(&database, Vec::new()).await.unwrap();
    let version_3 = "DROP TABLE audit_chain, toolset, minute; DELETE FROM migration WHERE version > 3";
    client.batch_execute(version_3).await.unwrap();
    let _later = database.open().await;
    assert_eq!(verify(&database, Vec::new()).await.unwrap(), heads);
}
