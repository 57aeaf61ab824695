//! The root of a schema: always an object, and for most providers without unions.

use serde_json::{Map, Value};

use super::Lowering;
use super::emit::{SchemaDraft, alternatives, describe_required};
use super::keyword::{capitalize, describe_keyword};
use super::merge::MergedSchema;
use crate::LossKind;

/// Keywords that most providers reject at the root.
const REJECTED_AT_ROOT: [&str; 5] = ["anyOf", "oneOf", "enum", "const", "not"];

impl<'a> Lowering<'a, '_> {
    /// The parameters, and notes about what they cannot express.
    pub(super) fn root(&mut self) -> (Map<String, Value>, Vec<String>) {
        let allows_unions = self.dialect.allows_root_unions;
        let mut schema = self.merge(&[self.root], None, !allows_unions);
        let mut notes = Vec::new();
        if !allows_unions {
            self.merge_unions(&mut schema, &mut notes);
        }
        let SchemaDraft { mut members, notes: own, .. } = self.draft(&schema);
        notes.extend(own);
        // Not all providers support a description of the root: it joins that of the tool.
        if self.dialect.keywords.is_some()
            && let Some(Value::String(description)) = members.shift_remove("description")
        {
            notes.insert(0, description);
        }
        if self.dialect.is_native {
            members = self.native_object(members);
        } else {
            members.insert("type".to_owned(), "object".into());
            members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
        (members, notes.into_iter().map(|note| as_sentence(&note)).collect())
    }

    /// Adds the properties of all branches, none of them required, and describes the rest.
    fn merge_unions(&mut self, schema: &mut MergedSchema<'a>, notes: &mut Vec<String>) {
        for keyword in REJECTED_AT_ROOT {
            let Some(at) = schema.keywords.iter().position(|(name, _)| *name == keyword) else { continue };
            let (_, value) = schema.keywords.remove(at);
            let branches = value.as_array().filter(|_| keyword.ends_with("Of"));
            let Some(branches) = branches else {
                self.describe(notes, keyword, describe_keyword(keyword, value));
                continue;
            };
            for branch in branches {
                let opened = self.open.len();
                let merged = self.merge(&[branch], None, true);
                self.open.truncate(opened);
                add_properties(schema, merged);
            }
            match describe_branches(keyword, branches) {
                Some(text) => self.describe(notes, keyword, Some(text)),
                None => self.report_loss(
                    keyword,
                    LossKind::Rewritten,
                    "the properties of all branches, none required",
                ),
            }
        }
    }
}

/// Adds the properties of a branch that the schema does not have.
fn add_properties<'a>(schema: &mut MergedSchema<'a>, branch: MergedSchema<'a>) {
    if branch.properties.is_empty() {
        return;
    }
    if schema.get("properties").is_none() {
        schema.keywords.push(("properties", &Value::Null));
    }
    for (name, schemas) in branch.properties {
        if !schema.properties.iter().any(|(known, _)| *known == name) {
            schema.properties.push((name, schemas));
        }
    }
}

/// Describes what each branch requires.
fn describe_branches(keyword: &str, branches: &[Value]) -> Option<String> {
    let has_objects = branches.iter().any(|branch| branch.get("properties").is_some());
    if has_objects { describe_required(keyword, branches) } else { alternatives(keyword, branches) }
}

fn as_sentence(note: &str) -> String {
    let end = if note.ends_with(['.', '!', '?', ')']) { "" } else { "." };
    capitalize(note) + end
}
