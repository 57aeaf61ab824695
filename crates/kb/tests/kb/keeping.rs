//! Records come, change and go.

use toolwright_kb::record::{Key, Record, Source};
use toolwright_kb::store::{Backend, Error, Filter};

use crate::harness::{Harness, ids, put, put_vectors, record, search, vector};

pub fn what_is_committed_is_kept_whole_and_nothing_before<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let mut full = record("person:mira", "Mira Okafor", "Leads lighting.");
    full.tags = vec!["Lighting".to_owned(), "two words".to_owned()];
    full.source_type = Some("crm".to_owned());
    full.last_updated = Some("2026-01-10T15:30:00+02:00".to_owned());
    full.url = Some("https://studio.example/mira".to_owned());
    full.metadata.insert("nested".to_owned(), serde_json::json!({ "a": [1, 2.5, null, "ü"] }));
    full.sources = vec![Source { kind: "file".to_owned(), name: Some("crm.csv".to_owned()), url: None }];
    let mut writer = store.write().unwrap();
    writer.put(&full, "people.jsonl").unwrap();
    assert_eq!(store.fetch(&[full.key()]).unwrap(), []);
    drop(writer);
    assert_eq!(store.fetch(&[full.key()]).unwrap(), [], "what was not committed is forgotten");
    put(&store, std::slice::from_ref(&full));
    assert_eq!(store.fetch(&[Key::of("doc:none"), full.key()]).unwrap(), [full]);
}

pub fn a_put_replaces_and_a_removal_removes<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    put(&store, &[record("doc:a", "Old", "walrus"), record("doc:b", "Other", "walrus")]);
    let mut writer = store.write().unwrap();
    writer.put(&record("doc:a", "First", "narwhal"), "test.jsonl").unwrap();
    writer.put(&record("doc:a", "New", "narwhal"), "test.jsonl").unwrap();
    writer.remove(Key::of("doc:b")).unwrap();
    writer.remove(Key::of("doc:never")).unwrap();
    writer.commit().unwrap();
    let now = [record("doc:a", "New", "narwhal")];
    assert_eq!(store.fetch(&[Key::of("doc:a"), Key::of("doc:b")]).unwrap(), now);
    assert!(search(&store, "walrus", None, &Filter::default(), 10).words.is_empty());
    assert_eq!(ids(&search(&store, "narwhal", None, &Filter::default(), 10).words, &now), ["doc:a"]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.records, stats.passages, stats.with_vector), (1, 1, 0));
    assert_eq!(stats.by_type.get("doc"), Some(&1));
    assert_eq!(stats.by_namespace.get("studio"), Some(&1));
}

pub fn sources_are_noted_and_forgotten<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let records = [record("doc:a", "A", "x"), record("doc:b", "B", "x")];
    let mut writer = store.write().unwrap();
    writer.put(&records[0], "a.md").unwrap();
    writer.put(&records[1], "b.md").unwrap();
    writer.note_source("a.md", Some([1; 32])).unwrap();
    writer.note_source("b.md", Some([2; 32])).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let known = store.of_source("a.md").unwrap();
    assert_eq!(
        known.iter().map(|known| (known.key, known.digest)).collect::<Vec<_>>(),
        [(records[0].key(), records[0].digest())]
    );
    let mut writer = store.write().unwrap();
    writer.note_source("a.md", Some([3; 32])).unwrap();
    writer.note_source("b.md", None).unwrap();
    writer.commit().unwrap();
    assert_eq!(store.sources().unwrap().into_iter().collect::<Vec<_>>(), [("a.md".to_owned(), [3; 32])]);
    assert_eq!(store.stats().unwrap().sources, 1);
    assert_eq!(store.fetch(&[records[1].key()]).unwrap().len(), 1, "records are removed one by one");
}

pub fn there_is_one_writer<H: Harness>() {
    let place = H::fresh();
    let (store, other) = (place.open(), place.open());
    let writer = store.write().unwrap();
    assert_eq!(other.write().err(), Some(Error::Busy));
    assert_eq!(store.write().err(), Some(Error::Busy));
    drop(writer);
    other.write().unwrap();
}

pub fn another_handle_sees_a_commit_with_its_next_search<H: Harness>() {
    let place = H::fresh();
    let (store, other) = (place.open(), place.open());
    let mut kept: Vec<Record> = Vec::new();
    for number in 0..8_u64 {
        let new = record(&format!("doc:{number}"), "Walrus", "A walrus.");
        put(&store, std::slice::from_ref(&new));
        kept.push(new);
        let found = search(&other, "walrus", None, &Filter::default(), 100);
        assert_eq!(found.words.len(), kept.len());
        put_vectors(&store, &[(&kept[0], vector(1, 64))]);
        let found = search(&other, "walrus", Some(&vector(1, 64)), &Filter::default(), 100);
        assert!(!found.vectors.is_empty());
    }
}

pub fn a_rebuild_keeps_everything_in_use<H: Harness>() {
    let place = H::fresh();
    let (store, reader) = (place.open(), place.open());
    let records = [record("doc:a", "A", "walrus"), record("doc:b", "B", "narwhal")];
    put(&store, &records);
    let mut writer = store.write().unwrap();
    writer.note_source("test.jsonl", Some([7; 32])).unwrap();
    writer.commit().unwrap();
    drop(writer);
    put_vectors(&store, &[(&records[0], vector(1, 64)), (&records[1], vector(2, 64))]);
    let ask = |store| search(store, "walrus", Some(&vector(1, 64)), &Filter::default(), 10);
    let before = ask(&reader);
    store.rebuild().unwrap();
    for handle in [&store, &reader, &place.open()] {
        assert_eq!(ask(handle), before);
        assert_eq!(handle.sources().unwrap().len(), 1);
        assert_eq!(handle.of_source("test.jsonl").unwrap().len(), 2);
        assert!(handle.without_vector().unwrap().is_empty());
    }
}

pub fn records_are_visited_in_the_order_of_ids<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    put(&store, &["doc:c", "doc:a", "person:a", "doc:b"].map(|id| record(id, id, "")));
    let mut seen = Vec::new();
    store
        .each(&mut |record| {
            seen.push(record.id);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, ["doc:a", "doc:b", "doc:c", "person:a"]);
    let stop = Error::Unusable("enough".to_owned());
    assert_eq!(store.each(&mut |_| Err(stop.clone())), Err(stop.clone()));
}
