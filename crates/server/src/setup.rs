//! The setup for the console: the checks of `doctor`, and the findings of the last build. The program that
//! starts the server supplies both.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Results older than this are checked again when they are read.
const MAX_AGE: Duration = Duration::from_secs(60);

/// One check of the setup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupCheck {
    pub name: String,
    pub status: SetupStatus,
    pub message: String,
    /// The fix, unless the check passed.
    pub help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStatus {
    Ok,
    /// Toolwright works without it, with fewer features.
    Missing,
    /// Everything that depends on it fails.
    Broken,
}

/// A problem that the last build of the tools has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFinding {
    pub is_error: bool,
    pub code: String,
    /// `kb-search/schema.json:4:7`.
    pub place: String,
    pub message: String,
    pub help: Option<String>,
    /// The line of the source.
    pub source: Option<String>,
}

/// Checks the setup. It may take seconds.
pub type CheckSetup = Arc<dyn Fn() -> Vec<SetupCheck> + Send + Sync>;

/// The setup of a server. Cloning shares it.
#[derive(Clone, Default)]
pub struct Setup {
    check: Option<CheckSetup>,
    /// The tools are built again when they change.
    is_watching: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    checks: Vec<SetupCheck>,
    checked_at: Option<Instant>,
    is_checking: bool,
    findings: Vec<BuildFinding>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Setup").field("is_watching", &self.is_watching).finish_non_exhaustive()
    }
}

impl Setup {
    pub fn new(check: CheckSetup, is_watching: bool) -> Self {
        Self { check: Some(check), is_watching, state: Arc::default() }
    }

    pub fn is_watching(&self) -> bool {
        self.is_watching
    }

    /// Replaces the findings of the build before.
    pub fn set_findings(&self, findings: Vec<BuildFinding>) {
        self.lock().findings = findings;
    }

    pub(crate) fn findings(&self) -> Vec<BuildFinding> {
        self.lock().findings.clone()
    }

    /// The last results. Old ones are checked again on a thread, for the next reader.
    pub(crate) fn checks(&self) -> Vec<SetupCheck> {
        let mut state = self.lock();
        let is_fresh = state.checked_at.is_some_and(|at| at.elapsed() < MAX_AGE);
        if let Some(check) = self.check.clone().filter(|_| !is_fresh && !state.is_checking) {
            state.is_checking = true;
            let setup = self.clone();
            std::thread::spawn(move || setup.store(check()));
        }
        state.checks.clone()
    }

    fn store(&self, checks: Vec<SetupCheck>) {
        let mut state = self.lock();
        state.checks = checks;
        state.checked_at = Some(Instant::now());
        state.is_checking = false;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
