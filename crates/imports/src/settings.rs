//! `[[mcp_servers]]` of the configuration: how to reach a server, and how its tools are classified.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits::Limits;

/// Looks up an environment variable of this process.
pub type EnvironmentLookup = fn(&str) -> Option<OsString>;

/// One server whose tools are imported.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Its name in pins, logs and commands.
    pub name: String,
    /// The prefix of its tools' names; the default is the server's name and `_`.
    pub prefix: Option<String>,
    /// A program that speaks MCP on its standard streams, with its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables of the program; `${NAME}` is replaced by a variable of this process.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The URL of a server with streamable HTTP.
    pub url: Option<String>,
    /// Sent with every request; `${NAME}` is replaced by a variable of this process.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The tools to import, by the server's names; all if empty.
    #[serde(default)]
    pub only: Vec<String>,
    /// Fields of a declared tool, by the server's name of the tool.
    #[serde(default)]
    pub tool: BTreeMap<String, Map<String, Value>>,
    /// Limits on what is read from it.
    #[serde(default)]
    pub limits: Limits,
}

/// How to reach a server.
#[derive(Debug)]
pub(crate) enum Endpoint<'a> {
    Command(&'a str, &'a [String]),
    Url(&'a str),
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`[[mcp_servers]]` `{server}`: {message}")]
pub struct Error {
    pub server: String,
    message: String,
    /// How to fix it.
    pub help: String,
}

impl ServerSettings {
    /// Checks the settings without starting anything.
    pub fn check(&self) -> Result<(), Error> {
        let is_identifier = |text: &str| {
            !text.is_empty()
                && text.len() <= 64
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        let help = "use 1 to 64 letters, digits, `_` and `-`";
        if !is_identifier(&self.name) {
            return Err(self.error("`name` is invalid", help));
        }
        if let Some(prefix) =
            self.prefix.as_deref().filter(|prefix| !prefix.is_empty() && !is_identifier(prefix))
        {
            return Err(self.error(format!("`prefix` `{prefix}` is invalid"), help));
        }
        if let Some(limit) = self.limits.zero() {
            let message = format!("`limits.{limit}` must be greater than 0");
            return Err(self.error(message, "write a larger number, or remove the setting"));
        }
        self.endpoint().map(drop)
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint<'_>, Error> {
        match (self.command.split_first(), &self.url) {
            (Some((program, arguments)), None) => Ok(Endpoint::Command(program, arguments)),
            (None, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Endpoint::Url(url))
            }
            (None, Some(url)) => {
                Err(self.error(format!("`url` `{url}` is not an http(s) URL"), "write http://… or https://…"))
            }
            (Some(_), Some(_)) => Err(self.error("it has both `command` and `url`", "remove one of them")),
            (None, None) => Err(self.error(
                "it has neither `command` nor `url`",
                "write command = [\"program\", \"argument\"], or url = \"https://…\"",
            )),
        }
    }

    /// The name of an imported tool in the toolset.
    pub fn local_name(&self, tool: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}{tool}"),
            None => format!("{}_{tool}", self.name),
        }
    }

    /// Whether a tool may write: yes, unless the configuration says otherwise.
    pub(crate) fn is_writing(&self, tool: &str) -> bool {
        let field = |name: &str| self.tool.get(tool)?.get(name)?.as_str();
        match field("sideEffects") {
            Some(effects) => effects == "writes",
            None => field("category") != Some("retrieval"),
        }
    }

    /// Whether the settings include a tool of the server.
    pub fn includes(&self, tool: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == tool)
    }

    /// The tools that the settings mention.
    pub fn named_tools(&self) -> impl Iterator<Item = &str> {
        self.only.iter().chain(self.tool.keys()).map(String::as_str)
    }

    /// Replaces `${NAME}` by environment variables.
    pub(crate) fn expand(&self, text: &str, environment: EnvironmentLookup) -> Result<String, Error> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            let Some(value) = environment(name).and_then(|value| value.into_string().ok()) else {
                let message = format!("the environment variable {name} is not set");
                return Err(self.error(message, format!("set {name} in the environment")));
            };
            out.push_str(before);
            out.push_str(&value);
            rest = behind;
        }
        out.push_str(rest);
        Ok(out)
    }

    fn error(&self, message: impl Into<String>, help: impl Into<String>) -> Error {
        Error { server: self.name.clone(), message: message.into(), help: help.into() }
    }
}
