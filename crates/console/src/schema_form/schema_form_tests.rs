use serde_json::{Value, json};

use super::*;

fn schema() -> Value {
    json!({
        "type": "object", "required": ["query", "target"],
        "$defs": { "tag": { "type": "string" } },
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": 80, "description": "What to find." },
            "top_k": { "type": "integer", "minimum": 1, "maximum": 10, "default": 5 },
            "exact": { "type": "boolean" },
            "order": { "enum": ["newest", "best"] },
            "filters": { "type": "object", "properties": {
                "tags": { "type": "array", "items": { "$ref": "#/$defs/tag" }, "maxItems": 3 },
                "since": { "type": "string", "format": "date" } } },
            "target": { "oneOf": [
                { "type": "object", "title": "a person", "required": ["email"], "properties": { "email": { "type": "string", "format": "email" } } },
                { "type": "string", "title": "a channel" } ] },
            "extra": { "type": "object", "additionalProperties": true }
        }
    })
}

fn decode_all(fields: &[(&str, &str)]) -> FormValues {
    decode(&schema(), fields.iter().copied())
}

#[test]
fn a_filled_form_becomes_the_arguments() {
    let decoded = decode_all(&[
        ("args/query", "who"),
        ("args/top_k", "7"),
        ("args/exact", "true"),
        ("args/order", "\"newest\""),
        ("args/filters/tags/0", "founder"),
        ("args/filters/tags/2", "active"),
        ("args/filters/since", ""),
        ("args/target@", "0"),
        ("args/target@0/email", "a@example.com"),
        ("args/target@1", "ignored"),
        ("args/extra", "{\"a\": [1]}"),
    ]);
    assert_eq!(decoded.rejected.len(), 0);
    assert_eq!(
        decoded.args,
        json!({ "query": "who", "top_k": 7, "exact": true, "order": "newest",
            "filters": { "tags": ["founder", "active"] }, "target": { "email": "a@example.com" }, "extra": { "a": [1] } })
    );
}

#[test]
fn empty_controls_leave_optional_values_out() {
    let decoded = decode_all(&[
        ("args/query", ""),
        ("args/top_k", ""),
        ("args/exact", ""),
        ("args/order", ""),
        ("args/filters/tags/0", ""),
        ("args/filters/since", ""),
        ("args/target@", "1"),
        ("args/target@1", "general"),
        ("args/extra", " "),
    ]);
    assert_eq!(decoded.args, json!({ "query": "", "target": "general" }));
}

#[test]
fn what_cannot_be_read_is_shown_again_at_its_field() {
    let decoded = decode_all(&[("args/query", "x"), ("args/top_k", "many"), ("args/extra", "{")]);
    assert_eq!(decoded.rejected["args/top_k"].message, "must be a whole number");
    let html = build(&schema(), &decoded, &[]).to_string();
    assert!(html.contains("value=\"many\"") && html.contains("must be a whole number"), "{html}");
    assert!(html.contains("must be JSON: EOF"), "{html}");
}

#[test]
fn errors_of_validation_are_shown_at_their_fields() {
    let errors = [("/filters/tags/1".to_owned(), "must be string".to_owned())];
    let begin = FormValues::from_args(json!({ "filters": { "tags": ["a", "b"] } }));
    let html = build(&schema(), &begin, &errors).to_string();
    let (_, field) = html.split_once("id=\"args/filters/tags/1\"").unwrap();
    let (field, _) = field.split_once("</div>").unwrap();
    assert!(field.contains("aria-invalid=\"true\"") && field.contains(">must be string</span>"), "{field}");
}

#[test]
fn arguments_survive_a_form_unchanged() {
    let args = json!({ "query": "a \"b\" <c>", "top_k": 9_007_199_254_740_993_u64, "exact": false, "order": "best",
        "filters": { "tags": ["x"], "since": "2026-01-31" }, "target": { "email": "a@example.com" } });
    let html = build(&schema(), &FormValues::from_args(args.clone()), &[]).to_string();
    assert_eq!(decode(&schema(), sent(&html).iter().map(|(a, b)| (a.as_str(), b.as_str()))).args, args);
}

#[test]
fn a_schema_that_refers_to_itself_ends_in_a_field_for_json() {
    let schema = json!({ "$ref": "#/$defs/node", "$defs": { "node": { "type": "object",
        "properties": { "name": { "type": "string" }, "next": { "$ref": "#/$defs/node" } } } } });
    let html = build(&schema, &FormValues::from_args(json!({})), &[]).to_string();
    assert!(html.contains("placeholder=\"JSON\"") && html.len() < 20_000, "{}", html.len());
}

#[test]
fn hostile_names_and_values_stay_text() {
    let schema = json!({ "type": "object", "properties": {
        "\"><script>": { "type": "string", "description": "</span><script>alert(1)</script>", "default": "'\"><img>" } } });
    let html = build(&schema, &FormValues::from_args(json!({})), &[]).to_string();
    assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
}

/// The fields that a browser would send of a form without a script.
fn sent(html: &str) -> Vec<(String, String)> {
    let unescape = |text: &str| {
        [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")]
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        rest.split('"').next().map(unescape)
    };
    let mut fields = Vec::new();
    for part in html.split('<').filter(|part| part.contains(" name=\"")) {
        let tag = part.split('>').next().unwrap();
        let name = attribute(tag, "name").unwrap();
        if part.starts_with("input") {
            fields.push((name, attribute(tag, "value").unwrap()));
        } else if part.starts_with("select") {
            let (_, rest) = html.split_once(part).unwrap();
            let options = rest.split("</select>").next().unwrap();
            let chosen =
                options.split("<option").find(|option| option.contains(" selected")).unwrap_or_default();
            fields.push((name, attribute(&format!(" {chosen}"), "value").unwrap_or_default()));
        }
    }
    fields
}

#[test]
fn what_is_for_browsers_without_scripts_does_not_contain_itself() {
    let skills = json!({ "type": "array", "items": { "type": "string" } });
    let person = json!({ "type": "object", "properties": { "skills": skills } });
    let schema =
        json!({ "type": "object", "properties": { "people": { "type": "array", "items": person } } });
    let html = build(&schema, &FormValues::from_args(json!({})), &[]).to_string();
    let mut parts = html.split("<noscript>").skip(1);
    assert!(parts.all(|part| part.contains("</noscript>")), "{html}");
    assert!(html.contains("name=\"args/people/0/skills/0\""), "{html}");
}
