//! `toolwright describe`: prints one tool with its schema and documentation.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolwright_contract::{BUILTIN_HANDLERS, Confirmation};
use toolwright_registry::toolset::{Implementation, Tool};
use toolwright_registry::{DESCRIBE, describe_tool};

use crate::args::{Format, Source};
use crate::config::Config;
use crate::{output, toolset};

/// Show one tool
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright describe kb_search")]
pub struct Describe {
    /// The tool's id, or its directory's name
    tool: String,
    #[command(flatten)]
    source: Source,
}

pub fn run(config: &Config, args: &Describe) -> Result<()> {
    let tools = toolset::load(&args.source, config)?;
    let id = toolset::tool_id(&tools, &args.tool);
    // Every session has it, beside the tools of its toolset.
    let builtin = (id == DESCRIBE).then(describe_tool);
    let tool = tools.get(&id).or(builtin).ok_or_else(|| toolset::unknown_tool(&tools, &args.tool))?;
    let documentation = tools.documentation(&tool.spec.tool_id).unwrap_or_default();
    if config.format == Format::Human {
        output::print(to_text(tool, &documentation));
        return Ok(());
    }
    let mut value = serde_json::to_value(&tool.spec)?;
    value["summary"] = json!(tool.summary);
    value["documentation"] = json!(documentation);
    match &tool.implementation {
        Implementation::Module(module) => {
            value["handlerPath"] = json!(module.path);
            value["handlerSha256"] = json!(module.sha256);
        }
        Implementation::Mock(response) => {
            value["implementation"] = json!({ "type": "mock", "mock_response": response });
        }
        Implementation::Native(handler) => {
            value["implementation"] = json!({ "type": "builtin", "handler": handler });
        }
        Implementation::Http(request) => {
            value["implementation"] =
                json!({ "type": "http", "method": request.method, "origin": request.origin });
        }
    }
    output::print_json_pretty(&value)
}

fn to_text(tool: &Tool, documentation: &str) -> String {
    let spec = &tool.spec;
    let modes: Vec<&str> = spec.allowed_modes.iter().map(|mode| mode.as_str()).collect();
    let confirmation = match &spec.requires_confirmation {
        Confirmation::Always(true) => "always".to_owned(),
        Confirmation::Always(false) => "never".to_owned(),
        Confirmation::Rule(rule) => format!("when {}", rule.when),
    };
    let handler = match &tool.implementation {
        Implementation::Module(module) => module.path.clone(),
        Implementation::Mock(_) => "a mock: the same result for every call".to_owned(),
        Implementation::Native(name) if BUILTIN_HANDLERS.contains(&name.as_str()) => {
            format!("{name}, builtin")
        }
        Implementation::Native(name) => format!("{name}, registered by the program"),
        Implementation::Http(request) => format!("{} {}", request.method, request.origin),
    };
    let rows = [
        ("category", spec.category.to_string()),
        ("effects", spec.side_effects.to_string()),
        ("idempotent", if spec.idempotent { "yes" } else { "no" }.to_owned()),
        ("confirmation", confirmation),
        ("modes", modes.join(", ")),
        ("latency", format!("{} ms", spec.latency_budget_ms)),
        ("handler", handler),
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
