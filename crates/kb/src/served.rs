//! `kb.search` and `kb.get` as docs/reference/capabilities.md has them. Opened when it is first asked.

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
use crate::kb::{Embedders, Kb, Retrieval};
use crate::record::{DayEnd, Namespace, instant};
use crate::search::{Field, Query, evidence};
use crate::snippet;
use crate::store::{Backend as _, Error, Filter};

/// More than any tool asks for.
const MOST: usize = 100;
/// A longer text is no query.
const MOST_QUERY: usize = 10_000;

/// Where the knowledge base is, and what it is filled from.
#[derive(Clone)]
pub struct Options {
    /// `dir:PATH`.
    pub url: String,
    /// Files and directories that are ingested when nothing has been yet, and whenever a server starts.
    pub sources: Vec<PathBuf>,
    /// Names of sources are relative to it.
    pub base: PathBuf,
    pub embedders: Embedders,
}

impl fmt::Debug for Options {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Options").field("sources", &self.sources).finish_non_exhaustive()
    }
}

/// The capability `kb`.
#[derive(Debug)]
pub struct KnowledgeBase {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: Options,
    /// A failure is not kept: what is wrong may be mended while a server runs.
    kb: Mutex<Option<Arc<Kb>>>,
    /// In a server that runs on: vectors that are missing are made beside its calls, by one thread at a time.
    catches_up: AtomicBool,
}

impl KnowledgeBase {
    /// Nothing is opened yet.
    pub fn new(options: Options) -> Self {
        Self { inner: Arc::new(Inner { options, kb: Mutex::default(), catches_up: AtomicBool::new(false) }) }
    }

    /// Ingests what has changed in the sources, and makes the vectors that are missing. It blocks, for long at times.
    pub fn refresh(&self) {
        match self.inner.open() {
            Ok(kb) => self.inner.ingest(&kb),
            Err(error) => tracing::error!("the knowledge base cannot be opened: {error}"),
        }
        self.inner.catches_up.store(true, Ordering::Relaxed);
    }
}

impl Capability for KnowledgeBase {
    fn call(&self, asker: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let (inner, user, deadline) = (Arc::clone(&self.inner), asker.user.to_owned(), asker.deadline);
        let function = function.to_owned();
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                let arguments = args.into_iter().next().unwrap_or_default();
                inner.answer(&function, &arguments, &user, deadline)
            });
            match tokio::time::timeout_at(deadline.into(), asked).await {
                Ok(Ok(answered)) => answered,
                Ok(Err(error)) => {
                    tracing::error!("the knowledge base failed: {error}");
                    Err(CapabilityError::new("UNREACHABLE", "the knowledge base failed"))
                }
                Err(_) => Err(CapabilityError::new("TIMEOUT", "the knowledge base did not answer in time")),
            }
        })
    }
}

impl Inner {
    fn open(&self) -> Result<Arc<Kb>, Error> {
        let mut held = self.kb.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kb) = &*held {
            return Ok(Arc::clone(kb));
        }
        let kb = Arc::new(Kb::open(&self.options.url, Arc::clone(&self.options.embedders))?);
        // The first question finds something, also where nobody has added anything yet.
        if !self.options.sources.is_empty() && kb.store.sources()?.is_empty() {
            self.ingest(&kb);
        }
        *held = Some(Arc::clone(&kb));
        Ok(kb)
    }

    /// A model that was installed while a server runs is taken up: records get their vectors without a second ingest.
    fn catch_up(self: &Arc<Self>, kb: &Arc<Kb>) {
        if kb.awaits_vectors() && self.catches_up.swap(false, Ordering::Relaxed) {
            let (inner, kb) = (Arc::clone(self), Arc::clone(kb));
            std::thread::spawn(move || {
                inner.embed(&kb);
                inner.catches_up.store(true, Ordering::Relaxed);
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
                        tracing::warn!("{}{line}: {}", problem.file, problem.message);
                    }
                    if report.put + report.removed > 0 {
                        tracing::info!(put = report.put, removed = report.removed, "knowledge base ingested");
                    }
                }
                Err(error) => tracing::warn!("the sources of the knowledge base were not ingested: {error}"),
            }
        }
        self.embed(kb);
    }

    fn embed(&self, kb: &Kb) {
        match kb.embed(&Progress::default()) {
            Ok(0) => {}
            Ok(made) => tracing::info!(made, "records have their vectors"),
            Err(error) => tracing::warn!("records have no vectors yet: {error}"),
        }
    }

    fn answer(
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
            other => Err(CapabilityError::new(
                "NOT_CONFIGURED",
                format!("`kb.{other}` is not set up on this server"),
            )),
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
        if text.len() > MOST_QUERY {
            return Err(invalid(format!("`query` is longer than {MOST_QUERY} bytes")));
        }
        let top_k = match given(arguments, "topK") {
            None => 5,
            Some(number) => match number.as_u64() {
                Some(number @ 1..) => usize::try_from(number).unwrap_or(MOST).min(MOST),
                _ => return Err(invalid("`topK` must be a positive whole number")),
            },
        };
        let mut fields = fields(arguments, &[Field::Snippet, Field::Metadata, Field::Url])?;
        if given(arguments, "includeSnippets").and_then(Value::as_bool) == Some(false) {
            fields.remove(&Field::Snippet);
        }
        let filter = filter(arguments, user)?;
        let query = Query { text: text.to_owned(), filter, top_k, deadline: Some(deadline) };
        let kb = self.open().map_err(fault)?;
        let (hits, retrieval) = kb.search(&query).map_err(fault)?;
        if retrieval == Retrieval::Keyword {
            self.catch_up(&kb);
        }
        let results =
            hits.into_iter().map(|hit| evidence(hit.record, Some(hit.score), Some(hit.snippet), &fields));
        let value = Value::Array(results.collect());
        Ok(CapabilityOutput { value, meta: Some(("retrieval", retrieval.as_str().into())) })
    }

    fn get(&self, arguments: &Map<String, Value>, user: &str) -> Result<CapabilityOutput, CapabilityError> {
        let ids = strings(arguments, "ids")?.ok_or_else(|| invalid("`ids` must be a list of strings"))?;
        if ids.len() > MOST {
            return Err(invalid(format!("at most {MOST} `ids` at a time")));
        }
        let fields = fields(arguments, &[Field::FullText, Field::Metadata, Field::Url])?;
        let records = self.open().and_then(|kb| kb.get(&ids, Some(user))).map_err(fault)?;
        let found: HashSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let mut seen = HashSet::new();
        let lost = |id: &&String| !found.contains(id.as_str()) && seen.insert((*id).clone());
        let not_found: Vec<String> = ids.iter().filter(lost).cloned().collect();
        let shown = |record: crate::Record| {
            let opening = snippet::opening(&record.text);
            evidence(record, None, Some(opening), &fields)
        };
        let records: Vec<Value> = records.into_iter().map(shown).collect();
        Ok(json!({ "records": records, "notFound": not_found }).into())
    }
}

/// An argument; null is as good as absent.
fn given<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|value| !value.is_null())
}

fn strings(arguments: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, CapabilityError> {
    let Some(value) = given(arguments, name) else { return Ok(None) };
    let list = value.as_array().and_then(|list| {
        list.iter().map(|entry| entry.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
    });
    list.map(Some).ok_or_else(|| invalid(format!("`{name}` must be a list of strings")))
}

fn fields(arguments: &Map<String, Value>, default: &[Field]) -> Result<HashSet<Field>, CapabilityError> {
    let Some(names) = strings(arguments, "returnFields")? else {
        return Ok(default.iter().copied().collect());
    };
    let field = |name: &String| {
        let known = Field::ALL.into_iter().find(|field| field.as_str() == name);
        known.ok_or_else(|| {
            let all = Field::ALL.map(Field::as_str).join(", ");
            invalid(format!("`returnFields` has no {name:?}; there are {all}"))
        })
    };
    names.iter().map(field).collect()
}

fn filter(arguments: &Map<String, Value>, user: &str) -> Result<Filter, CapabilityError> {
    let namespace = match given(arguments, "namespace") {
        None => Namespace::default(),
        Some(name) => name.as_str().and_then(|name| name.parse().ok()).ok_or_else(|| {
            CapabilityError::new(
                "INVALID_NAMESPACE",
                format!("there is no namespace {name}: studio, personal, public"),
            )
        })?,
    };
    let owner = (namespace == Namespace::Personal).then(|| user.to_owned());
    let mut filter = Filter { namespace, owner, ..Filter::default() };
    let Some(conditions) = given(arguments, "filters") else { return Ok(filter) };
    let conditions = conditions.as_object().ok_or_else(|| invalid("`filters` must be an object"))?;
    if let Some(name) =
        conditions.keys().find(|name| !["type", "tags", "date_range"].contains(&name.as_str()))
    {
        return Err(invalid(format!("`filters` has no `{name}`; there are type, tags, date_range")));
    }
    if let Some(kind) = given(conditions, "type") {
        let kind = kind.as_str().ok_or_else(|| invalid("`filters.type` must be a string"))?;
        filter.kind = Some(kind.to_owned());
    }
    filter.tags = strings(conditions, "tags")?.unwrap_or_default();
    if let Some(range) = given(conditions, "date_range") {
        let range = range.as_object().ok_or_else(|| invalid("`filters.date_range` must be an object"))?;
        filter.from = moment(range, "start", DayEnd::First)?;
        filter.until = moment(range, "end", DayEnd::Last)?;
    }
    Ok(filter)
}

fn moment(range: &Map<String, Value>, name: &str, end: DayEnd) -> Result<Option<i64>, CapabilityError> {
    let Some(value) = given(range, name) else { return Ok(None) };
    let at = value.as_str().and_then(|text| instant(text, end));
    at.map(Some)
        .ok_or_else(|| invalid(format!("`filters.date_range.{name}` must be an RFC 3339 time or a date")))
}

fn invalid(message: impl Into<String>) -> CapabilityError {
    CapabilityError::new("INVALID_ARGUMENT", message)
}

/// What a handler is told; the cause is for the log.
fn fault(error: Error) -> CapabilityError {
    match error {
        Error::Timeout => CapabilityError::new("TIMEOUT", error.to_string()),
        Error::Unreachable(_) | Error::Busy => {
            tracing::error!("{error}");
            CapabilityError::new("UNREACHABLE", "the knowledge base cannot be reached")
        }
        _ => {
            tracing::error!("{error}");
            CapabilityError::new("NOT_CONFIGURED", "the knowledge base cannot be used on this server")
        }
    }
}
