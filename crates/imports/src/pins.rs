//! The accepted definitions of tools, stored in a file beside the configuration.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolwright_contract::object::ObjectOnly;

use crate::definition::Definition;

/// The name of the file, beside `toolwright.toml`.
pub const FILE_NAME: &str = "toolwright.mcp.lock.json";

const FORMAT: u64 = 1;

/// All accepted definitions, by server and the server's name of the tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    format: u64,
    pub servers: BTreeMap<String, BTreeMap<String, Pin>>,
}

/// An accepted definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub sha256: String,
    pub definition: Definition,
}

/// A difference between the pins and a server's current tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    New(String),
    /// The parts of the definition that differ.
    Changed(String, Vec<&'static str>),
    Gone(String),
}

/// Why the file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("could not read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not write {}: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} is not a valid file of pins: {message}", path.display())]
    Malformed { path: PathBuf, message: String },
    #[error("{}: the pinned definition of `{tool}` of `{server}` does not match its digest", path.display())]
    Tampered { path: PathBuf, server: String, tool: String },
}

impl Error {
    /// How to fix it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } => "fix the permissions of the file",
            Self::Malformed { .. } | Self::Tampered { .. } => {
                "restore the file, or delete it and accept the tools again with `toolwright mcp pin`"
            }
        }
    }
}

impl Default for Pins {
    fn default() -> Self {
        Self { format: FORMAT, servers: BTreeMap::new() }
    }
}

impl Pins {
    /// Reads the file and checks every pin against its digest. A missing file has no pins.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(Error::Unreadable { path: path.to_owned(), source }),
        };
        let malformed = |message: String| Error::Malformed { path: path.to_owned(), message };
        let ObjectOnly::<Self>(pins) =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if pins.format != FORMAT {
            return Err(malformed(format!("its format is {}, but this program reads {FORMAT}", pins.format)));
        }
        for (server, tools) in &pins.servers {
            if let Some((tool, _)) = tools.iter().find(|(_, pin)| pin.definition.digest() != pin.sha256) {
                let (server, tool) = (server.clone(), tool.clone());
                return Err(Error::Tampered { path: path.to_owned(), server, tool });
            }
        }
        Ok(pins)
    }

    /// Replaces the file atomically.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let unwritable = |source| Error::Unwritable { path: path.to_owned(), source };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| unwritable(error.into()))?;
        text.push('\n');
        let temporary = path.with_extension("new");
        let written = fs::File::create(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(|source| {
            // Best effort: the file is incomplete.
            let _ = fs::remove_file(&temporary);
            unwritable(source)
        })
    }

    /// The pinned tools of a server, by name.
    pub fn of_server(&self, server: &str) -> impl Iterator<Item = (&str, &Pin)> {
        self.servers.get(server).into_iter().flatten().map(|(tool, pin)| (tool.as_str(), pin))
    }

    /// The changes that accepting these definitions would make.
    pub fn compare(&self, server: &str, current: &BTreeMap<String, Definition>) -> Vec<Change> {
        let pinned: BTreeMap<&str, &Pin> = self.of_server(server).collect();
        let mut changes: Vec<Change> = Vec::new();
        for (tool, definition) in current {
            match pinned.get(tool.as_str()) {
                None => changes.push(Change::New(tool.clone())),
                Some(pin) if pin.definition != *definition => {
                    changes.push(Change::Changed(tool.clone(), pin.definition.differences(definition)));
                }
                Some(_) => {}
            }
        }
        let gone = pinned.keys().filter(|tool| !current.contains_key(**tool));
        changes.extend(gone.map(|tool| Change::Gone((*tool).to_owned())));
        changes
    }

    /// Replaces the pins of a server by these definitions.
    pub fn accept(&mut self, server: &str, current: BTreeMap<String, Definition>) {
        let pin = |definition: Definition| Pin { sha256: definition.digest(), definition };
        let tools = current.into_iter().map(|(tool, definition)| (tool, pin(definition))).collect();
        self.servers.insert(server.to_owned(), tools);
    }
}
