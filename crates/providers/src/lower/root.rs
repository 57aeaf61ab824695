//! The top of a schema: always an object, and for most providers without unions.

use serde_json::{Map, Value};

use super::Lowering;
use super::emit::{Draft, alternatives};
use super::node::Node;
use crate::Done;

/// Refused at the top by providers that want an object and nothing else.
const REFUSED: [&str; 5] = ["anyOf", "oneOf", "enum", "const", "not"];

impl<'a> Lowering<'a, '_> {
    /// The parameters, and what they could not say.
    pub(super) fn root(&mut self) -> (Map<String, Value>, Vec<String>) {
        let has_unions = self.policy.has_unions_at_root;
        let mut node = self.gather(&[self.root], None, !has_unions);
        let mut above = Draft::default();
        if !has_unions {
            self.fold(&mut node, &mut above);
        }
        let Draft { mut members, notes } = self.draft(&node);
        above.notes.extend(notes);
        // The tool's own description stands above it, and not all providers have a place for another.
        if self.policy.keeps.is_some()
            && let Some(Value::String(description)) = members.shift_remove("description")
        {
            above.notes.insert(0, description);
        }
        if self.is_native() {
            members = self.native_object(members);
        } else {
            members.insert("type".to_owned(), "object".into());
            members.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
        (members, above.notes.into_iter().map(|note| as_sentence(&note)).collect())
    }

    /// Takes the properties of all branches together, none of them required, and says the rest in words.
    fn fold(&mut self, node: &mut Node<'a>, above: &mut Draft) {
        for keyword in REFUSED {
            let Some(at) = node.keywords.iter().position(|(name, _)| *name == keyword) else { continue };
            let (_, value) = node.keywords.remove(at);
            let branches = value.as_array().filter(|_| keyword.ends_with("Of"));
            let Some(branches) = branches else {
                self.describe(above, keyword, super::keyword::words(keyword, value));
                continue;
            };
            for branch in branches {
                let opened = self.open.len();
                let folded = self.gather(&[branch], None, true);
                self.open.truncate(opened);
                self.join(node, folded);
            }
            match forms(keyword, branches) {
                Some(words) => self.describe(above, keyword, Some(words)),
                None => self.lose(keyword, Done::Rewritten, "the properties of all branches, none required"),
            }
        }
    }

    fn join(&mut self, node: &mut Node<'a>, branch: Node<'a>) {
        if branch.properties.is_empty() {
            return;
        }
        if node.get("properties").is_none() {
            node.keywords.push(("properties", &Value::Null));
        }
        for (name, schemas) in branch.properties {
            if !node.properties.iter().any(|(known, _)| *known == name) {
                node.properties.push((name, schemas));
            }
        }
    }
}

/// The branches in words: what each of them requires.
fn forms(keyword: &str, branches: &[Value]) -> Option<String> {
    let names = |branch: &Value| {
        let names = branch.get("required")?.as_array()?.iter().filter_map(Value::as_str);
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    let is_object = |branch: &Value| branch.get("properties").is_some();
    if !branches.iter().any(is_object) {
        return alternatives(keyword, branches);
    }
    let names: Vec<String> = branches.iter().map(names).collect::<Option<_>>()?;
    let how_many = if keyword == "oneOf" { "exactly one" } else { "at least one" };
    Some(format!("{how_many} of these must be given: {}", names.join("; ")))
}

fn as_sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    let end = if note.ends_with(['.', '!', '?', ')']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
