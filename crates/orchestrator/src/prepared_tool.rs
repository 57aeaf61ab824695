//! A tool that is ready for calls: its validators compiled, its handler read and verified. Prepared once, on first use.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use toolwright_capabilities::http::{AllowList, Methods};
use toolwright_contract::{Confirmation, SideEffects};
use toolwright_engine::{Program, Source};
use toolwright_registry::toolset::{Implementation, Module, Tool};
use toolwright_schema::Validator;

use crate::condition::Condition;
use crate::engine::native::Handler as NativeHandler;
use crate::engine::{Handler, http};

/// The name of a handler's first module.
const HANDLER: &str = "handler.js";

pub(crate) struct PreparedTool {
    pub tool: Tool,
    pub id: Arc<str>,
    pub version: Arc<str>,
    pub handler: Handler,
    pub parameters: Validator,
    pub output: Option<Validator>,
    /// The condition of `availability`.
    pub available: Option<Condition>,
    /// The condition under which the tool needs approval.
    pub confirm_when: Option<Condition>,
    /// Some arguments are `writeOnly`.
    pub has_secrets: bool,
    /// The hosts that it may reach with `http.fetch`.
    pub allow: Option<Arc<AllowList>>,
    pub timeout: Duration,
}

/// Why a tool cannot be used. The text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the handler of `{tool}` cannot be read: {}: {source}", path.display())]
    Unreadable { tool: String, path: PathBuf, source: std::io::Error },
    #[error("the handler of `{tool}` has changed since it was built: {}; run `toolwright build`", path.display())]
    Changed { tool: String, path: PathBuf },
    #[error("the schema of `{tool}` is invalid: {reason}")]
    Schema { tool: String, reason: String },
    #[error("a condition of `{tool}` is invalid: {reason}")]
    Condition { tool: String, reason: String },
    #[error(
        "the source of `{tool}` is not in the stored toolset: it could not be read when the toolset was stored"
    )]
    NotStored { tool: String },
    #[error(
        "`{tool}` needs the native handler `{name}`, which is not registered; start a new session to use another"
    )]
    Unregistered { tool: String, name: String },
    #[error("`{tool}` needs the environment variable {name}, which is not set")]
    Unset { tool: String, name: String },
    #[error("`{tool}` could not be prepared: the task that prepared it was cancelled")]
    Cancelled { tool: String },
}

/// Where the sources of handlers are.
#[derive(Debug)]
pub(crate) enum Sources {
    /// In files below the artifact's directory.
    Directory(PathBuf),
    /// In a stored toolset, by digest.
    Stored(BTreeMap<String, String>),
}

impl PreparedTool {
    pub fn new(
        tool: &Tool,
        sources: &Sources,
        natives: &HashMap<String, NativeHandler>,
        allow: Option<&AllowList>,
    ) -> Result<Self, Error> {
        let id = &tool.spec.tool_id;
        let handler = match &tool.implementation {
            Implementation::Module(module) => Handler::JavaScript(Arc::new(load(id, module, sources)?)),
            Implementation::Mock(value) => Handler::Mock(Arc::new(value.clone())),
            Implementation::Http(tool) => match http::Request::prepare(tool) {
                Ok(request) => Handler::Http(Box::new(request)),
                Err(name) => return Err(Error::Unset { tool: id.clone(), name }),
            },
            Implementation::Native(name) => match natives.get(name) {
                Some(native) => Handler::Native(native.clone()),
                None => return Err(Error::Unregistered { tool: id.clone(), name: name.clone() }),
            },
        };
        let compile = |schema| {
            let broken =
                |error: &dyn std::fmt::Display| Error::Schema { tool: id.clone(), reason: error.to_string() };
            Validator::compile(schema).map_err(|error| broken(&error))
        };
        let parameters = compile(&tool.spec.json_schema)?;
        let output = tool.spec.output.as_ref().map(compile).transpose()?;
        let has_secrets = crate::redaction::has_write_only(&tool.spec.json_schema);
        let condition = |source: &String| {
            Condition::compile(source).map_err(|reason| Error::Condition { tool: id.clone(), reason })
        };
        let available = tool.spec.availability.as_ref().map(|rule| condition(&rule.condition)).transpose()?;
        let confirm_when = match &tool.spec.requires_confirmation {
            Confirmation::Rule(rule) => Some(condition(&rule.when)?),
            Confirmation::Always(_) => None,
        };
        // The method of an `http` tool is the declaration's, not the handler's.
        let is_request = matches!(tool.implementation, Implementation::Http(_));
        let methods = if is_request || tool.spec.side_effects == SideEffects::Writes {
            Methods::All
        } else {
            Methods::ReadOnly
        };
        let allow = allow.map(|list| Arc::new(list.clone().with_methods(methods)));
        Ok(Self {
            id: id.as_str().into(),
            version: tool.spec.version.as_str().into(),
            timeout: crate::invocation::timeout(tool),
            tool: tool.clone(),
            handler,
            parameters,
            output,
            available,
            confirm_when,
            has_secrets,
            allow,
        })
    }
}

/// Reads the handler and its modules, and checks that they are the ones that were built.
pub(crate) fn load(tool: &str, module: &Module, sources: &Sources) -> Result<Program, Error> {
    let read = |name: &str, sha256: &str| match sources {
        Sources::Directory(base) => {
            let handler = base.join(&module.path);
            let is_handler = name == HANDLER;
            let path = if is_handler { handler } else { handler.parent().unwrap_or(base).join(name) };
            read_file(tool, &path, sha256)
        }
        Sources::Stored(sources) => sources
            .get(sha256)
            .filter(|text| digest(text) == sha256)
            .cloned()
            .ok_or_else(|| Error::NotStored { tool: tool.to_owned() }),
    };
    let modules = module.modules.iter().map(|(name, sha256)| (name.as_str(), sha256));
    let sources = std::iter::once((HANDLER, &module.sha256)).chain(modules);
    let sources =
        sources.map(|(name, sha256)| Ok(Source { path: name.to_owned(), text: read(name, sha256)? }));
    Ok(Program::new(tool.to_owned(), sources.collect::<Result<_, Error>>()?))
}

fn read_file(tool: &str, path: &Path, sha256: &str) -> Result<String, Error> {
    let unreadable = |source| Error::Unreadable { tool: tool.to_owned(), path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    if digest(&text) != sha256 {
        return Err(Error::Changed { tool: tool.to_owned(), path: path.to_owned() });
    }
    Ok(text)
}

/// SHA-256 in lower-case hexadecimal, as the artifact has it.
pub(crate) fn digest(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text).into();
    toolwright_registry::hex(&digest)
}
