//! Just enough of RFC 3986 to resolve `$id` and `$ref` the way Ajv's resolver does.

/// `reference` against `base`; `None` when either is malformed.
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    if !is_well_formed(base) || !is_well_formed(reference) {
        return None;
    }
    let (base, reference) = (Parts::of(base), Parts::of(reference));
    let mut target = Parts { fragment: reference.fragment, ..Parts::default() };
    let path;
    if reference.scheme.is_some() || reference.authority.is_some() {
        target.scheme = reference.scheme.or(base.scheme);
        target.authority = reference.authority;
        target.query = reference.query;
        path = without_dots(reference.path, false);
    } else {
        target.scheme = base.scheme;
        target.authority = base.authority;
        target.query =
            if reference.path.is_empty() { reference.query.or(base.query) } else { reference.query };
        path = merged_path(&base, reference.path);
    }
    Some(target.write(&path))
}

/// The part before the fragment in the form in which ids are compared.
pub fn document(uri: &str) -> String {
    let parts = Parts { fragment: None, ..Parts::of(uri) };
    let web = parts
        .scheme
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"));
    let path = without_dots(
        parts.path,
        parts.scheme.is_none() && parts.authority.is_none() && !parts.path.starts_with('/'),
    );
    let written = parts.write(if web && path.is_empty() { "/" } else { &path });
    if starts_with_ignore_case(&written, "urn:uuid:") { written.to_lowercase() } else { written }
}

pub fn fragment(uri: &str) -> Option<&str> {
    uri.split_once('#').map(|(_, fragment)| fragment)
}

/// An id without the empty fragment that may end it.
pub fn normal_id(id: &str) -> &str {
    id.strip_suffix("#/").or_else(|| id.strip_suffix('#')).unwrap_or(id)
}

/// Percent-decodes one step of a fragment pointer, then undoes the `~` escapes.
pub fn decode_step(step: &str) -> Option<String> {
    if !step.contains('%') && !step.contains('~') {
        return Some(step.to_owned());
    }
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let (high, low) = (hex(rest.next()?)?, hex(rest.next()?)?);
            bytes.push(high * 16 + low);
        } else {
            bytes.push(byte);
        }
    }
    Some(String::from_utf8(bytes).ok()?.replace("~1", "/").replace("~0", "~"))
}

fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[derive(Default, Clone, Copy)]
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    query: Option<&'u str>,
    fragment: Option<&'u str>,
}

impl<'u> Parts<'u> {
    fn of(uri: &'u str) -> Self {
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
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn merged_path(base: &Parts<'_>, path: &str) -> String {
    if path.is_empty() {
        let relative = base.scheme.is_none() && base.authority.is_none() && !base.path.starts_with('/');
        return without_dots(base.path, relative);
    }
    if path.starts_with('/') {
        return without_dots(path, false);
    }
    let folder = base.path.rfind('/').and_then(|slash| base.path.get(..=slash)).unwrap_or_default();
    let joined = match (base.authority, base.path.is_empty()) {
        (Some(_), true) => format!("/{path}"),
        _ => format!("{folder}{path}"),
    };
    let relative = base.scheme.is_none() && base.authority.is_none() && !joined.starts_with('/');
    without_dots(&joined, relative)
}

/// Removes `.` and `..` steps; a relative path keeps the leading `..` it cannot use up.
fn without_dots(path: &str, relative: bool) -> String {
    if !path.split('/').any(|step| matches!(step, "." | "..")) {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let rooted = path.starts_with('/');
    for step in path.split('/').skip(usize::from(rooted)) {
        match step {
            ".." if kept.last().is_some_and(|last| *last != "..") => {
                kept.pop();
            }
            ".." if relative => kept.push(".."),
            "." | ".." => {}
            other => kept.push(other),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        kept.push("");
    }
    let joined = kept.join("/");
    if rooted { format!("/{joined}") } else { joined }
}

fn is_well_formed(uri: &str) -> bool {
    let bytes = uri.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
        let digit = |offset: usize| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
        digit(1) && digit(2)
    })
}

fn starts_with_ignore_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
#[path = "uri_tests.rs"]
mod tests;
