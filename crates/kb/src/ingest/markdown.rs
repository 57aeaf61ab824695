//! Markdown and plain text files. A Markdown file is split at its headings of levels 1 and 2: the part before the
//! second heading is the file's own record, each further section is a record with the id `type:file#section`.

use std::collections::HashMap;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::files::base_name;
use super::front_matter::{self, FrontMatter};
use super::record_input::{RecordInput, slug};
use super::{FileContext, ParseError, ParseResult};

/// A section of a file.
struct Section {
    title: String,
    /// The offset of its heading.
    start: usize,
    /// The offset of the text after its heading.
    body: usize,
}

/// The records of a Markdown file.
pub fn parse_markdown(file: FileContext<'_>, text: &str) -> Vec<ParseResult> {
    let (front_matter, rest, first_line) = match front_matter::split(text) {
        Ok(parts) => parts,
        Err(error) => return vec![Err(error)],
    };
    if front_matter.is_single_record {
        return vec![single_record(file, front_matter, rest, "markdown")];
    }
    let line_at = |offset: usize| first_line + rest[..offset].matches('\n').count();
    let to_record = |(start, input): (usize, RecordInput)| match input.into_record(
        file.source,
        "markdown",
        file.defaults,
    ) {
        Ok(record) => Ok((line_at(start), record)),
        Err(message) => Err(ParseError { line: Some(line_at(start)), message }),
    };
    section_inputs(file, &front_matter.input, rest).into_iter().map(to_record).collect()
}

/// The records of the sections, with their offsets.
fn section_inputs(
    file: FileContext<'_>,
    front_matter: &RecordInput,
    text: &str,
) -> Vec<(usize, RecordInput)> {
    let sections = find_sections(text);
    let own_heading = sections.first().filter(|first| text[..first.start].trim().is_empty());
    let title = front_matter.title.clone().or_else(|| own_heading.map(|heading| heading.title.clone()));
    let title = title.unwrap_or_else(|| base_name(file.path));
    let further = &sections[usize::from(own_heading.is_some())..];
    let own_start = own_heading.map_or(0, |heading| heading.body);
    let own_text = text[own_start..further.first().map_or(text.len(), |next| next.start)].trim();
    let id = file_id(file, front_matter);
    let mut inputs = Vec::new();
    if !own_text.is_empty() || further.is_empty() {
        inputs.push((0, section_input(front_matter, id.clone(), title.clone(), own_text)));
    }
    let mut slug_counts: HashMap<String, u32> = HashMap::new();
    for (at, section) in further.iter().enumerate() {
        let body = text[section.body..further.get(at + 1).map_or(text.len(), |next| next.start)].trim();
        let mut name = slug(&section.title);
        let count = slug_counts.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name}_{count}");
        }
        if !body.is_empty() {
            let title = format!("{title}: {}", section.title);
            inputs.push((section.start, section_input(front_matter, format!("{id}#{name}"), title, body)));
        }
    }
    inputs
}

/// A text file is one record.
pub fn parse_text(file: FileContext<'_>, text: &str) -> Vec<ParseResult> {
    let (front_matter, rest, _) = match front_matter::split(text) {
        Ok(parts) => parts,
        Err(error) => return vec![Err(error)],
    };
    vec![single_record(file, front_matter, rest, "text")]
}

/// The whole file as one record. A short first line is its title.
fn single_record(
    file: FileContext<'_>,
    front_matter: FrontMatter,
    text: &str,
    source_type: &str,
) -> ParseResult {
    let heading = text.trim_start().lines().next().map(|line| line.trim_start_matches('#').trim());
    let heading = heading.filter(|line| !line.is_empty() && line.len() <= 100).map(str::to_owned);
    let title = front_matter.input.title.clone().or(heading).unwrap_or_else(|| base_name(file.path));
    let input = section_input(&front_matter.input, file_id(file, &front_matter.input), title, text.trim());
    let record = input.into_record(file.source, source_type, file.defaults);
    record.map(|record| (1, record)).map_err(|message| ParseError { line: Some(1), message })
}

/// The fields of the front matter, with the id, title and text of one section.
fn section_input(front_matter: &RecordInput, id: String, title: String, text: &str) -> RecordInput {
    let text = Some(text.to_owned());
    RecordInput { id: Some(id), title: Some(title), text, ..front_matter.clone() }
}

/// The id in the front matter, or else one from the file name.
fn file_id(file: FileContext<'_>, front_matter: &RecordInput) -> String {
    match &front_matter.id {
        Some(id) => id.clone(),
        None => format!("{}:{}", front_matter.kind.as_deref().unwrap_or("doc"), file.name),
    }
}

/// The headings of levels 1 and 2. A Markdown parser finds them, so that code blocks are skipped.
fn find_sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut in_heading = false;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }) => {
                sections.push(Section { title: String::new(), start: range.start, body: range.end });
                in_heading = true;
            }
            Event::End(TagEnd::Heading(_)) => in_heading = false,
            Event::Text(part) | Event::Code(part) if in_heading => {
                if let Some(section) = sections.last_mut() {
                    section.title.push_str(&part);
                }
            }
            _ => {}
        }
    }
    sections
}
