use super::Format;

/// Cases that the official suite does not have.
#[track_caller]
fn check(format: &str, accepted: &[&str], rejected: &[&str]) {
    let format = Format::from_name(format).unwrap();
    for text in accepted {
        assert!(format.accepts(text), "{} rejects {text:?}", format.name);
    }
    for text in rejected {
        assert!(!format.accepts(text), "{} accepts {text:?}", format.name);
    }
}

#[test]
fn uris_follow_their_grammar() {
    check(
        "uri",
        &[
            "about:",
            "http://",
            "http://h:/",
            "http://[::1]:80/p?q#f",
            "a+b.c-1:x",
            "urn:x:%C3%BC",
            "s://u:p@h",
        ],
        &[
            "",
            ":",
            ":x",
            "h://[::1",
            "h://[::1]x",
            "h://a]b",
            "h://[v.x]",
            "h://[v1.%41]",
            "h:#a#b",
            "h:ü",
            "h:%",
        ],
    );
    check("uri-reference", &["", "#", "?", "//", "a/b:c", "./a:b"], &["a b", "//[", "//h:1:2", "%", "a\n"]);
    check("iri", &["http://ü/?\u{e000}"], &["http://h/\u{e000}", "http://h/\u{fffe}", "http://h/\u{85}"]);
    check("iri-reference", &["ü", "#ü"], &["\u{e0001}", "a|b"]);
}

#[test]
fn templates_follow_their_grammar() {
    check(
        "uri-template",
        &["{a%20b}", "{|x}", "{a:1,b*}", "ü{x}"],
        &["{", "}", "{{a}}", "{a", "{a:}", "{a*:1}", "{a%2}", "{.}", "{a-b}", "%4", "\u{85}"],
    );
}

#[test]
fn mailboxes_follow_their_grammar() {
    check(
        "email",
        &[r#""a\"b"@x.y"#, r#"""@x.y"#, "a@[ipv6:::1]", "a+b@x.y"],
        &[
            r#""a"b@x.y"#,
            r#""a@x.y"#,
            "\"a\nb\"@x.y",
            r#""\"@x.y"#,
            "a@[]",
            "a@[1.2.3]",
            "a@x",
            "a@x..y",
            "ü@x.y",
        ],
    );
    check(
        "idn-email",
        &["ü@ü.de", "a@BÜCHER.de", "\"ü \"@x.y"],
        &["ü @x.y", "a@-ü.de", "a@ü", "a@ü..de", "a@\u{202e}ü.de", "a@☃ .de"],
    );
}

#[test]
fn host_names_are_checked_to_the_last_label() {
    check(
        "hostname",
        &["r3---sn-x.example", "1.2.3.4", "xn--bcher-kva.example", "XN--BCHER-KVA.example"],
        &["a..b", "a.xn--", "xn--a", "xn--bcher-kva.-x", "xn--\u{fc}", "a\0b"],
    );
    check(
        "idn-hostname",
        &["bücher.example", "Example.com", "faß.de", "r3---sn-x.ü"],
        &["Bücher.example", "☃.net", "ab--ü", "\u{1100}", "a\u{ad}ü", "ﬁ.ü", "u\u{308}.de", "ü ", "a_ü"],
    );
    let long = format!("{}.de", "ü".repeat(200_000));
    check("idn-hostname", &[], &[&long, &"ü.".repeat(200_000)]);
    check("idn-email", &[], &[&format!("a@{long}")]);
}

#[test]
fn times_and_durations_are_those_of_rfc_3339() {
    check(
        "time",
        &["23:59:60.5Z", "00:00:00.1+00:00"],
        &["10:00:00+0100", "10:00:00.Z", "24:00:00Z", "10:00:60Z"],
    );
    check("iso-time", &["10:00:00", "10:00:00+0100", "10:00:00+01"], &["24:00:00", "10:00"]);
    check(
        "date-time",
        &["2026-01-13 10:00:00Z"],
        &["2026-01-13T10:00:00", "2026-01-13", "2026-02-29T10:00:00Z"],
    );
    check("duration", &["P1MT1S", "P1YT1M"], &["P1Y1D", "PT1H1S", "P1D1D", "P1DT", "P1W1D", "p1d"]);
}

#[test]
fn regex_accepts_what_pattern_accepts() {
    check("regex", &["^a+$", r"\p{L}", "(?<a>x)", "a|"], &[r"\a", "(", "a**", r"a\Z", "(?i)a", "[b-a]"]);
    check("regex", &[], &[&"(".repeat(100_000)]);
}
