//! `toolwright keys`: creates, lists and revokes the API keys of a server.

use std::path::PathBuf;

use anyhow::Result;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolwright_contract::Principal;
use toolwright_server::auth::keys::{Error, Key, KeyFile};

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};

const DAY_S: i64 = 24 * 60 * 60;
const MAX_NAME_BYTES: usize = 256;

/// Create, list and revoke the API keys of a server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolwright keys create mira --org studio --role staff
  toolwright keys list
  toolwright keys revoke 1f3a5b7c9d11")]
pub struct Keys {
    /// The file with the keys [default: .toolwright/keys.json]
    #[arg(long, global = true, value_name = "FILE", env = "TOOLWRIGHT_KEYS")]
    keys: Option<PathBuf>,
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Create a key. It is shown once
    Create(Create),
    /// List all keys, without their secrets
    List,
    /// Revoke a key; servers reject it within a second
    Revoke {
        /// The key's id, as `keys list` prints it
        id: String,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// The id of the principal that uses the key
    name: String,
    /// The principal's org
    #[arg(long)]
    org: Option<String>,
    /// A role of the principal; repeat it for more. `admin` may read the audit log and all confirmation requests
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// Days until the key expires [default: never]
    #[arg(long, value_name = "DAYS", value_parser = parse_days)]
    expires: Option<u32>,
}

pub fn run(config: &Config, args: Keys) -> Result<()> {
    let file = KeyFile::new(config.keys(args.keys.as_deref()));
    match args.command {
        KeysCommand::Create(args) => create(config, &file, args),
        KeysCommand::List => list(config, &file),
        KeysCommand::Revoke { id } => {
            let key = file.revoke(&id).map_err(failure)?;
            let text = format!("{} of {}; running servers reject it within a second", key.id, key.name);
            output::success("revoked", text);
            Ok(())
        }
    }
}

fn create(config: &Config, file: &KeyFile, args: Create) -> Result<()> {
    let Create { name, org, roles, expires } = args;
    let is_valid = |text: &String| {
        let is_trimmed = text.trim().len() == text.len();
        !text.is_empty() && is_trimmed && text.len() <= MAX_NAME_BYTES && !text.chars().any(char::is_control)
    };
    if let Some(text) =
        [Some(&name), org.as_ref()].into_iter().flatten().chain(&roles).find(|text| !is_valid(text))
    {
        let help = format!(
            "use 1 to {MAX_NAME_BYTES} bytes without control characters, and without spaces around them"
        );
        return Err(Failure::usage(format!("{text:?} cannot be used as a name, org or role"), help).into());
    }
    let expires_at = expires.map(|days| Utc::now().timestamp() + i64::from(days) * DAY_S);
    let (key, token) = file.create(Principal { id: name, org, roles }, expires_at).map_err(failure)?;
    match config.format {
        Format::Json => {
            let mut row = to_json(&key);
            row["key"] = token.into();
            output::print_line(row);
        }
        Format::Human => {
            output::message(format_args!("the key of {} (id {}); it is not shown again:", key.name, key.id));
            output::print_line(token);
            output::message(
                "  a server with keys requires one for every request, also from this machine: `authorization: Bearer …`",
            );
        }
    }
    Ok(())
}

fn parse_days(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|days| *days > 0).ok_or_else(|| "write whole days, at least 1".to_owned())
}

fn list(config: &Config, file: &KeyFile) -> Result<()> {
    let keys = file.list().map_err(failure)?;
    match config.format {
        Format::Json => output::print_json_pretty(&keys.iter().map(to_json).collect::<Vec<_>>())?,
        Format::Human if keys.is_empty() => {
            output::message(format_args!("no keys in {}", file.path().display()));
        }
        Format::Human => {
            let row = |key: &Key| {
                let (org, roles) = (key.org.clone().unwrap_or_else(|| "-".to_owned()), key.roles.join(","));
                let (created, status) = (date(key.created_at), status(key).to_owned());
                [key.id.clone(), key.name.clone(), org, roles, created, status]
            };
            let header = ["ID", "NAME", "ORG", "ROLES", "CREATED", "STATUS"];
            output::print_table(header, keys.iter().map(row).collect());
        }
    }
    Ok(())
}

fn to_json(key: &Key) -> Value {
    json!({ "id": key.id, "name": key.name, "org": key.org, "roles": key.roles, "createdAt": date(key.created_at),
        "expiresAt": key.expires_at.map(date), "revokedAt": key.revoked_at.map(date), "standing": status(key) })
}

fn status(key: &Key) -> &'static str {
    match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(expires)) if expires <= Utc::now().timestamp() => "expired",
        _ => "active",
    }
}

fn date(seconds: i64) -> String {
    let time = DateTime::from_timestamp(seconds, 0);
    time.map(|time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default()
}

fn failure(error: Error) -> Failure {
    let help = match &error {
        Error::NoSuchKey(_) => "`toolwright keys list` prints all keys",
        Error::Read(..) => "restore the file from a backup, or move it away to start with an empty one",
        Error::Write(..) => "name another file with `--keys FILE`",
        Error::NoRandomness(_) => "the system must provide random bytes",
    };
    Failure::new(error, help)
}
