//! `toolwright explain CODE`: the documentation's page on a diagnostic, without leaving the terminal.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_contract::suggest::nearest;

use crate::output::{self, Failure};

const DIAGNOSTICS: &str = include_str!("../../../../docs/reference/diagnostics.md");

pub fn run(code: Option<&str>) -> Result<ExitCode> {
    let Some(code) = code else {
        for (code, meaning) in rows() {
            output::data_line(format_args!("\x1b[1m{code:<36}\x1b[0m {meaning}"));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let code = code.trim_matches(['[', ']']);
    let found = rows().find(|(known, _)| *known == code);
    let (code, meaning) = found.ok_or_else(|| {
        let help = match nearest(code, rows().map(|(code, _)| code)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`toolwright explain` lists all codes".to_owned(),
        };
        Failure::usage(format!("there is no diagnostic `{code}`"), help)
    })?;
    output::data_line(format_args!("\x1b[1m{code}\x1b[0m\n{meaning}"));
    Ok(ExitCode::SUCCESS)
}

/// The rows of the page's tables: `` | `code` | meaning | ``.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    DIAGNOSTICS.lines().filter_map(|line| {
        let (code, meaning) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((code, meaning.trim_end_matches(" |")))
    })
}
