//! `toolwright tasks`: lists, shows and cancels the calls that run in the background.

use std::sync::Arc;

use anyhow::Result;
use chrono::DateTime;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_orchestrator::store::{Store, TaskQuery, TaskScope};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;
use toolwright_server::task_json;

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::server_client::encode;
use crate::store::{self, StoreAccess};
use crate::toolset;

pub const EXAMPLES: &str = "Examples:
  toolwright tasks list
  toolwright tasks list --session s1 --format json
  toolwright tasks show task_3f9c…
  toolwright tasks cancel task_3f9c…";

#[derive(Debug, Subcommand)]
pub enum Tasks {
    List(List),
    Show(Show),
    Cancel(Cancel),
}

/// List the tasks, newest first
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright tasks list --session s1 --limit 20")]
pub struct List {
    /// Only those of one session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Show one task, with its result once it has ended
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright tasks show task_3f9c… | jq .envelope.data")]
pub struct Show {
    #[arg(value_name = "ID")]
    task: String,
}

/// Ask for the end of a task: one that waits does not run, and one that runs is stopped
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright tasks cancel task_3f9c…")]
pub struct Cancel {
    #[arg(value_name = "ID")]
    task: String,
}

pub fn run(config: &Config, command: &Tasks) -> Result<()> {
    toolset::async_runtime()?.block_on(async {
        match command {
            Tasks::List(args) => list(config, args).await,
            Tasks::Show(Show { task }) => print(&get(config, task).await?),
            Tasks::Cancel(Cancel { task }) => cancel(config, task).await,
        }
    })
}

async fn list(config: &Config, args: &List) -> Result<()> {
    let tasks = match store::open_or_find_server(config).await? {
        StoreAccess::Own(store) => {
            let scope = args.session.as_deref().map_or(TaskScope::All, TaskScope::Session);
            let query = TaskQuery { scope, before: None, limit: args.limit as usize };
            let page = orchestrator(*store)?.task_page(query).await?;
            page.tasks.iter().map(|task| task_json(task, None)).collect()
        }
        StoreAccess::Server(server) => {
            let mut path = format!("/v1/tasks?limit={}", args.limit);
            args.session.iter().for_each(|id| path.push_str(&format!("&sessionId={}", encode(id))));
            let page = server.get_answer(Method::GET, &path, None, None).await?;
            page["tasks"].as_array().cloned().ok_or_else(|| server.unexpected())?
        }
    };
    match config.format {
        Format::Json => output::print_json(&tasks)?,
        Format::Human if tasks.is_empty() => output::message("there are no tasks"),
        Format::Human => {
            output::print_table(
                ["ID", "TOOL", "SESSION", "STATUS", "PROGRESS", "BEGUN"],
                tasks.iter().map(to_row).collect(),
            );
        }
    }
    Ok(())
}

async fn get(config: &Config, id: &str) -> Result<Value> {
    match store::open_or_find_server(config).await? {
        StoreAccess::Own(store) => {
            let orchestrator = orchestrator(*store)?;
            let task = orchestrator.task(id).await?.ok_or_else(|| unknown(id))?;
            Ok(task_json(&task, orchestrator.task_envelope(&task).await?.as_deref()))
        }
        StoreAccess::Server(server) => {
            match server.send(Method::GET, &format!("/v1/tasks/{}", encode(id)), None, None).await? {
                Ok(task) => Ok(task),
                Err(refusal) if refusal.status == 404 => Err(unknown(id).into()),
                Err(refusal) => Err(server.failure(&refusal).into()),
            }
        }
    }
}

async fn cancel(config: &Config, id: &str) -> Result<()> {
    let task = match store::open_or_find_server(config).await? {
        StoreAccess::Own(store) => {
            let orchestrator = orchestrator(*store)?;
            let task = orchestrator.cancel_task(id).await?.ok_or_else(|| unknown(id))?;
            task_json(&task, None)
        }
        StoreAccess::Server(server) => {
            let path = format!("/v1/tasks/{}/cancel", encode(id));
            match server.send(Method::POST, &path, None, Some(json!({}))).await? {
                Ok(task) => task,
                Err(refusal) if refusal.status == 404 => return Err(unknown(id).into()),
                Err(refusal) => return Err(server.failure(&refusal).into()),
            }
        }
    };
    let text = |name: &str| task[name].as_str().unwrap_or_default();
    match config.format {
        Format::Json => output::print_json(&task)?,
        Format::Human if task["endedAt"].is_null() => {
            output::message(format_args!("asked for the end of {}; its server ends it", text("taskId")));
        }
        Format::Human => {
            output::message(format_args!("{} has ended already: {}", text("taskId"), text("status")));
        }
    }
    Ok(())
}

/// No tool runs, so the tools need not build.
fn orchestrator(store: Store) -> Result<Orchestrator> {
    let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
    Ok(Orchestrator::builder(runtime).store(store).build()?)
}

fn print(task: &Value) -> Result<()> {
    output::print_json_pretty(task)
}

fn unknown(id: &str) -> Failure {
    let message = format!("there is no task `{}`", escape(id));
    Failure::new(message, "`toolwright tasks list` lists those of the last day")
}

fn to_row(task: &Value) -> [String; 6] {
    let text = |name: &str| escape(task[name].as_str().unwrap_or_default()).into_owned();
    let progress = task["progress"].as_f64().map_or(String::new(), |part| format!("{:.0} %", part * 100.0));
    let begun = DateTime::from_timestamp_millis(task["createdAt"].as_i64().unwrap_or_default());
    let begun = begun.unwrap_or_default().format("%Y-%m-%d %H:%M:%S UTC").to_string();
    [text("taskId"), text("tool"), text("sessionId"), text("status"), progress, begun]
}
