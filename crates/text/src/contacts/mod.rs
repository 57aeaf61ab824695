//! `text.extractContacts`: e-mail addresses, phone numbers, URLs and profiles in a text, with their positions.
//! Libraries recognize them (linkify, libphonenumber, url, email_address); this module combines the results.

mod links;
mod names;
mod phones;
mod profiles;

use serde_json::{Value, json};
use toolwright_capabilities::CapabilityError;

use links::Link;

/// A byte range of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// Whether it overlaps one of `others`, which must be sorted.
    fn overlaps_any(self, others: &[Self]) -> bool {
        let next = others.partition_point(|other| other.end <= self.start);
        others.get(next).is_some_and(|other| other.start < self.end)
    }
}

pub fn extract_contacts(text: &str, region: &str) -> Result<Value, CapabilityError> {
    let region = phones::parse_region(region).ok_or_else(|| {
        CapabilityError::invalid(format!(
            "`region` is {region:?}: use a two-letter country code such as \"DE\""
        ))
    })?;
    let links = links::find_links(text);
    let taken: Vec<Span> = links.iter().map(Link::span).collect();
    let mut contacts: Vec<Contact<'_>> = Vec::new();
    contacts.extend(profiles::find_labelled_handles(text, &taken).into_iter().map(Contact::Handle));
    contacts.extend(phones::find_numbers(text, region, &taken).into_iter().map(Contact::Phone));
    contacts.extend(links.into_iter().map(Contact::Link));
    // In text order, so that the offsets are counted in one pass.
    contacts.sort_by_key(|contact| contact.span().start);
    let mut counter = Utf16Counter { text, bytes: 0, units: 0 };
    let (mut emails, mut phones, mut urls, mut profiles) = (vec![], vec![], vec![], vec![]);
    for contact in contacts {
        let span = contact.span();
        let name = names::find_name_near(text, span);
        let (start, end) = (counter.offset_at(span.start), counter.offset_at(span.end));
        match contact {
            Contact::Link(Link::Email { address, .. }) => {
                emails.push(json!({ "address": address, "name": name, "start": start, "end": end }));
            }
            Contact::Link(Link::Url { url, .. }) => match profiles::profile_from_url(&url) {
                Some(profile) => profiles.push(profile.to_json(name, start, end)),
                None => urls.push(json!({ "url": url, "start": start, "end": end })),
            },
            Contact::Handle((_, profile)) => profiles.push(profile.to_json(name, start, end)),
            Contact::Phone(number) => phones.push(json!({
                "e164": number.e164, "raw": &text[span.start..span.end], "region": number.region,
                "extension": number.extension, "name": name, "start": start, "end": end,
            })),
        }
    }
    Ok(json!({ "emails": emails, "phones": phones, "urls": urls, "profiles": profiles }))
}

enum Contact<'t> {
    Link(Link<'t>),
    Handle((Span, profiles::Profile)),
    Phone(phones::FoundNumber),
}

impl Contact<'_> {
    fn span(&self) -> Span {
        match self {
            Self::Link(link) => link.span(),
            Self::Handle((span, _)) => *span,
            Self::Phone(number) => number.span,
        }
    }
}

/// Converts byte offsets to UTF-16 offsets, which JavaScript uses. Counts from the previous offset.
struct Utf16Counter<'t> {
    text: &'t str,
    bytes: usize,
    units: usize,
}

impl Utf16Counter<'_> {
    fn offset_at(&mut self, bytes: usize) -> usize {
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
