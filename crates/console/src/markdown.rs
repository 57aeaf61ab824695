//! Documentation of tools as HTML. Its authors are not trusted: HTML in it stays text, links lead to web and mail
//! addresses only, and pictures, which would be requests to other hosts, are shown as their description.

use askama::filters::HtmlSafe;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// Rendered Markdown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markdown(String);

impl Markdown {
    /// A long text is cut after `max` bytes; says whether it was.
    pub fn limited(text: &str, max: usize) -> (Self, bool) {
        let end = text.floor_char_boundary(max);
        (Self::new(&text[..end]), end < text.len())
    }

    pub fn new(text: &str) -> Self {
        let mut safe = String::with_capacity(text.len() * 3 / 2);
        let mut open_links = Vec::new();
        let events = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
        html::push_html(&mut safe, events.filter_map(|event| filter_event(event, &mut open_links)));
        Self(safe)
    }
}

impl std::fmt::Display for Markdown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl HtmlSafe for Markdown {}

/// The event, if it may be part of a page. `open_links` says of each open link whether it was kept.
fn filter_event<'a>(event: Event<'a>, open_links: &mut Vec<bool>) -> Option<Event<'a>> {
    Some(match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            open_links.push(is_safe(&dest_url));
            if !is_safe(&dest_url) {
                return None;
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        Event::End(TagEnd::Link) if open_links.pop() != Some(true) => return None,
        Event::Start(Tag::Image { .. }) => Event::Text(CowStr::Borrowed("[picture: ")),
        Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("]")),
        // The page has the first level for itself.
        Event::Start(Tag::Heading { level, classes, .. }) => {
            Event::Start(Tag::Heading { level: demote_heading(level), id: None, classes, attrs: Vec::new() })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(demote_heading(level))),
        other => other,
    })
}

fn is_safe(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

fn demote_heading(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H2,
        HeadingLevel::H2 => HeadingLevel::H3,
        HeadingLevel::H3 => HeadingLevel::H4,
        HeadingLevel::H4 => HeadingLevel::H5,
        HeadingLevel::H5 | HeadingLevel::H6 => HeadingLevel::H6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_authors_stays_text() {
        let cases = [
            ("a <script>alert(1)</script>", "<p>a &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"),
            ("[x](javascript:alert(1))", "<p>x</p>\n"),
            ("[x](JaVaScRiPt:alert(1))", "<p>x</p>\n"),
            ("[x](data:text/html,1)", "<p>x</p>\n"),
            ("[x](//evil.example)", "<p>x</p>\n"),
            ("[x](https://example.com)", "<p><a href=\"https://example.com\">x</a></p>\n"),
            ("<mailto:a@example.com>", "<p><a href=\"mailto:a@example.com\">mailto:a@example.com</a></p>\n"),
            ("![a](https://example.com/a.png)", "<p>[picture: a]</p>\n"),
            ("# Title", "<h2>Title</h2>\n"),
            ("[![a](x)](javascript:1)", "<p>[picture: a]</p>\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(Markdown::new(text).to_string(), expected, "{text}");
        }
        let block = Markdown::new("<div onclick=\"x\">\n<b>y</b>\n</div>\n").to_string();
        assert!(!block.contains("<div") && !block.contains("<b>"), "{block}");
    }
}
