//! The members of a handler's `context`, one row each: the one table that the host, the checks of handlers and
//! `toolwright.d.ts` follow. docs/reference/capabilities.md says what each does.

use crate::SideEffects;

/// A function that the host provides to handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFunction {
    pub path: &'static str,
    /// Returns its value instead of a promise.
    pub is_sync: bool,
    /// The side effects that a tool must at least declare to use it.
    pub needs: SideEffects,
}

const fn row(path: &'static str, needs: SideEffects) -> HostFunction {
    HostFunction { path, is_sync: false, needs }
}

const fn sync(path: &'static str) -> HostFunction {
    HostFunction { path, is_sync: true, needs: SideEffects::None }
}

/// Every function of the host.
pub const FUNCTIONS: &[HostFunction] = &[
    row("messaging.send", SideEffects::Writes),
    sync("voice.isActive"),
    row("voice.endSession", SideEffects::None),
    row("audio.suppress", SideEffects::None),
    sync("audit.log"),
    sync("progress"),
    row("kb.search", SideEffects::ReadOnly),
    row("kb.get", SideEffects::ReadOnly),
    row("calendar.freeBusy", SideEffects::ReadOnly),
    row("calendar.propose", SideEffects::ReadOnly),
    row("calendar.getDraft", SideEffects::ReadOnly),
    row("calendar.commit", SideEffects::Writes),
    row("images.draft", SideEffects::ReadOnly),
    row("images.generate", SideEffects::Writes),
    row("text.extractContacts", SideEffects::None),
    row("text.formatDatetime", SideEffects::None),
    row("text.validateEmail", SideEffects::None),
    row("http.fetch", SideEffects::ReadOnly),
    row("callTool", SideEffects::None),
];

/// The members that are data of the call.
pub const DATA: &[&str] = &[
    "clientId",
    "mode",
    "executionId",
    "idempotencyKey",
    "tool.id",
    "tool.version",
    "tool.idempotent",
    "session.isActive",
    "session.toolsVersion",
    "session.mode",
    "session.state",
    "signal",
];

/// The row of a function.
pub fn find_function(path: &str) -> Option<&'static HostFunction> {
    FUNCTIONS.iter().find(|row| row.path == path)
}

/// The names below a member, in the order of the tables; those of `context` itself for the empty path. Empty for a
/// function and for data, whose members are not listed here.
pub fn members(path: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for member in FUNCTIONS.iter().map(|row| row.path).chain(DATA.iter().copied()) {
        let below = if path.is_empty() {
            Some(member)
        } else {
            member.strip_prefix(path).and_then(|below| below.strip_prefix('.'))
        };
        let name = below.map(|below| below.split_once('.').map_or(below, |(name, _)| name));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_listed_once_and_leaves_have_none() {
        let names = members("");
        assert_eq!(&names[..4], ["messaging", "voice", "audio", "audit"]);
        assert_eq!(names.iter().filter(|name| **name == "kb").count(), 1);
        assert_eq!(members("kb"), ["search", "get"]);
        assert_eq!(members("session"), ["isActive", "toolsVersion", "mode", "state"]);
        for leaf in ["callTool", "session.state", "clientId", "nothing", "k"] {
            assert_eq!(members(leaf), [""; 0], "{leaf}");
        }
    }
}
