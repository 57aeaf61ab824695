//! Rules about the audit.

use serde_json::json;
use toolwright_orchestrator::store::chain::{ChainError, Verifier};
use toolwright_orchestrator::store::{AuditEntry, AuditRow, Backend, Settlement};

use crate::support::{StoreFixture, claim, entry, envelope, run, settlement, with_session};

/// All rows, verified.
pub async fn verified(store: &impl Backend) -> Vec<AuditRow> {
    store.flush().await.unwrap();
    let rows = store.audit_rows(0, usize::MAX).await.unwrap();
    let mut verifier = Verifier::default();
    for row in &rows {
        verifier.check(row).unwrap();
    }
    rows
}

pub fn entries(rows: &[AuditRow]) -> Vec<AuditEntry> {
    rows.iter().map(|row| serde_json::from_str(&row.entry).unwrap()).collect()
}

pub async fn rows_are_chained_in_the_order_they_were_written<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let mut expected = Vec::new();
    for number in 0..20 {
        let execution = format!("call {number}");
        if number % 2 == 0 {
            run(&*store, claim("s", &execution)).await;
        } else {
            store.append_audit(entry("s", &execution)).await.unwrap();
        }
        expected.push(entry("s", &execution));
    }
    let rows = verified(&*store).await;
    assert_eq!(entries(&rows), expected);
    assert!(rows.windows(2).all(|pair| pair[0].number < pair[1].number));
    assert_eq!(rows.iter().map(|row| row.position).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());

    let verdict = |rows: &[AuditRow]| {
        let mut verifier = Verifier::default();
        rows.iter().try_for_each(|row| verifier.check(row))
    };
    let mut changed = rows.clone();
    changed[3].entry = changed[3].entry.replace("mail_send", "mail_read");
    assert_eq!(verdict(&changed), Err(ChainError::Edited { number: rows[3].number }));
    let mut gap = rows.clone();
    gap.remove(5);
    assert_eq!(verdict(&gap), Err(ChainError::Gap { number: rows[6].number }));
    let mut swapped = rows.clone();
    swapped.swap(7, 8);
    assert_eq!(verdict(&swapped), Err(ChainError::Gap { number: rows[8].number }));
}

pub async fn rows_are_read_in_pages<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    for number in 0..7 {
        store.append_audit(entry("s", &format!("call {number}"))).await.unwrap();
    }
    let all = verified(&*store).await;
    assert_eq!(all.len(), 7);
    let mut paged: Vec<AuditRow> = Vec::new();
    loop {
        let after = paged.last().map_or(0, |row| row.number);
        let page = store.audit_rows(after, 3).await.unwrap();
        assert!(page.len() <= 3);
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    assert!(store.audit_rows(u64::MAX, 3).await.unwrap().is_empty());
    assert!(store.audit_rows(0, 0).await.unwrap().is_empty());
}

pub async fn a_settlement_writes_one_audit_row<F: StoreFixture>() {
    let (_fixture, store) = with_session::<F>().await;
    let call = claim("s", "call");
    run(&*store, call.clone()).await;
    let late = Settlement { envelope: envelope("call", json!("late")), ..settlement(&call) };
    store.settle(late).await.unwrap();
    store.settle(settlement(&claim("s", "never claimed"))).await.unwrap();
    assert_eq!(entries(&verified(&*store).await), [entry("s", "call")]);
}
