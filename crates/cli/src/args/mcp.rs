//! The arguments of `toolwright mcp`.

use clap::{Args as ClapArgs, Subcommand};
use toolwright_contract::Mode;

use super::{Source, mode};

/// Without a subcommand, the tools are served.
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Mcp {
    #[command(subcommand)]
    pub what: Option<McpCommand>,
    #[command(flatten)]
    pub source: Source,
    /// The session's mode
    #[arg(long, value_parser = mode, default_value = "text", value_name = "text|voice")]
    pub mode: Mode,
    /// Build again whenever a tool changes, and tell the host
    #[arg(long, conflicts_with = "artifact")]
    pub watch: bool,
}

#[derive(Debug, Subcommand)]
pub enum McpCommand {
    /// Accept what the servers of `[[mcp_servers]]` say of their tools
    #[command(after_help = "Examples:
  toolwright mcp pin --dry-run           what is new, changed or gone
  toolwright mcp pin github              accept the tools of one server")]
    Pin(Pin),
}

#[derive(Debug, ClapArgs)]
pub struct Pin {
    /// The name of one server; all of them without it
    pub server: Option<String>,
    /// Show what would change, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
