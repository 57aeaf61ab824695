//! Markdown and text. A Markdown file is cut at its headings of the first two levels: what stands before the second
//! heading is the file's own record, each further section one of its own with the id `type:file#section`.

use std::collections::HashMap;

use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::front::{self, Front};
use super::raw::{Raw, slug};
use super::walk::name_of;
use super::{Parsed, Reading, Trouble};
use crate::record::Source;

/// A section of a file.
struct Section {
    title: String,
    /// Where its heading begins and where the text after it does.
    start: usize,
    body: usize,
}

/// The records of a Markdown file.
pub fn records(file: Reading<'_>, text: &str) -> Vec<Parsed> {
    let (front, rest, first_line) = match front::split(text) {
        Ok(parts) => parts,
        Err((line, message)) => return vec![Err(Trouble { line: Some(line), message })],
    };
    if front.whole {
        return one(file, front, rest, "markdown");
    }
    let sections = sections(rest);
    let leads = sections.first().is_some_and(|first| rest[..first.start].trim().is_empty());
    let own_heading = if leads { sections.first() } else { None };
    let title = front.raw.title.clone().or_else(|| own_heading.map(|heading| heading.title.clone()));
    let title = title.unwrap_or_else(|| name_of(file.path));
    let further = &sections[usize::from(own_heading.is_some())..];
    let own_start = own_heading.map_or(0, |heading| heading.body);
    let own = rest[own_start..further.first().map_or(rest.len(), |next| next.start)].trim();
    let mut raws = Vec::new();
    let id = file_id(file, &front.raw);
    if !own.is_empty() || further.is_empty() {
        raws.push((0, raw_of(&front.raw, id.clone(), title.clone(), own)));
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    for (at, section) in further.iter().enumerate() {
        let body = rest[section.body..further.get(at + 1).map_or(rest.len(), |next| next.start)].trim();
        let mut name = slug(&section.title);
        let count = times.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name}_{count}");
        }
        if !body.is_empty() {
            let title = format!("{title}: {}", section.title);
            raws.push((section.start, raw_of(&front.raw, format!("{id}#{name}"), title, body)));
        }
    }
    let line_of = |start: usize| first_line + rest[..start].matches('\n').count();
    let parsed = |(start, raw): (usize, Raw)| match raw.record(file.source, "markdown", file.defaults) {
        Ok(record) => Ok((line_of(start), record)),
        Err(message) => Err(Trouble { line: Some(line_of(start)), message }),
    };
    raws.into_iter().map(parsed).collect()
}

/// A text file is one record; its first line is its title where that is short enough for one.
pub fn whole(file: Reading<'_>, text: &str) -> Vec<Parsed> {
    match front::split(text) {
        Ok((front, rest, _)) => one(file, front, rest, "text"),
        Err((line, message)) => vec![Err(Trouble { line: Some(line), message })],
    }
}

fn one(file: Reading<'_>, front: Front, text: &str, source_type: &str) -> Vec<Parsed> {
    let heading = text.trim_start().lines().next().map(|line| line.trim_start_matches('#').trim());
    let heading = heading.filter(|line| !line.is_empty() && line.len() <= 100).map(str::to_owned);
    let title = front.raw.title.clone().or(heading).unwrap_or_else(|| name_of(file.path));
    let id = file_id(file, &front.raw);
    let record = raw_of(&front.raw, id, title, text.trim()).record(file.source, source_type, file.defaults);
    vec![record.map(|record| (1, record)).map_err(|message| Trouble { line: Some(1), message })]
}

/// What all records of a file have in common, with what is this one's own.
fn raw_of(front: &Raw, id: String, title: String, text: &str) -> Raw {
    Raw {
        id: Some(id),
        kind: front.kind.clone(),
        title: Some(title),
        text: Some(text.to_owned()),
        namespace: front.namespace.clone(),
        owner: front.owner.clone(),
        tags: front.tags.clone(),
        source_type: front.source_type.clone(),
        last_updated: front.last_updated.clone(),
        url: front.url.clone(),
        metadata: front.metadata.clone(),
        sources: front.sources.as_ref().map(|sources| sources.iter().map(Source::clone).collect()),
    }
}

/// The id that the front matter gives, or one from the file's name.
fn file_id(file: Reading<'_>, front: &Raw) -> String {
    match &front.id {
        Some(id) => id.clone(),
        None => format!("{}:{}", front.kind.as_deref().unwrap_or("doc"), file.name),
    }
}

/// The headings of the first two levels, as a Markdown parser sees them: one inside a code block is none.
fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut open = false;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }) => {
                sections.push(Section { title: String::new(), start: range.start, body: range.end });
                open = true;
            }
            Event::End(TagEnd::Heading(_)) => open = false,
            Event::Text(part) | Event::Code(part) if open => {
                if let Some(section) = sections.last_mut() {
                    section.title.push_str(&part);
                }
            }
            _ => {}
        }
    }
    sections
}
