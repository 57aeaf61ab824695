//! `toolwright keys`: the API keys of a server, made, listed and revoked.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde_json::json;
use toolwright_server::auth::keys::{Error, Key, KeyFile, NewKey};

use crate::args::{Common, Format, Keys};
use crate::config::Config;
use crate::output::{self, Failure};

const DAY_S: i64 = 24 * 60 * 60;

pub fn run(common: &Common, keys: Option<PathBuf>, what: Keys) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let file = KeyFile::new(config.keys(keys.as_deref()));
    match what {
        Keys::Create { name, org, roles, expires } => create(common, &file, name, org, roles, expires),
        Keys::List => list(common, &file),
        Keys::Revoke { id } => {
            let key = file.revoke(&id).map_err(failed)?;
            output::message(format_args!(
                "\x1b[1;32mrevoked\x1b[0m {} of {}; running servers notice within a second",
                key.id, key.name
            ));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn create(
    common: &Common,
    file: &KeyFile,
    name: String,
    org: Option<String>,
    roles: Vec<String>,
    expires: Option<u32>,
) -> Result<ExitCode> {
    let is_plain = |text: &str| !text.is_empty() && text.len() <= 256 && !text.chars().any(char::is_control);
    if ![Some(&name), org.as_ref()].into_iter().flatten().chain(&roles).all(|text| is_plain(text)) {
        let help = "1 to 256 bytes each, without control characters";
        return Err(Failure::usage("a name, org or role cannot be used", help).into());
    }
    let expires_at = expires.map(|days| Utc::now().timestamp() + i64::from(days) * DAY_S);
    let (key, token) = file.create(NewKey { name, org, roles, expires_at }).map_err(failed)?;
    match common.format {
        Format::Json => {
            let mut row = row(&key);
            row["key"] = token.into();
            output::data_line(row);
        }
        Format::Human => {
            output::message(format_args!("the key of {} (id {}); it is not shown again:", key.name, key.id));
            output::data_line(token);
            output::message(
                "  servers with keys ask everybody for one, also on this machine: `authorization: Bearer …`",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(common: &Common, file: &KeyFile) -> Result<ExitCode> {
    let keys = file.list().map_err(failed)?;
    match common.format {
        Format::Json => {
            let rows: Vec<_> = keys.iter().map(row).collect();
            output::data_line(serde_json::to_string_pretty(&rows)?);
        }
        Format::Human => keys.iter().for_each(|key| {
            output::data_line(format_args!(
                "\x1b[1m{}\x1b[0m  {:<24}  {:<16}  {:<24}  {}  {}",
                key.id,
                key.name,
                key.org.as_deref().unwrap_or("-"),
                key.roles.join(","),
                date(key.created_at),
                standing(key),
            ));
        }),
    }
    if keys.is_empty() {
        output::message(format_args!("no keys in {}", file.path().display()));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(key: &Key) -> serde_json::Value {
    json!({ "id": key.id, "name": key.name, "org": key.org, "roles": key.roles, "createdAt": date(key.created_at),
        "expiresAt": key.expires_at.map(date), "revokedAt": key.revoked_at.map(date), "standing": standing(key) })
}

fn standing(key: &Key) -> &'static str {
    match (key.revoked_at, key.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(expires)) if expires <= Utc::now().timestamp() => "expired",
        _ => "active",
    }
}

fn date(seconds: i64) -> String {
    DateTime::from_timestamp(seconds, 0)
        .map(|at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

fn failed(error: Error) -> Failure {
    let help = match &error {
        Error::NoSuchKey(_) => "`toolwright keys list` names them all",
        Error::Read(..) => "restore the file from a copy, or move it away to begin anew",
        Error::Write(..) => "another file can be named by `--keys FILE`",
        Error::NoRandomness(_) => "the system must be able to give random bytes",
    };
    Failure::new(error, help)
}
