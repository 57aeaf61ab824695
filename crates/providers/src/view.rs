//! A provider's form of a toolset, and the conversion of its arguments back to those of the tool.

use std::collections::HashMap;

use serde_json::Value;
use toolwright_contract::ToolSpec;

use crate::lower::{JsonTextArgument, LoweredSchema, lower};
use crate::provider::Declaration;
use crate::{Call, Loss, LossKind, Provider};

/// Tools declared for one provider.
#[derive(Debug)]
pub struct View {
    /// The value of `tools` in a request; for MCP, the result of `tools/list`.
    pub declarations: Value,
    /// Constraints that this form cannot express, in the order of tools.
    pub losses: Vec<Loss>,
    /// The arguments of each tool that the view declares as JSON text.
    json_texts: HashMap<String, Vec<JsonTextArgument>>,
}

impl View {
    pub(crate) fn new<'a>(provider: &Provider, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let mut losses = Vec::new();
        let mut json_texts = HashMap::new();
        let mut declarations = Vec::new();
        for spec in tools {
            if !provider.accepts_name(&spec.tool_id) {
                losses.push(Loss {
                    tool: spec.tool_id.clone(),
                    path: String::new(),
                    keyword: "name".to_owned(),
                    kind: LossKind::LeftOut,
                    note: format!("{} does not accept this name", provider.title),
                });
                continue;
            }
            let LoweredSchema { parameters, notes, json_texts: found } =
                lower(spec, provider.dialect, &mut losses);
            if !found.is_empty() {
                json_texts.insert(spec.tool_id.clone(), found);
            }
            let mut description = spec.description.clone();
            for note in notes {
                description.push_str(if description.ends_with(['.', '!', '?', ')']) { " " } else { ". " });
                description.push_str(&note);
            }
            declarations.push((provider.declare)(Declaration { spec, description, parameters }));
        }
        Self { declarations: (provider.wrap)(declarations), losses, json_texts }
    }

    /// Parses the arguments that the view declares as JSON text. All others stay unchanged.
    pub fn restore(&self, call: &mut Call) {
        let Ok(arguments) = &mut call.arguments else { return };
        for json_text in self.json_texts.get(&call.name).into_iter().flatten() {
            json_text.restore(arguments);
        }
    }
}
