//! E-mail addresses and URLs in a text, found by linkify. A domain without a scheme counts as a URL only if its
//! top-level domain is in a list, because file names and missing spaces look like domains.

use linkify::{LinkFinder, LinkKind};

use super::Span;
use crate::email::validate_email;
use crate::is_listed;

/// Longer links are ignored.
const MAX_LINK_BYTES: usize = 2000;

/// Top-level domains accepted without a scheme. None of them is a common file extension or the end of a sentence.
const BARE_DOMAIN_TLDS: &str = "com org net edu gov int info biz io dev app ai co me tv eu example studio agency \
    design shop store online site tech cloud blog news page xyz de at ch fr es it nl be dk se no fi pt ie uk us \
    ca au nz jp br mx ar cl in cz gr hu ro ua tr za kr cn ru lu li is";

/// A link and its position.
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

/// The links in text order, without overlap.
pub fn find_links(text: &str) -> Vec<Link<'_>> {
    let mut finder = LinkFinder::new();
    finder.url_must_have_scheme(false);
    let found = finder.links(text).filter(|link| link.end() - link.start() <= MAX_LINK_BYTES);
    found
        .filter_map(|link| {
            let (span, written) = (Span { start: link.start(), end: link.end() }, link.as_str());
            match link.kind() {
                LinkKind::Email => {
                    validate_email(written).is_valid().then_some(Link::Email { span, address: written })
                }
                _ => web_url(written).map(|url| Link::Url { span, url }),
            }
        })
        .collect()
}

/// The URL with its scheme, if it is an HTTP one.
fn web_url(written: &str) -> Option<String> {
    if written.contains("://") {
        let scheme = written.split(':').next()?.to_ascii_lowercase();
        return matches!(scheme.as_str(), "http" | "https").then(|| written.to_owned());
    }
    let host = written.split(['/', '?', '#', ':']).next()?;
    let tld = host.rsplit('.').next()?;
    let is_www = host.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case("www."));
    // "Best.In town" is two sentences: a top-level domain does not begin with a capital letter.
    let is_known_tld =
        is_listed(BARE_DOMAIN_TLDS, &tld.to_ascii_lowercase()) && !tld.starts_with(char::is_uppercase);
    (is_www || is_known_tld).then(|| format!("https://{written}"))
}
