//! The modules of one handler, as source text. Only a worker process compiles them.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A module's path inside its tool's directory, `handler.js` or `lib/x.js`, and its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    pub path: String,
    pub text: String,
}

/// The modules of one handler; shared by all of its calls. The entry is `handler.js`, or the first module if there is
/// none of that name.
pub struct Program {
    pub name: String,
    pub modules: Vec<Source>,
}

impl Program {
    pub fn new(name: String, modules: Vec<Source>) -> Self {
        Self { name, modules }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Program").field("name", &self.name).field("modules", &self.modules.len()).finish()
    }
}
