//! A whole toolset as data: the artifact, the declared tools and the sources of all handlers. Stores keep it, so that a
//! session goes on with its own version after the files have changed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::toolset::{Error, Tool, Toolset};

/// The format that this program writes and reads.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    format: u32,
    /// The text of the artifact; empty if there is none.
    artifact: String,
    declared: Vec<Tool>,
    /// The sources of handlers and their modules, by digest in lower-case hexadecimal. A source that could not be read
    /// is missing; its tools cannot be used.
    pub sources: BTreeMap<String, String>,
}

impl Snapshot {
    pub fn new(toolset: &Toolset, sources: BTreeMap<String, String>) -> Self {
        let artifact = toolset.artifact_text().to_owned();
        Self { format: FORMAT, artifact, declared: toolset.declared().to_vec(), sources }
    }

    /// The toolset, verified as an artifact file is, and the sources.
    pub fn into_toolset(self) -> Result<(Toolset, BTreeMap<String, String>), Error> {
        if self.format != FORMAT {
            return Err(Error::Malformed(format!("its stored form {} is unknown", self.format)));
        }
        let built =
            if self.artifact.is_empty() { Toolset::empty() } else { Toolset::from_text(self.artifact)? };
        let (toolset, duplicates) = built.with_declared(Path::new("the stored toolset"), self.declared);
        match duplicates.first() {
            Some(duplicate) => Err(Error::Malformed(duplicate.to_string())),
            None => Ok((toolset, self.sources)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared;

    const DECLARED: &str = r#"{ "version": 2, "tools": [
        { "name": "fixed", "description": "Fixed.", "type": "function", "parameters": { "type": "object" },
          "implementation": { "type": "mock", "mock_response": { "price": 1.5, "list": [1, null] } } },
        { "name": "built_in", "description": "Native.", "type": "function", "parameters": { "type": "object" },
          "implementation": { "type": "builtin", "handler": "program.function" } },
        { "name": "remote", "description": "Remote.", "type": "function",
          "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
          "implementation": { "type": "http", "method": "GET", "url": "https://api.example/v1",
            "query": { "q": "{city}" }, "headers": { "authorization": "Bearer ${API_KEY}" } } }
    ] }"#;

    #[test]
    fn a_toolset_is_the_same_after_it_was_stored() {
        let (tools, errors) = declared::read(Path::new("t.json"), DECLARED, &|_| true);
        assert_eq!((tools.len(), errors), (3, Vec::new()));
        let (toolset, _) = Toolset::empty().with_declared(Path::new("t.json"), tools);
        let sources = BTreeMap::from([("ab".to_owned(), "export const x = 1;".to_owned())]);
        let text = serde_json::to_string(&Snapshot::new(&toolset, sources.clone())).unwrap();
        let stored: Snapshot = serde_json::from_str(&text).unwrap();
        let (restored, restored_sources) = stored.into_toolset().unwrap();
        assert_eq!(restored.declared(), toolset.declared());
        assert_eq!(restored.content_digest, toolset.content_digest);
        assert_eq!(restored.version, toolset.version);
        assert_eq!(restored_sources, sources);
    }

    #[test]
    fn an_unknown_form_is_refused() {
        let mut snapshot = Snapshot::new(&Toolset::empty(), BTreeMap::new());
        snapshot.format = 2;
        assert!(snapshot.into_toolset().is_err());
    }
}
