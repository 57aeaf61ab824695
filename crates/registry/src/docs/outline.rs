//! One pass over a document's Markdown: its headings, whether each has content, its examples and its unclosed fences.

use super::examples::{Example, ExampleKind};
use super::sections;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Outline {
    pub headings: Vec<Heading>,
    pub examples: Vec<Example>,
    pub unclosed_fences: Vec<Range<usize>>,
}

#[derive(Debug)]
pub(super) struct Heading {
    pub level: u8,
    /// As rendered: without markup, white space collapsed.
    pub text: String,
    pub span: Range<usize>,
    /// There is text between this heading and the next one of level 1 or 2.
    pub has_content: bool,
    /// Index range in `Outline::examples`.
    pub examples: Range<usize>,
}

pub(super) fn read(text: &str) -> Outline {
    // The parser would read a byte order mark as the first letter of the first line.
    let mark = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let mut builder = OutlineBuilder { text, ..OutlineBuilder::default() };
    let parser = Parser::new_ext(&text[mark..], Options::ENABLE_TABLES);
    for (event, span) in parser.into_offset_iter() {
        builder.event(event, span.start + mark..span.end + mark);
    }
    builder.close_html();
    builder.outline
}

#[derive(Debug, Default)]
struct OutlineBuilder<'t> {
    text: &'t str,
    outline: Outline,
    /// How many quotes and lists are open: a heading inside one is not a section of the document.
    containers: usize,
    heading: Option<Heading>,
    /// The heading of level 1 or 2 that the text below belongs to.
    section: Option<usize>,
    block: Option<Example>,
    html: String,
}

impl OutlineBuilder<'_> {
    fn event(&mut self, event: Event, span: Range<usize>) {
        match event {
            Event::Start(tag) => self.open(tag, span),
            Event::End(tag) => self.close(tag, span),
            Event::Text(text) => self.text(&text, span),
            Event::Code(text) => self.text(&text, span),
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut self.heading {
                    heading.text.push(' ');
                }
            }
            Event::Html(text) | Event::InlineHtml(text) => self.html.push_str(&text),
            _ => {}
        }
    }

    fn open(&mut self, tag: Tag, span: Range<usize>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.close_html();
                let text = String::new();
                let span = trim_end(self.text, span);
                self.heading =
                    Some(Heading { level: level as u8, text, span, has_content: false, examples: 0..0 });
            }
            Tag::BlockQuote(_) | Tag::List(_) | Tag::Item => self.containers += 1,
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                self.block = Some(Example::new(&info, self.first_line_end(&span)));
            }
            Tag::Image { .. } => self.mark_content(),
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd, span: Range<usize>) {
        match tag {
            TagEnd::Heading(_) => self.close_heading(),
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => {
                self.containers = self.containers.saturating_sub(1);
            }
            TagEnd::CodeBlock => self.close_block(span),
            TagEnd::HtmlBlock | TagEnd::Paragraph => self.close_html(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, span: Range<usize>) {
        if let Some(block) = &mut self.block {
            block.push(self.text, span);
        }
        match &mut self.heading {
            Some(heading) => heading.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => self.mark_content(),
        }
    }

    fn mark_content(&mut self) {
        let section = self.section.and_then(|at| self.outline.headings.get_mut(at));
        if let Some(section) = section.filter(|_| self.heading.is_none()) {
            section.has_content = true;
        }
    }

    fn close_heading(&mut self) {
        self.html.clear();
        let Some(mut heading) = self.heading.take() else {
            return;
        };
        if self.containers > 0 {
            return;
        }
        heading.text = heading.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let next = self.outline.examples.len();
        heading.examples = next..next;
        if heading.level <= 2 {
            self.section = Some(self.outline.headings.len());
        }
        self.outline.headings.push(heading);
    }

    fn close_block(&mut self, span: Range<usize>) {
        let Some(block) = self.block.take() else { return };
        if !is_closed(&self.text[span.clone()]) {
            let opening = span.start..self.first_line_end(&span);
            self.outline.unclosed_fences.push(trim_end(self.text, opening));
        }
        let section = self.section.and_then(|at| self.outline.headings.get_mut(at));
        if let Some(section) = section.filter(|section| sections::holds_examples(section))
            && block.kind != ExampleKind::Other
        {
            self.outline.examples.push(block);
            section.examples.end = self.outline.examples.len();
        }
    }

    fn first_line_end(&self, span: &Range<usize>) -> usize {
        self.text[span.clone()].find('\n').map_or(span.end, |at| span.start + at + 1)
    }

    /// HTML counts as content unless it consists of comments only.
    fn close_html(&mut self) {
        let html = std::mem::take(&mut self.html);
        let mut rest = html.as_str();
        while let Some(open) = rest.find("<!--") {
            if !rest[..open].trim().is_empty() {
                return self.mark_content();
            }
            let after = &rest[open + 4..];
            rest = after.find("-->").map_or("", |close| &after[close + 3..]);
        }
        if !rest.trim().is_empty() {
            self.mark_content();
        }
    }
}

/// Whether the last line of a fenced block closes it.
fn is_closed(block: &str) -> bool {
    let block = block.trim_start();
    let Some(fence) = block.chars().next().filter(|c| matches!(c, '`' | '~')) else {
        return true;
    };
    let width = block.len() - block.trim_start_matches(fence).len();
    let Some((_, last)) = block.trim_end().rsplit_once('\n') else {
        return false;
    };
    let last = last.trim_start_matches([' ', '\t', '>']).trim_end();
    last.len() >= width && last.chars().all(|c| c == fence)
}

fn trim_end(text: &str, span: Range<usize>) -> Range<usize> {
    let length = text.get(span.clone()).map_or(0, |slice| slice.trim_end().len());
    span.start..span.start + length
}
