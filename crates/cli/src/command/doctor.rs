//! `toolwright doctor`: checks a project's setup, one line per check, and suggests fixes.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use toolwright_contract::suggest::nearest;
use toolwright_embed::install;
use toolwright_kb::Kb;
use toolwright_kb::store::Stats;
use toolwright_orchestrator::capabilities::images::Images;
use toolwright_orchestrator::confinement;
use toolwright_orchestrator::store::{self, Sqlite, sqlite};
use toolwright_registry::build::{Compilation, Progress, compile};
use toolwright_registry::toolset::Toolset;
use toolwright_server::{SetupCheck, SetupStatus};

use super::check::{session_toolset, unknown_sections};
use super::serve_checks::{check_agent, check_server, check_voice};
use crate::args::{Common, Format};
use crate::config::{Config, without_password};
use crate::imports::Imports;
use crate::output::{self, Failure};
use crate::{capabilities, report, toolset};

const CONFIGURATION: &str = "configuration";
/// How long the image service may take to respond.
const IMAGES_TIMEOUT: Duration = Duration::from_secs(10);

type Check = (&'static str, fn(&Config) -> CheckResult);

/// The checks after that of the configuration, in order.
const CHECKS: [Check; 13] = [
    ("tools", check_tools),
    ("workers", check_workers),
    ("prompts", check_prompts),
    ("store", check_store),
    ("imports", check_imports),
    ("knowledge base", check_knowledge_base),
    ("embedder", check_embedder),
    ("calendar", check_calendar),
    ("zoom", check_zoom),
    ("images", check_images),
    ("agent", check_agent),
    ("voice", check_voice),
    ("server", check_server),
];
/// Checks that a running server has made itself: it has loaded the tools, opened the store, and set up its agents.
const CHECKS_OF_START: [&str; 5] = ["tools", "store", "agent", "voice", "server"];

#[derive(Serialize)]
pub(super) struct CheckResult {
    check: &'static str,
    status: Status,
    message: String,
    /// The fix, unless the check passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// Toolwright works without it, with fewer features.
    Missing,
    /// Everything that depends on it fails.
    Broken,
}

impl CheckResult {
    pub fn ok(message: impl Into<String>) -> Self {
        Self { check: "", status: Status::Ok, message: message.into(), help: None }
    }

    pub fn missing(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { status: Status::Missing, help: Some(help.into()), ..Self::ok(message) }
    }

    pub fn broken(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { status: Status::Broken, help: Some(help.into()), ..Self::ok(message) }
    }
}

impl From<Failure> for CheckResult {
    fn from(failure: Failure) -> Self {
        Self::broken(failure.message, failure.help)
    }
}

impl From<anyhow::Error> for CheckResult {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<Failure>() {
            Ok(failure) => failure.into(),
            Err(error) => {
                Self::broken(error.to_string(), "correct toolwright.toml or the environment variable")
            }
        }
    }
}

pub fn run(common: &Common) -> Result<ExitCode> {
    let mut results = Vec::new();
    match Config::load(common, None) {
        Ok(config) => {
            results.push(check_configuration(common, &config));
            results.extend(CHECKS.map(|(name, check)| CheckResult { check: name, ..check(&config) }));
        }
        Err(failure) => results.push(CheckResult { check: CONFIGURATION, ..failure.into() }),
    }
    match common.format {
        Format::Json => output::print_json_pretty(&json!({ "checks": results }))?,
        Format::Human => results.iter().for_each(print_result),
    }
    Ok(output::status(results.iter().all(|result| result.status != Status::Broken)))
}

/// The checks for a running server's console.
pub fn check_running(config: &Config) -> Vec<SetupCheck> {
    let is_shown = |(name, _): &&Check| !CHECKS_OF_START.contains(name);
    let checks =
        CHECKS.iter().filter(is_shown).map(|(name, check)| CheckResult { check: name, ..check(config) });
    let to_setup = |result: CheckResult| SetupCheck {
        name: result.check.to_owned(),
        status: match result.status {
            Status::Ok => SetupStatus::Ok,
            Status::Missing => SetupStatus::Missing,
            Status::Broken => SetupStatus::Broken,
        },
        message: result.message,
        help: result.help,
    };
    checks.map(to_setup).collect()
}

fn print_result(result: &CheckResult) {
    let (colour, word) = match result.status {
        Status::Ok => (32, "ok"),
        Status::Missing => (33, "missing"),
        Status::Broken => (31, "broken"),
    };
    let CheckResult { check, message, help, .. } = result;
    output::print_line(format_args!("{check:<14} \x1b[1;{colour}m{word:<8}\x1b[0m {message}"));
    if let Some(help) = help {
        output::print_line(format_args!("{:<23} \x1b[1mhelp\x1b[0m: {help}", ""));
    }
}

fn check_configuration(common: &Common, config: &Config) -> CheckResult {
    let file = common.config.clone().unwrap_or_else(|| config.beside("toolwright.toml"));
    let message = if file.exists() {
        file.display().to_string()
    } else {
        "defaults: there is no toolwright.toml".to_owned()
    };
    CheckResult { check: CONFIGURATION, ..CheckResult::ok(message) }
}

fn check_tools(config: &Config) -> CheckResult {
    let tools = config.tools.clone();
    if config.has_only_other_tools() {
        return check_other_tools(config);
    }
    match compile(config.build_options(), &Progress::default()) {
        Err(error) => CheckResult::broken(error.to_string(), error.help()),
        Ok(found) if !found.is_ok() => {
            CheckResult::broken(report::count(&found.diagnostics), "`toolwright check` prints them")
        }
        Ok(found) if found.found == 0 => {
            let message = format!("{} has no tools", tools.display());
            CheckResult::missing(message, "create one with `toolwright new my-tool`")
        }
        Ok(found) => match first_unknown_section(config, &found) {
            Some(unknown) => CheckResult::from(unknown),
            None => {
                CheckResult::ok(format!("{} in {}", report::plural(found.found, "tool"), tools.display()))
            }
        },
    }
}

/// A problem of the declared or imported tools is reported by `check` and by another row.
fn first_unknown_section(config: &Config, compilation: &Compilation) -> Option<Failure> {
    let session = session_toolset(config, || toolset::from_compilation(compilation)).ok()?;
    unknown_sections(config, session.as_ref(), Some(compilation)).ok()?.into_iter().next()
}

/// The tools of a project without a tools directory, or with an empty one.
fn check_other_tools(config: &Config) -> CheckResult {
    let session = match session_toolset(config, || Ok(Toolset::empty())) {
        Ok(Some(session)) => session,
        Ok(None) => {
            return CheckResult::missing("there are no tools", "create one with `toolwright new my-tool`");
        }
        Err(error) => return CheckResult::broken(error.to_string(), "`toolwright check` prints the reasons"),
    };
    match session.refused.first() {
        Some(refused) => CheckResult::broken(refused.message.clone(), refused.help.clone()),
        None => CheckResult::ok(session.summary()),
    }
}

/// Handlers run in worker processes, which the kernel confines.
fn check_workers(config: &Config) -> CheckResult {
    if let Err(failure) = config.engine().warm_up() {
        let help = "JavaScript tools cannot run: let this program start processes";
        return CheckResult::broken(failure.to_string(), help);
    }
    let confinement = confinement();
    let parts = [("seccomp", confinement.seccomp), ("Landlock", confinement.landlock)];
    let names = |wanted: bool| -> Vec<&str> {
        parts.iter().filter(|(_, found)| *found == wanted).map(|(name, _)| *name).collect()
    };
    let message = match names(true).as_slice() {
        [] => "confined by limits of resources only".to_owned(),
        found => format!("confined by limits of resources, {}", found.join(" and ")),
    };
    match names(false).as_slice() {
        [] => CheckResult::ok(message),
        absent => CheckResult::missing(
            message,
            format!("run on a kernel with {} (Linux 5.13 or newer)", absent.join(" and ")),
        ),
    }
}

fn check_prompts(config: &Config) -> CheckResult {
    let directory = config.settings.prompts.dir.display();
    let missing: Vec<&str> = ["core.md", "voice-behavior.md"]
        .into_iter()
        .filter(|name| !config.settings.prompts.dir.join(name).is_file())
        .collect();
    if missing.is_empty() {
        return CheckResult::ok(directory.to_string());
    }
    let message = format!("{directory} has no {}", missing.join(" and no "));
    CheckResult::missing(message, "write it, or name another directory with `[prompts] dir`")
}

/// Creates nothing: a store that does not exist yet is created on first use.
fn check_store(config: &Config) -> CheckResult {
    let url = &config.store;
    if let Some(path) = url.strip_prefix("sqlite:").filter(|path| *path != ":memory:") {
        if !Path::new(path).exists() {
            return CheckResult::ok(format!("{path} will be created on first use"));
        }
        return match Sqlite::open(Path::new(path), sqlite::Options::default()) {
            Ok(_) => CheckResult::ok(path),
            Err(store::Error::InUse(_)) => CheckResult::ok(format!("{path}, in use by another process")),
            Err(error) => CheckResult::broken(
                error.to_string(),
                "restore it from a backup, or name another store with `[store] url`",
            ),
        };
    }
    match toolset::async_runtime().map(|runtime| runtime.block_on(crate::store::open(config))) {
        Ok(Ok(_)) => CheckResult::ok(without_password(url)),
        Ok(Err(failure)) => failure.into(),
        Err(error) => CheckResult::broken(error.to_string(), "raise the system's limit of threads"),
    }
}

fn check_imports(config: &Config) -> CheckResult {
    let imports = match Imports::load(config) {
        Ok(imports) => imports,
        Err(failure) => return failure.into(),
    };
    let names = imports.servers.iter().map(|import| import.server().name.as_str());
    let unpinned: Vec<&str> = names.filter(|name| imports.pins.of_server(name).next().is_none()).collect();
    if unpinned.is_empty() {
        return CheckResult::ok(report::plural(imports.servers.len(), "MCP server"));
    }
    let message = format!("no tool of {} was accepted yet", unpinned.join(", "));
    CheckResult::missing(message, "run `toolwright mcp pin`")
}

fn check_knowledge_base(config: &Config) -> CheckResult {
    // Opening would create the directory.
    if config.kb.strip_prefix("dir:").is_some_and(|dir| !Path::new(dir).exists()) {
        if !config.settings.kb.sources.is_empty() {
            return CheckResult::ok("will be filled from its sources on first use");
        }
        return CheckResult::missing("it is empty", "fill it with `toolwright kb add PATH…`");
    }
    let stats = Kb::open(&config.kb, capabilities::embedders(config)).and_then(|kb| kb.store.stats());
    let embedder = config.embedders.get();
    let configured = embedder.as_ref().ok().map(|embedder| embedder.name());
    match stats {
        Ok(Stats { embedder: Some(used), records, .. })
            if configured.is_some_and(|name| name != used.name) =>
        {
            let message = format!(
                "{records} records with vectors by `{}`, but `{}` is configured; search is by keyword only",
                used.name,
                configured.unwrap_or_default()
            );
            let help =
                "run `toolwright kb rebuild` to recompute them, or configure the embedder that computed them";
            CheckResult::missing(message, help)
        }
        Ok(stats) if stats.with_vector < stats.passages => {
            let missing = stats.passages - stats.with_vector;
            let message = format!("{} records; {missing} passages have no vector yet", stats.records);
            let help = match embedder {
                Ok(_) => "run `toolwright kb rebuild` to compute them",
                Err(_) => "set up an embedder first (see the next check)",
            };
            CheckResult::missing(message, help)
        }
        Ok(stats) => {
            CheckResult::ok(format!("{} records, {} with vectors", stats.records, stats.with_vector))
        }
        Err(error) => CheckResult::broken(error.to_string(), "check `[kb] url` in toolwright.toml"),
    }
}

/// Verifies the model's files and embeds one text: files may be damaged, and an endpoint unreachable.
fn check_embedder(config: &Config) -> CheckResult {
    let embedder = match config.embedders.get() {
        Ok(embedder) => embedder,
        Err(missing) if config.has_endpoint() => return CheckResult::broken(missing.reason, missing.help),
        Err(missing) => {
            let message = format!("{}; search is by keyword only", missing.reason);
            return CheckResult::missing(message, missing.help);
        }
    };
    if !config.has_endpoint()
        && let Err(error) = install::verify(&install::model_dir(&config.models))
    {
        return CheckResult::broken(error, format!("run `{}`", install::INSTALL_COMMAND));
    }
    let started = Instant::now();
    match embedder.embed(&["What does the studio do?"]) {
        Ok(vectors) => {
            let dimensions = vectors.first().map_or(0, Vec::len);
            let (name, duration) = (embedder.name(), started.elapsed().as_millis());
            CheckResult::ok(format!("{name}, {dimensions} dimensions; the first text took {duration} ms"))
        }
        Err(fault) => CheckResult::broken(fault.message, "fix `[kb.embedder]`, or start the service"),
    }
}

fn check_calendar(config: &Config) -> CheckResult {
    let settings = &config.settings.calendar;
    if let Some(name) = settings.password_env.as_ref().filter(|name| std::env::var_os(name).is_none()) {
        let message = format!("`[calendar]` needs the environment variable {name}, which is not set");
        return CheckResult::broken(message, format!("set {name} to the password"));
    }
    let Some(url) = &settings.url else {
        return CheckResult::ok(format!("embedded: {}", config.calendar_file().display()));
    };
    let calendar = capabilities::calendar(config);
    let reached = toolset::async_runtime().and_then(|runtime| {
        runtime.block_on(calendar.check_connection()).map_err(|error| anyhow::anyhow!(error.message))
    });
    let server = without_password(url.0.as_str());
    match reached {
        Ok(()) => CheckResult::ok(format!("{server} responds")),
        Err(error) => {
            CheckResult::broken(format!("{server}: {error}"), "fix `[calendar]`, or start the server")
        }
    }
}

/// Signs in: the credentials may be wrong, or the user unknown.
fn check_zoom(config: &Config) -> CheckResult {
    let Some(zoom) = &config.settings.calendar.zoom else {
        return CheckResult::ok("not used: there is no `[calendar.zoom]`");
    };
    let secret = &zoom.client_secret_env;
    if std::env::var_os(secret).is_none() {
        let message = format!("`[calendar.zoom]` needs the environment variable {secret}, which is not set");
        return CheckResult::broken(message, format!("set {secret} to the client secret"));
    }
    let calendar = capabilities::calendar(config);
    let signed_in = toolset::async_runtime().and_then(|runtime| {
        runtime.block_on(calendar.check_zoom()).map_err(|error| anyhow::anyhow!(error.message))
    });
    match signed_in {
        Ok(()) => CheckResult::ok(format!("meetings of {} can be created", zoom.user)),
        Err(error) => CheckResult::broken(error.to_string(), "correct `[calendar.zoom]` and its secret"),
    }
}

/// Asks for the list of models, which costs nothing: the key may be wrong, and the model unknown.
fn check_images(config: &Config) -> CheckResult {
    let options = config.images();
    let Some(url) = options.url.as_deref().map(without_password) else {
        return CheckResult::missing(
            "no service that generates images is configured",
            "set `[images] url` (docs/reference/configuration.md)",
        );
    };
    let key_env = &config.settings.images.key_env;
    let has_key = options.key.is_some();
    let (model, dir) = (options.model.clone(), options.dir.display().to_string());
    let asked = toolset::async_runtime().and_then(|runtime| {
        let models = runtime.block_on(Images::new(options).models(IMAGES_TIMEOUT));
        models.map_err(|error| anyhow::anyhow!(error.message))
    });
    match (asked, model) {
        (Err(error), _) if !has_key => CheckResult::broken(
            format!("{url}: {error}; {key_env} is not set"),
            format!("set {key_env} to the key"),
        ),
        (Err(error), _) => CheckResult::broken(
            format!("{url}: {error}"),
            format!("correct `[images] url` or the key in {key_env}"),
        ),
        (Ok(Some(offered)), Some(model)) if !offered.contains(&model) => {
            let help = match nearest(&model, offered.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "set `[images] model` to one that the service offers".to_owned(),
            };
            CheckResult::broken(format!("{url} does not offer the model `{model}`"), help)
        }
        (Ok(_), model) => {
            let model =
                model.map_or_else(|| "its default model".to_owned(), |model| format!("model `{model}`"));
            CheckResult::ok(format!("{url} responds, {model}, stored in {dir}"))
        }
    }
}
