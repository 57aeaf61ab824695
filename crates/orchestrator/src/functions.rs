//! What a handler finds in `context`: a row a function. docs/reference/capabilities.md says what each does.

use toolwright_contract::SideEffects;
use toolwright_engine::Function;

/// A function of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub path: &'static str,
    /// It answers at once instead of with a promise.
    pub is_sync: bool,
    /// The least side effects that a tool must declare to use it.
    pub needs: SideEffects,
}

const fn row(path: &'static str, needs: SideEffects) -> Row {
    Row { path, is_sync: false, needs }
}

const fn sync(path: &'static str) -> Row {
    Row { path, is_sync: true, needs: SideEffects::None }
}

/// Every function of the host.
pub const FUNCTIONS: &[Row] = &[
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

/// The row of a function.
pub fn find(path: &str) -> Option<&'static Row> {
    FUNCTIONS.iter().find(|row| row.path == path)
}

/// The functions, as the engine places them.
pub fn placed() -> Vec<Function> {
    let place = |row: &Row| {
        if row.is_sync { Function::synchronous(row.path) } else { Function::asynchronous(row.path) }
    };
    FUNCTIONS.iter().map(place).collect()
}
