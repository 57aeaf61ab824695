//! Conformance: vector search.

use toolwright_kb::passages;
use toolwright_kb::store::{CandidateQuery, EmbedderId, Error, Filter};

use crate::support::{StoreFixture, embedder_id, ids, put, put_vectors, record, search, vector};

pub fn vectors_may_be_added_later<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let records = [record("doc:a", "A", "x"), record("doc:b", "B", "y")];
    put(&store, &records);
    assert_eq!(store.embedder().unwrap(), None);
    assert_eq!(store.keys_without_vector().unwrap().len(), 2);
    assert!(search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10).vector.is_empty());
    put_vectors(&store, &[(&records[1], vector(1, 64))]);
    assert_eq!(store.embedder().unwrap(), Some(embedder_id(64)));
    assert_eq!(store.keys_without_vector().unwrap(), [records[0].key()]);
    let found = search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10);
    assert_eq!(ids(&found.vector, &records), ["doc:b"]);
    assert!((found.vector[0].score - 1.0).abs() < 0.01);
    // A new title needs a new vector; a record with the same title and text shares the old one.
    put(&store, &[record("doc:b", "Another", "y"), record("doc:c", "B", "y")]);
    let found = search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10);
    assert_eq!(found.vector.iter().map(|hit| hit.key).collect::<Vec<_>>(), [record("doc:c", "B", "y").key()]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.passages, stats.with_vector, stats.embedder), (3, 1, Some(embedder_id(64))));
}

pub fn the_nearest_records_come_first_and_each_once<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let long = record(
        "doc:long",
        "Long",
        &(0..200).map(|number| format!("Sentence {number}. ")).collect::<String>(),
    );
    assert!(passages::split_record(&long).len() > 2);
    let mut records: Vec<_> = (0..300_u64)
        .map(|number| record(&format!("doc:{number}"), &format!("Number {number}"), ""))
        .collect();
    put(&store, &records);
    put(&store, std::slice::from_ref(&long));
    let vectors: Vec<_> =
        records.iter().zip(0_u64..).map(|(record, seed)| (record, vector(seed, 64))).collect();
    put_vectors(&store, &vectors);
    let query = vector(1000, 64);
    // The second passage has the vector of the query.
    let parts: Vec<_> = passages::split_record(&long)
        .iter()
        .enumerate()
        .map(|(at, passage)| {
            (passage.key, if at == 1 { query.clone() } else { vector(at as u64 + 2000, 64) })
        })
        .collect();
    store.begin_write().unwrap().put_vectors(&embedder_id(64), &parts).unwrap();
    let cosine = |other: &[f32]| query.iter().zip(other).map(|(left, right)| left * right).sum::<f32>();
    let mut expected: Vec<(f32, String)> =
        vectors.iter().map(|(record, vector)| (cosine(vector), record.id.clone())).collect();
    expected.sort_by(|left, right| right.0.total_cmp(&left.0));
    records.push(long);
    let found = search(&store, "", Some(&query), &Filter::default(), 400).vector;
    assert_eq!(found.len(), 301);
    assert_eq!((ids(&found[..1], &records)[0].as_str(), found[0].passage), ("doc:long", 1));
    // Stored vectors are quantized: compare the cosines with a tolerance.
    for (hit, (cosine, _)) in found[1..].iter().zip(&expected) {
        assert!((hit.score - cosine).abs() < 0.01, "{} is not {cosine}", hit.score);
    }
    assert_eq!(ids(&found[1..2], &records)[0], expected[0].1);
}

pub fn vectors_of_two_embedders_are_not_mixed<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let one = record("doc:a", "A", "x");
    put(&store, std::slice::from_ref(&one));
    put_vectors(&store, &[(&one, vector(1, 64))]);
    let other = EmbedderId { name: "other".to_owned(), dimensions: 64 };
    let key = passages::split_record(&one)[0].key;
    let mut writer = store.begin_write().unwrap();
    let refused = writer.put_vectors(&other, &[(key, vector(2, 64))]).unwrap_err();
    assert_eq!(
        refused,
        Error::EmbedderMismatch { stored: "test-64".to_owned(), configured: "other".to_owned() }
    );
    assert!(refused.to_string().contains("toolwright kb rebuild"));
    let (filter, short) = (Filter::default(), vector(1, 32));
    let query = CandidateQuery { text: "x", vector: Some(&short), filter: &filter, limit: 5, deadline: None };
    assert!(matches!(store.find_candidates(&query), Err(Error::EmbedderMismatch { .. })));
    writer.drop_vectors().unwrap();
    assert_eq!(store.embedder().unwrap(), None);
    writer.put_vectors(&other, &[(key, vector(2, 64))]).unwrap();
    assert_eq!(store.embedder().unwrap(), Some(other));
}
