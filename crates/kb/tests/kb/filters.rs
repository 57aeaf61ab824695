//! Conformance: filters are exact in both lists.

use toolwright_kb::Namespace;
use toolwright_kb::record::Record;
use toolwright_kb::store::Filter;

use crate::support::{StoreFixture, ids, put, put_vectors, record, search, vector};

pub fn both_lists_contain_exactly_the_matching_records<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let many: Vec<Record> = (0..1200_u32).map(numbered_record).collect();
    put(&store, &many);
    let vectors: Vec<(&Record, Vec<f32>)> =
        many.iter().zip(0_u64..).map(|(record, seed)| (record, vector(seed, 64))).collect();
    put_vectors(&store, &vectors);
    let filters = [
        Filter::default(),
        Filter { tags: vec!["rare".to_owned()], ..Filter::default() },
        Filter { tags: vec!["third".to_owned(), "even".to_owned()], ..Filter::default() },
        Filter { kind: Some("person".to_owned()), tags: vec!["rare".to_owned()], ..Filter::default() },
        Filter { tags: vec!["none".to_owned()], ..Filter::default() },
        Filter { tags: vec!["Rare".to_owned()], ..Filter::default() },
        Filter { namespace: Namespace::Public, kind: Some("doc".to_owned()), ..Filter::default() },
    ];
    for filter in &filters {
        let matches = |record: &&Record| {
            record.namespace == filter.namespace
                && filter.kind.as_ref().is_none_or(|kind| record.kind == *kind)
                && filter.tags.iter().all(|tag| record.tags.contains(tag))
        };
        let mut expected: Vec<String> = many.iter().filter(matches).map(|record| record.id.clone()).collect();
        expected.sort();
        let query = vector(5, 64);
        let found = search(&store, "walrus", Some(&query), filter, 2000);
        for list in [&found.keyword, &found.vector] {
            let mut found = ids(list, &many);
            found.sort();
            assert_eq!(found, expected, "{filter:?}");
        }
        let few = search(&store, "walrus", Some(&query), filter, 5);
        assert_eq!(few.keyword, found.keyword[..expected.len().min(5)], "{filter:?}");
        assert_eq!(few.vector, found.vector[..expected.len().min(5)], "{filter:?}");
    }
}

fn numbered_record(number: u32) -> Record {
    let kind = if number.is_multiple_of(7) { "person" } else { "doc" };
    let mut record = record(&format!("{kind}:{number}"), "Walrus", &format!("Number {number}."));
    let tags = [(2, "even"), (3, "third"), (101, "rare")];
    record.tags = tags
        .iter()
        .filter(|(every, _)| number.is_multiple_of(*every))
        .map(|(_, tag)| (*tag).to_owned())
        .collect();
    if number.is_multiple_of(5) {
        record.namespace = Namespace::Public;
    }
    record
}

pub fn personal_records_are_visible_to_their_owner_only<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let mut records = Vec::new();
    for owner in ["ann", "bob", "ann:x"] {
        let mut own = record(&format!("doc:{}", owner.replace(':', "_")), "Walrus", owner);
        own.namespace = Namespace::Personal;
        own.owner = Some(owner.to_owned());
        records.push(own);
    }
    records.push(record("doc:all", "Walrus", ""));
    put(&store, &records);
    let find = |namespace, owner: Option<&str>| {
        let filter = Filter { namespace, owner: owner.map(str::to_owned), ..Filter::default() };
        ids(&search(&store, "walrus", None, &filter, 10).keyword, &records)
    };
    assert_eq!(find(Namespace::Personal, Some("ann")), ["doc:ann"]);
    assert_eq!(find(Namespace::Personal, Some("bob")), ["doc:bob"]);
    assert_eq!(find(Namespace::Personal, Some("eve")), [""; 0]);
    assert_eq!(find(Namespace::Personal, Some("")), [""; 0]);
    assert_eq!(find(Namespace::Personal, None), [""; 0]);
    assert_eq!(find(Namespace::Studio, None), ["doc:all"]);
}

pub fn both_ends_of_a_date_range_are_inclusive<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let dates =
        [None, Some("2026-01-01"), Some("2026-01-02T12:00:00+02:00"), Some("1969-12-31T23:59:59.999Z")];
    let mut records = Vec::new();
    for (number, date) in dates.iter().enumerate() {
        let mut dated = record(&format!("doc:{number}"), "Walrus", "");
        dated.last_updated = date.map(str::to_owned);
        records.push(dated.validate().unwrap());
    }
    put(&store, &records);
    let find = |from: Option<i64>, until: Option<i64>| {
        let filter = Filter { updated_from: from, updated_until: until, ..Filter::default() };
        let mut found = ids(&search(&store, "walrus", None, &filter, 10).keyword, &records);
        found.sort();
        found
    };
    let (first, second) = (1_767_225_600_000, 1_767_348_000_000);
    assert_eq!(find(None, None).len(), 4);
    assert_eq!(find(Some(first), Some(second)), ["doc:1", "doc:2"]);
    assert_eq!(find(Some(first + 1), Some(second - 1)), [""; 0]);
    assert_eq!(find(None, Some(-1)), ["doc:3"]);
    assert_eq!(find(Some(second), None), ["doc:2"]);
}
