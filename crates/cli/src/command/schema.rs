//! `toolwright schema`: the tools as a provider's API declares them, or what that form cannot say.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_contract::ToolSpec;
use toolwright_providers::{Loss, View};
use toolwright_registry::toolset::Toolset;

use crate::args::{self, Common, Format};
use crate::config::Config;
use crate::{output, report, toolset};

pub fn run(common: &Common, args: &args::Schema) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let tools = toolset::open(&args.source, &config)?;
    let wanted = wanted(&tools, args)?;
    let view = args.provider.view(wanted.iter().copied());
    warn(args, &view, wanted.len());
    match (args.lossy, common.format) {
        (true, Format::Json) => output::data_line(serde_json::to_string(&view.losses)?),
        (true, Format::Human) if view.losses.is_empty() => {
            output::message(format_args!("nothing is lost: {} can say it all", args.provider.title));
        }
        (true, Format::Human) => output::data(table(&view.losses)),
        (false, Format::Json) => output::data_line(serde_json::to_string(&view.declarations)?),
        (false, Format::Human) => output::data_line(serde_json::to_string_pretty(&view.declarations)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// The tools that are asked for, in the toolset's order.
fn wanted<'t>(tools: &'t Toolset, args: &args::Schema) -> Result<Vec<&'t ToolSpec>> {
    let only: Option<Vec<String>> =
        args.only.as_ref().map(|names| names.iter().map(|name| toolset::id_of(tools, name.trim())).collect());
    if let Some(unknown) = only.iter().flatten().find(|name| tools.get(name).is_none()) {
        return Err(toolset::unknown(tools, unknown).into());
    }
    let specs = tools.filter(only.as_deref()).map(|tool| &tool.spec);
    Ok(specs.filter(|spec| args.mode.is_none_or(|mode| spec.allowed_modes.contains(&mode))).collect())
}

/// What a person should know before they use the view.
fn warn(args: &args::Schema, view: &View, tools: usize) {
    if let Some(most) = args.provider.most_tools.filter(|most| tools > *most) {
        output::message(format_args!(
            "\x1b[1;33mwarning\x1b[0m: {} takes at most {most} tools in a request, these are {tools}\n  \x1b[1mhelp\x1b[0m: choose some with `--only`",
            args.provider.title
        ));
    }
    if !args.lossy && !view.losses.is_empty() {
        output::message(format_args!(
            "note: this form cannot say {}; `--lossy` lists them",
            report::plural(view.losses.len(), "thing")
        ));
    }
}

fn table(losses: &[Loss]) -> String {
    let line = |loss: &Loss| {
        let path = if loss.path.is_empty() { "/" } else { &loss.path };
        format!("\x1b[1m{}\x1b[0m {path} {}: {}, {}\n", loss.tool, loss.keyword, loss.done, loss.note)
    };
    losses.iter().map(line).collect()
}
