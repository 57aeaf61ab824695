//! Characters that hide text or turn its direction: pages show them as their code, and fields keep them as they are.

use std::fmt::Write;

use askama::Template;
use askama::filters::{Escaper, Html};
use toolwright_contract::escape::{escape_page, is_hidden};

/// The HTML of a page. A person approves what they read: a bidirectional control is shown as `\u202e`, which in JSON is
/// the same value.
pub fn render(page: &impl Template) -> Result<String, askama::Error> {
    Ok(escape_page(&page.render()?).into_owned())
}

/// For the values of fields, which the browser sends back: with references to characters, which [`render`] keeps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exact;

impl Escaper for Exact {
    fn write_escaped_str<W: Write>(&self, mut dest: W, text: &str) -> std::fmt::Result {
        let mut rest = text;
        while let Some((before, character)) = rest.find(is_hidden).and_then(|at| {
            let (before, after) = rest.split_at(at);
            Some((before, after.chars().next()?))
        }) {
            Html.write_escaped_str(&mut dest, before)?;
            write!(dest, "&#{};", u32::from(character))?;
            rest = &rest[before.len() + character.len_utf8()..];
        }
        Html.write_escaped_str(dest, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::parts::{Chip, Choice, Code, Tone};

    #[test]
    fn text_that_would_reorder_a_page_is_shown_as_its_code() {
        assert_eq!(
            render(&Chip::new(Tone::Ok, "a\u{202e}b\u{2066}\0<")).unwrap(),
            "<span class=\"chip ok\">a\\u202eb\\u2066\\u0000&#60;</span>"
        );
        let code = render(&Code::new("Arguments", "{\n\t\"a\": 1\n}")).unwrap();
        assert!(code.contains("{\n\t&#34;a&#34;: 1\n}"), "{code}");
    }

    #[test]
    fn what_a_form_sends_back_is_exact() {
        let choice = render(&Choice::new("<a\u{202e}b\n", "a\u{202e}", None)).unwrap();
        assert_eq!(choice, "<option value=\"&#60;a&#8238;b&#10;\">a\\u202e</option>");
    }
}
