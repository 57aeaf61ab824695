//! Spans: reports every call that has ended to the observer, as a span of a W3C trace.

use std::future::Future;
use std::time::Duration;

use toolwright_contract::{ErrorKind, Mode};

use crate::ids;

tokio::task_local! {
    static CURRENT_TRACE: Trace;
}

/// A span of a trace, which may be the parent of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    pub id: [u8; 16],
    pub span: [u8; 8],
}

impl Trace {
    /// Parses W3C's `traceparent`. `None` if it is invalid, or if its sender does not sample the trace.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(4, '-');
        let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let flags = match version {
            "00" => flags,
            "ff" => return None,
            // A later version may have more fields after the flags.
            _ => flags.split('-').next()?,
        };
        let [flags] = bytes::<1>(flags)?;
        let trace = Self { id: bytes(id)?, span: bytes(span)? };
        let is_valid = bytes::<1>(version).is_some() && trace.id != [0; 16] && trace.span != [0; 8];
        (is_valid && flags & 1 == 1).then_some(trace)
    }

    /// Makes this span the parent of the calls that a future makes.
    pub async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT_TRACE.scope(self, work).await
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// A call's own span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub own: Trace,
    pub parent: Option<[u8; 8]>,
}

impl Span {
    /// A child of `parent` or of the current scope; otherwise the root of a new trace.
    pub fn begin(parent: Option<Trace>) -> Self {
        let parent = parent.or_else(|| CURRENT_TRACE.try_with(|trace| *trace).ok());
        let id = parent.map_or_else(ids::random, |parent| parent.id);
        Self { own: Trace { id, span: ids::random() }, parent: parent.map(|parent| parent.span) }
    }
}

/// A call that has ended, as the observer sees it.
#[derive(Debug, Clone, Copy)]
pub struct FinishedCall<'a> {
    pub span: Span,
    pub tool: &'a str,
    pub tool_version: Option<&'a str>,
    pub registry_version: &'a str,
    pub session: &'a str,
    pub mode: Mode,
    pub execution_id: &'a str,
    /// `ran`, `replayed` or `refused`.
    pub end: &'static str,
    pub error: Option<ErrorKind>,
    pub elapsed: Duration,
}

/// Receives every call that has ended, on the thread that ends it: it must not block.
pub trait Observer: Send + Sync {
    fn finished(&self, call: &FinishedCall<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_parsed_strictly() {
        let (id, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let trace = Trace::parse(&format!("00-{id}-{span}-01")).unwrap();
        assert_eq!((trace.id[0], trace.span[7]), (0x4b, 0xb7));
        assert_eq!(Trace::parse(&format!("cc-{id}-{span}-01-more")), Some(trace));
        for wrong in [
            String::new(),
            format!("00-{id}-{span}-00"),
            format!("ff-{id}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{id}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", id.to_uppercase()),
            format!("00-{id}-{span}-01-more"),
            format!("00-{id}-{span}"),
        ] {
            assert_eq!(Trace::parse(&wrong), None, "{wrong}");
        }
    }
}
