//! `toolwright serve`: serves the tools over HTTP until the process is told to stop.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use toolwright_agent::voice::VoiceAgent;
use toolwright_agent::{AgentObserver, Model};
use toolwright_contract::Mode;
use toolwright_kb::KbCapability;
use toolwright_orchestrator::store::Store;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::build::{Progress, compile};
use toolwright_registry::diagnostic::{Diagnostic, Severity};
use toolwright_server::auth::LocalKey;
use toolwright_server::knowledge_base::KnowledgeBase;
use toolwright_server::mcp::serve_local;
use toolwright_server::otlp::Exporter;
use toolwright_server::{BuildFinding, LogBuffer, Options, Server, Setup};

use super::{doctor, watch};
use crate::args::Source;
use crate::config::{AgentFlags, Config, ServerConfig, ServerFlags, url_of};
use crate::console_kb::ConsoleKb;
use crate::output::{self, Failure};
use crate::server_file::ServerFile;
use crate::{log, report, store, toolset};

/// Serve the tools over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright serve                             build tools/, listen on 127.0.0.1:7300
  toolwright serve --watch                     and reload when a tool changes
  toolwright serve --artifact dist/tool_registry.json --listen 0.0.0.0:7300
  kill -HUP PID                                read the tools again, for new sessions
  toolwright serve --dump-config               print the settings in force, and exit")]
pub struct Serve {
    #[command(flatten)]
    source: Source,
    /// Build again whenever a tool changes; running sessions keep their toolset
    #[arg(long, conflicts_with = "artifact")]
    watch: bool,
    /// Print the settings in force as TOML, and exit
    #[arg(long)]
    dump_config: bool,
    #[command(flatten)]
    agent: AgentFlags,
    #[command(flatten)]
    flags: ServerFlags,
}

pub fn run(config: Config, args: &Serve) -> Result<ExitCode> {
    let server = config.server(&args.flags)?;
    if args.dump_config {
        output::print(config.dump(&server)?);
        return Ok(ExitCode::SUCCESS);
    }
    let lines = Arc::<LogBuffer>::default();
    log::start_server(server.section.log_format, &lines);
    let config = Arc::new(config);
    let runtime = match args.watch {
        true => toolset::load_runtime_to_watch(&args.source, &config)?,
        false => toolset::load_runtime(&args.source, &config)?,
    };
    let workers = server.workers();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    let finished = tokio.block_on(serve(&config, &server, runtime, &lines, args))?;
    lines.flush();
    // Do not wait for tasks that did not finish in time.
    tokio.shutdown_background();
    Ok(output::status(finished))
}

async fn serve(
    config: &Arc<Config>,
    server: &ServerConfig,
    runtime: Runtime,
    lines: &Arc<LogBuffer>,
    args: &Serve,
) -> Result<bool> {
    let store = store::open(config).await?;
    let has_sources = !config.settings.kb.sources.is_empty();
    prepare_in_background(runtime.clone(), has_sources.then(|| config.knowledge_base()));
    let version = runtime.toolset().version.clone();
    let count = report::plural(runtime.toolset().ids().count(), "tool");
    let exporter = server.collector()?.map(Exporter::start).transpose();
    let exporter = exporter.map_err(|error| Failure::new(error, "check `[telemetry] otlp`"))?;
    let orchestrator = orchestrator(config, runtime, store, exporter.as_ref())?;
    let key = LocalKey::random().map_err(|error| Failure::new(error, "try again"))?;
    let auth = server.auth()?.with_local_key(key.clone());
    let access = if auth.is_open() { "no keys: anyone on this machine" } else { "keys are required" };
    let observer = exporter.clone().map(|exporter| exporter as Arc<dyn AgentObserver>);
    let agent = config.agent(&args.agent, orchestrator.clone(), observer).await?;
    let model = describe_model(agent.model(), config.names_agent(&args.agent));
    let voice = config.voice_agent(&agent)?;
    let voice_model = voice.as_ref().map(VoiceAgent::model);
    let setup = setup(config, args.watch);
    let options = Options {
        agent: Some(agent),
        voice,
        log: Arc::clone(lines),
        setup: setup.clone(),
        tools_dir: args.source.artifact.is_none().then(|| config.tools.clone()),
        knowledge_base: Some(Arc::new(ConsoleKb::new(config)) as Arc<dyn KnowledgeBase>),
        ..server.options(config)
    };
    let http = Server::bind(orchestrator.clone(), auth, options).await;
    let http = http.map_err(|error| Failure::new(&error, error.help()))?;
    config.serve_at(http.address(), server.section.public_url.as_deref());
    let server_file = open_to_commands(config, http.address(), key, orchestrator.clone()).await?;
    if args.watch {
        reload_on_change(Arc::clone(config), orchestrator.clone(), setup).await;
    }
    reload_on_hangup(Arc::clone(config), args.source.clone(), orchestrator.clone())?;
    let address = http.address();
    output::message(format_args!(
        "serving {count} ({version}) on \x1b[1mhttp://{address}\x1b[0m ({access}; stop with Ctrl-C)"
    ));
    announce_models(&model, voice_model.as_deref());
    let finished = http.run(shutdown_signal()).await;
    // A file that stays leads nowhere.
    let _ = server_file.map(std::fs::remove_file);
    if let Some(exporter) = &exporter {
        exporter.flush().await;
    }
    // Background tasks may hold the store until the process ends, so dropping it is not enough.
    orchestrator.store().close().await;
    output::message(if finished { "stopped" } else { "stopped; some requests did not finish in time" });
    Ok(finished)
}

/// The setup for the console: the checks of `doctor` that matter to a running server.
fn setup(config: &Arc<Config>, is_watching: bool) -> Setup {
    let config = Arc::clone(config);
    Setup::new(Arc::new(move || doctor::check_running(&config)), is_watching)
}

/// The orchestrator with the settings of the configuration.
fn orchestrator(
    config: &Config,
    runtime: Runtime,
    store: Store,
    exporter: Option<&Arc<Exporter>>,
) -> Result<Orchestrator> {
    let builder =
        Orchestrator::builder(runtime).store(store).policy(config.policy()).capacity(config.capacity());
    let builder = match exporter {
        Some(exporter) => builder.observer(exporter.clone()),
        None => builder,
    };
    Ok(builder.build()?)
}

/// Lets other commands of this user go through the server while it uses the store. Returns the file that says how.
async fn open_to_commands(
    config: &Config,
    address: SocketAddr,
    key: LocalKey,
    orchestrator: Orchestrator,
) -> Result<Option<PathBuf>> {
    let Some(path) = ServerFile::path(&config.store) else { return Ok(None) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let file = ServerFile::new(url_of(address), listener.local_addr()?, &key);
    tokio::spawn(serve_local(listener, key, orchestrator, config.host_options(Mode::Text)));
    file.write(&path).map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(message, "make its directory writable: other commands find the server by this file")
    })?;
    Ok(Some(path))
}

/// Prints the models that answer in text and in voice.
fn announce_models(text: &str, voice: Option<&str>) {
    output::message(text);
    if let Some(voice) = voice {
        output::message(format_args!("voice clients talk to {voice}"));
    }
}

/// The line that names the model of the agent.
fn describe_model(model: &Model, is_named: bool) -> String {
    match model {
        Model::Offline if is_named => "the offline agent quotes the knowledge base".to_owned(),
        Model::Offline => {
            "no model configured: the offline agent quotes the knowledge base; set `[agent]` or OPENAI_API_KEY"
                .to_owned()
        }
        model => format!("the agent answers with {} of {}", model.name(), model.provider()),
    }
}

/// Prepares every tool on a thread of its own, so that no caller waits for it, then refreshes the knowledge base.
pub(super) fn prepare_in_background(runtime: Runtime, knowledge_base: Option<Arc<KbCapability>>) {
    std::thread::spawn(move || {
        runtime.warm_up().iter().for_each(|error| tracing::error!("{error}"));
        knowledge_base.iter().for_each(|knowledge_base| knowledge_base.refresh());
    });
}

/// Resolves at SIGTERM or SIGINT. A second signal ends the process at once.
pub(super) async fn shutdown_signal() {
    signal().await;
    output::message("stopping: waiting for running calls (again to stop at once)");
    tokio::spawn(async {
        signal().await;
        std::process::exit(130);
    });
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(not(unix))]
async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Builds again whenever a tool changes, and installs the result for new sessions. Returns once changes are noticed.
pub(super) async fn reload_on_change(config: Arc<Config>, orchestrator: Orchestrator, setup: Setup) {
    let (started, is_watching) = oneshot::channel();
    std::thread::spawn(move || {
        let artifact = config.tools.join(toolwright_registry::artifact::FILE_NAME);
        setup.set_findings(findings(&config));
        let reload = || {
            let new = reload(&config, &Source::default(), &orchestrator);
            setup.set_findings(findings(new.as_ref().unwrap_or(&config)));
        };
        let started = || {
            let _ = started.send(());
        };
        let watched = watch::watch(&config.paths_of_server(), Some(&artifact), started, reload);
        if let Err(error) = watched {
            output::report(&error);
        }
    });
    // An error has been reported: the server runs without watching.
    let _ = is_watching.await;
}

/// The findings of the build, for the console. The build itself was just done, and is answered from its cache.
fn findings(config: &Config) -> Vec<BuildFinding> {
    let Ok(compilation) = compile(config.build_options(), &Progress::default()) else { return Vec::new() };
    let finding = |found: &Diagnostic| {
        let file = Path::new(&found.tool).join(&found.file);
        let text = std::fs::read_to_string(config.tools.join(&file)).unwrap_or_default();
        let line = text.lines().nth(found.line.saturating_sub(1)).filter(|_| found.span.is_some());
        BuildFinding {
            is_error: found.severity == Severity::Error,
            code: found.code.to_string(),
            place: format!("{}:{}:{}", file.display(), found.line, found.column),
            message: found.message.clone(),
            help: found.help.clone(),
            source: line.map(str::to_owned),
        }
    };
    compilation.diagnostics.iter().map(finding).collect()
}

/// Builds or reads the tools again at each SIGHUP, and installs the result for new sessions.
#[cfg(unix)]
fn reload_on_hangup(config: Arc<Config>, source: Source, orchestrator: Orchestrator) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    let source = Arc::new(source);
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            let (config, source, orchestrator) = (config.clone(), source.clone(), orchestrator.clone());
            // A panic is reported by the panic hook; the previous toolset stays in use.
            let _ = tokio::task::spawn_blocking(move || reload(&config, &source, &orchestrator)).await;
        }
    });
    Ok(())
}

#[cfg(not(unix))]
fn reload_on_hangup(_: Arc<Config>, _: Source, _: Orchestrator) -> Result<()> {
    Ok(())
}

/// Reads configuration and prompts again, and installs the toolset beside those of running sessions, which keep theirs.
/// Returns the new configuration.
fn reload(config: &Config, source: &Source, orchestrator: &Orchestrator) -> Option<Config> {
    let read = config.read_again().map_err(anyhow::Error::from);
    match read.and_then(|config| Ok((toolset::load_runtime(source, &config)?, config))) {
        Ok((runtime, new)) => {
            new.prompt_files().replace(new.read_prompt_files());
            let sections = config.sections_for_a_restart(&new).join("], [");
            if !sections.is_empty() {
                output::warning(format_args!(
                    "[{sections}] in the configuration file has changed: start the server again to apply it"
                ));
            }
            // A handler's change leaves the version as it is.
            let (version, digest) = (&runtime.toolset().version, &runtime.toolset().content_digest);
            let loaded =
                format!("new sessions get {version}, content {}", digest.get(..15).unwrap_or(digest));
            prepare_in_background(runtime.clone(), None);
            orchestrator.install(runtime);
            output::success("reloaded:", loaded);
            Some(new)
        }
        Err(error) => {
            output::report(&error);
            output::message("the previous toolset stays in use");
            None
        }
    }
}
