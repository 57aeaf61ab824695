//! One compiled tool: the bytes of its entry in the artifact, and the digests that versions are made of.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::fields::FIELDS;
use crate::json::write_canonical;

/// A SHA-256 digest.
pub type Sha = [u8; 32];

/// A checked handler, as the artifact describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handler {
    sha256: Sha,
    /// Other files of the tool's directory that it imports, with their digests, sorted by path.
    modules: Vec<(String, Sha)>,
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
    pub declaration: Sha,
    /// Over the artifact's entry up to `handlerPath`, and so over the handler too.
    pub content: Sha,
}

impl CompiledTool {
    /// Compiles a tool. `members` are the checked fields of `schema.json`.
    pub fn new(members: &Map<String, Value>, summary: &str, documentation: &str, handler: &Handler) -> Self {
        let docs = Docs { summary: quoted(summary), documentation: quoted(documentation) };
        let entry = write_entry(members, &docs, handler);
        let tool_id = members.get("toolId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let digests = Digests {
            tool_id,
            declaration: declaration_digest(members, &docs),
            content: Sha256::digest(&entry).into(),
        };
        let modules = handler.modules.iter().map(|(path, _)| path.clone()).collect();
        Self { entry, digests, modules }
    }
}

/// Both docs as JSON strings. They are most of a tool's bytes and needed twice.
struct Docs {
    summary: Vec<u8>,
    documentation: Vec<u8>,
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + text.len() / 8);
    // Writing JSON into memory cannot fail.
    let _ = serde_json::to_writer(&mut out, text);
    out
}

fn write_entry(members: &Map<String, Value>, docs: &Docs, handler: &Handler) -> Vec<u8> {
    let mut entry = ObjectWriter(Vec::with_capacity(docs.documentation.len() + 4096));
    for field in FIELDS {
        if let Some(value) = members.get(field.name) {
            entry.member(field.artifact_name(), value);
        }
    }
    entry.key("summary").extend_from_slice(&docs.summary);
    entry.key("documentation").extend_from_slice(&docs.documentation);
    entry.member("handlerSha256", &hex(&handler.sha256));
    if !handler.modules.is_empty() {
        let modules = handler.modules.iter().map(|(path, sha)| (path.clone(), Value::String(hex(sha))));
        entry.member("handlerModules", &modules.collect::<Map<_, _>>());
    }
    entry.0
}

/// Writes the members of a JSON object. The caller writes the closing brace.
struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        let _ = serde_json::to_writer(&mut self.0, name);
        self.0.push(b':');
        &mut self.0
    }

    fn member<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let _ = serde_json::to_writer(self.key(name), value);
    }
}

/// The digest over the canonical JSON of one object: the fields, `summary` and `documentation`.
fn declaration_digest(members: &Map<String, Value>, docs: &Docs) -> Sha {
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.extend(["documentation", "summary"]);
    names.sort_unstable();
    let mut canonical = ObjectWriter(Vec::with_capacity(docs.documentation.len() + 4096));
    for name in names {
        let out = canonical.key(name);
        match (name, members.get(name)) {
            ("summary", _) => out.extend_from_slice(&docs.summary),
            ("documentation", _) => out.extend_from_slice(&docs.documentation),
            (_, Some(value)) => write_canonical(value, out),
            (_, None) => {}
        }
    }
    canonical.0.push(b'}');
    Sha256::digest(&canonical.0).into()
}

fn sha256(text: &str) -> Sha {
    Sha256::digest(text).into()
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes);
    out
}

/// Appends a number in hexadecimal, without leading zero bytes.
pub fn push_hex_number(out: &mut String, number: u64) {
    push_hex(out, &number.to_be_bytes()[number.leading_zeros() as usize / 8..]);
}

/// Appends lower-case hexadecimal.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.map(|digit| char::from(DIGITS[usize::from(digit)])));
}
