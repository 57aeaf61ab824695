//! The XML of CalDAV: writes calendar queries and reads multistatus responses.

use roxmltree::Document;

use crate::span::Span;

const NAMESPACE: &str = "urn:ietf:params:xml:ns:caldav";
const TIME_FORMAT: &str = "%Y%m%dT%H%M%SZ";

/// A query for the events in a window, with recurrences expanded. A server that does not expand returns the recurrence
/// rules, which `ics` then expands.
pub fn calendar_query(window: Span) -> String {
    let (start, end) = (window.start.format(TIME_FORMAT), window.end.format(TIME_FORMAT));
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<C:calendar-query xmlns:D="DAV:" xmlns:C="{NAMESPACE}"><D:prop><C:calendar-data><C:expand start="{start}" end="{end}"/></C:calendar-data></D:prop><C:filter><C:comp-filter name="VCALENDAR"><C:comp-filter name="VEVENT"><C:time-range start="{start}" end="{end}"/></C:comp-filter></C:comp-filter></C:filter></C:calendar-query>"#
    )
}

/// The iCalendar texts in a response, one for each resource.
pub fn calendar_data(body: &str) -> Result<Vec<String>, String> {
    let document = Document::parse(body).map_err(|error| error.to_string())?;
    let is_data = |node: &roxmltree::Node<'_, '_>| node.has_tag_name((NAMESPACE, "calendar-data"));
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
}
