//! `toolwright kb`: fills, searches and maintains the knowledge base.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use toolwright_contract::escape::escape;
use toolwright_kb::ingest::{Defaults, Progress, Report};
use toolwright_kb::record::{DayBoundary, parse_timestamp};
use toolwright_kb::search::{self, Hit, Query};
use toolwright_kb::store::{Error, Filter, Stats};
use toolwright_kb::{Kb, Namespace};

use super::kb_model::{self, ModelCommand};
use super::watch;
use crate::args::Format;
use crate::capabilities;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::progress::{self, Counters};
use crate::report::plural;

pub const EXAMPLES: &str = "Examples:
  toolwright kb add docs/ people.jsonl       Markdown, text and JSONL; later only the changes
  toolwright kb search 'stage automation' --type project
  toolwright kb get person:mira_okafor
  toolwright kb stats --format json";

#[derive(Debug, Subcommand)]
pub enum KbCommand {
    /// Ingest files and directories: JSONL records, Markdown and text with front matter
    #[command(after_help = "Examples:
  toolwright kb add docs/ people.jsonl
  toolwright kb add docs/ --watch                              and again whenever a file changes
  toolwright kb add notes/ --owner ann                         personal records of ann
  toolwright kb add                                            the sources in toolwright.toml

A JSONL line: {\"id\": \"person:mira\", \"title\": \"Mira\", \"text\": \"…\", \"tags\": [\"light\"]}
Further fields: type, namespace, owner, source_type, last_updated, url, metadata, sources
(docs/reference/knowledge-base.md)")]
    Add(Add),
    /// Search as `kb_search` does
    #[command(after_help = "Examples:
  toolwright kb search 'who founded the studio'
  toolwright kb search lighting --type project --tag active --since 2026-01-01
  toolwright kb search milk --namespace personal --owner ann --format json")]
    Search(Search),
    /// Print records as JSON; exits with 1 if one does not exist
    ///
    /// With `--format json` one object: `records` and `notFound`.
    #[command(after_help = "Example:\n  toolwright kb get person:mira_okafor doc:rigging_manual")]
    Get {
        /// The id of a record
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Remove records; those of a file return when the file changes
    #[command(after_help = "Example:\n  toolwright kb rm doc:old_manual")]
    Rm {
        /// The id of a record
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Show the number of records and vectors
    #[command(after_help = "Example:\n  toolwright kb stats --format json | jq .records")]
    Stats,
    /// Recreate the index from the records, and the vectors if the embedder has changed
    #[command(after_help = "Example:\n  toolwright kb rebuild")]
    Rebuild,
    /// Print all records as JSON lines that `kb add` reads
    #[command(after_help = "Example:\n  toolwright kb export > records.jsonl")]
    Export,
    /// Install or check the model for search by meaning
    #[command(subcommand)]
    Model(ModelCommand),
}

#[derive(Debug, Args)]
pub struct Add {
    /// Files (.jsonl, .ndjson, .md, .markdown, .txt) and directories [default: the sources in toolwright.toml]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The namespace of records without one [default: studio; personal with --owner]
    #[arg(long, value_name = "studio|personal|public")]
    namespace: Option<String>,
    /// The owner of personal records
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Ingest again whenever a file changes
    #[arg(long)]
    watch: bool,
}

#[derive(Debug, Args)]
pub struct Search {
    /// The words to search for, or a question
    query: String,
    /// The namespace to search
    #[arg(long, value_name = "studio|personal|public", default_value = "studio")]
    namespace: String,
    /// The owner of the records, in `personal`
    #[arg(long, value_name = "USER")]
    owner: Option<String>,
    /// Only records of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only records with this tag; repeat it to require several
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only records updated then or later: a date or an RFC 3339 time
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
    /// Only records updated then or earlier
    #[arg(long, value_name = "DATE")]
    until: Option<String>,
    /// The maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    top_k: u8,
}

pub fn run(config: &Config, command: &KbCommand) -> Result<ExitCode> {
    let kb = || Kb::open(&config.kb, capabilities::embedders(config)).map_err(failure);
    match command {
        KbCommand::Add(args) => add(config, &kb()?, args),
        KbCommand::Search(args) => search(config, &kb()?, args).map(|()| ExitCode::SUCCESS),
        KbCommand::Get { ids } => get(config, &kb()?, ids),
        KbCommand::Rm { ids } => remove(config, &kb()?, ids),
        KbCommand::Stats => stats(config, &kb()?).map(|()| ExitCode::SUCCESS),
        KbCommand::Rebuild => rebuild(config, &kb()?).map(|()| ExitCode::SUCCESS),
        KbCommand::Export => export(&kb()?).map(|()| ExitCode::SUCCESS),
        KbCommand::Model(command) => kb_model::run(config, command),
    }
}

fn add(config: &Config, kb: &Kb, args: &Add) -> Result<ExitCode> {
    let paths = if args.paths.is_empty() { &config.settings.kb.sources } else { &args.paths };
    if paths.is_empty() {
        let help = "name files or directories: toolwright kb add docs/ people.jsonl";
        return Err(Failure::usage("no files or directories to add", help).into());
    }
    let default = if args.owner.is_some() { Namespace::Personal } else { Namespace::Studio };
    let namespace = args.namespace.as_deref().map_or(Ok(default), parse_namespace)?;
    let defaults = Defaults { namespace, owner: args.owner.clone() };
    match (defaults.namespace, &defaults.owner) {
        (Namespace::Personal, None) => {
            let help = "add `--owner USER`: only the owner finds personal records";
            return Err(Failure::usage("personal records need an owner", help).into());
        }
        (Namespace::Studio | Namespace::Public, Some(_)) => {
            let help = "leave `--owner` out, or use `--namespace personal`";
            return Err(Failure::usage("only personal records have an owner", help).into());
        }
        _ => {}
    }
    if !args.watch {
        return ingest(config, kb, paths, &defaults);
    }
    let ingest = || {
        if let Err(error) = ingest(config, kb, paths, &defaults) {
            output::report(&error);
        }
    };
    // The watch starts first, so that changes during the first ingest are noticed.
    let started = || {
        ingest();
        output::message("watching (stop with Ctrl-C)");
    };
    watch::watch(paths, None, started, ingest)?;
    Ok(ExitCode::SUCCESS)
}

/// Ingests once, and computes the missing vectors.
fn ingest(config: &Config, kb: &Kb, paths: &[PathBuf], defaults: &Defaults) -> Result<ExitCode> {
    let state = Progress::default();
    let base = config.beside("");
    let report = progress::run_with_bar(counters(&state, "reading", "{bytes}/{total_bytes}"), || {
        kb.add(&base, paths, defaults, &state)
    });
    let report = report.map_err(failure)?;
    let vectors = embed(kb);
    print_report(config, &report, *vectors.as_ref().unwrap_or(&0))?;
    vectors?;
    Ok(output::status(report.problems.is_empty()))
}

/// Computes the vectors that the project's records lack, after a model was installed. Returns how many. A failure is
/// printed, and does not fail the installation.
pub fn embed_missing(config: &Config) -> usize {
    // Opening would create the directory.
    if config.kb.strip_prefix("dir:").is_some_and(|dir| !Path::new(dir).exists()) {
        return 0;
    }
    let kb = Kb::open(&config.kb, capabilities::embedders(config)).map_err(failure);
    kb.and_then(|kb| embed(&kb)).unwrap_or_else(|failure| {
        output::report(&failure.into());
        0
    })
}

fn embed(kb: &Kb) -> Result<usize, Failure> {
    let state = Progress::default();
    let counters = counters(&state, "computing vectors", "{pos}/{len} records");
    progress::run_with_bar(counters, || kb.embed(&state)).map_err(failure)
}

fn counters<'a>(progress: &'a Progress, verb: &'a str, amount: &'a str) -> Counters<'a> {
    Counters { done: &progress.done, total: &progress.total, verb, amount }
}

fn print_report(config: &Config, report: &Report, vectors: usize) -> Result<()> {
    if config.format == Format::Json {
        let mut value = serde_json::to_value(report)?;
        value["vectors"] = vectors.into();
        output::print_line(value);
        return Ok(());
    }
    for problem in &report.problems {
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        output::error(format_args!("{}{line}: {}", problem.file, escape(&problem.message)));
    }
    let vectors = if vectors > 0 { format!("; computed {vectors} vectors") } else { String::new() };
    output::success(
        "added",
        format_args!(
            "{}, removed {}; {} of {} files unchanged{vectors}",
            plural(report.put, "record"),
            report.removed,
            report.unchanged_files,
            report.files,
        ),
    );
    if !report.problems.is_empty() {
        let problems = plural(report.problems.len(), "problem");
        output::help(format_args!(
            "fix {problems}, then add the files again (docs/reference/knowledge-base.md)"
        ));
    }
    Ok(())
}

fn search(config: &Config, kb: &Kb, args: &Search) -> Result<()> {
    let filter = Filter {
        namespace: parse_namespace(&args.namespace)?,
        owner: args.owner.clone(),
        kind: args.kind.clone(),
        tags: args.tags.clone(),
        updated_from: parse_date(args.since.as_deref(), DayBoundary::Start)?,
        updated_until: parse_date(args.until.as_deref(), DayBoundary::End)?,
    };
    if filter.namespace == Namespace::Personal && filter.owner.is_none() {
        let help = "add `--owner USER`: only the owner finds personal records";
        return Err(Failure::usage("a search of personal records needs an owner", help).into());
    }
    if filter.updated_from.zip(filter.updated_until).is_some_and(|(from, until)| from > until) {
        return Err(Failure::usage("`--since` is later than `--until`", "swap the dates").into());
    }
    if !args.query.contains(char::is_alphanumeric) {
        let message = format!("the query {:?} has no words", args.query);
        return Err(Failure::usage(message, "name a word, or ask a question").into());
    }
    let min_score = config.settings.kb.min_score;
    let query =
        Query { text: args.query.clone(), filter, top_k: args.top_k.into(), min_score, deadline: None };
    let started = Instant::now();
    let (hits, retrieval) = kb.search(&query).map_err(failure)?;
    let duration = started.elapsed();
    if config.format == Format::Json {
        let results: Vec<Value> = hits.iter().map(to_json).collect();
        output::print_line(json!({ "results": results, "retrieval": retrieval.as_str(),
            "query_time_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX) }));
        return Ok(());
    }
    for hit in &hits {
        let [id, title, snippet] = [&hit.record.id, &hit.record.title, &hit.snippet].map(|text| escape(text));
        output::print_line(format_args!("\x1b[1m{:.2}  {id}\x1b[0m  {title}\n      {snippet}", hit.score));
    }
    let milliseconds = duration.as_secs_f64() * 1e3;
    output::message(format_args!("{} found in {milliseconds:.1} ms ({})", hits.len(), retrieval.as_str()));
    Ok(())
}

fn to_json(hit: &Hit) -> Value {
    let record = &hit.record;
    json!({ "id": record.id, "type": record.kind, "title": record.title, "score": search::round_score(hit.score),
        "snippet": hit.snippet, "source_type": record.source_type, "last_updated": record.last_updated,
        "url": record.url, "metadata": record.metadata })
}

fn get(config: &Config, kb: &Kb, ids: &[String]) -> Result<ExitCode> {
    let records = kb.get(ids, None).map_err(failure)?;
    let missing = not_found(ids, records.iter().map(|record| &record.id));
    match config.format {
        Format::Json => output::print_line(json!({ "records": records, "notFound": missing })),
        Format::Human => records.iter().try_for_each(output::print_json_pretty)?,
    }
    Ok(report_missing(&missing))
}

fn remove(config: &Config, kb: &Kb, ids: &[String]) -> Result<ExitCode> {
    let removed = kb.remove(ids).map_err(failure)?;
    let missing = not_found(ids, &removed);
    match config.format {
        Format::Json => output::print_line(json!({ "removed": removed, "notFound": missing })),
        Format::Human => output::success("removed", removed.len()),
    }
    Ok(report_missing(&missing))
}

fn not_found<'a>(ids: &'a [String], found: impl IntoIterator<Item = &'a String>) -> Vec<&'a String> {
    let found: Vec<&String> = found.into_iter().collect();
    ids.iter().filter(|id| !found.contains(id)).collect()
}

fn report_missing(ids: &[&String]) -> ExitCode {
    ids.iter().for_each(|id| output::error(format_args!("there is no record {}", escape(id))));
    output::status(ids.is_empty())
}

fn stats(config: &Config, kb: &Kb) -> Result<()> {
    let stats = kb.store.stats().map_err(failure)?;
    if config.format == Format::Json {
        return output::print_json(&stats);
    }
    let Stats { records, by_namespace, by_type, sources, passages, with_vector, embedder, bytes } = &stats;
    let counts = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let megabytes = *bytes as f64 / 1e6;
    let embedder = embedder.as_ref().map_or("no embedder yet", |embedder| embedder.name.as_str());
    output::print_line(&config.kb);
    output::print_line(format_args!("records   {records} from {sources} sources ({megabytes:.1} MB)"));
    output::print_line(format_args!("          {}", counts(by_namespace)));
    output::print_line(format_args!("          {}", counts(by_type)));
    output::print_line(format_args!("vectors   {with_vector} of {passages} passages, by {embedder}"));
    Ok(())
}

fn rebuild(config: &Config, kb: &Kb) -> Result<()> {
    kb.rebuild().map_err(failure)?;
    let vectors = embed(kb)?;
    match config.format {
        Format::Json => output::print_line(json!({ "vectors": vectors })),
        Format::Human => output::success("rebuilt;", format_args!("computed {vectors} vectors")),
    }
    Ok(())
}

fn export(kb: &Kb) -> Result<()> {
    let exported = kb.store.for_each_record(&mut |record| {
        let line = serde_json::to_string(&record).map_err(|error| Error::Unusable(error.to_string()))?;
        output::print_line(line);
        Ok(())
    });
    Ok(exported.map_err(failure)?)
}

fn parse_namespace(name: &str) -> Result<Namespace, Failure> {
    let help = "use studio, personal or public";
    name.parse().map_err(|()| Failure::usage(format!("there is no namespace {name:?}"), help))
}

fn parse_date(text: Option<&str>, end: DayBoundary) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let help = "write a date such as 2026-01-31, or a time such as 2026-01-31T09:00:00Z";
    parse_timestamp(text, end)
        .map(Some)
        .ok_or_else(|| Failure::usage(format!("{text:?} is not a date"), help))
}

fn failure(error: Error) -> Failure {
    let help = match &error {
        Error::Locked => "one process writes at a time; try again when it has finished",
        Error::EmbedderMismatch { .. } => "or configure the embedder that computed them",
        Error::Embedding(_) => {
            "the records are stored and found by keyword: fix `[kb.embedder]` or start its service, then run `toolwright kb rebuild`"
        }
        _ => "name another knowledge base with `--kb URL`",
    };
    Failure::new(error, help)
}
