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
#[path = "caldav_xml_tests.rs"]
mod tests;
