//! The list by vector.

use toolwright_kb::passages;
use toolwright_kb::store::{Backend, Error, Filter, Maker, Search};

use crate::harness::{Harness, ids, maker, put, put_vectors, record, search, vector};

pub fn vectors_may_come_later<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let records = [record("doc:a", "A", "x"), record("doc:b", "B", "y")];
    put(&store, &records);
    assert_eq!(store.maker().unwrap(), None);
    assert_eq!(store.without_vector().unwrap().len(), 2);
    assert!(search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10).vectors.is_empty());
    put_vectors(&store, &[(&records[1], vector(1, 64))]);
    assert_eq!(store.maker().unwrap(), Some(maker(64)));
    assert_eq!(store.without_vector().unwrap(), [records[0].key()]);
    let found = search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10);
    assert_eq!(ids(&found.vectors, &records), ["doc:b"]);
    assert!((found.vectors[0].score - 1.0).abs() < 0.01);
    // Another title is another text; the same text again has its vector already.
    put(&store, &[record("doc:b", "Another", "y"), record("doc:c", "B", "y")]);
    let found = search(&store, "x", Some(&vector(1, 64)), &Filter::default(), 10);
    assert_eq!(
        found.vectors.iter().map(|hit| hit.key).collect::<Vec<_>>(),
        [record("doc:c", "B", "y").key()]
    );
    let stats = store.stats().unwrap();
    assert_eq!((stats.passages, stats.with_vector, stats.embedder), (3, 1, Some(maker(64))));
}

pub fn the_nearest_come_first_and_each_record_once<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let long = record(
        "doc:long",
        "Long",
        &(0..200).map(|number| format!("Sentence {number}. ")).collect::<String>(),
    );
    assert!(passages::of(&long).len() > 2);
    let mut records: Vec<_> = (0..300_u64)
        .map(|number| record(&format!("doc:{number}"), &format!("Number {number}"), ""))
        .collect();
    put(&store, &records);
    put(&store, std::slice::from_ref(&long));
    let vectors: Vec<_> =
        records.iter().zip(0_u64..).map(|(record, seed)| (record, vector(seed, 64))).collect();
    put_vectors(&store, &vectors);
    let query = vector(1000, 64);
    // The second passage is the query itself.
    let parts: Vec<_> = passages::of(&long)
        .iter()
        .enumerate()
        .map(|(at, passage)| {
            (passage.key, if at == 1 { query.clone() } else { vector(at as u64 + 2000, 64) })
        })
        .collect();
    store.write().unwrap().put_vectors(&maker(64), &parts).unwrap();
    let cosine = |other: &[f32]| query.iter().zip(other).map(|(left, right)| left * right).sum::<f32>();
    let mut expected: Vec<(f32, String)> =
        vectors.iter().map(|(record, vector)| (cosine(vector), record.id.clone())).collect();
    expected.sort_by(|left, right| right.0.total_cmp(&left.0));
    records.push(long);
    let found = search(&store, "", Some(&query), &Filter::default(), 400).vectors;
    assert_eq!(found.len(), 301);
    assert_eq!((ids(&found[..1], &records)[0].as_str(), found[0].passage), ("doc:long", 1));
    // Kept vectors may be rounded: a hit is where its cosine is, within a hundredth.
    for (hit, (cosine, _)) in found[1..].iter().zip(&expected) {
        assert!((hit.score - cosine).abs() < 0.01, "{} is not {cosine}", hit.score);
    }
    assert_eq!(ids(&found[1..2], &records)[0], expected[0].1);
}

pub fn makers_are_not_mixed<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let one = record("doc:a", "A", "x");
    put(&store, std::slice::from_ref(&one));
    put_vectors(&store, &[(&one, vector(1, 64))]);
    let other = Maker { name: "other".to_owned(), dimensions: 64 };
    let key = passages::of(&one)[0].key;
    let mut writer = store.write().unwrap();
    let refused = writer.put_vectors(&other, &[(key, vector(2, 64))]).unwrap_err();
    assert_eq!(refused, Error::OtherEmbedder { kept: "test-64".to_owned(), asked: "other".to_owned() });
    assert!(refused.to_string().contains("toolwright kb rebuild"));
    let (filter, query) = (Filter::default(), vector(1, 32));
    let search = Search { words: "x", vector: Some(&query), filter: &filter, limit: 5, deadline: None };
    assert!(matches!(store.search(&search), Err(Error::OtherEmbedder { .. })));
    writer.drop_vectors().unwrap();
    assert_eq!(store.maker().unwrap(), None);
    writer.put_vectors(&other, &[(key, vector(2, 64))]).unwrap();
    assert_eq!(store.maker().unwrap(), Some(other));
}
