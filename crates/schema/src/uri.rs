//! URI references of `$id` and `$ref`: split, resolved and normalized as Ajv's resolver does (RFC 3986, and relative
//! bases, which the `url` crate does not resolve).

use percent_encoding::percent_decode_str;

/// `reference` against `base`; `None` when either is malformed.
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    if !has_valid_escapes(base) || !has_valid_escapes(reference) {
        return None;
    }
    let (base, reference) = (Parts::split(base), Parts::split(reference));
    if reference.scheme.is_some() || reference.authority.is_some() {
        let target = Parts { scheme: reference.scheme.or(base.scheme), ..reference };
        return Some(target.write(&without_dots(reference.path, false)));
    }
    let query = reference.query.or(base.query.filter(|_| reference.path.is_empty()));
    let target = Parts { query, fragment: reference.fragment, ..base };
    Some(target.write(&merged_path(&base, reference.path)))
}

/// The part before the fragment, normalized for comparison.
pub fn document(uri: &str) -> String {
    let parts = Parts { fragment: None, ..Parts::split(uri) };
    let is_http = |scheme: &str| ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    let web = parts.scheme.is_some_and(is_http);
    let path = without_dots(parts.path, parts.is_relative(parts.path));
    let written = parts.write(if web && path.is_empty() { "/" } else { &path });
    let is_uuid = written.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("urn:uuid:"));
    if is_uuid { written.to_lowercase() } else { written }
}

pub fn fragment(uri: &str) -> Option<&str> {
    uri.split_once('#').map(|(_, fragment)| fragment)
}

/// An id without an empty fragment at its end.
pub fn normalize_id(id: &str) -> &str {
    id.strip_suffix("#/").or_else(|| id.strip_suffix('#')).unwrap_or(id)
}

/// Decodes one segment of a pointer in a fragment: the percent escapes, then the `~` escapes.
pub fn decode_segment(segment: &str) -> Option<String> {
    let decoded = percent_decode_str(segment).decode_utf8().ok().filter(|_| has_valid_escapes(segment))?;
    Some(decoded.replace("~1", "/").replace("~0", "~"))
}

/// Whether two hexadecimal digits follow each `%`.
pub fn has_valid_escapes(text: &str) -> bool {
    let is_escape =
        |after: &str| after.get(..2).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    text.split('%').skip(1).all(is_escape)
}

#[derive(Clone, Copy)]
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
    fragment: Option<&'u str>,
}

impl<'u> Parts<'u> {
    fn split(uri: &'u str) -> Self {
        let (rest, fragment) = split_off(uri, '#');
        let (rest, query) = split_off(rest, '?');
        let (scheme, rest) = match rest.split_once(':') {
            Some((scheme, after)) if !scheme.is_empty() && !scheme.contains('/') => (Some(scheme), after),
            _ => (None, rest),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(after) => {
                let end = after.find('/').unwrap_or(after.len());
                let (authority, path) = after.split_at(end);
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self { scheme, authority, path, query, fragment }
    }

    /// Whether `path` with this scheme and authority is relative.
    fn is_relative(&self, path: &str) -> bool {
        self.scheme.is_none() && self.authority.is_none() && !path.starts_with('/')
    }

    /// The URI with this path instead of its own.
    fn write(&self, path: &str) -> String {
        let mut text = String::new();
        if let Some(scheme) = self.scheme {
            text.push_str(&scheme.to_lowercase());
            text.push(':');
        }
        if let Some(authority) = self.authority {
            text.push_str("//");
            text.push_str(&authority.to_lowercase());
        }
        text.push_str(path);
        for (mark, part) in [('?', self.query), ('#', self.fragment)] {
            if let Some(part) = part {
                text.push(mark);
                text.push_str(part);
            }
        }
        text
    }
}

fn split_off(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn merged_path(base: &Parts<'_>, path: &str) -> String {
    if path.is_empty() {
        return without_dots(base.path, base.is_relative(base.path));
    }
    if path.starts_with('/') {
        return without_dots(path, false);
    }
    let folder = base.path.rfind('/').and_then(|slash| base.path.get(..=slash)).unwrap_or_default();
    let joined = match (base.authority, base.path.is_empty()) {
        (Some(_), true) => format!("/{path}"),
        _ => format!("{folder}{path}"),
    };
    without_dots(&joined, base.is_relative(&joined))
}

/// Removes `.` and `..` segments; a relative path keeps leading `..` segments.
fn without_dots(path: &str, relative: bool) -> String {
    if !path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return path.to_owned();
    }
    let mut segments: Vec<&str> = Vec::new();
    let rooted = path.starts_with('/');
    for segment in path.split('/').skip(usize::from(rooted)) {
        match segment {
            ".." if segments.last().is_some_and(|last| *last != "..") => {
                segments.pop();
            }
            ".." if relative => segments.push(".."),
            "." | ".." => {}
            other => segments.push(other),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        segments.push("");
    }
    let joined = segments.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

#[cfg(test)]
#[path = "uri_tests.rs"]
mod tests;
