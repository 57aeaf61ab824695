//! `text.extractContacts`: what stands in a text, each at its place, in one list each. Recognition is that of libraries
//! (linkify, libphonenumber, url, email_address); here it is put together.

mod links;
mod names;
mod phones;
mod profiles;

use serde_json::{Value, json};
use toolwright_capabilities::Fault;

use crate::invalid;
use links::Link;

/// A part of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// Whether it overlaps one of these, which are in order.
    fn is_in(self, taken: &[Self]) -> bool {
        let next = taken.partition_point(|other| other.end <= self.start);
        taken.get(next).is_some_and(|other| other.start < self.end)
    }
}

pub fn extract(text: &str, region: &str) -> Result<Value, Fault> {
    let region =
        phones::region(region).ok_or_else(|| invalid(&format!("{region} is not a country's code")))?;
    let links = links::find(text);
    let taken: Vec<Span> = links.iter().map(Link::span).collect();
    let handles = profiles::labelled(text, &taken);
    let numbers = phones::find(text, region, &taken);

    let mut units = Units::new(text);
    let mut place = |span: Span| (units.at(span.start), units.at(span.end));
    let (mut emails, mut urls, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
    // In the order of the text, so that counting goes over it once.
    let mut found: Vec<Found<'_>> = Vec::with_capacity(links.len() + handles.len() + numbers.len());
    found.extend(links.into_iter().map(Found::Link));
    found.extend(handles.into_iter().map(Found::Handle));
    found.extend(numbers.into_iter().map(Found::Number));
    found.sort_by_key(|one| one.span().start);
    let mut phones = Vec::new();
    for one in found {
        let span = one.span();
        let name = names::near(text, span);
        let (start, end) = place(span);
        match one {
            Found::Link(Link::Email { address, .. }) => {
                emails.push(json!({ "address": address, "name": name, "start": start, "end": end }));
            }
            Found::Link(Link::Url { url, .. }) => match profiles::of(&url) {
                Some(profile) => profiles.push(profile.to_json(name, start, end)),
                None => urls.push(json!({ "url": url, "start": start, "end": end })),
            },
            Found::Handle((_, profile)) => profiles.push(profile.to_json(name, start, end)),
            Found::Number(number) => phones.push(json!({
                "e164": number.e164, "raw": &text[span.start..span.end], "region": number.region,
                "extension": number.extension, "name": name, "start": start, "end": end,
            })),
        }
    }
    Ok(json!({ "emails": emails, "phones": phones, "urls": urls, "profiles": profiles }))
}

enum Found<'t> {
    Link(Link<'t>),
    Handle((Span, profiles::Profile)),
    Number(phones::Number),
}

impl Found<'_> {
    fn span(&self) -> Span {
        match self {
            Self::Link(link) => link.span(),
            Self::Handle((span, _)) => *span,
            Self::Number(number) => number.span,
        }
    }
}

/// Counts as handlers count: in units of UTF-16. Goes forward only, but for the overlap of two neighbours.
struct Units<'t> {
    text: &'t str,
    bytes: usize,
    units: usize,
}

impl<'t> Units<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, bytes: 0, units: 0 }
    }

    fn at(&mut self, bytes: usize) -> usize {
        let between =
            |from: usize, to: usize| self.text[from..to].chars().map(char::len_utf16).sum::<usize>();
        self.units = match bytes >= self.bytes {
            true => self.units + between(self.bytes, bytes),
            false => self.units - between(bytes, self.bytes),
        };
        self.bytes = bytes;
        self.units
    }
}
