//! Profiles at LinkedIn and GitHub: by their address, or by a handle that is written with the service's name.

use serde_json::{Value, json};
use url::Url;

use super::Span;

/// A handle of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    service: &'static str,
    handle: String,
    url: String,
}

/// First parts of GitHub's own pages.
const NOT_PEOPLE: &[&str] = &[
    "about",
    "apps",
    "blog",
    "collections",
    "contact",
    "customer-stories",
    "enterprise",
    "events",
    "explore",
    "features",
    "issues",
    "join",
    "login",
    "marketplace",
    "new",
    "notifications",
    "organizations",
    "orgs",
    "pricing",
    "pulls",
    "readme",
    "search",
    "security",
    "settings",
    "site",
    "sponsors",
    "stars",
    "team",
    "topics",
    "trending",
];

impl Profile {
    fn linkedin(kind: &str, handle: &str) -> Self {
        let url = format!("https://www.linkedin.com/{kind}/{handle}");
        Self { service: "linkedin", handle: handle.to_owned(), url }
    }

    fn github(handle: &str) -> Self {
        let url = format!("https://github.com/{handle}");
        Self { service: "github", handle: handle.to_owned(), url }
    }

    pub fn to_json(&self, name: Option<&str>, start: usize, end: usize) -> Value {
        let Self { service, handle, url } = self;
        json!({ "service": service, "handle": handle, "url": url, "name": name, "start": start, "end": end })
    }
}

/// The profile that an address leads to.
pub fn of(url: &str) -> Option<Profile> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let mut path = url.path_segments()?.filter(|part| !part.is_empty());
    let first = path.next()?;
    if host == "linkedin.com" || host.ends_with(".linkedin.com") {
        let handle = path.next()?;
        return match first {
            "in" | "company" | "school" => Some(Profile::linkedin(first, handle)),
            _ => None,
        };
    }
    let is_github = matches!(host, "github.com" | "www.github.com");
    (is_github && is_handle(first) && !NOT_PEOPLE.contains(&first)).then(|| Profile::github(first))
}

/// Handles such as `GitHub: @mira` outside of these spans, in the order of the text.
pub fn labelled(text: &str, taken: &[Span]) -> Vec<(Span, Profile)> {
    let mut found = Vec::new();
    let mut words = Words { text, at: 0 };
    while let Some(span) = words.next() {
        let service = &text[span.start..span.end];
        let make: fn(&str) -> Profile = if service.eq_ignore_ascii_case("github") {
            Profile::github
        } else if service.eq_ignore_ascii_case("linkedin") {
            |handle| Profile::linkedin("in", handle)
        } else {
            continue;
        };
        let Some(handle) = handle_after(text, span.end) else { continue };
        if !handle.is_in(taken) {
            found.push((handle, make(&text[handle.start..handle.end])));
            words.at = handle.end;
        }
    }
    found
}

/// The handle behind a colon, an `@` or both. Without either it would be the next word of a sentence.
fn handle_after(text: &str, at: usize) -> Option<Span> {
    let rest = &text[at..];
    let marks =
        rest.find(|letter: char| !matches!(letter, ' ' | '\t' | ':' | '@' | '(')).unwrap_or(rest.len());
    if marks > 8 || !rest[..marks].contains([':', '@']) {
        return None;
    }
    let length =
        rest[marks..].find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-' && letter != '_');
    let length = length.unwrap_or(rest.len() - marks);
    let span = Span { start: at + marks, end: at + marks + length };
    // A dot or slash after it makes it a part of something else.
    let after = &text[span.end..];
    let after_dot = after.strip_prefix('.').unwrap_or_default();
    let is_part = after.starts_with(['/', '@', ':']) || after_dot.starts_with(char::is_alphanumeric);
    (!is_part && is_handle(&text[span.start..span.end])).then_some(span)
}

/// As GitHub has them; LinkedIn's are no longer.
fn is_handle(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=100).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with(['-', '_'])
        && !text.ends_with(['-', '_'])
}

/// Runs of letters.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<Span> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let rest = &self.text[start..];
        let length = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.at = start + length;
        Some(Span { start, end: self.at })
    }
}
