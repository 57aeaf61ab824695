//! The tools of one server: declares the pinned ones for a toolset, and calls them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use toolwright_contract::{ErrorKind, Failure, Success};
use toolwright_registry::declared;
use toolwright_registry::toolset::Tool;

use crate::connection::Connection;
use crate::definition::Definition;
use crate::pins::{Pin, Pins};
use crate::settings::{EnvironmentLookup, ServerSettings};

/// A server whose tools are imported. It is started at the first call. Clones share the connection.
#[derive(Debug, Clone)]
pub struct Import {
    connection: Arc<Connection>,
}

/// Calls one imported tool.
#[derive(Debug, Clone)]
pub struct ImportedTool {
    /// The name under which the handler is registered.
    pub handler: String,
    tool: Arc<str>,
    digest: Arc<str>,
    connection: Arc<Connection>,
}

impl Import {
    pub fn new(server: ServerSettings, environment: EnvironmentLookup) -> Self {
        Self { connection: Arc::new(Connection::new(server, environment)) }
    }

    pub fn server(&self) -> &ServerSettings {
        &self.connection.server
    }

    /// The pinned tools that the settings include, and the errors of those that are invalid. `file` is the path of the
    /// pins.
    pub fn tools(&self, pins: &Pins, file: &Path) -> (Vec<Tool>, Vec<declared::Error>) {
        let declarations: Vec<Value> =
            self.pinned(pins).map(|(tool, pin)| declaration(self.server(), tool, pin)).collect();
        declared::read(file, &json!({ "tools": declarations }).to_string(), &|_| true)
    }

    /// The handlers of those tools.
    pub fn handlers<'a>(&'a self, pins: &'a Pins) -> impl Iterator<Item = ImportedTool> + 'a {
        self.pinned(pins).map(|(tool, pin)| ImportedTool {
            handler: handler_name(self.server(), tool, pin),
            tool: tool.into(),
            digest: pin.sha256.as_str().into(),
            connection: Arc::clone(&self.connection),
        })
    }

    fn pinned<'a>(&'a self, pins: &'a Pins) -> impl Iterator<Item = (&'a str, &'a Pin)> {
        pins.of_server(&self.server().name).filter(|(tool, _)| self.server().includes(tool))
    }

    /// Waits until the server can be called, for commands that make a single call. The error is for the operator.
    pub async fn wait_until_ready(&self) -> Result<(), String> {
        self.connection.wait_until_ready().await
    }

    /// Lists the server's current definitions, for a person to review.
    pub async fn definitions(&self) -> Result<BTreeMap<String, Definition>, String> {
        let mut definitions = self.connection.definitions().await?;
        definitions.retain(|tool, _| self.server().includes(tool));
        Ok(definitions)
    }
}

impl ImportedTool {
    /// Calls the tool on its server. Dropping the future cancels the call. A server that is not ready before the
    /// deadline continues to start, for a later call.
    pub async fn call(&self, args: Value, deadline: Instant) -> Result<Success, Failure> {
        let Value::Object(args) = args else {
            return Err(Failure::new(ErrorKind::Internal, "The arguments are not an object."));
        };
        self.connection.call(&self.tool, &self.digest, args, deadline).await
    }
}

/// The name under which the handler of an imported tool is registered. It has the digest of the definition, so that a
/// session whose toolset has an earlier definition does not call the tool that has replaced it.
fn handler_name(server: &ServerSettings, tool: &str, pin: &Pin) -> String {
    format!("mcp:{}/{tool}@{}", server.name, pin.sha256.get(..12).unwrap_or(&pin.sha256))
}

/// A pinned tool as a declared tool. A server's hints are not trusted: unless the configuration says otherwise, a tool
/// writes and needs a confirmation.
fn declaration(server: &ServerSettings, tool: &str, pin: &Pin) -> Value {
    let pinned = &pin.definition;
    let description = match pinned.description.trim() {
        "" => format!("`{tool}` of the MCP server `{}`", server.name),
        text => text.to_owned(),
    };
    let mut fields: Map<String, Value> = Map::from_iter([
        ("name".to_owned(), server.local_name(tool).into()),
        ("description".to_owned(), description.into()),
        ("type".to_owned(), "function".into()),
        ("parameters".to_owned(), pinned.input_schema.clone()),
        (
            "implementation".to_owned(),
            json!({ "type": "builtin", "handler": handler_name(server, tool, pin) }),
        ),
        ("category".to_owned(), "action".into()),
        ("sideEffects".to_owned(), "writes".into()),
        ("idempotent".to_owned(), false.into()),
        ("requiresConfirmation".to_owned(), true.into()),
    ]);
    for (name, value) in server.tool.get(tool).into_iter().flatten() {
        // The configuration cannot replace what was pinned.
        if !declared::is_definition_field(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
    Value::Object(fields)
}
