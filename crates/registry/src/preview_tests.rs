use serde_json::json;

use super::*;

#[test]
fn places_are_replaced_by_arguments() {
    let args = json!({"title": "Kick-off", "guests": ["a", "b"], "at": {"day": 3}});
    let preview = render("“{{title}}” with {{ guests.length }} on {{at.day}}{{nothing.here}}.", &args);
    assert_eq!(preview.unwrap(), "“Kick-off” with 2 on 3.");
    assert_eq!(names("{{a.b}} {{c}}").unwrap(), ["a", "c"]);
}

#[test]
fn invalid_templates_are_rejected() {
    assert_eq!(names("{{a"), Err(Error::Unclosed));
    assert_eq!(names("{{a b}}"), Err(Error::NotAName("a b".to_owned())));
    assert_eq!(names("{{}}"), Err(Error::NotAName(String::new())));
}
