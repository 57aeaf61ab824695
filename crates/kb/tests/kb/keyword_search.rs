//! Conformance: keyword search.

use toolwright_kb::store::Filter;

use crate::support::{StoreFixture, ids, put, record, search};

pub fn words_are_found_by_their_stems_in_title_text_and_tags<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let mut tagged = record("doc:tagged", "Third", "Nothing here.");
    tagged.tags = vec!["Rigging".to_owned()];
    let records = [
        record("doc:titled", "The rigged stage", "Nothing of it here."),
        record("doc:texted", "Second", "How we rig a stage: café lights."),
        tagged,
        record("doc:other", "Other", "Sound desks and microphones."),
    ];
    put(&store, &records);
    let find = |words: &str| {
        let mut found = ids(&search(&store, words, None, &Filter::default(), 10).keyword, &records);
        found.sort();
        found
    };
    assert_eq!(find("rigging"), ["doc:tagged", "doc:texted", "doc:titled"]);
    assert_eq!(find("CAFE"), ["doc:texted"]);
    assert_eq!(find("microphone quaternion"), ["doc:other"]);
    assert!(find("quaternion").is_empty());
    let found = search(&store, "rig stage", None, &Filter::default(), 10).keyword;
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert_eq!(search(&store, "rig stage", None, &Filter::default(), 1).keyword, found[..1]);
}

pub fn any_text_is_a_valid_query<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    put(&store, &[record("doc:a", "Walrus", "A walrus's tusk (long) +sharp")]);
    let long = "walrus ".repeat(1000);
    for text in [
        "walrus\"",
        "(walrus",
        "title:walrus",
        "walrus~2^",
        "+walrus -tusk",
        "walrus AND OR NOT",
        "walrus\0\u{202e}",
        &long,
    ] {
        assert_eq!(search(&store, text, None, &Filter::default(), 10).keyword.len(), 1, "{text:?}");
    }
    for text in ["", " ", "\"", "()", "***", "\\", "🦭", "日本語", "'; DROP TABLE records; --"] {
        assert!(search(&store, text, None, &Filter::default(), 10).keyword.is_empty(), "{text:?}");
    }
}

pub fn the_number_of_sources_does_not_change_scores<F: StoreFixture>() {
    let records: Vec<_> = (0..8)
        .map(|at| record(&format!("doc:{at}"), "Lighting", &format!("Light {}", "and stage ".repeat(at + 1))))
        .collect();
    let scores = |sources: usize| {
        let fixture = F::new();
        let store = fixture.open();
        put(&store, &records);
        let mut writer = store.begin_write().unwrap();
        for source in 0..sources {
            writer.set_source_digest(&format!("{source}.md"), Some([1; 32])).unwrap();
        }
        writer.commit().unwrap();
        search(&store, "light stage", None, &Filter::default(), 10).keyword
    };
    assert_eq!(scores(1), scores(20));
}

pub fn equal_scores_are_ordered_by_key<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    let records: Vec<_> =
        (0..50).map(|number| record(&format!("doc:{number}"), "Walrus", "The same text.")).collect();
    // In several commits, so that they are in several segments.
    records.chunks(7).for_each(|some| put(&store, some));
    let found = search(&store, "walrus", None, &Filter::default(), 20).keyword;
    let mut keys: Vec<_> = records.iter().map(|record| record.key()).collect();
    keys.sort();
    assert_eq!(found.iter().map(|hit| hit.key).collect::<Vec<_>>(), keys[..20]);
}

pub fn the_scale_of_scores_depends_on_the_words_and_how_rare_they_are<F: StoreFixture>() {
    let fixture = F::new();
    let store = fixture.open();
    put(
        &store,
        &[
            record("doc:a", "One", "alpha beta"),
            record("doc:b", "Two", "alpha"),
            record("doc:c", "Three", "gamma"),
        ],
    );
    for (text, expected) in [
        ("alpha", 0.25 * 1.6_f32.ln()),
        ("the alpha", 0.25 * 1.6_f32.ln()),
        ("missing", 0.25 * 8.0_f32.ln()),
        ("alpha missing", 0.5 * (1.6_f32.ln() + 8.0_f32.ln())),
        // In a longer query, a word that no record has counts more.
        ("alpha beta gamma missing", (1.6 * (8.0 / 3.0) * (8.0_f32 / 3.0)).ln() + 4.0 / 3.0 * 8.0_f32.ln()),
        ("a1 a2 a3 a4 a5 a6 a7 a8", (7.0_f32 / 8.0).powf(0.75) * 8.0 * 1.5 * 8.0_f32.ln()),
        ("...", 0.0),
    ] {
        let scale = search(&store, text, None, &Filter::default(), 10).keyword_scale;
        assert!((scale - expected).abs() < 1e-4, "{text}: {scale} instead of {expected}");
    }
}
