use super::*;

#[test]
fn calendar_data_is_found_with_any_namespace_prefix() {
    let body = r#"<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:cal="urn:ietf:params:xml:ns:caldav">
        <d:response><d:href>/a.ics</d:href><d:propstat><d:prop><cal:calendar-data>A &amp; <![CDATA[<B>]]></cal:calendar-data></d:prop></d:propstat></d:response>
        <d:response><d:href>/</d:href><d:propstat><d:prop><cal:calendar-data/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response></d:multistatus>"#;
    assert_eq!(calendar_data(body).unwrap(), ["A & <B>"]);
}

#[test]
fn entity_declarations_are_refused() {
    assert!(calendar_data("<!DOCTYPE x [<!ENTITY a \"aa\">]><x>&a;</x>").is_err());
    assert!(calendar_data("not XML").is_err());
}
