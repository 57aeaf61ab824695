//! The functions in a handler's `context`, one row each. docs/reference/capabilities.md says what each does.

use toolwright_contract::SideEffects;
use toolwright_engine::{Engine, HostFunction as EngineFunction, Options};

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

/// The row of a function.
pub fn find(path: &str) -> Option<&'static HostFunction> {
    FUNCTIONS.iter().find(|row| row.path == path)
}

/// An engine whose handlers have these functions. One engine may serve several runtimes.
pub fn engine(options: Options) -> Engine {
    Engine::new(Options { functions: engine_functions(), ..options })
}

fn engine_functions() -> Vec<EngineFunction> {
    let place = |row: &HostFunction| {
        if row.is_sync {
            EngineFunction::synchronous(row.path)
        } else {
            EngineFunction::asynchronous(row.path)
        }
    };
    FUNCTIONS.iter().map(place).collect()
}
