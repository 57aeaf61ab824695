//! The calls of all processes, derived from a seed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_orchestrator::ToolCall;

/// Calls of one session.
const PER_SESSION: u64 = 25;

/// The id of a call: its caller, and its number among the caller's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Id {
    pub caller: u64,
    pub number: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.caller, self.number)
    }
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (caller, number) = text.split_once('-').ok_or_else(|| text.to_owned())?;
        let parse = |part: &str| part.parse().map_err(|_| text.to_owned());
        Ok(Self { caller: parse(caller)?, number: parse(number)? })
    }
}

/// The tools, by whether their calls may run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    /// Must not run twice.
    Write,
    /// May run twice; its result is committed.
    Redo,
    /// May run twice, and has no effect.
    Read,
    /// Must not run twice, nor without approval.
    Confirmed(UserAnswer),
}

/// The user's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UserAnswer {
    Nothing,
    Yes,
    No,
}

impl Tool {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Redo => "redo",
            Self::Read => "read",
            Self::Confirmed(_) => "careful",
        }
    }

    pub const fn runs_once(self) -> bool {
        matches!(self, Self::Write | Self::Confirmed(_))
    }
}

/// A pseudo-random number that depends only on the inputs.
pub const fn hash_of(seed: u64, a: u64, b: u64) -> u64 {
    let mut z = seed ^ a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xd1b5_4a32_d192_ed03);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Id {
    pub const fn tool(self, seed: u64) -> Tool {
        match hash_of(seed, self.caller, self.number) % 20 {
            0..=8 => Tool::Write,
            9..=11 => Tool::Redo,
            12..=15 => Tool::Read,
            16 => Tool::Confirmed(UserAnswer::Nothing),
            17 | 18 => Tool::Confirmed(UserAnswer::Yes),
            _ => Tool::Confirmed(UserAnswer::No),
        }
    }

    /// The first calls that need no approval.
    pub fn plain(seed: u64, count: usize) -> Vec<Self> {
        let all = (0..).map(|number| Self { caller: 0, number });
        all.filter(|id| !matches!(id.tool(seed), Tool::Confirmed(_))).take(count).collect()
    }

    pub fn session(self) -> String {
        format!("s{}-{}", self.caller, self.number / PER_SESSION)
    }

    /// Whether this is the first call of its session.
    pub const fn begins_a_session(self) -> bool {
        self.number.is_multiple_of(PER_SESSION)
    }

    pub fn call(self, seed: u64) -> ToolCall {
        let salt = hash_of(seed, self.number, self.caller);
        // Microseconds before and after the effect.
        let args: Value = json!({ "before": salt % 2000, "after": (salt >> 20) % 2000 });
        ToolCall { id: Some(self.to_string()), tool: self.tool(seed).name().to_owned(), args }
    }
}
