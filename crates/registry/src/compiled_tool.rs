//! One compiled tool: the bytes of its entry in the artifact, and the digests that versions are made of.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::fields::FIELDS;
use crate::json::write_canonical;

/// A SHA-256 digest.
pub type Sha256Digest = [u8; 32];

/// A checked handler, as the artifact describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handler {
    sha256: Sha256Digest,
    /// Other files of the tool's directory that it imports, with their digests, sorted by path.
    modules: Vec<(String, Sha256Digest)>,
}

impl Handler {
    /// Digests a handler's source and the modules that it imports.
    pub fn new(source: &str, modules: &[(String, String)]) -> Self {
        let mut modules: Vec<_> =
            modules.iter().map(|(path, source)| (path.clone(), sha256(source))).collect();
        modules.sort();
        Self { sha256: sha256(source), modules }
    }
}

/// A tool that passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledTool {
    /// The artifact's entry, one line of JSON without `handlerPath` and the closing brace. It does not depend on the
    /// path of the artifact.
    pub entry: Vec<u8>,
    pub digests: Digests,
    /// Paths, inside its directory, of the modules that the handler imports.
    pub modules: Vec<String>,
}

/// The digests of a tool that the toolset's version and digest are made of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Digests {
    pub tool_id: String,
    /// Over the canonical JSON of every field of `schema.json` and both docs.
    pub declaration: Sha256Digest,
    /// Over the artifact's entry up to `handlerPath`, and so over the handler too.
    pub content: Sha256Digest,
}

impl CompiledTool {
    /// Compiles a tool. `members` are the checked fields of `schema.json`.
    pub fn new(
        mut members: Map<String, Value>,
        summary: &str,
        documentation: &str,
        handler: &Handler,
    ) -> Self {
        let tool_id = members.get("toolId").and_then(Value::as_str).unwrap_or_default().to_owned();
        members.insert("summary".to_owned(), summary.into());
        members.insert("documentation".to_owned(), documentation.into());
        let mut members = Value::Object(members);
        let mut canonical = Vec::new();
        write_canonical(&members, &mut canonical);
        let declaration = Sha256::digest(&canonical).into();
        let entry = write_entry(&mut members, handler);
        let digests = Digests { tool_id, declaration, content: Sha256::digest(&entry).into() };
        let modules = handler.modules.iter().map(|(path, _)| path.clone()).collect();
        Self { entry, digests, modules }
    }
}

/// Moves the members into the artifact's entry, without its closing brace.
fn write_entry(members: &mut Value, handler: &Handler) -> Vec<u8> {
    let fields = FIELDS.iter().map(|field| (field.name, field.artifact_name()));
    let mut entry = Map::new();
    for (name, artifact_name) in fields.chain([("summary", "summary"), ("documentation", "documentation")]) {
        if let Some(value) = members.get_mut(name) {
            entry.insert(artifact_name.to_owned(), value.take());
        }
    }
    entry.insert("handlerSha256".to_owned(), hex(&handler.sha256).into());
    if !handler.modules.is_empty() {
        let modules = handler.modules.iter().map(|(path, sha)| (path.clone(), Value::String(hex(sha))));
        entry.insert("handlerModules".to_owned(), Value::Object(modules.collect()));
    }
    // Writing JSON into memory cannot fail.
    let mut bytes = serde_json::to_vec(&entry).unwrap_or_default();
    bytes.pop();
    bytes
}

fn sha256(text: &str) -> Sha256Digest {
    Sha256::digest(text).into()
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out
}

/// Appends lower-case hexadecimal.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.map(|digit| char::from(DIGITS[usize::from(digit)])));
}
