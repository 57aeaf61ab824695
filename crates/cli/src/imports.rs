//! The tools of `[[mcp_servers]]`: declared from their pins, called on their servers.

use std::path::PathBuf;

use toolwright_contract::suggest::did_you_mean;
use toolwright_imports::{Import, Pins, pins};
use toolwright_orchestrator::RuntimeBuilder;
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::config::Config;
use crate::output::Failure;

/// The configured servers, and the accepted definitions of their tools.
pub struct Imports {
    pub servers: Vec<Import>,
    pub pins: Pins,
    pub file: PathBuf,
}

impl Imports {
    pub fn load(config: &Config) -> Result<Self, Failure> {
        let (file, servers) = (config.beside(pins::FILE_NAME), &config.settings.mcp_servers);
        for (index, server) in servers.iter().enumerate() {
            server.check().map_err(|error| Failure::new(&error, &error.help))?;
            if servers.iter().take(index).any(|other| other.name == server.name) {
                let message = format!("there are two `[[mcp_servers]]` with the name `{}`", server.name);
                return Err(Failure::new(message, "rename one of them"));
            }
        }
        let pins = if servers.is_empty() {
            Pins::default()
        } else {
            Pins::load(&file).map_err(|error| Failure::new(&error, error.help()))?
        };
        let import = |server| Import::new(server, |name| std::env::var_os(name));
        Ok(Self { servers: servers.iter().cloned().map(import).collect(), pins, file })
    }

    /// Adds the accepted tools. Returns why others are left out.
    pub fn add_tools(&self, mut toolset: Toolset) -> (Toolset, Vec<Failure>) {
        let mut refused = Vec::new();
        for import in &self.servers {
            let name = &import.server().name;
            if self.pins.of_server(name).next().is_none() {
                let message = format!("no tool of the MCP server `{name}` was accepted yet");
                refused.push(Failure::new(message, format_args!("run `toolwright mcp pin {name}`")));
                continue;
            }
            let pinned: Vec<&str> = self.pins.of_server(name).map(|(tool, _)| tool).collect();
            for tool in import.server().named_tools().filter(|tool| !pinned.contains(tool)) {
                let message =
                    format!("`[[mcp_servers]]` `{name}` names the tool `{tool}`, which is not pinned");
                refused.push(Failure::new(message, did_you_mean(tool, &pinned)));
            }
            let (tools, errors) = import.tools(&self.pins, &self.file);
            let (extended, duplicates) = toolset.with_declared(&self.file, tools);
            toolset = extended;
            refused.extend(errors.iter().chain(&duplicates).map(|error| Failure::new(error, error.help())));
        }
        (toolset, refused)
    }

    /// Waits until the server of a tool has started: a command that makes one call cannot leave it starting for the
    /// next call. The call itself reports why a server does not start.
    pub async fn wait_until_ready(&self, tool: Option<&Tool>) {
        let Some(Implementation::Native(handler)) = tool.map(|tool| &tool.implementation) else { return };
        for import in &self.servers {
            if import.handlers(&self.pins).any(|imported| imported.handler == *handler) {
                let _ = import.wait_until_ready().await;
            }
        }
    }

    /// Registers the handlers of the imported tools.
    pub fn register(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let tools = self.servers.iter().flat_map(|import| import.handlers(&self.pins));
        tools.fold(builder, |builder, tool| {
            let name = tool.handler.clone();
            builder.native(name, move |args, context| {
                let tool = tool.clone();
                async move { tool.call(args, context.deadline()).await }
            })
        })
    }
}
