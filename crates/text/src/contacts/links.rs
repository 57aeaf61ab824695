//! E-mail addresses and web addresses in a text, by linkify. A domain without a scheme counts only where it is safe: file
//! names and missing spaces look like one.

use linkify::{LinkFinder, LinkKind};

use super::Span;
use crate::address;

/// Longer than any address that somebody wants to have found.
const LONGEST: usize = 2000;

/// Endings by which a bare domain is taken for one; none of them is the ending of a file or a word.
const ENDINGS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "int", "info", "biz", "io", "dev", "app", "ai", "co", "me", "tv",
    "eu", "example", "studio", "agency", "design", "shop", "store", "online", "site", "tech", "cloud",
    "blog", "news", "page", "xyz", "de", "at", "ch", "fr", "es", "it", "nl", "be", "dk", "se", "no", "fi",
    "pt", "ie", "uk", "us", "ca", "au", "nz", "jp", "br", "mx", "ar", "cl", "in", "cz", "gr", "hu", "ro",
    "ua", "tr", "za", "kr", "cn", "ru", "lu", "li", "is",
];

/// What was found, where.
#[derive(Debug)]
pub enum Link<'t> {
    Email { span: Span, address: &'t str },
    Url { span: Span, url: String },
}

impl Link<'_> {
    pub const fn span(&self) -> Span {
        match self {
            Self::Email { span, .. } | Self::Url { span, .. } => *span,
        }
    }
}

/// In the order of the text, without overlap.
pub fn find(text: &str) -> Vec<Link<'_>> {
    let mut finder = LinkFinder::new();
    finder.url_must_have_scheme(false);
    let found = finder.links(text).filter(|link| link.end() - link.start() <= LONGEST);
    found
        .filter_map(|link| {
            let (span, written) = (Span { start: link.start(), end: link.end() }, link.as_str());
            match link.kind() {
                LinkKind::Email => {
                    address::validate(written).is_valid().then_some(Link::Email { span, address: written })
                }
                _ => web(written).map(|url| Link::Url { span, url }),
            }
        })
        .collect()
}

/// The address with its scheme, if it is one of the web.
fn web(written: &str) -> Option<String> {
    if written.contains("://") {
        let scheme = written.split(':').next()?.to_ascii_lowercase();
        return matches!(scheme.as_str(), "http" | "https").then(|| written.to_owned());
    }
    let host = written.split(['/', '?', '#', ':']).next()?;
    let ending = host.rsplit('.').next()?.to_ascii_lowercase();
    let is_www = host.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("www."));
    // "Best.In town" is two sentences: an ending in capitals is none.
    let is_safe =
        ENDINGS.contains(&ending.as_str()) && !host.rsplit('.').next()?.starts_with(char::is_uppercase);
    (is_www || is_safe).then(|| format!("https://{written}"))
}
