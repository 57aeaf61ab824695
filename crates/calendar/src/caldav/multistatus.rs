//! The XML of CalDAV: the question for what is in a window, and the calendars in the answer.

use roxmltree::Document;

use crate::busy::Span;

const CALDAV: &str = "urn:ietf:params:xml:ns:caldav";
const FORM: &str = "%Y%m%dT%H%M%SZ";

/// Asks for the events in a window, recurrences expanded. A server that does not expand sends the rules, which are then
/// followed here.
pub fn query(window: Span) -> String {
    let (start, end) = (window.start.format(FORM), window.end.format(FORM));
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="{CALDAV}"><D:prop><C:calendar-data><C:expand start="{start}" end="{end}"/></C:calendar-data></D:prop><C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="{start}" end="{end}"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"#
    )
}

/// The calendars in an answer, one a resource.
pub fn calendar_data(body: &str) -> Result<Vec<String>, String> {
    let document = Document::parse(body).map_err(|error| error.to_string())?;
    let is_data = |node: &roxmltree::Node<'_, '_>| node.has_tag_name((CALDAV, "calendar-data"));
    let text = |node: roxmltree::Node<'_, '_>| {
        let parts = node.children().filter_map(|child| child.text());
        parts.collect::<String>()
    };
    let texts = document.descendants().filter(is_data).map(text);
    Ok(texts.filter(|text| !text.trim().is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendars_are_found_whatever_the_prefixes_are() {
        let body = r#"<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:cal="urn:ietf:params:xml:ns:caldav">
            <d:response><d:href>/a.ics</d:href><d:propstat><d:prop><cal:calendar-data>A &amp; <![CDATA[<B>]]></cal:calendar-data></d:prop></d:propstat></d:response>
            <d:response><d:href>/</d:href><d:propstat><d:prop><cal:calendar-data/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response></d:multistatus>"#;
        assert_eq!(calendar_data(body).unwrap(), ["A & <B>"]);
    }

    #[test]
    fn entities_that_multiply_are_refused() {
        assert!(calendar_data("<!DOCTYPE x [<!ENTITY a \"aa\">]><x>&a;</x>").is_err());
        assert!(calendar_data("not XML").is_err());
    }
}
