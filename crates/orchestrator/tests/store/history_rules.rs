//! Pages of the audit and of the sessions: newest first, filtered, and without gaps from one page to the next.

use toolwright_contract::Principal;
use toolwright_orchestrator::store::{
    ANY_ERROR, ApproverRecord, ArgumentEdit, AuditEntry, AuditFilter, AuditPage, AuditQuery, Backend,
    Durability, Error, SessionPage, SessionQuery, SessionRecord,
};

use crate::support::{DAY, NOW, Restart, StoreFixture, claim, entry, session, settlement};

const OUTCOMES: [&str; 4] = ["ok", "ok", "TRANSIENT", "VALIDATION"];

/// Entry `number`, from 1: its fields repeat in different cycles.
fn numbered(number: u64) -> AuditEntry {
    let outcome = OUTCOMES[(number % 4) as usize];
    AuditEntry {
        at: NOW + number as i64 * 1000,
        event: if outcome == "VALIDATION" { "refused" } else { "called" }.to_owned(),
        tool: format!("tool_{}", number % 3),
        outcome: outcome.to_owned(),
        principal: if number.is_multiple_of(5) { "mira" } else { "ada" }.to_owned(),
        org: Some(if number.is_multiple_of(11) { "lab" } else { "studio" }.to_owned()),
        client_id: format!("client {}", number % 9),
        approver: number.is_multiple_of(13).then(|| ApproverRecord {
            id: if number.is_multiple_of(2) { "grace" } else { "größe" }.to_owned(),
            org: None,
            via: "token".to_owned(),
        }),
        edits: if number.is_multiple_of(26) { vec![edit()] } else { Vec::new() },
        ..entry(&format!("s{}", number % 7), &format!("call {number}"))
    }
}

fn edit() -> ArgumentEdit {
    ArgumentEdit { path: "/to".to_owned(), from: Some("ada".into()), to: Some("(hidden)".into()) }
}

async fn with_entries<F: StoreFixture>(count: u64) -> F {
    let fixture = F::fresh().await;
    let store = fixture.store();
    for number in 1..=count {
        store.append_audit(numbered(number)).await.unwrap();
    }
    store.flush().await.unwrap();
    fixture
}

fn page_of(filter: AuditFilter, before: Option<u64>, limit: usize) -> AuditQuery {
    AuditQuery { filter, before, limit }
}

fn ids(page: &AuditPage) -> Vec<String> {
    page.entries.iter().map(|found| found.entry.execution_id.clone()).collect()
}

/// The ids of all pages.
async fn all_ids(store: &impl Backend, filter: &AuditFilter, limit: usize) -> Vec<String> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.audit_page(&page_of(filter.clone(), before, limit)).await.unwrap();
        assert!(page.entries.len() <= limit);
        assert!(page.next.is_none_or(|next| before.is_none_or(|before| next < before)), "{:?}", page.next);
        found.extend(ids(&page));
        match page.next {
            Some(next) => before = Some(next),
            None => return found,
        }
    }
}

/// The ids that a filter should find, newest first.
fn expected(count: u64, filter: &AuditFilter) -> Vec<String> {
    let entries = (1..=count).rev().map(numbered).filter(|entry| filter.matches(entry));
    entries.map(|entry| entry.execution_id).collect()
}

fn filters() -> Vec<AuditFilter> {
    let text = |text: &str| Some(text.to_owned());
    let principal =
        |id: &str| Some(Principal { id: id.to_owned(), org: text("studio"), roles: Vec::new() }.key());
    let none = AuditFilter::default();
    vec![
        none.clone(),
        AuditFilter { calls_only: true, ..none.clone() },
        AuditFilter { event: text("refused"), ..none.clone() },
        AuditFilter { tool: text("tool_1"), ..none.clone() },
        AuditFilter { tool: text("tool_9"), ..none.clone() },
        AuditFilter { outcome: text("TRANSIENT"), ..none.clone() },
        AuditFilter { outcome: text(ANY_ERROR), calls_only: true, ..none.clone() },
        AuditFilter { outcome: text("ok"), tool: text("tool_0"), ..none.clone() },
        AuditFilter { outcome: text("VALIDATION"), tool: text("tool_2"), ..none.clone() },
        AuditFilter { session: text("s3"), ..none.clone() },
        AuditFilter { session: text("s3"), outcome: text(ANY_ERROR), ..none.clone() },
        AuditFilter { principal: principal("mira"), ..none.clone() },
        AuditFilter { principal: principal("mira"), tool: text("tool_1"), ..none.clone() },
        AuditFilter { principal: principal("nobody"), ..none.clone() },
        AuditFilter { from: Some(NOW + 500_000), ..none.clone() },
        AuditFilter { until: Some(NOW + 20_000), ..none.clone() },
        AuditFilter { org: text("lab"), ..none.clone() },
        AuditFilter { client: text("client 4"), ..none.clone() },
        AuditFilter { client: text("client 4"), org: text("lab"), tool: text("tool_0"), ..none.clone() },
        AuditFilter { approver: text("grace"), ..none.clone() },
        AuditFilter { approver: text("größe"), client: text("client 4"), ..none.clone() },
        AuditFilter { approver: text("nobody"), ..none.clone() },
        AuditFilter { edited: true, ..none.clone() },
        AuditFilter { edited: true, tool: text("tool_1"), from: Some(NOW + 100_000), ..none.clone() },
        AuditFilter { from: Some(NOW + 100_000), until: Some(NOW + 130_000), tool: text("tool_1"), ..none },
    ]
}

pub async fn audit_pages_are_newest_first_and_filtered<F: StoreFixture>() {
    const COUNT: u64 = 600;
    let fixture = with_entries::<F>(COUNT).await;
    let store = fixture.store();
    for filter in filters() {
        let expected = expected(COUNT, &filter);
        for limit in [7, 1000] {
            assert_eq!(all_ids(&*store, &filter, limit).await, expected, "{filter:?}");
        }
    }
    let first = store.audit_page(&page_of(AuditFilter::default(), None, 10)).await.unwrap();
    assert_eq!((first.entries[0].number, first.next), (COUNT, Some(COUNT - 9)));
    assert_eq!(first.entries[0].entry, numbered(COUNT));
    let last = store.audit_page(&page_of(AuditFilter::default(), Some(4), 3)).await.unwrap();
    assert_eq!((ids(&last).len(), last.next), (3, None));
    let before_all = store.audit_page(&page_of(AuditFilter::default(), Some(0), 3)).await.unwrap();
    assert_eq!(before_all, AuditPage::default());
}

pub async fn an_execution_is_found_with_its_nested_calls<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let nested = |parent: &str, id: &str| AuditEntry { parent: Some(parent.to_owned()), ..entry("s", id) };
    let entries = [
        nested("a.1", "a.1.1"),
        nested("a", "a.1"),
        nested("a", "a.r1.2"),
        entry("s", "a"),
        entry("s", "ab"),
        entry("other", "a"),
        entry("s", "a\\b\0c"),
        AuditEntry { event: "replayed".to_owned(), ..entry("s", "a") },
    ];
    for entry in entries {
        store.append_audit(entry).await.unwrap();
    }
    store.flush().await.unwrap();
    let find = async |session: &str, execution: &str| {
        let filter = AuditFilter {
            session: Some(session.to_owned()),
            execution: Some(execution.to_owned()),
            ..AuditFilter::default()
        };
        ids(&store.audit_page(&page_of(filter, None, 100)).await.unwrap())
    };
    assert_eq!(find("s", "a").await, ["a", "a", "a.r1.2", "a.1", "a.1.1"]);
    assert_eq!(find("s", "a.1").await, ["a.1", "a.1.1"]);
    assert_eq!(find("other", "a").await, ["a"]);
    assert_eq!(find("s", "a\\b\0c").await, ["a\\b\0c"]);
    assert_eq!(find("s", "b").await, [""; 0]);
}

pub async fn a_settlement_is_in_the_pages_with_its_arguments<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    let call = claim("s", "call");
    store.claim(call.clone()).await.unwrap();
    store.settle(settlement(&call)).await.unwrap();
    let filter = AuditFilter { tool: Some("mail_send".to_owned()), ..AuditFilter::default() };
    let page = store.audit_page(&page_of(filter, None, 10)).await.unwrap();
    assert_eq!((ids(&page), page.next), (vec!["call".to_owned()], None));
    let record = store.execution("s", "call").await.unwrap().unwrap();
    assert_eq!(record.args.as_deref(), Some("{\"to\":\"ada\"}"));
}

pub async fn pages_are_the_same_after_a_restart<F: Restart>() {
    const COUNT: u64 = 600;
    let fixture = with_entries::<F>(COUNT).await.restart().await;
    let store = fixture.store();
    store.append_audit(numbered(COUNT + 1)).await.unwrap();
    store.flush().await.unwrap();
    for filter in filters() {
        assert_eq!(all_ids(&*store, &filter, 50).await, expected(COUNT + 1, &filter), "{filter:?}");
    }
}

fn session_of(id: &str, principal: &str, created_at: i64) -> SessionRecord {
    let principal = Principal { id: principal.to_owned(), ..session(id).principal };
    SessionRecord { principal, created_at, ..session(id) }
}

fn session_ids(page: &SessionPage) -> Vec<&str> {
    page.sessions.iter().map(|session| session.id.as_str()).collect()
}

pub async fn sessions_are_listed_newest_first<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    let all = SessionQuery { principal: None, before: None, limit: 3 };
    assert_eq!(store.session_page(all).await, Ok(SessionPage::default()));
    for (id, principal, at) in [("b", "ada", 2), ("a", "ada", 1), ("d", "mira", 2), ("c", "ada", 2)] {
        store.create_session(session_of(id, principal, NOW + at), Durability::Committed).await.unwrap();
    }
    let refused = store.create_session(session_of("a", "ada", NOW + 9), Durability::Committed).await;
    assert_eq!(refused, Err(Error::Exists("a".to_owned())));
    let page = store.session_page(all).await.unwrap();
    assert_eq!(session_ids(&page), ["d", "c", "b"]);
    let (at, id) = page.next.unwrap();
    let rest = store.session_page(SessionQuery { before: Some((at, &id)), ..all }).await.unwrap();
    assert_eq!((session_ids(&rest), rest.next.clone()), (vec!["a"], None));
    let ada = session("a").principal.key();
    let own = store.session_page(SessionQuery { principal: Some(&ada), ..all }).await.unwrap();
    assert_eq!((session_ids(&own), own.next.clone()), (vec!["c", "b", "a"], None));
    assert_eq!(*own.sessions[2], session_of("a", "ada", NOW + 1));
}

pub async fn a_deleted_session_is_not_listed<F: StoreFixture>() {
    let fixture = F::fresh().await;
    let store = fixture.store();
    store.create_session(session("s"), Durability::Committed).await.unwrap();
    // The first sweep expires it, the second deletes it.
    for _ in 0..2 {
        store.sweep(NOW + 10 * DAY).await.unwrap();
    }
    let all = SessionQuery { principal: None, before: None, limit: 3 };
    assert_eq!(store.session_page(all).await, Ok(SessionPage::default()));
}
