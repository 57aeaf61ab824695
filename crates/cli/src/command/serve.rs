//! `toolwright serve`: the tools over HTTP, until the process is told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_server::Server;
use toolwright_server::otlp::Exporter;

use super::watch;
use crate::args::{Common, Serve, Source};
use crate::config::{Config, Serving};
use crate::output::{self, Failure};
use crate::{allocator, log, store, toolset};

pub fn run(common: &Common, args: &Serve) -> Result<ExitCode> {
    let config = Arc::new(Config::load(common, None)?);
    let serving = config.serving(&args.settings)?;
    if args.dump_config {
        output::data(config.dump(&serving));
        return Ok(ExitCode::SUCCESS);
    }
    log::start_as(serving.log_format);
    let runtime = toolset::runtime(&args.source, &config)?;
    let workers = serving.workers;
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
    let finished = tokio.block_on(serve(&config, serving, runtime, args.watch))?;
    // What did not finish in time is not waited for.
    tokio.shutdown_background();
    Ok(if finished { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn serve(config: &Arc<Config>, serving: Serving, runtime: Runtime, is_watching: bool) -> Result<bool> {
    let store = store::open(&config.store).await?;
    get_ready(runtime.clone(), config);
    let version = runtime.toolset().version.clone();
    let count = runtime.toolset().ids().count();
    let mut builder = Orchestrator::builder(runtime).store(store).policy(config.policy());
    let exporter = match serving.collector.clone().map(Exporter::start) {
        Some(started) => {
            Some(started.map_err(|error| Failure::new(error, "docs/reference/rest.md, Telemetry"))?)
        }
        None => None,
    };
    if let Some(exporter) = &exporter {
        builder = builder.observer(exporter.clone());
    }
    let orchestrator = builder.build();
    let help = "`[confirmation] approve_when` is a CEL condition";
    let orchestrator = orchestrator.map_err(|error| Failure::new(error, help))?;
    let auth = serving.auth();
    let public_url = serving.public_url;
    let is_open = auth.is_open();
    let server = Server::bind(orchestrator.clone(), auth, serving.options).await;
    let server = server.map_err(|error| Failure::new(&error, error.help()))?;
    config.serve_at(server.address(), public_url.as_deref());
    if is_watching {
        follow(Arc::clone(config), orchestrator);
    }
    let who = if is_open { "no keys: anyone on this machine" } else { "keys are asked for" };
    output::message(format_args!(
        "serving {count} tools ({version}) on \x1b[1mhttp://{}\x1b[0m ({who}; stop with Ctrl-C)",
        server.address()
    ));
    let finished = server.run(told_to_stop()).await;
    if let Some(exporter) = &exporter {
        exporter.flush().await;
    }
    output::message(if finished { "stopped" } else { "stopped; not everything was finished in time" });
    Ok(finished)
}

/// Prepares every tool beside the serving threads, so that no caller waits for it.
pub(super) fn warm_up(runtime: Runtime) {
    std::thread::spawn(move || prepare(&runtime));
}

fn prepare(runtime: &Runtime) {
    for error in runtime.warm_up() {
        tracing::error!("{error}");
    }
}

/// Prepares every tool and ingests what has changed in the sources of the knowledge base, beside the serving threads.
fn get_ready(runtime: Runtime, config: &Config) {
    let knowledge_base = (!config.kb_sources.is_empty()).then(|| config.knowledge_base());
    std::thread::spawn(move || {
        prepare(&runtime);
        if let Some(knowledge_base) = knowledge_base {
            knowledge_base.refresh();
        }
        allocator::give_back();
    });
}

/// Resolves at SIGTERM or SIGINT. A second one ends the process at once.
pub(super) async fn told_to_stop() {
    signal().await;
    output::message("stopping: running calls are finished (again to stop at once)");
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

/// Builds again whenever a tool changes, and makes the result the toolset that sessions begin with.
pub(super) fn follow(config: Arc<Config>, orchestrator: Orchestrator) {
    std::thread::spawn(move || {
        let out = config.tools.join(toolwright_registry::artifact::FILE_NAME);
        let ended = watch::each_change(&config.tools, &out, || {
            match toolset::runtime(&Source { artifact: None }, &config) {
                Ok(runtime) => {
                    let version = runtime.toolset().version.clone();
                    warm_up(runtime.clone());
                    orchestrator.install(runtime);
                    output::message(format_args!("\x1b[1;32mreloaded\x1b[0m: new sessions get {version}"));
                }
                Err(error) => {
                    output::fail(&error);
                    output::message("the toolset stays as it was");
                }
            }
        });
        if let Err(error) = ended {
            output::fail(&error);
        }
    });
}
