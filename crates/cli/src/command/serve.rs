//! `toolwright serve`: serves the tools over HTTP until the process is told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use toolwright_kb::KbCapability;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_server::Server;
use toolwright_server::otlp::Exporter;

use super::watch;
use crate::args::Source;
use crate::config::{Config, ServerConfig, ServerFlags};
use crate::output::{self, Failure};
use crate::{log, store, toolset};

/// Serve the tools over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright serve                             build tools/, listen on 127.0.0.1:7300
  toolwright serve --watch                     and reload when a tool changes
  toolwright serve --artifact dist/tool_registry.json --listen 0.0.0.0:7300
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
    flags: ServerFlags,
}

pub fn run(config: Config, args: &Serve) -> Result<ExitCode> {
    let server = config.server(&args.flags)?;
    if args.dump_config {
        output::print(config.dump(&server)?);
        return Ok(ExitCode::SUCCESS);
    }
    log::start_server(server.section.log_format);
    let config = Arc::new(config);
    let runtime = toolset::load_runtime(&args.source, &config)?;
    let workers = server.workers();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    let finished = tokio.block_on(serve(&config, &server, runtime, args.watch))?;
    // Do not wait for tasks that did not finish in time.
    tokio.shutdown_background();
    Ok(output::status(finished))
}

async fn serve(config: &Arc<Config>, server: &ServerConfig, runtime: Runtime, watch: bool) -> Result<bool> {
    let store = store::open(&config.store).await?;
    let has_sources = !config.settings.kb.sources.is_empty();
    prepare_in_background(runtime.clone(), has_sources.then(|| config.knowledge_base()));
    let version = runtime.toolset().version.clone();
    let count = runtime.toolset().ids().count();
    let mut builder = Orchestrator::builder(runtime).store(store).policy(config.policy());
    let exporter = server.collector()?.map(Exporter::start).transpose();
    let exporter = exporter.map_err(|error| Failure::new(error, "check `[telemetry] otlp`"))?;
    if let Some(exporter) = &exporter {
        builder = builder.observer(exporter.clone());
    }
    let orchestrator = builder.build()?;
    let auth = server.auth()?;
    let access = if auth.is_open() { "no keys: anyone on this machine" } else { "keys are required" };
    let http = Server::bind(orchestrator.clone(), auth, server.options(config)).await;
    let http = http.map_err(|error| Failure::new(&error, error.help()))?;
    config.serve_at(http.address(), server.section.public_url.as_deref());
    if watch {
        reload_on_change(Arc::clone(config), orchestrator);
    }
    output::message(format_args!(
        "serving {count} tools ({version}) on \x1b[1mhttp://{}\x1b[0m ({access}; stop with Ctrl-C)",
        http.address()
    ));
    let finished = http.run(shutdown_signal()).await;
    if let Some(exporter) = &exporter {
        exporter.flush().await;
    }
    output::message(if finished { "stopped" } else { "stopped; some requests did not finish in time" });
    Ok(finished)
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

/// Builds again whenever a tool changes, and installs the result for new sessions.
pub(super) fn reload_on_change(config: Arc<Config>, orchestrator: Orchestrator) {
    std::thread::spawn(move || {
        let artifact = config.tools.join(toolwright_registry::artifact::FILE_NAME);
        let reload = || match toolset::load_runtime(&Source::default(), &config) {
            Ok(runtime) => {
                let version = runtime.toolset().version.clone();
                prepare_in_background(runtime.clone(), None);
                orchestrator.install(runtime);
                output::success("reloaded:", format_args!("new sessions get {version}"));
            }
            Err(error) => {
                output::report(&error);
                output::message("the previous toolset stays in use");
            }
        };
        let watched = watch::watch(std::slice::from_ref(&config.tools), Some(&artifact), || {}, reload);
        if let Err(error) = watched {
            output::report(&error);
        }
    });
}
