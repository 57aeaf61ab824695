use super::hidden_unicode;

#[test]
fn hidden_characters_are_distinguished_from_legitimate_ones() {
    for (text, expected) in [
        ("plain ASCII", vec![]),
        ("naïve – “quoted” 日本語", vec![]),
        ("\u{FEFF}start", vec![]),
        ("a\u{202E}b", vec!['\u{202E}']),
        ("a \u{200F} b", vec!['\u{200F}']),
        ("\u{E0041}\u{E007F}", vec!['\u{E0041}', '\u{E007F}']),
        ("x\u{2060} y\u{206F} z\u{180E}", vec!['\u{2060}', '\u{206F}', '\u{180E}']),
        ("\u{3164} \u{115F}", vec!['\u{3164}', '\u{115F}']),
        ("ig\u{200B}nore", vec!['\u{200B}']),
        ("ig\u{200B}\u{200D}nore", vec!['\u{200B}', '\u{200D}']),
        ("ig\u{FEFF}nore", vec!['\u{FEFF}']),
        ("Do\u{00AD}nau", vec!['\u{00AD}']),
        ("word \u{200B} word", vec![]),
        ("word\u{200B} word", vec![]),
        ("می\u{200C}خواهم", vec![]),
        ("क्\u{200D}ष", vec![]),
        ("ن\u{200C}a", vec!['\u{200C}']),
        ("می\u{200B}خواهم", vec!['\u{200B}']),
        ("👩\u{200D}💻 👩🏽\u{200D}🚀 ❤\u{FE0F}", vec![]),
        ("🏳\u{FE0F}\u{200D}🌈", vec![]),
        ("x\u{FE00}\u{FE01}", vec!['\u{FE00}', '\u{FE01}']),
        ("葛\u{E0100}", vec![]),
        ("a\u{E0100}", vec!['\u{E0100}']),
        ("葛\u{E0100}\u{E0101}", vec!['\u{E0101}']),
    ] {
        let found: Vec<char> = hidden_unicode(text).into_iter().map(|(_, c)| c).collect();
        assert_eq!(found, expected, "{text:?}");
    }
}

#[test]
fn spans_cover_the_character_and_the_list_is_capped() {
    let text = "é a\u{202E}b";
    assert_eq!(hidden_unicode(text), vec![(4..7, '\u{202E}')]);
    assert_eq!(hidden_unicode(&"\u{202E}".repeat(1000)).len(), 20);
}

#[test]
fn long_runs_take_bounded_time() {
    assert_eq!(hidden_unicode(&format!("a{}", "\u{200B}".repeat(400_000))).len(), 20);
    assert!(hidden_unicode(&"é ".repeat(500_000)).is_empty());
}
