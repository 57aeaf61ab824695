//! LinkedIn and GitHub profiles: from a URL, or from a handle written after the name of the service.

use serde_json::{Value, json};
use url::Url;

use super::Span;
use crate::is_listed;

/// A profile at one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    service: &'static str,
    handle: String,
    url: String,
}

/// First path segments of GitHub's own pages, which are not user names.
const GITHUB_PAGES: &str = "about apps blog collections contact customer-stories enterprise events explore \
    features issues join login marketplace new notifications organizations orgs pricing pulls readme search \
    security settings site sponsors stars team topics trending";

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

/// The profile that a URL points to.
pub fn profile_from_url(url: &str) -> Option<Profile> {
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
    (is_github && is_handle(first) && !is_listed(GITHUB_PAGES, first)).then(|| Profile::github(first))
}

/// Handles such as `GitHub: @mira` that overlap none of `taken`, in text order.
pub fn find_labelled_handles(text: &str, taken: &[Span]) -> Vec<(Span, Profile)> {
    let mut found = Vec::new();
    let mut last_end = 0;
    for service in text.split(|letter: char| !letter.is_ascii_alphabetic()) {
        let start = service.as_ptr().addr() - text.as_ptr().addr();
        let make: fn(&str) -> Profile = if service.eq_ignore_ascii_case("github") {
            Profile::github
        } else if service.eq_ignore_ascii_case("linkedin") {
            |handle| Profile::linkedin("in", handle)
        } else {
            continue;
        };
        // A handle may itself be the name of a service.
        let handle = handle_after(text, start + service.len()).filter(|_| start >= last_end);
        if let Some(handle) = handle.filter(|handle| !handle.overlaps_any(taken)) {
            found.push((handle, make(&text[handle.start..handle.end])));
            last_end = handle.end;
        }
    }
    found
}

/// The handle after a colon, an `@` or both. Without either it would be the next word of a sentence.
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
    // Followed by a slash or `.word`, it is part of a URL or domain.
    let after = &text[span.end..];
    let after_dot = after.strip_prefix('.').unwrap_or_default();
    let is_part = after.starts_with(['/', '@', ':']) || after_dot.starts_with(char::is_alphanumeric);
    (!is_part && is_handle(&text[span.start..span.end])).then_some(span)
}

/// The syntax of GitHub handles, with LinkedIn's maximum length.
fn is_handle(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=100).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with(['-', '_'])
        && !text.ends_with(['-', '_'])
}
