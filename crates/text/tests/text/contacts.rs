//! `extractContacts`: contacts and their positions.

use serde_json::{Value, json};

use super::call;

pub async fn extract(text: &str, region: &str) -> Value {
    call("extractContacts", vec![json!(text), json!({ "region": region })]).await.unwrap()
}

/// One member of each item of a list, `-` for null.
fn members(found: &Value, list: &str, member: &str) -> Vec<String> {
    let items = found[list].as_array().unwrap().iter();
    items.map(|item| item[member].as_str().unwrap_or("-").to_owned()).collect()
}

/// The part of the text that an item's UTF-16 offsets select.
fn slice(text: &str, item: &Value) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let at = |name: &str| usize::try_from(item[name].as_u64().unwrap()).unwrap();
    String::from_utf16(&units[at("start")..at("end")]).unwrap()
}

#[tokio::test]
async fn a_signature_gives_all_of_its_contacts() {
    let text = "Best regards, Mira Okafor <mira@studio.example>, tel. 030 23125014, www.studio.example, \
                https://www.linkedin.com/in/mira-okafor, github.com/miraok";
    let expected = json!({
        "emails": [{ "address": "mira@studio.example", "name": "Mira Okafor", "start": 27, "end": 46 }],
        "phones": [{
            "e164": "+493023125014", "raw": "030 23125014", "region": "DE", "extension": null, "name": null,
            "start": 54, "end": 66
        }],
        "urls": [{ "url": "https://www.studio.example", "start": 68, "end": 86 }],
        "profiles": [
            { "service": "linkedin", "handle": "mira-okafor", "url": "https://www.linkedin.com/in/mira-okafor",
              "name": null, "start": 88, "end": 127 },
            { "service": "github", "handle": "miraok", "url": "https://github.com/miraok", "name": null,
              "start": 129, "end": 146 }
        ]
    });
    assert_eq!(extract(text, "DE").await, expected);
}

#[tokio::test]
async fn offsets_are_in_utf_16_units() {
    let text = "👋🏽 Grüße an 👩‍👩‍👧 mira@studio.example שלום +49 30 23125014 und https://münchen.example/ä?q=1 — GitHub: @mira";
    let found = extract(text, "DE").await;
    for (list, expected) in [
        ("emails", "mira@studio.example"),
        ("phones", "+49 30 23125014"),
        ("urls", "https://münchen.example/ä?q=1"),
        ("profiles", "mira"),
    ] {
        let items = found[list].as_array().unwrap();
        assert_eq!(items.len(), 1, "{list}: {found}");
        assert_eq!(slice(text, &items[0]), expected);
    }
}

#[tokio::test]
async fn phone_numbers_are_parsed_by_region() {
    let numbers = async |text: &str, region: &str| {
        let found = extract(text, region).await;
        let (e164, regions) = (members(&found, "phones", "e164"), members(&found, "phones", "region"));
        e164.into_iter().zip(regions).map(|(number, region)| format!("{number} {region}")).collect::<Vec<_>>()
    };
    assert_eq!(
        numbers("Call (415) 555-2671 or +44 20 7946 0018.", "US").await,
        ["+14155552671 US", "+442079460018 GB"]
    );
    assert_eq!(numbers("01 42 68 53 00", "FR").await, ["+33142685300 FR"]);
    assert_eq!(numbers("Tel.: +41 (0)44 668 18 00", "US").await, ["+41446681800 CH"]);
    assert_eq!(numbers("０３０ ２３１２５０１４", "DE").await, ["+493023125014 DE"]);
    assert_eq!(
        numbers("line one 030 23125014\nline two 0151 23456789", "DE").await,
        ["+493023125014 DE", "+4915123456789 DE"]
    );
    assert_eq!(numbers("+800 1234 5678", "US").await, ["+80012345678 -"]);
    // Dates, prices, versions, account numbers and parts of URLs are not phone numbers.
    for text in [
        "on 2026-03-01 at 14:05",
        "12.345,67 EUR",
        "v1.2.3-4",
        "DE89 3704 0044 0532 0130 00 12345678901234567890123",
        "https://shop.example/item/03023125014",
        "order 030-23125014@studio.example",
        "call 112",
        "10/11/2026",
    ] {
        assert_eq!(numbers(text, "DE").await, [""; 0], "{text}");
    }
    let found = extract("+1 415 555 2671 ext. 42", "US").await;
    assert_eq!(found["phones"][0]["extension"], "42");
}

#[tokio::test]
async fn urls_are_found_and_other_words_with_dots_are_not() {
    let urls = async |text: &str| members(&extract(text, "US").await, "urls", "url");
    assert_eq!(
        urls("(see https://a.example/x_(y), or http://b.example.)").await,
        ["https://a.example/x_(y)", "http://b.example"]
    );
    assert_eq!(
        urls("studio.example/team and www.weird.zip").await,
        ["https://studio.example/team", "https://www.weird.zip"]
    );
    for text in [
        "main.rs",
        "notes.md",
        "e.g. this",
        "i.e.that",
        "Node.js",
        "It ended.It began.",
        "3.14",
        "report.pdf",
        "a@b",
        "ftp://x.example",
        "javascript://alert(1)",
        "...",
        "a..b",
    ] {
        assert_eq!(urls(text).await, [""; 0], "{text}");
    }
}

#[tokio::test]
async fn profiles_are_distinguished_from_other_pages() {
    let profiles = async |text: &str| {
        let found = extract(text, "US").await;
        let (service, handle) =
            (members(&found, "profiles", "service"), members(&found, "profiles", "handle"));
        service
            .into_iter()
            .zip(handle)
            .map(|(service, handle)| format!("{service} {handle}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        profiles("https://de.linkedin.com/in/mira-okafor-42/?trk=x").await,
        ["linkedin mira-okafor-42"]
    );
    assert_eq!(profiles("linkedin.com/company/studio").await, ["linkedin studio"]);
    assert_eq!(profiles("https://github.com/rust-lang/rust/issues/1").await, ["github rust-lang"]);
    assert_eq!(
        profiles("GitHub: miraok | LinkedIn: mira-okafor").await,
        ["github miraok", "linkedin mira-okafor"]
    );
    assert_eq!(profiles("I am @mira on GitHub (@miraok).").await, ["github miraok"]);
    for text in [
        "https://github.com/features",
        "https://github.com/",
        "https://linkedin.com/feed/",
        "https://gist.github.com/x",
        "https://notlinkedin.com/in/mira",
        "on GitHub we trust",
        "github.com.evil.example/x",
        "GitHub: https://x.example",
    ] {
        assert_eq!(profiles(text).await, [""; 0], "{text}");
    }
}

#[tokio::test]
async fn names_are_taken_from_next_to_the_contact() {
    let name = async |text: &str| {
        let found = extract(text, "DE").await;
        let lists = ["emails", "phones", "profiles"].map(|list| members(&found, list, "name"));
        lists.concat().join("|")
    };
    for (text, expected) in [
        ("Mira Okafor <mira@studio.example>", "Mira Okafor"),
        ("\"Okafor, Mira\" <mira@studio.example>", "Okafor, Mira"),
        ("To: Mira <mira@studio.example>", "Mira"),
        ("Write to Mira Okafor: mira@studio.example", "Mira Okafor"),
        ("Mira Okafor (mira@studio.example)", "Mira Okafor"),
        ("Ask Jean-Luc d'Arc, tel.: 030 23125014", "Jean-Luc d'Arc"),
        ("Ludwig van der Rohe – 030 23125014", "Ludwig van der Rohe"),
        ("Best regards\nMira Okafor\nStudio Nord\nmira@studio.example", "Mira Okafor"),
        ("Mira Okafor\n\nmira@studio.example", "-"),
        ("Kind Regards\nmira@studio.example", "-"),
        ("please write to mira@studio.example", "-"),
        ("Call 030 23125014", "-"),
        ("Dr. Mira Okafor, mira@studio.example", "Dr. Mira Okafor"),
        ("Ärztin Özlem Şahin, ozlem@studio.example", "Ärztin Özlem Şahin"),
        ("Thanks. Mira Okafor, GitHub: miraok", "Mira Okafor"),
    ] {
        assert_eq!(name(text).await, expected, "{text}");
    }
}

#[tokio::test]
async fn unknown_regions_are_refused() {
    for region in ["XX", "de", "", "DEU", "49", "ZZ"] {
        let result = call("extractContacts", vec![json!("x"), json!({ "region": region })]).await;
        assert_eq!(result.unwrap_err().code, "INVALID_ARGUMENT", "{region}");
    }
    assert_eq!(call("extractContacts", vec![json!("x")]).await.unwrap_err().code, "INVALID_ARGUMENT");
    assert_eq!(
        call("extractContacts", vec![json!(3), json!({ "region": "DE" })]).await.unwrap_err().code,
        "INVALID_ARGUMENT"
    );
}
