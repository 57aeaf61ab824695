//! One tool as it goes into the artifact: its entry's bytes, and the digests that versions are made of.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::json::write_canonical;

/// A SHA-256 digest.
pub type Sha = [u8; 32];

/// A handler that passed its checks, reduced to what the artifact says of it.
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

    /// The files that it imports.
    pub fn module_paths(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(|(path, _)| path.as_str())
    }
}

/// A tool that passed all checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledTool {
    /// The artifact's entry, one line of JSON, up to where `handlerPath` and the closing brace follow.
    /// What is here does not depend on where the artifact lies.
    pub entry: Vec<u8>,
    pub digests: Digests,
    /// Paths, inside its directory, of the modules that the handler imports.
    pub modules: Vec<String>,
}

/// What a tool contributes to the toolset's version and digest.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Digests {
    pub tool_id: String,
    /// Over the canonical JSON of every field of `schema.json` and both docs.
    pub declaration: Sha,
    /// Over the artifact's entry up to `handlerPath`, and so over the handler too.
    pub content: Sha,
}

impl CompiledTool {
    /// Puts a tool together. `members` are the fields of `schema.json`, all checked.
    pub fn new(members: &Map<String, Value>, summary: &str, documentation: &str, handler: &Handler) -> Self {
        let docs = Docs { summary: quoted(summary), documentation: quoted(documentation) };
        let entry = write_entry(members, &docs, handler);
        let tool_id = members.get("toolId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let digests = Digests {
            tool_id,
            declaration: declaration_digest(members, &docs),
            content: Sha256::digest(&entry).into(),
        };
        let modules = handler.module_paths().map(str::to_owned).collect();
        Self { entry, digests, modules }
    }
}

/// Both docs as JSON strings: they are the bulk of a tool, and needed twice.
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
    let mut entry = Object(Vec::with_capacity(docs.documentation.len() + 4096));
    for name in crate::check::field_names() {
        if let Some(value) = members.get(name) {
            entry.member(if name == "parameters" { "jsonSchema" } else { name }, value);
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

/// A JSON object while its members are written. The closing brace is the caller's.
struct Object(Vec<u8>);

impl Object {
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

/// The canonical JSON of the declaration is that of one object: the fields, `summary` and `documentation`.
fn declaration_digest(members: &Map<String, Value>, docs: &Docs) -> Sha {
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.extend(["documentation", "summary"]);
    names.sort_unstable();
    let mut canonical = Object(Vec::with_capacity(docs.documentation.len() + 4096));
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

/// Appends a number in hexadecimal, without the bytes that are zero in front.
pub fn push_hex_number(out: &mut String, number: u64) {
    push_hex(out, &number.to_be_bytes()[number.leading_zeros() as usize / 8..]);
}

/// Appends lower-case hexadecimal.
pub fn push_hex(out: &mut String, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        let at = usize::from(*byte) * 2;
        out.push_str(&PAIRS[at..at + 2]);
    }
}

/// The two digits of every byte, one after the other.
const PAIRS: &str = match std::str::from_utf8(&digits()) {
    Ok(pairs) => pairs,
    Err(_) => "",
};

const fn digits() -> [u8; 512] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [0; 512];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte * 2] = DIGITS[byte >> 4];
        pairs[byte * 2 + 1] = DIGITS[byte & 15];
        byte += 1;
    }
    pairs
}
