//! What is told of every call when it has ended, to whoever watches: a span of somebody's trace.

use std::future::Future;
use std::time::Duration;

use toolwright_contract::{ErrorKind, Mode};

use crate::ids;
use crate::metrics::Ended;
use crate::orchestrator::Orchestrator;
use crate::trip::Trip;

tokio::task_local! {
    static AROUND: Trace;
}

/// A place in a trace: a span that others can lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    pub id: [u8; 16],
    pub span: [u8; 8],
}

impl Trace {
    /// Reads W3C's `traceparent`. Nothing if it is not one, or if its caller does not record.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(4, '-');
        let (version, id, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let flags = match version {
            "00" => flags,
            "ff" => return None,
            // A later version may say more after the flags.
            _ => flags.split('-').next()?,
        };
        let [flags] = bytes::<1>(flags)?;
        let trace = Self { id: bytes(id)?, span: bytes(span)? };
        let is_set = bytes::<1>(version).is_some() && trace.id != [0; 16] && trace.span != [0; 8];
        (is_set && flags & 1 == 1).then_some(trace)
    }

    /// Calls that are made by this work lie in the trace.
    pub async fn around<T>(self, work: impl Future<Output = T>) -> T {
        AROUND.scope(self, work).await
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
    /// In the span of the call that made this one, or of the work around it, or in a trace of its own.
    pub(crate) fn begin(parent: Option<Trace>) -> Self {
        let parent = parent.or_else(|| AROUND.try_with(|trace| *trace).ok());
        let id = parent.map_or_else(ids::random, |parent| parent.id);
        Self { own: Trace { id, span: ids::random() }, parent: parent.map(|parent| parent.span) }
    }
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
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
    pub took: Duration,
}

/// Is told of every call, on the thread that ends it: it must not block.
pub trait Observer: Send + Sync {
    fn finished(&self, call: &Finished<'_>);
}

impl Orchestrator {
    /// Tells whoever watches that a call has ended.
    pub(crate) fn observed(&self, trip: &Trip, ended: Ended, error: Option<ErrorKind>) {
        if let (Some(observer), Some(span)) = (&self.0.observer, trip.span) {
            observer.finished(&Finished {
                span,
                tool: &trip.tool,
                tool_version: trip.prepared.as_ref().map(|prepared| &*prepared.version),
                registry_version: trip.runtime.as_ref().map_or("", |runtime| &runtime.toolset().version),
                session: &trip.session.id,
                mode: trip.session.mode,
                execution_id: &trip.execution,
                end: match ended {
                    Ended::Ran => "ran",
                    Ended::Replayed => "replayed",
                    Ended::Refused => "refused",
                },
                error,
                took: trip.started.elapsed(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_strictly() {
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
