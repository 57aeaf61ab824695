//! `validateEmail`.

use serde_json::{Value, json};

use super::call;

async fn validate(email: &str) -> Value {
    call("validateEmail", vec![json!(email)]).await.unwrap()
}

#[tokio::test]
async fn a_valid_address_has_a_normal_form_and_parts() {
    let expected = json!({
        "valid": true, "normalized": "Mira.Okafor+news@studio.example", "localPart": "Mira.Okafor+news",
        "domain": "studio.example", "reason": null, "didYouMean": null
    });
    assert_eq!(validate("  Mira.Okafor+news@Studio.EXAMPLE\n").await, expected);
}

#[tokio::test]
async fn syntax_is_checked_by_rfc_5322() {
    for email in [
        "a@b.co",
        "x_y-z@sub.domain.example",
        "o'hara@mail.example",
        "\"john smith\"@mail.example",
        "user@münchen.de",
        "用户@例子.公司",
        "user@xn--mnchen-3ya.de",
        "very.common@example.museum",
    ] {
        assert_eq!(validate(email).await["valid"], true, "{email}");
    }
    for (email, reason) in [
        ("", "no @"),
        ("mira", "no @"),
        ("mira.studio.example", "no @"),
        ("@studio.example", "before the @"),
        ("mira@", "after the @"),
        ("mira@studio", "ending"),
        ("mira@studio..example", "domain"),
        ("mira@@studio.example", "@"),
        ("mira okafor@studio.example", "space"),
        (".mira@studio.example", "A dot"),
        ("mira.@studio.example", "A dot"),
        ("mi..ra@studio.example", "two are in a row"),
        ("mira@-studio.example", ""),
        ("mira@studio.123", ""),
        ("mira@[127.0.0.1]", ""),
        ("Mira <mira@studio.example>", ""),
        ("mira@stu dio.example", ""),
        ("mira@studio_x.example", ""),
    ] {
        let answer = validate(email).await;
        assert_eq!(answer["valid"], false, "{email}");
        let text = answer["reason"].as_str().unwrap();
        assert!(text.contains(reason) && text.ends_with('.'), "{email}: {text}");
        for part in ["normalized", "localPart", "domain"] {
            assert_eq!(answer[part], Value::Null, "{email}");
        }
    }
    let long = |local: usize, domain: usize| format!("{}@{}.example", "a".repeat(local), "b".repeat(domain));
    assert_eq!(validate(&long(64, 63)).await["valid"], true);
    assert_eq!(validate(&long(65, 10)).await["valid"], false);
    assert_eq!(validate(&long(10, 64)).await["valid"], false);
}

#[tokio::test]
async fn an_international_domain_stays_in_unicode() {
    assert_eq!(validate("Info@MÜNCHEN.de").await["normalized"], "Info@münchen.de");
    assert_eq!(validate("info@XN--MNCHEN-3YA.de").await["domain"], "xn--mnchen-3ya.de");
}

#[tokio::test]
async fn one_typo_in_a_common_domain_is_corrected() {
    for (email, meant) in [
        ("mira@gmial.com", Some("mira@gmail.com")),
        ("mira@gmail.con", Some("mira@gmail.com")),
        ("mira@gmal.com", Some("mira@gmail.com")),
        ("mira@gmailcom", Some("mira@gmail.com")),
        ("mira@gmail,com", Some("mira@gmail.com")),
        ("Mira@Hotmial.com", Some("Mira@hotmail.com")),
        ("mira@outlok.com", Some("mira@outlook.com")),
        ("mira@t-onlin.de", Some("mira@t-online.de")),
        ("mira@gmail.com", None),
        ("mira@mail.com", None),
        ("mira@studio.example", None),
        ("mira@gm.com", None),
        ("@gmial.com", None),
    ] {
        assert_eq!(validate(email).await["didYouMean"], json!(meant), "{email}");
    }
}

#[tokio::test]
async fn non_strings_and_overlong_texts_are_refused() {
    for args in [vec![], vec![json!(3)], vec![json!("x".repeat((1 << 20) + 1))]] {
        assert_eq!(call("validateEmail", args).await.unwrap_err().code, "INVALID_ARGUMENT");
    }
}
