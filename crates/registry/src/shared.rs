//! `tools/_shared/*.json`: definitions that several tools use. They are copied into each schema that refers to them, so
//! that the artifact needs no other file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolwright_contract::suggest::did_you_mean;
use toolwright_schema::{visit_subschemas, visit_subschemas_mut};

use crate::json::{self, Parsed};
use crate::reader::decode;

/// The shared definitions of a tools directory.
#[derive(Debug, Default)]
pub struct Shared {
    files: BTreeMap<String, SharedFile>,
    digest: [u8; 32],
}

#[derive(Debug)]
struct SharedFile {
    text: String,
    parsed: Result<Parsed, String>,
}

/// A schema that contains all definitions that it refers to.
#[derive(Debug)]
pub struct Bundled<'v> {
    pub schema: Cow<'v, Value>,
    /// References that cannot be resolved: pointer, message and help.
    pub missing: Vec<(String, String, String)>,
    /// The `$defs` that were copied in: key, and name of the shared file.
    pub keys: Vec<(String, String)>,
}

impl Shared {
    /// Reads `root/_shared/*.json`. A directory without one has no shared definitions.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut shared = Self::default();
        let entries = match fs::read_dir(root.join("_shared")) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(shared),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
                shared.files.insert(name.to_owned(), SharedFile::new(&path, root));
            }
        }
        let mut hasher = Sha256::new();
        for (name, file) in &shared.files {
            for part in [name, &file.text] {
                hasher.update(part.len().to_le_bytes());
                hasher.update(part);
            }
        }
        shared.digest = hasher.finalize().into();
        Ok(shared)
    }

    /// The digest over all shared files.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The text of a shared file.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|file| file.text.as_str())
    }

    /// The content of a shared file, if it is JSON.
    pub fn parsed(&self, name: &str) -> Option<&Parsed> {
        self.files.get(name).and_then(|file| file.parsed.as_ref().ok())
    }

    fn definition(&self, name: &str) -> Result<&Value, (String, String)> {
        match self.files.get(name) {
            Some(SharedFile { parsed: Ok(parsed), .. }) => Ok(&parsed.value),
            Some(SharedFile { parsed: Err(message), .. }) => {
                Err((format!("`_shared/{name}` cannot be used: {message}"), "fix the shared file".to_owned()))
            }
            None => {
                let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
                let help = if names.is_empty() {
                    "the tools directory has no `_shared/*.json`".to_owned()
                } else {
                    did_you_mean(name, &names)
                };
                Err((format!("there is no `_shared/{name}`"), help))
            }
        }
    }
}

impl SharedFile {
    fn new(path: &Path, root: &Path) -> Self {
        if fs::canonicalize(path).is_ok_and(|target| !target.starts_with(root)) {
            return Self {
                text: String::new(),
                parsed: Err("it links to a file outside of the tools directory".to_owned()),
            };
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read(path).map_err(|error| error.to_string());
        match text.and_then(|bytes| decode(bytes, &name).map_err(|draft| draft.message)) {
            Ok(text) => {
                let parsed = json::parse(&text).map_err(|error| format!("it is not JSON: {}", error.message));
                Self { parsed, text }
            }
            Err(message) => Self { text: String::new(), parsed: Err(message) },
        }
    }
}

/// Copies every shared definition that `schema` refers to, directly or not, into its `$defs`.
pub fn bundle<'v>(schema: &'v Value, shared: &Shared) -> Bundled<'v> {
    let mut missing = Vec::new();
    let mut referenced = BTreeSet::new();
    visit_subschemas(schema, &mut |pointer, subschema| {
        if let Some((name, _)) = reference(subschema).and_then(|target| shared_target(target, false)) {
            match shared.definition(name) {
                Ok(_) => drop(referenced.insert(name.to_owned())),
                Err((message, help)) => missing.push((format!("{pointer}/$ref"), message, help)),
            }
        }
    });
    if referenced.is_empty() {
        return Bundled { schema: Cow::Borrowed(schema), missing, keys: Vec::new() };
    }
    let mut copied: BTreeMap<String, Value> = BTreeMap::new();
    while let Some(name) = referenced.pop_first() {
        let Ok(definition) = shared.definition(&name) else { continue };
        copied.insert(name.clone(), localise(definition, &name, &mut referenced));
        referenced.retain(|name| !copied.contains_key(name));
    }
    let mut bundled = schema.clone();
    visit_subschemas_mut(&mut bundled, &mut |subschema| redirect(subschema, false));
    let keys = copied.keys().map(|name| (key_of(name), name.clone())).collect();
    if let Some(members) = bundled.as_object_mut() {
        let definitions = members.entry("$defs").or_insert_with(|| Value::Object(Map::new()));
        if let Some(definitions) = definitions.as_object_mut() {
            definitions.extend(copied.into_iter().map(|(name, definition)| (key_of(&name), definition)));
        }
    }
    Bundled { schema: Cow::Owned(bundled), missing, keys }
}

/// The definition of a shared file, with its references rewritten for another schema.
fn localise(definition: &Value, name: &str, referenced: &mut BTreeSet<String>) -> Value {
    let mut definition = definition.clone();
    if let Some(members) = definition.as_object_mut() {
        members.shift_remove("$schema");
        members.shift_remove("$id");
    }
    visit_subschemas_mut(&mut definition, &mut |subschema| {
        let Some(target) = reference(subschema) else { return };
        if let Some((other, _)) = shared_target(target, true) {
            referenced.insert(other.to_owned());
            redirect(subschema, true);
        } else if let Some(fragment) = target.strip_prefix('#') {
            let target = format!("#/$defs/{}{fragment}", key_of(name));
            set_reference(subschema, target);
        }
    });
    definition
}

fn redirect(subschema: &mut Value, inside_shared: bool) {
    let target = reference(subschema).and_then(|target| shared_target(target, inside_shared));
    if let Some((name, fragment)) = target {
        let target = format!("#/$defs/{}{fragment}", key_of(name));
        set_reference(subschema, target);
    }
}

fn reference(subschema: &Value) -> Option<&str> {
    subschema.as_object()?.get("$ref")?.as_str()
}

fn set_reference(subschema: &mut Value, target: String) {
    if let Some(members) = subschema.as_object_mut() {
        members.insert("$ref".to_owned(), Value::String(target));
    }
}

/// The file's name and the fragment (without `#`) of a reference to a shared file.
/// A shared file may refer to another one without the directory.
fn shared_target(target: &str, inside_shared: bool) -> Option<(&str, &str)> {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let prefixes = ["../_shared/", "./_shared/", "tools/_shared/", "/_shared/", "_shared/"];
    let name = prefixes.iter().find_map(|prefix| path.strip_prefix(prefix));
    let name = name.or_else(|| inside_shared.then(|| path.strip_prefix("./").unwrap_or(path)))?;
    (!name.is_empty() && !name.contains(['/', ':'])).then_some((name, fragment))
}

/// The key of `$defs` under which a shared file is copied in.
fn key_of(name: &str) -> String {
    format!("_shared_{}", name.strip_suffix(".json").unwrap_or(name).replace(['~', '/'], "_"))
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
