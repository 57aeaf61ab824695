//! The `kb` capability: `kb.search` and `kb.get` for handlers. The knowledge base is opened with the first call.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value, json};
use toolwright_capabilities::{
    CallIdentity, Capability, CapabilityError, CapabilityFuture, CapabilityOutput,
};

use crate::ingest::{Defaults, Progress};
use crate::kb::{EmbedderSource, Kb, Retrieval};
use crate::record::{DayBoundary, Namespace, parse_timestamp};
use crate::search::{Field, Query, result_json};
use crate::snippet;
use crate::store::{Error, Filter};

/// The maximum number of results of a search and of ids of a get.
const MAX_RESULTS: usize = 100;
const MAX_QUERY_BYTES: usize = 10_000;

/// The knowledge base and its sources.
#[derive(Clone)]
pub struct Options {
    /// `dir:PATH` or `postgres://…`.
    pub url: String,
    /// Files and directories to ingest into an empty knowledge base, and whenever a server starts.
    pub sources: Vec<PathBuf>,
    /// The directory that source names are relative to.
    pub base: PathBuf,
    pub embedder_source: EmbedderSource,
    /// Results of a search with a lower score are left out.
    pub min_score: f32,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Options").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// The capability `kb`.
#[derive(Debug)]
pub struct KbCapability {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    /// `None` until opening succeeds: the cause of an error may be fixed while a server runs.
    kb: Mutex<Option<Arc<Kb>>>,
    /// Set in a server while no thread makes the missing vectors in the background.
    may_embed_in_background: AtomicBool,
}

impl KbCapability {
    /// Does not open the knowledge base yet.
    pub fn new(options: Options) -> Self {
        let may_embed_in_background = AtomicBool::new(false);
        Self { inner: Arc::new(Inner { options, kb: Mutex::default(), may_embed_in_background }) }
    }

    /// Opens the knowledge base, if it is not open yet. Blocks.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self) -> Result<Arc<Kb>, Error> {
        self.inner.open()
    }

    /// Results of a search with a lower score are left out.
    pub fn min_score(&self) -> f32 {
        self.inner.options.min_score
    }

    /// Ingests changed sources and makes missing vectors. Blocks, possibly for minutes.
    pub fn refresh(&self) {
        match self.inner.open_and_ingest() {
            // A first opening has ingested them already.
            Ok((_, true)) => {}
            Ok((kb, false)) => self.inner.ingest(&kb),
            Err(error) => tracing::error!("cannot open the knowledge base: {error}"),
        }
        self.inner.may_embed_in_background.store(true, Ordering::Relaxed);
    }
}

impl Capability for KbCapability {
    fn call(&self, asker: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let (inner, user, deadline) = (Arc::clone(&self.inner), asker.user.to_owned(), asker.deadline);
        let function = function.to_owned();
        Box::pin(async move {
            let task = tokio::task::spawn_blocking(move || {
                let arguments = args.into_iter().next().unwrap_or_default();
                inner.dispatch(&function, &arguments, &user, deadline)
            });
            match tokio::time::timeout_at(deadline.into(), task).await {
                Ok(Ok(answered)) => answered,
                Ok(Err(error)) => {
                    tracing::error!("the knowledge base call panicked: {error}");
                    Err(CapabilityError::new("UNREACHABLE", "the knowledge base failed"))
                }
                Err(_) => Err(CapabilityError::new(
                    "TIMEOUT",
                    "the knowledge base did not respond before the deadline",
                )),
            }
        })
    }
}

impl Inner {
    fn open(&self) -> Result<Arc<Kb>, Error> {
        self.open_and_ingest().map(|(kb, _)| kb)
    }

    /// Also says whether this opening has ingested the sources.
    fn open_and_ingest(&self) -> Result<(Arc<Kb>, bool), Error> {
        let mut opened = self.kb.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kb) = &*opened {
            return Ok((Arc::clone(kb), false));
        }
        let kb = Arc::new(Kb::open(&self.options.url, Arc::clone(&self.options.embedder_source))?);
        // The first search must find something, even if `kb add` was never run.
        let is_empty = !self.options.sources.is_empty() && kb.store.source_digests()?.is_empty();
        if is_empty {
            self.ingest(&kb);
        }
        *opened = Some(Arc::clone(&kb));
        Ok((kb, is_empty))
    }

    /// Makes all vectors on another thread if a model was installed while the server runs.
    fn embed_in_background(self: &Arc<Self>, kb: &Arc<Kb>) {
        if kb.lacks_vectors() && self.may_embed_in_background.swap(false, Ordering::Relaxed) {
            let (inner, kb) = (Arc::clone(self), Arc::clone(kb));
            std::thread::spawn(move || {
                inner.embed(&kb);
                inner.may_embed_in_background.store(true, Ordering::Relaxed);
            });
        }
    }

    fn ingest(&self, kb: &Kb) {
        let options = &self.options;
        let progress = Progress::default();
        if !options.sources.is_empty() {
            match kb.add(&options.base, &options.sources, &Defaults::default(), &progress) {
                Ok(report) => {
                    for problem in &report.problems {
                        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
                        let is_source =
                            options.sources.iter().any(|path| path.display().to_string() == problem.file);
                        let help = if is_source { "; correct `[kb] sources` in toolwright.toml" } else { "" };
                        tracing::warn!("{}{line}: {}{help}", problem.file, problem.message);
                    }
                    if report.put + report.removed > 0 {
                        tracing::info!(put = report.put, removed = report.removed, "sources ingested");
                    }
                }
                Err(error) => tracing::warn!("cannot ingest the sources of the knowledge base: {error}"),
            }
        }
        self.embed(kb);
    }

    fn embed(&self, kb: &Kb) {
        match kb.embed(&Progress::default()) {
            Ok(0) => {}
            Ok(made) => tracing::info!(made, "vectors created"),
            Err(error) => tracing::warn!("cannot create vectors: {error}"),
        }
    }

    fn dispatch(
        self: &Arc<Self>,
        function: &str,
        arguments: &Value,
        user: &str,
        deadline: Instant,
    ) -> Result<CapabilityOutput, CapabilityError> {
        let none = Map::new();
        let arguments = arguments.as_object().unwrap_or(&none);
        match function {
            "search" => self.search(arguments, user, deadline),
            "get" => self.get(arguments, user),
            other => Err(CapabilityError::new("NOT_CONFIGURED", format!("`kb.{other}` does not exist"))),
        }
    }

    fn search(
        self: &Arc<Self>,
        arguments: &Map<String, Value>,
        user: &str,
        deadline: Instant,
    ) -> Result<CapabilityOutput, CapabilityError> {
        let text = arguments
            .get("query")
            .and_then(Value::as_str)
            .ok_or_else(|| invalid("`query` must be a string"))?;
        if text.len() > MAX_QUERY_BYTES {
            return Err(invalid(format!(
                "`query` has {} bytes; the maximum is {MAX_QUERY_BYTES}",
                text.len()
            )));
        }
        let top_k = match argument(arguments, "topK") {
            None => 5,
            Some(number) => match number.as_u64() {
                Some(number @ 1..) => usize::try_from(number).unwrap_or(MAX_RESULTS).min(MAX_RESULTS),
                _ => return Err(invalid("`topK` must be a positive whole number")),
            },
        };
        let mut fields = parse_fields(arguments, &[Field::Snippet, Field::Metadata, Field::Url])?;
        if argument(arguments, "includeSnippets").and_then(Value::as_bool) == Some(false) {
            fields.remove(&Field::Snippet);
        }
        let filter = parse_filter(arguments, user)?;
        let min_score = self.options.min_score;
        let query = Query { text: text.to_owned(), filter, top_k, min_score, deadline: Some(deadline) };
        let kb = self.open().map_err(to_fault)?;
        let (hits, retrieval) = kb.search(&query).map_err(to_fault)?;
        if retrieval == Retrieval::Keyword {
            self.embed_in_background(&kb);
        }
        let results =
            hits.into_iter().map(|hit| result_json(hit.record, Some(hit.score), Some(hit.snippet), &fields));
        let value = Value::Array(results.collect());
        Ok(CapabilityOutput { value, meta: Some(("retrieval", retrieval.as_str().into())) })
    }

    fn get(&self, arguments: &Map<String, Value>, user: &str) -> Result<CapabilityOutput, CapabilityError> {
        let ids = string_list(arguments, "ids")?.ok_or_else(|| invalid("`ids` must be a list of strings"))?;
        if ids.len() > MAX_RESULTS {
            return Err(invalid(format!("`ids` has {} entries; the maximum is {MAX_RESULTS}", ids.len())));
        }
        let fields = parse_fields(arguments, &[Field::FullText, Field::Metadata, Field::Url])?;
        let records = self.open().and_then(|kb| kb.get(&ids, Some(user))).map_err(to_fault)?;
        let found: HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let mut seen = HashSet::new();
        let is_missing = |id: &&String| !found.contains(id.as_str()) && seen.insert((*id).clone());
        let not_found: Vec<String> = ids.iter().filter(is_missing).cloned().collect();
        let to_json = |record: crate::Record| {
            let snippet = snippet::leading_snippet(&record.text);
            result_json(record, None, Some(snippet), &fields)
        };
        let records: Vec<Value> = records.into_iter().map(to_json).collect();
        Ok(json!({ "records": records, "notFound": not_found }).into())
    }
}

/// An argument, or `None` if it is absent or null.
fn argument<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|value| !value.is_null())
}

fn string_list(arguments: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, CapabilityError> {
    let Some(value) = argument(arguments, name) else { return Ok(None) };
    let list = value.as_array().and_then(|list| {
        list.iter().map(|entry| entry.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    });
    list.map(Some).ok_or_else(|| invalid(format!("`{name}` must be a list of strings")))
}

fn parse_fields(
    arguments: &Map<String, Value>,
    default: &[Field],
) -> Result<HashSet<Field>, CapabilityError> {
    let Some(names) = string_list(arguments, "returnFields")? else {
        return Ok(default.iter().copied().collect());
    };
    let field = |name: &String| {
        let known = Field::ALL.into_iter().find(|(known, _)| known == name).map(|(_, field)| field);
        known.ok_or_else(|| {
            let all = Field::ALL.map(|(known, _)| known).join(", ");
            invalid(format!("`returnFields` contains {name:?}; use {all}"))
        })
    };
    names.iter().map(field).collect()
}

fn parse_filter(arguments: &Map<String, Value>, user: &str) -> Result<Filter, CapabilityError> {
    let namespace = match argument(arguments, "namespace") {
        None => Namespace::default(),
        Some(name) => name.as_str().and_then(|name| name.parse().ok()).ok_or_else(|| {
            CapabilityError::new(
                "INVALID_NAMESPACE",
                format!("`namespace` is {name}; use studio, personal or public"),
            )
        })?,
    };
    let owner = (namespace == Namespace::Personal).then(|| user.to_owned());
    let mut filter = Filter { namespace, owner, ..Filter::default() };
    let Some(conditions) = argument(arguments, "filters") else { return Ok(filter) };
    let conditions = conditions.as_object().ok_or_else(|| invalid("`filters` must be an object"))?;
    if let Some(name) =
        conditions.keys().find(|name| !["type", "tags", "date_range"].contains(&name.as_str()))
    {
        return Err(invalid(format!("`filters.{name}` does not exist; use type, tags or date_range")));
    }
    if let Some(kind) = argument(conditions, "type") {
        let kind = kind.as_str().ok_or_else(|| invalid("`filters.type` must be a string"))?;
        filter.kind = Some(kind.to_owned());
    }
    filter.tags = string_list(conditions, "tags")?.unwrap_or_default();
    if let Some(range) = argument(conditions, "date_range") {
        let range = range.as_object().ok_or_else(|| invalid("`filters.date_range` must be an object"))?;
        filter.updated_from = timestamp_argument(range, "start", DayBoundary::Start)?;
        filter.updated_until = timestamp_argument(range, "end", DayBoundary::End)?;
    }
    Ok(filter)
}

fn timestamp_argument(
    range: &Map<String, Value>,
    name: &str,
    end: DayBoundary,
) -> Result<Option<i64>, CapabilityError> {
    let Some(value) = argument(range, name) else { return Ok(None) };
    let at = value.as_str().and_then(|text| parse_timestamp(text, end));
    at.map(Some)
        .ok_or_else(|| invalid(format!("`filters.date_range.{name}` must be a date or an RFC 3339 time")))
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new("INVALID_ARGUMENT", message)
}

/// The error for the handler. The cause goes to the log.
fn to_fault(error: Error) -> CapabilityError {
    match error {
        Error::Timeout => CapabilityError::new("TIMEOUT", error.to_string()),
        Error::Unreachable(_) | Error::Locked => {
            tracing::error!("{error}");
            CapabilityError::new("UNREACHABLE", "the knowledge base is unreachable")
        }
        _ => {
            tracing::error!("{error}");
            CapabilityError::new("NOT_CONFIGURED", "the knowledge base is not usable on this server")
        }
    }
}
