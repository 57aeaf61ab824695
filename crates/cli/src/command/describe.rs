//! `toolwright describe TOOL`: everything about one tool.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use toolwright_contract::Confirmation;
use toolwright_registry::suggest::nearest;
use toolwright_registry::toolset::{Tool, Toolset};

use crate::args::{Common, Format, Source};
use crate::config::Config;
use crate::output::{self, Failure};
use crate::toolset;

pub fn run(common: &Common, name: &str, source: &Source) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let tools = toolset::open(source, &config.tools)?;
    let tool = tools.get(&name.replace('-', "_")).ok_or_else(|| unknown(&tools, name))?;
    let documentation = tools.documentation(&tool.spec.tool_id).unwrap_or_default();
    match common.format {
        Format::Human => output::data(describe(tool, &documentation)),
        Format::Json => {
            let mut value = serde_json::to_value(&tool.spec)?;
            value["summary"] = json!(tool.summary);
            value["documentation"] = json!(documentation);
            value["handlerPath"] = json!(tool.handler_path);
            value["handlerSha256"] = json!(tool.handler_sha256);
            output::data_line(serde_json::to_string_pretty(&value)?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(tools: &Toolset, name: &str) -> Failure {
    let help = match nearest(name, tools.ids()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`toolwright list` names them all".to_owned(),
    };
    Failure::new(format!("there is no tool `{name}`"), help)
}

fn describe(tool: &Tool, documentation: &str) -> String {
    let spec = &tool.spec;
    let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
    let confirmation = match &spec.requires_confirmation {
        Confirmation::Always(true) => "always".to_owned(),
        Confirmation::Always(false) => "never".to_owned(),
        Confirmation::Rule(rule) => format!("when {}", rule.when),
    };
    let rows = [
        ("category", spec.category.to_string()),
        ("effects", spec.side_effects.to_string()),
        ("idempotent", if spec.idempotent { "yes" } else { "no" }.to_owned()),
        ("confirmation", confirmation),
        ("modes", modes.join(", ")),
        ("latency", format!("{} ms", spec.latency_budget_ms)),
        ("handler", tool.handler_path.clone()),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("  {name:<13} {value}\n")).collect();
    let schema = serde_json::to_string_pretty(&spec.json_schema).unwrap_or_default();
    format!(
        "\x1b[1m{}\x1b[0m {}\n{}\n\n{rows}\n\x1b[1mParameters\x1b[0m\n{schema}\n\n{}\n",
        spec.tool_id,
        spec.version,
        tool.summary,
        documentation.trim_end(),
    )
}
