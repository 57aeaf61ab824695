//! `toolwright explain`: prints the reference entry of a diagnostic code.

use anyhow::Result;
use clap::Args;
use toolwright_contract::suggest::nearest;

use crate::output::{self, Failure};

const DIAGNOSTICS: &str = include_str!("../../../../docs/reference/diagnostics.md");

/// Explain a diagnostic code
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright explain schema-missing-type")]
pub struct Explain {
    /// The code in brackets after `error` or `warning`; without it, all codes are listed
    code: Option<String>,
}

pub fn run(args: &Explain) -> Result<()> {
    let Some(code) = &args.code else {
        for (code, meaning) in rows() {
            output::print_line(format_args!("\x1b[1m{code:<36}\x1b[0m {meaning}"));
        }
        return Ok(());
    };
    let code = code.trim_matches(['[', ']']);
    let (code, meaning) = rows().find(|(known, _)| *known == code).ok_or_else(|| {
        let help = match nearest(code, rows().map(|(code, _)| code)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`toolwright explain` lists all codes".to_owned(),
        };
        Failure::usage(format!("there is no diagnostic `{code}`"), help)
    })?;
    output::print_line(format_args!("\x1b[1m{code}\x1b[0m\n{meaning}"));
    Ok(())
}

/// The rows of the page's tables: `` | `code` | meaning | ``.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIAGNOSTICS.lines().filter_map(|line| {
        let (code, meaning) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((code, meaning.trim_end_matches(" |")))
    })
}
