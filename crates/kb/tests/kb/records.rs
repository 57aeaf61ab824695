//! Conformance: records, sources, commits and rebuilds.

use toolwright_kb::record::{Record, RecordKey, Source};
use toolwright_kb::store::{Error, Filter};

use crate::support::{StoreFixture, ids, put, put_vectors, record, search, vector};

pub fn a_commit_stores_whole_records_and_nothing_is_visible_before<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let mut full = record("person:mira", "Mira Okafor", "Leads lighting.");
    full.tags = vec!["Lighting".to_owned(), "two words".to_owned()];
    full.source_type = Some("crm".to_owned());
    full.last_updated = Some("2026-01-10T15:30:00+02:00".to_owned());
    full.url = Some("https://studio.example/mira".to_owned());
    full.metadata.insert("nested".to_owned(), serde_json::json!({ "a": [1, 2.5, null, "ü"] }));
    full.sources = vec![Source { kind: "file".to_owned(), name: Some("crm.csv".to_owned()), url: None }];
    let mut writer = store.begin_write().unwrap();
    writer.put(&full, "people.jsonl").unwrap();
    assert_eq!(store.fetch(&[full.key()]).unwrap(), []);
    drop(writer);
    assert_eq!(store.fetch(&[full.key()]).unwrap(), [], "a dropped writer must discard its changes");
    put(&store, std::slice::from_ref(&full));
    assert_eq!(store.fetch(&[RecordKey::from_id("doc:none"), full.key()]).unwrap(), [full]);
}

pub fn a_put_replaces_and_a_removal_removes<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    put(&store, &[record("doc:a", "Old", "walrus"), record("doc:b", "Other", "walrus")]);
    let mut writer = store.begin_write().unwrap();
    writer.put(&record("doc:a", "First", "narwhal"), "test.jsonl").unwrap();
    writer.put(&record("doc:a", "New", "narwhal"), "test.jsonl").unwrap();
    writer.remove(RecordKey::from_id("doc:b")).unwrap();
    writer.remove(RecordKey::from_id("doc:never")).unwrap();
    writer.commit().unwrap();
    let now = [record("doc:a", "New", "narwhal")];
    assert_eq!(store.fetch(&[RecordKey::from_id("doc:a"), RecordKey::from_id("doc:b")]).unwrap(), now);
    assert!(search(&store, "walrus", None, &Filter::default(), 10).keyword.is_empty());
    assert_eq!(ids(&search(&store, "narwhal", None, &Filter::default(), 10).keyword, &now), ["doc:a"]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.records, stats.passages, stats.with_vector), (1, 1, 0));
    assert_eq!(stats.by_type.get("doc"), Some(&1));
    assert_eq!(stats.by_namespace.get("studio"), Some(&1));
}

pub fn source_digests_are_set_and_removed<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let records = [record("doc:a", "A", "x"), record("doc:b", "B", "x")];
    let mut writer = store.begin_write().unwrap();
    writer.put(&records[0], "a.md").unwrap();
    writer.put(&records[1], "b.md").unwrap();
    writer.set_source_digest("a.md", Some([1; 32])).unwrap();
    writer.set_source_digest("b.md", Some([2; 32])).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let known = store.records_of_source("a.md").unwrap();
    assert_eq!(
        known.iter().map(|known| (known.key, known.digest)).collect::<Vec<_>>(),
        [(records[0].key(), records[0].digest())]
    );
    let mut writer = store.begin_write().unwrap();
    writer.set_source_digest("a.md", Some([3; 32])).unwrap();
    writer.set_source_digest("b.md", None).unwrap();
    writer.commit().unwrap();
    assert_eq!(
        store.source_digests().unwrap().into_iter().collect::<Vec<_>>(),
        [("a.md".to_owned(), [3; 32])]
    );
    assert_eq!(store.stats().unwrap().sources, 1);
    assert_eq!(
        store.fetch(&[records[1].key()]).unwrap().len(),
        1,
        "removing a digest must not remove records"
    );
}

pub fn a_second_writer_is_locked_out<F: StoreFixture>() {
    let fixture = F::new();
    let (store, other) = (fixture.open(), fixture.open());
    let writer = store.begin_write().unwrap();
    assert_eq!(other.begin_write().err(), Some(Error::Locked));
    assert_eq!(store.begin_write().err(), Some(Error::Locked));
    drop(writer);
    other.begin_write().unwrap();
}

pub fn another_handle_sees_a_commit_with_its_next_search<F: StoreFixture>() {
    let fixture = F::new();
    let (store, other) = (fixture.open(), fixture.open());
    let mut records: Vec<Record> = Vec::new();
    for number in 0..8_u64 {
        let new = record(&format!("doc:{number}"), "Walrus", "A walrus.");
        put(&store, std::slice::from_ref(&new));
        records.push(new);
        let found = search(&other, "walrus", None, &Filter::default(), 100);
        assert_eq!(found.keyword.len(), records.len());
        put_vectors(&store, &[(&records[0], vector(1, 64))]);
        let found = search(&other, "walrus", Some(&vector(1, 64)), &Filter::default(), 100);
        assert!(!found.vector.is_empty());
    }
}

pub fn a_rebuild_keeps_records_sources_and_vectors<F: StoreFixture>() {
    let fixture = F::new();
    let (store, reader) = (fixture.open(), fixture.open());
    let records = [record("doc:a", "A", "walrus"), record("doc:b", "B", "narwhal")];
    put(&store, &records);
    let mut writer = store.begin_write().unwrap();
    writer.set_source_digest("test.jsonl", Some([7; 32])).unwrap();
    writer.commit().unwrap();
    drop(writer);
    put_vectors(&store, &[(&records[0], vector(1, 64)), (&records[1], vector(2, 64))]);
    let find = |store| search(store, "walrus", Some(&vector(1, 64)), &Filter::default(), 10);
    let before = find(&reader);
    store.rebuild().unwrap();
    for handle in [&store, &reader, &fixture.open()] {
        assert_eq!(find(handle), before);
        assert_eq!(handle.source_digests().unwrap().len(), 1);
        assert_eq!(handle.records_of_source("test.jsonl").unwrap().len(), 2);
        assert!(handle.keys_without_vector().unwrap().is_empty());
    }
}

pub fn records_are_visited_in_the_order_of_ids<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    put(&store, &["doc:c", "doc:a", "person:a", "doc:b"].map(|id| record(id, id, "")));
    let mut seen = Vec::new();
    store
        .for_each_record(&mut |record| {
            seen.push(record.id);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ["doc:a", "doc:b", "doc:c", "person:a"]);
    let stop = Error::Unusable("enough".to_owned());
    assert_eq!(store.for_each_record(&mut |_| Err(stop.clone())), Err(stop.clone()));
}
