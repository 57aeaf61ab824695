//! `[[mcp_servers]]` of the configuration: how a server is reached, and what its tools count as here.

use std::collections::BTreeMap;
use std::env;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One server whose tools are imported.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// What the pins, logs and commands call it.
    pub name: String,
    /// Begins the names of its tools here; the server's name and `_` unless given.
    pub prefix: Option<String>,
    /// A program that speaks the protocol on its standard streams, with its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Of the program, beside a few that every program needs; `${NAME}` stands for a variable of this one.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where the server answers HTTP.
    pub url: Option<String>,
    /// Sent with every request; `${NAME}` stands for a variable of the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its names of the tools that are wanted; all of them if there are none.
    #[serde(default)]
    pub only: Vec<String>,
    /// What a tool counts as, by the server's name for it: the fields of a declared tool.
    #[serde(default)]
    pub tool: BTreeMap<String, Map<String, Value>>,
}

/// How a server is reached.
#[derive(Debug)]
pub(crate) enum Reach<'a> {
    Command(&'a str, &'a [String]),
    Url(&'a str),
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`[[mcp_servers]]` `{server}`: {message}")]
pub struct Error {
    pub server: String,
    message: String,
    help: String,
}

impl Error {
    /// A way out, for the person at the terminal.
    pub fn help(&self) -> &str {
        &self.help
    }
}

impl Server {
    /// Finds what is wrong before anything is started.
    pub fn check(&self) -> Result<(), Error> {
        let plain = |text: &str| {
            !text.is_empty()
                && text.len() <= 64
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        if !plain(&self.name) {
            return Err(self.error("the name is not usable", "use letters, digits, `_` and `-`"));
        }
        if self.prefix.as_deref().is_some_and(|prefix| !prefix.is_empty() && !plain(prefix)) {
            return Err(self.error("the prefix is not usable", "use letters, digits, `_` and `-`"));
        }
        self.reach().map(drop)
    }

    pub(crate) fn reach(&self) -> Result<Reach<'_>, Error> {
        match (self.command.split_first(), &self.url) {
            (Some((program, arguments)), None) => Ok(Reach::Command(program, arguments)),
            (None, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
                Ok(Reach::Url(url))
            }
            (None, Some(_)) => Err(self.error("`url` is no address", "write http://… or https://…")),
            (Some(_), Some(_)) => Err(self.error("it has both `command` and `url`", "leave one of them")),
            (None, None) => Err(self.error(
                "it has neither `command` nor `url`",
                "write command = [\"program\", \"argument\"], or url = \"https://…\"",
            )),
        }
    }

    /// The name that a tool of the server has here.
    pub fn local_name(&self, tool: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}{tool}"),
            None => format!("{}_{tool}", self.name),
        }
    }

    /// Whether a tool counts as one that writes: unless the configuration says otherwise.
    pub(crate) fn writes(&self, tool: &str) -> bool {
        let said =
            |name: &str| self.tool.get(tool).and_then(|fields| fields.get(name)).and_then(Value::as_str);
        match said("sideEffects") {
            Some(effects) => effects == "writes",
            None => said("category") != Some("retrieval"),
        }
    }

    pub fn wants(&self, tool: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == tool)
    }

    /// The tools that the settings name.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.only.iter().chain(self.tool.keys()).map(String::as_str)
    }

    /// A text with the variables of the environment in their places.
    pub(crate) fn expanded(&self, text: &str) -> Result<String, Error> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, behind)) = after.split_once('}') else { break };
            let Ok(value) = env::var(name) else {
                let message = format!("the variable {name} is not set");
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
