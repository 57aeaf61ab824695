//! Pinned tools as declared ones: the same rules hold for both, and safe settings where nothing is said.

use std::path::Path;

use serde_json::{Map, Value, json};
use toolwright_registry::declared;
use toolwright_registry::toolset::Tool;

use crate::definition::Definition;
use crate::pins::Pins;
use crate::settings::Server;

/// The name under which the handler of an imported tool is registered.
pub(crate) fn handler(server: &Server, tool: &str) -> String {
    format!("mcp:{}/{tool}", server.name)
}

/// The server's pinned tools, as many as are wanted and can be used.
pub(crate) fn tools(server: &Server, pins: &Pins, file: &Path) -> (Vec<Tool>, Vec<declared::Error>) {
    let wanted = pins.of(&server.name).filter(|(tool, _)| server.wants(tool));
    let definitions: Vec<Value> =
        wanted.map(|(tool, pin)| definition(server, tool, &pin.definition)).collect();
    let text = json!({ "tools": definitions }).to_string();
    declared::read(file, &text, &|_| true)
}

/// A server's hints are not trusted: without a word in the configuration a tool writes, and a person is asked.
fn definition(server: &Server, tool: &str, pinned: &Definition) -> Value {
    let description = match pinned.description.trim() {
        "" => format!("`{tool}` of the MCP server `{}`", server.name),
        text => text.to_owned(),
    };
    let mut members: Map<String, Value> = Map::from_iter([
        ("name".to_owned(), server.local_name(tool).into()),
        ("description".to_owned(), description.into()),
        ("type".to_owned(), "function".into()),
        ("parameters".to_owned(), pinned.input_schema.clone()),
        ("implementation".to_owned(), json!({ "type": "builtin", "handler": handler(server, tool) })),
        ("category".to_owned(), "action".into()),
        ("sideEffects".to_owned(), "writes".into()),
        ("idempotent".to_owned(), false.into()),
        ("requiresConfirmation".to_owned(), true.into()),
    ]);
    for (name, value) in server.tool.get(tool).into_iter().flatten() {
        // What the tool is stays with the pin; the configuration says what it counts as.
        if !matches!(name.as_str(), "name" | "type" | "parameters" | "implementation" | "handler") {
            members.insert(name.clone(), value.clone());
        }
    }
    Value::Object(members)
}
