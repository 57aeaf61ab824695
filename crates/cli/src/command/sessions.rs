//! `toolwright sessions`: lists, shows and ends sessions, in the store or through the server that uses it.

use std::sync::Arc;

use anyhow::Result;
use chrono::DateTime;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_orchestrator::store::{Backend, SessionQuery};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::toolset::Toolset;
use toolwright_server::session_json;

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::read_only_store::ReadOnlyStore;
use crate::server_client::{ServerClient, encode};
use crate::store::{self, StoreAccess};
use crate::toolset;

pub const EXAMPLES: &str = "Examples:
  toolwright sessions list
  toolwright sessions list --format json | jq '.sessions[] | select(.standing == \"active\")'
  toolwright sessions show s1
  toolwright sessions end s1";

#[derive(Debug, Subcommand)]
pub enum Sessions {
    List(List),
    Show(Show),
    End(End),
}

/// List the sessions, newest first
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwright sessions list\n  toolwright sessions list --limit 10 --format json"
)]
pub struct List {
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=500))]
    limit: u64,
    /// Begin after this place, which the list before has named
    #[arg(long, value_name = "PLACE", value_parser = parse_place)]
    after: Option<(i64, String)>,
}

/// Show a session: its principal, mode, toolset, turn and state
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright sessions show s1 --format json")]
pub struct Show {
    #[arg(value_name = "ID")]
    id: String,
}

/// End a session: it runs no more calls, and still replays those that it has recorded
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwright sessions end s1")]
pub struct End {
    #[arg(value_name = "ID")]
    id: String,
}

/// The place of a session in the list: its time and its id.
fn parse_place(text: &str) -> Result<(i64, String), String> {
    let place = text.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| "write the place as the list gives it, `TIME.ID`".to_owned())
}

pub fn run(config: &Config, command: &Sessions) -> Result<()> {
    toolset::async_runtime()?.block_on(async {
        let target = Target::open(config).await?;
        match command {
            Sessions::List(args) => print_list(config, &target.list(args).await?),
            Sessions::Show(Show { id }) => print_session(config, &target.show(id).await?),
            Sessions::End(End { id }) => {
                let before = target.show(id).await?;
                let has_ended = before["standing"] != "active";
                if !has_ended {
                    target.end(id).await?;
                }
                print_end(config, id, has_ended)
            }
        }
    })
}

/// The source of the sessions: the store or a server. Both return the JSON of the REST API.
enum Target {
    Own(Orchestrator),
    Server(ServerClient),
}

impl Target {
    async fn open(config: &Config) -> Result<Self> {
        // Fails if there is no store: this command does not create one.
        ReadOnlyStore::open(config).await?;
        match store::open_or_find_server(config).await? {
            StoreAccess::Server(server) => Ok(Self::Server(server)),
            StoreAccess::Own(store) => {
                // No tool runs, so the tools need not build.
                let runtime = Runtime::builder(Arc::new(Toolset::empty()), ".").build();
                let builder = Orchestrator::builder(runtime).store(*store).policy(config.policy());
                Ok(Self::Own(builder.build()?))
            }
        }
    }

    /// A page: `sessions`, and `next`, the start of the next one.
    async fn list(&self, List { limit, after }: &List) -> Result<Value> {
        match self {
            Self::Own(orchestrator) => {
                let before = after.as_ref().map(|(at, id)| (*at, id.as_str()));
                let query = SessionQuery { principal: None, before, limit: usize::try_from(*limit)? };
                let page = orchestrator.sessions(query).await?;
                let sessions: Vec<Value> =
                    page.sessions.iter().map(|session| session_json(session)).collect();
                Ok(json!({ "sessions": sessions, "next": page.next.map(|(at, id)| format!("{at}.{id}")) }))
            }
            Self::Server(server) => {
                let after =
                    after.as_ref().map(|(at, id)| format!("&before={}", encode(&format!("{at}.{id}"))));
                let path = format!("/v1/sessions?limit={limit}{}", after.unwrap_or_default());
                server.get_answer(Method::GET, &path, None, None).await
            }
        }
    }

    async fn show(&self, id: &str) -> Result<Value> {
        match self {
            Self::Own(orchestrator) => {
                let session = orchestrator.session(id).await?;
                session.map(|session| session_json(&session)).ok_or_else(|| unknown_session(id).into())
            }
            Self::Server(server) => send(server, Method::GET, id).await,
        }
    }

    async fn end(&self, id: &str) -> Result<()> {
        match self {
            Self::Own(orchestrator) => {
                orchestrator.end_session(id).await?;
                Ok(orchestrator.store().flush().await?)
            }
            Self::Server(server) => send(server, Method::DELETE, id).await.map(drop),
        }
    }
}

async fn send(server: &ServerClient, method: Method, id: &str) -> Result<Value> {
    match server.send(method, &format!("/v1/sessions/{}", encode(id)), None, None).await? {
        Ok(answer) => Ok(answer),
        Err(refusal) if refusal.status == 404 => Err(unknown_session(id).into()),
        Err(refusal) => Err(server.failure(&refusal).into()),
    }
}

fn unknown_session(id: &str) -> Failure {
    Failure::new(format!("there is no session `{}`", escape(id)), "`toolwright sessions list` lists them")
}

fn print_list(config: &Config, page: &Value) -> Result<()> {
    let sessions = page["sessions"].as_array().map_or(&[][..], Vec::as_slice);
    match config.format {
        Format::Json => return output::print_json_pretty(page),
        Format::Human if sessions.is_empty() => output::message("there are no sessions"),
        Format::Human => {
            let header = ["SESSION", "USER", "MODE", "STANDING", "TURN", "TOOLSET", "BEGAN"];
            output::print_table(header, sessions.iter().map(to_row).collect());
        }
    }
    if let Some(place) = page["next"].as_str() {
        output::help(format_args!("there may be more: add `--after {place}`"));
    }
    Ok(())
}

fn to_row(session: &Value) -> [String; 7] {
    let text = |value: &Value| escape(value.as_str().unwrap_or("-")).into_owned();
    [
        text(&session["sessionId"]),
        text(&session["principal"]["id"]),
        text(&session["mode"]),
        text(&session["standing"]),
        session["turn"].to_string(),
        text(&session["toolsVersion"]),
        date(&session["createdAt"]),
    ]
}

fn print_session(config: &Config, session: &Value) -> Result<()> {
    if config.format == Format::Json {
        return output::print_json_pretty(session);
    }
    for (name, value) in session.as_object().into_iter().flatten() {
        let value = match value {
            Value::String(text) => text.clone(),
            _ if name.ends_with("At") => date(value),
            other => other.to_string(),
        };
        output::print_line(format_args!("\x1b[1m{name:<13}\x1b[0m {}", escape(&value)));
    }
    Ok(())
}

fn print_end(config: &Config, id: &str, had_ended: bool) -> Result<()> {
    match config.format {
        Format::Json if had_ended => output::print_json(&json!({ "ended": id, "hadEnded": true })),
        Format::Json => output::print_json(&json!({ "ended": id })),
        Format::Human if had_ended => {
            output::message(format_args!("the session {} has ended already", escape(id)));
            Ok(())
        }
        Format::Human => {
            output::success("ended", format_args!("the session {}", escape(id)));
            Ok(())
        }
    }
}

fn date(at: &Value) -> String {
    let at = at.as_i64().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}
