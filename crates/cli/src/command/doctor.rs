//! `toolwright doctor`: one line for each thing that a project needs: sound, missing or broken, and what mends it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_embed::install;
use toolwright_kb::Kb;
use toolwright_kb::store::{Backend as _, Stats};
use toolwright_orchestrator::store::{self, Sqlite, sqlite};
use toolwright_registry::artifact;
use toolwright_registry::build::{Options, Progress, compile};

use crate::args::{Common, Format};
use crate::config::{Config, without_password};
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::{capabilities, report, toolset};

/// A name, and what looks at it.
type Check = (&'static str, fn(&Config) -> Finding);

/// What is looked at, in order. The configuration comes before all.
const CHECKS: [Check; 8] = [
    ("tools", tools),
    ("prompts", prompts),
    ("store", store),
    ("imports", imports),
    ("knowledge base", knowledge_base),
    ("embedder", embedder),
    ("calendar", calendar),
    ("images", images),
];

/// How one thing is.
enum Finding {
    Ok(String),
    /// Toolwright works without it, with less; what mends it.
    Missing(String, String),
    /// What depends on it fails; what mends it.
    Broken(String, String),
}

pub fn run(common: &Common) -> Result<ExitCode> {
    let mut findings = Vec::new();
    match Config::load(common, None) {
        Ok(config) => {
            let file = config.beside("toolwright.toml");
            let told = match &common.config {
                Some(file) => file.display().to_string(),
                None if file.exists() => file.display().to_string(),
                None => "defaults: there is no toolwright.toml".to_owned(),
            };
            findings.push(("configuration", Finding::Ok(told)));
            findings.extend(CHECKS.iter().map(|(name, check)| (*name, check(&config))));
        }
        Err(failure) => findings.push(("configuration", failure.into())),
    }
    match common.format {
        Format::Json => {
            let rows: Vec<Value> = findings.iter().map(|(name, finding)| row(name, finding)).collect();
            output::data_line(serde_json::to_string_pretty(&json!({ "checks": rows }))?);
        }
        Format::Human => findings.iter().for_each(|(name, finding)| line(name, finding)),
    }
    let is_broken = findings.iter().any(|(_, finding)| matches!(finding, Finding::Broken(..)));
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl From<Failure> for Finding {
    fn from(failure: Failure) -> Self {
        Self::Broken(failure.message, failure.help)
    }
}

fn row(name: &str, finding: &Finding) -> Value {
    match finding {
        Finding::Ok(told) => json!({ "check": name, "status": "ok", "message": told }),
        Finding::Missing(told, help) => {
            json!({ "check": name, "status": "missing", "message": told, "help": help })
        }
        Finding::Broken(told, help) => {
            json!({ "check": name, "status": "broken", "message": told, "help": help })
        }
    }
}

fn line(name: &str, finding: &Finding) {
    let (colour, status, told, help) = match finding {
        Finding::Ok(told) => (32, "ok", told, None),
        Finding::Missing(told, help) => (33, "missing", told, Some(help)),
        Finding::Broken(told, help) => (31, "broken", told, Some(help)),
    };
    output::data_line(format_args!("{name:<14} \x1b[1;{colour}m{status:<8}\x1b[0m {told}"));
    if let Some(help) = help {
        output::data_line(format_args!("{:<23} \x1b[1mhelp\x1b[0m: {help}", ""));
    }
}

fn tools(config: &Config) -> Finding {
    let tools = config.tools.clone();
    let options = Options { out: tools.join(artifact::FILE_NAME), tools: tools.clone(), cache: None };
    match compile(options, &Progress::default()) {
        Err(error) => Finding::Broken(error.to_string(), error.help().to_string()),
        Ok(found) if !found.is_ok() => {
            Finding::Broken(report::count(&found.diagnostics), "`toolwright check` shows them".to_owned())
        }
        Ok(found) => Finding::Ok(format!("{} in {}", report::plural(found.found, "tool"), tools.display())),
    }
}

fn prompts(config: &Config) -> Finding {
    let is_there = |name: &str| config.prompts.join(name).is_file();
    if is_there("core.md") && is_there("voice-behavior.md") {
        return Finding::Ok(config.prompts.display().to_string());
    }
    let told = format!("{} lacks core.md or voice-behavior.md", config.prompts.display());
    Finding::Missing(told, "write them, or name their directory: `[prompts] dir`".to_owned())
}

/// Makes nothing: a store that is not there yet is made on first use.
fn store(config: &Config) -> Finding {
    let url = &config.store;
    if let Some(path) = url.strip_prefix("sqlite:").filter(|path| *path != ":memory:") {
        if !Path::new(path).exists() {
            return Finding::Ok(format!("{path} is made on first use"));
        }
        return match Sqlite::open(Path::new(path), sqlite::Options::default()) {
            Ok(_) => Finding::Ok(path.to_owned()),
            Err(store::Error::InUse(_)) => Finding::Ok(format!("{path}, in use by another process")),
            Err(error) => Finding::Broken(
                error.to_string(),
                "restore it from a copy, or name another: `[store] url`".to_owned(),
            ),
        };
    }
    let opened = toolset::tokio().map(|tokio| tokio.block_on(crate::store::open(url)));
    match opened {
        Ok(Ok(_)) => Finding::Ok(without_password(url)),
        Ok(Err(failure)) => failure.into(),
        Err(error) => {
            Finding::Broken(error.to_string(), "the system must be able to start threads".to_owned())
        }
    }
}

fn imports(config: &Config) -> Finding {
    let imports = match Imports::load(config) {
        Ok(imports) => imports,
        Err(failure) => return failure.into(),
    };
    let names = imports.servers.iter().map(|import| import.server().name.as_str());
    let without: Vec<&str> = names.filter(|name| imports.pins.of(name).next().is_none()).collect();
    match without.first() {
        None => Finding::Ok(report::plural(imports.servers.len(), "MCP server")),
        Some(_) => Finding::Missing(
            format!("no tool was accepted yet of {}", without.join(", ")),
            "run `toolwright mcp pin`".to_owned(),
        ),
    }
}

fn knowledge_base(config: &Config) -> Finding {
    // Looking must not make one.
    if config.kb.strip_prefix("dir:").is_some_and(|dir| !Path::new(dir).exists()) {
        if !config.kb_sources.is_empty() {
            return Finding::Ok("filled from its sources on first use".to_owned());
        }
        let (told, help) = ("it is empty", "`toolwright kb add PATH…` fills it");
        return Finding::Missing(told.to_owned(), help.to_owned());
    }
    let stats = Kb::open(&config.kb, capabilities::embedders(config)).and_then(|kb| kb.store.stats());
    let embedder = config.embedders().get();
    let set_up = embedder.as_ref().ok().map(|embedder| embedder.name());
    match stats {
        Ok(Stats { embedder: Some(maker), records, .. }) if set_up.is_some_and(|name| name != maker.name) => {
            let told = format!(
                "{records} records with vectors by `{}`, but `{}` is set up; search uses keywords alone",
                maker.name,
                set_up.unwrap_or_default()
            );
            let help =
                "run `toolwright kb rebuild`, which makes them anew, or set up the embedder that made them";
            Finding::Missing(told, help.to_owned())
        }
        Ok(stats) if stats.with_vector < stats.passages => {
            let lacking = stats.passages - stats.with_vector;
            let told = format!("{} records; {lacking} passages have no vector yet", stats.records);
            let help = match embedder {
                Ok(_) => "run `toolwright kb rebuild`, which makes them",
                Err(_) => "they are made once there is an embedder",
            };
            Finding::Missing(told, help.to_owned())
        }
        Ok(stats) => Finding::Ok(format!("{} records, {} with vectors", stats.records, stats.with_vector)),
        Err(error) => Finding::Broken(error.to_string(), "see `[kb] url` in toolwright.toml".to_owned()),
    }
}

/// The model is read whole, and one text embedded: what is installed may be damaged, and an endpoint away.
fn embedder(config: &Config) -> Finding {
    let embedder = match config.embedders().get() {
        Ok(embedder) => embedder,
        Err(missing) if config.has_endpoint() => return Finding::Broken(missing.reason, missing.help),
        Err(missing) => {
            let told = format!("{}; search uses keywords alone", missing.reason);
            return Finding::Missing(told, missing.help);
        }
    };
    if !config.has_endpoint()
        && let Err(error) = install::verify(&install::model_dir(&config.models))
    {
        return Finding::Broken(error, format!("run `{}`", install::INSTALL_COMMAND));
    }
    let start = Instant::now();
    match embedder.embed(&["What does the studio do?"]) {
        Ok(vectors) => {
            let length = vectors.first().map_or(0, Vec::len);
            let took = start.elapsed().as_millis();
            Finding::Ok(format!(
                "{}, {length} dimensions; the first question took {took} ms",
                embedder.name()
            ))
        }
        Err(fault) => Finding::Broken(fault.message, "mend `[kb.embedder]`, or start the service".to_owned()),
    }
}

fn calendar(config: &Config) -> Finding {
    let settings = &config.calendar;
    let zoom = settings.zoom.as_ref().map(|zoom| &zoom.client_secret_env);
    let variables = settings.password_env.iter().chain(zoom);
    let unset: Vec<&str> =
        variables.filter(|name| std::env::var_os(name).is_none()).map(String::as_str).collect();
    if !unset.is_empty() {
        let told = format!("{} of `[calendar]` not in the environment", unset.join(", "));
        return Finding::Broken(told, "set what the settings name".to_owned());
    }
    let Some(url) = &settings.url else {
        return Finding::Ok(format!("embedded: {}", config.calendar_file().display()));
    };
    let calendar = capabilities::calendar(config);
    let asked = toolset::tokio()
        .and_then(|tokio| tokio.block_on(calendar.reach()).map_err(|fault| anyhow::anyhow!(fault.message)));
    let server = without_password(url.0.as_str());
    match asked {
        Ok(()) => Finding::Ok(format!("{server} answers")),
        Err(error) => {
            Finding::Broken(format!("{server}: {error}"), "mend `[calendar]`, or start the server".to_owned())
        }
    }
}

fn images(config: &Config) -> Finding {
    let options = config.images();
    match &options.url {
        Some(url) => Finding::Ok(format!("{}, kept in {}", without_password(url), options.dir.display())),
        None => Finding::Missing(
            "no service is named that makes pictures".to_owned(),
            "set `[images] url`; docs/reference/configuration.md".to_owned(),
        ),
    }
}
