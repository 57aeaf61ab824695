//! The list by words.

use toolwright_kb::store::{Backend as _, Filter};

use crate::harness::{Harness, ids, put, record, search};

pub fn words_are_found_by_their_stems_in_title_text_and_tags<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
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
        let mut found = ids(&search(&store, words, None, &Filter::default(), 10).words, &records);
        found.sort();
        found
    };
    assert_eq!(find("rigging"), ["doc:tagged", "doc:texted", "doc:titled"]);
    assert_eq!(find("CAFE"), ["doc:texted"]);
    assert_eq!(find("microphone quaternion"), ["doc:other"]);
    assert!(find("quaternion").is_empty());
    let found = search(&store, "rig stage", None, &Filter::default(), 10).words;
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert_eq!(search(&store, "rig stage", None, &Filter::default(), 1).words, found[..1]);
}

pub fn any_text_is_a_query<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
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
        assert_eq!(search(&store, text, None, &Filter::default(), 10).words.len(), 1, "{text:?}");
    }
    for text in ["", " ", "\"", "()", "***", "\\", "🦭", "日本語", "'; DROP TABLE records; --"] {
        assert!(search(&store, text, None, &Filter::default(), 10).words.is_empty(), "{text:?}");
    }
}

pub fn scores_do_not_tell_from_how_many_sources_records_came<H: Harness>() {
    let records: Vec<_> = (0..8)
        .map(|at| record(&format!("doc:{at}"), "Lighting", &format!("Light {}", "and stage ".repeat(at + 1))))
        .collect();
    let scores = |sources: usize| {
        let place = H::fresh();
        let store = place.open();
        put(&store, &records);
        let mut writer = store.write().unwrap();
        for source in 0..sources {
            writer.note_source(&format!("{source}.md"), Some([1; 32])).unwrap();
        }
        writer.commit().unwrap();
        search(&store, "light stage", None, &Filter::default(), 10).words
    };
    assert_eq!(scores(1), scores(20));
}

pub fn equal_scores_are_in_the_order_of_keys<H: Harness>() {
    let place = H::fresh();
    let store = place.open();
    let records: Vec<_> =
        (0..50).map(|number| record(&format!("doc:{number}"), "Walrus", "The same text.")).collect();
    // In several commits, so that they do not lie together.
    records.chunks(7).for_each(|some| put(&store, some));
    let found = search(&store, "walrus", None, &Filter::default(), 20).words;
    let mut keys: Vec<_> = records.iter().map(|record| record.key()).collect();
    keys.sort();
    assert_eq!(found.iter().map(|hit| hit.key).collect::<Vec<_>>(), keys[..20]);
}
