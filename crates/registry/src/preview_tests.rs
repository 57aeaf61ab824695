use serde_json::json;

use super::*;

#[test]
fn places_are_replaced_by_arguments() {
    let args = json!({"title": "Kick-off", "guests": ["a", "b"], "at": {"day": 3}});
    let preview = render("“{{title}}” with {{ guests.length }} on {{at.day}}{{nothing.here}}.", &args, &[]);
    assert_eq!(preview.unwrap(), "“Kick-off” with 2 on 3.");
    assert_eq!(names("{{a.b}} {{c}}").unwrap(), ["a", "c"]);
}

#[test]
fn invalid_templates_are_rejected() {
    assert_eq!(names("{{a"), Err(Error::Unclosed));
    assert_eq!(names("{{a b}}"), Err(Error::NotAName("a b".to_owned())));
    assert_eq!(names("{{}}"), Err(Error::NotAName(String::new())));
}

#[test]
fn items_lists_and_defaults_are_shown() {
    let values = json!({ "index": 1, "far": 7, "draft": { "slots": [{ "at": "ten" }, { "at": "two" }],
        "guests": ["a", "b"], "empty": [], "place": null } });
    let rendered = |template: &str| render(template, &values, &["draft"]);
    assert_eq!(rendered("{{draft.slots[index].at}}, {{draft.guests}}").unwrap(), "two, a, b");
    assert_eq!(
        rendered("{{draft.place|nowhere}} {{ draft.empty | nobody }}{{missing}}").unwrap(),
        "nowhere nobody"
    );
    assert_eq!(rendered("{{draft.slots[far].at}}"), Err(Error::Missing("draft.slots[far].at".to_owned())));
    assert_eq!(names("{{draft.slots[index].at|none}}").unwrap(), ["draft", "index"]);
    assert_eq!(names("{{a[0].b}}").unwrap(), ["a", "0"]);
    assert!(names("{{a[b.c}}").is_err());
}

#[test]
fn a_text_that_is_one_place_becomes_the_value() {
    let with = json!({ "id": "{{id}}", "text": "no. {{id}}", "deep": { "list": ["{{list}}"] }, "top": 3 });
    let filled = fill(with.as_object().unwrap(), &json!({ "id": 7, "list": [1] })).unwrap();
    assert_eq!(
        Value::Object(filled),
        json!({ "id": 7, "text": "no. 7", "deep": { "list": [[1]] }, "top": 3 })
    );
}
