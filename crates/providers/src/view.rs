//! A provider's form of a toolset, and the way back from its arguments to the tool's own.

use std::collections::HashMap;

use serde_json::Value;
use toolwright_contract::ToolSpec;

use crate::lower::{Lowered, Text, lower};
use crate::provider::Declared;
use crate::{Call, Done, Loss, Provider};

/// Tools declared for one provider.
#[derive(Debug)]
pub struct View {
    /// What goes under `tools` of a request; for MCP, the result of `tools/list`.
    pub declarations: Value,
    /// What this form cannot say, in the order of tools.
    pub losses: Vec<Loss>,
    /// Arguments that the view asks for as JSON text.
    texts: HashMap<String, Vec<Text>>,
}

impl View {
    pub(crate) fn new<'a>(provider: &Provider, tools: impl IntoIterator<Item = &'a ToolSpec>) -> Self {
        let mut losses = Vec::new();
        let mut texts = HashMap::new();
        let mut declarations = Vec::new();
        for spec in tools {
            if !provider.takes_name(&spec.tool_id) {
                losses.push(Loss {
                    tool: spec.tool_id.clone(),
                    path: String::new(),
                    keyword: "name".to_owned(),
                    done: Done::LeftOut,
                    note: format!("{} does not take this name", provider.title),
                });
                continue;
            }
            let Lowered { parameters, notes, texts: found } = lower(spec, provider.policy, &mut losses);
            if !found.is_empty() {
                texts.insert(spec.tool_id.clone(), found);
            }
            let mut description = spec.description.clone();
            for note in notes {
                description.push_str(if description.ends_with(['.', '!', '?', ')']) { " " } else { ". " });
                description.push_str(&note);
            }
            declarations.push((provider.declare)(Declared { spec, description, parameters }));
        }
        Self { declarations: (provider.wrap)(declarations), losses, texts }
    }

    /// Turns arguments that the view asked for as JSON text back into what the tool takes. Nothing else is touched:
    /// a text stays a text wherever the tool's own schema was declared.
    pub fn restore(&self, call: &mut Call) {
        let Ok(arguments) = &mut call.arguments else { return };
        for text in self.texts.get(&call.name).into_iter().flatten() {
            text.restore(arguments);
        }
    }
}
