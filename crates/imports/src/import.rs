//! One server's tools, as a toolset takes them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use toolwright_contract::{ErrorKind, Failure, Success};
use toolwright_registry::declared;
use toolwright_registry::toolset::Tool;

use crate::connection::Connection;
use crate::declaration;
use crate::definition::Definition;
use crate::pins::Pins;
use crate::settings::Server;

/// A server whose tools are imported. Nothing is started before a tool is called. Cloning shares the connection.
#[derive(Clone)]
pub struct Import {
    server: Arc<Server>,
    connection: Arc<Connection>,
}

/// What answers the calls of one imported tool.
#[derive(Clone)]
pub struct ImportedTool {
    /// The name under which it is registered.
    pub handler: String,
    tool: Arc<str>,
    digest: Arc<str>,
    connection: Arc<Connection>,
}

impl fmt::Debug for Import {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Import").field("server", &self.server.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for ImportedTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ImportedTool").field("handler", &self.handler).finish_non_exhaustive()
    }
}

impl Import {
    pub fn new(server: Server) -> Self {
        let connection = Arc::new(Connection::new(server.clone()));
        Self { server: Arc::new(server), connection }
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The tools that are pinned and wanted, and what is wrong with the others. `file` is where the pins are kept.
    pub fn tools(&self, pins: &Pins, file: &Path) -> (Vec<Tool>, Vec<declared::Error>) {
        declaration::tools(&self.server, pins, file)
    }

    /// What answers those tools.
    pub fn handlers<'a>(&'a self, pins: &'a Pins) -> impl Iterator<Item = ImportedTool> + 'a {
        let wanted = pins.of(&self.server.name).filter(|(tool, _)| self.server.wants(tool));
        wanted.map(|(tool, pin)| ImportedTool {
            handler: declaration::handler(&self.server, tool),
            tool: tool.into(),
            digest: pin.sha256.as_str().into(),
            connection: Arc::clone(&self.connection),
        })
    }

    /// Waits until the server can be called; for whoever makes one call and goes. The text of an error is for the operator.
    pub async fn ready(&self) -> Result<(), String> {
        self.connection.ready().await
    }

    /// Asks the server what it offers now; for a person who is about to accept it.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Definition>, String> {
        let mut definitions = self.connection.definitions().await?;
        definitions.retain(|tool, _| self.server.wants(tool));
        Ok(definitions)
    }
}

impl ImportedTool {
    /// Runs the tool on its server; dropping the future cancels the call there. A server that is not there before the
    /// deadline goes on starting, for the next call.
    pub async fn call(&self, args: Value, deadline: Instant) -> Result<Success, Failure> {
        let Value::Object(args) = args else {
            return Err(Failure::new(ErrorKind::Internal, "The arguments are not an object."));
        };
        self.connection.call(&self.tool, &self.digest, args, deadline).await
    }
}
