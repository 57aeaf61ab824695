//! Texts made to be slow or to break the parser. A quadratic search would take minutes here.

use serde_json::Value;

use super::contacts::extract;

/// Asserts that all spans lie in the text, are sorted and do not overlap.
fn assert_valid_spans(text: &str, found: &Value) {
    let units = text.encode_utf16().count() as u64;
    let mut spans = Vec::new();
    for list in ["emails", "phones", "urls", "profiles"] {
        let items = found[list].as_array().unwrap().iter();
        let ranges: Vec<_> =
            items.map(|item| (item["start"].as_u64().unwrap(), item["end"].as_u64().unwrap())).collect();
        assert!(ranges.is_sorted(), "{list}");
        spans.extend(ranges);
    }
    spans.sort_unstable();
    assert!(spans.iter().all(|(start, end)| start < end && *end <= units));
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
}

#[tokio::test]
async fn repeated_patterns_take_linear_time() {
    for piece in [
        "1",
        "@",
        "a@",
        "@a.b",
        "+",
        "(030",
        "1-",
        "0 0 ",
        "a.b.",
        "www.",
        "http://",
        "://",
        "A ",
        "\n",
        "👩‍👧",
        "\u{200f}א",
        "GitHub:",
        "x <",
        "<a@b.co>",
        "Mira Okafor a@b.co ",
        "030 23125014 ",
        "٠٣٠",
        "1/2/3 ",
        "https://a.example/(",
        "\u{202e}+49 30 23125014",
        "e\u{301}@b.co ",
        "\u{0}",
        "a@b.co030 23125014",
    ] {
        let text = piece.repeat(50_000 / piece.len());
        assert_valid_spans(&text, &extract(&text, "DE").await);
    }
}

#[tokio::test]
async fn a_megabyte_of_digits_is_not_a_phone_number() {
    let text = "1234567890".repeat(100_000);
    assert_eq!(extract(&text, "DE").await["phones"].as_array().unwrap().len(), 0);
}

#[tokio::test]
async fn a_number_after_an_overlong_run_of_digits_is_found() {
    let text = format!("{} and 030 23125014", "7".repeat(50_000));
    assert_eq!(extract(&text, "DE").await["phones"][0]["e164"], "+493023125014");
}
