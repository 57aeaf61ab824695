//! The arguments of `toolwright mcp`.

use clap::{Args as ClapArgs, Subcommand};

/// What is done about MCP.
#[derive(Debug, Subcommand)]
pub enum Mcp {
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
