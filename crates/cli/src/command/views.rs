//! `build --emit-views DIR`: writes every provider's view of the toolset, for programs in other languages.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use toolwright_providers::PROVIDERS;
use toolwright_registry::toolset::Toolset;

use crate::config::Config;
use crate::imports::Imports;
use crate::toolset::SessionToolset;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Writes one file per provider, and `losses.json` with what their forms cannot express. Each is replaced atomically.
pub fn write(dir: &Path, artifact: &Path, config: &Config) -> Result<(), Error> {
    // The build reports the refused tools.
    let imports = Imports::load(config)?;
    let tools = SessionToolset::assemble(Toolset::load(artifact)?, config, &imports, &|_| false).toolset;
    fs::create_dir_all(dir).map_err(|error| format!("cannot create {}: {error}", dir.display()))?;
    let mut losses = Map::new();
    for provider in PROVIDERS {
        let view = provider.view(tools.for_models(|_| true).map(|tool| &tool.spec));
        replace(&dir.join(format!("{}.json", provider.name)), &view.declarations)?;
        losses.insert(provider.name.to_owned(), json!(view.losses));
    }
    replace(&dir.join("losses.json"), &Value::Object(losses))
}

fn replace(path: &Path, value: &Value) -> Result<(), Error> {
    let new = path.with_extension("json.new");
    let write = || {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        fs::write(&new, text)?;
        fs::rename(&new, path)
    };
    write().map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}
