//! `toolwright kb`: the knowledge base filled, searched and looked after.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};
use toolwright_kb::ingest::{Defaults, Progress, Report};
use toolwright_kb::record::{DayEnd, instant};
use toolwright_kb::search::{self, Hit, Query};
use toolwright_kb::store::{Backend as _, Error, Filter, Stats};
use toolwright_kb::{Kb, Namespace};

use super::watch;
use crate::args::{self, Common, Format, KbAdd, KbSearch};
use crate::capabilities;
use crate::config::Config;
use crate::output::{self, Failure};
use crate::progress::{self, Shown};

pub fn run(common: &Common, what: &args::Kb) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    let kb = || Kb::open(&config.kb, capabilities::embedders(&config)).map_err(failed);
    match what {
        args::Kb::Add(add) => self::add(common, &config, &kb()?, add),
        args::Kb::Search(search) => self::search(common, &kb()?, search),
        args::Kb::Get { ids } => get(common, &kb()?, ids),
        args::Kb::Rm { ids } => remove(common, &kb()?, ids),
        args::Kb::Stats => stats(common, &config, &kb()?),
        args::Kb::Rebuild => rebuild(common, &kb()?),
        args::Kb::Export => export(&kb()?),
        args::Kb::Model(model) => super::kb_model::run(common, &config, model),
    }
}

fn add(common: &Common, config: &Config, kb: &Kb, add: &KbAdd) -> Result<ExitCode> {
    let paths = if add.paths.is_empty() { &config.kb_sources } else { &add.paths };
    if paths.is_empty() {
        let help = "name files or directories: toolwright kb add docs/ people.jsonl";
        return Err(Failure::usage("there is nothing to add", help).into());
    }
    let usual = if add.owner.is_some() { Namespace::Personal } else { Namespace::Studio };
    let namespace = add.namespace.as_deref().map_or(Ok(usual), namespace)?;
    let defaults = Defaults { namespace, owner: add.owner.clone() };
    if defaults.namespace != Namespace::Personal && defaults.owner.is_some() {
        let help = "leave `--owner` out, or make them `--namespace personal`";
        return Err(Failure::usage("only personal records have an owner", help).into());
    }
    if defaults.namespace == Namespace::Personal && defaults.owner.is_none() {
        let help = "add `--owner USER`: personal records are found by their owner alone";
        return Err(Failure::usage("personal records need an owner", help).into());
    }
    if !add.watch {
        return once(common, config, kb, paths, &defaults);
    }
    let again = || {
        if let Err(error) = once(common, config, kb, paths, &defaults) {
            output::fail(&error);
        }
    };
    // What changes while the first ingest runs is noticed, too.
    let begun = || {
        again();
        output::message("watching (stop with Ctrl-C)");
    };
    watch::each_change_at(paths, begun, again)?;
    Ok(ExitCode::SUCCESS)
}

/// One ingest, and the vectors that are missing then.
fn once(
    common: &Common,
    config: &Config,
    kb: &Kb,
    paths: &[PathBuf],
    defaults: &Defaults,
) -> Result<ExitCode> {
    let state = Progress::default();
    let base = config.beside("");
    let report = progress::watch(shown(&state, "reading", "{bytes}/{total_bytes}"), || {
        kb.add(&base, paths, defaults, &state)
    });
    let report = report.map_err(failed)?;
    let vectors = embed(kb);
    tell(common, &report, *vectors.as_ref().unwrap_or(&0))?;
    vectors?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The vectors that the project's records lack, once a model is there; how many. What stands in the way is told, and no
/// failure of the installation.
pub fn catch_up(config: &Config) -> usize {
    // Looking must not make one.
    if config.kb.strip_prefix("dir:").is_some_and(|dir| !Path::new(dir).exists()) {
        return 0;
    }
    let kb = Kb::open(&config.kb, capabilities::embedders(config)).map_err(failed);
    kb.and_then(|kb| embed(&kb)).unwrap_or_else(|failure| {
        output::fail(&failure.into());
        0
    })
}

fn embed(kb: &Kb) -> Result<usize, Failure> {
    let state = Progress::default();
    progress::watch(shown(&state, "making vectors", "{pos}/{len} records"), || kb.embed(&state))
        .map_err(failed)
}

fn shown<'a>(progress: &'a Progress, doing: &'a str, amount: &'a str) -> Shown<'a> {
    Shown { done: &progress.done, total: &progress.total, doing, amount }
}

fn tell(common: &Common, report: &Report, vectors: usize) -> Result<()> {
    if common.format == Format::Json {
        let mut whole = serde_json::to_value(report)?;
        whole["vectors"] = vectors.into();
        output::data_line(whole);
        return Ok(());
    }
    for problem in &report.problems {
        let line = problem.line.map(|line| format!(":{line}")).unwrap_or_default();
        let message = output::plain(&problem.message);
        output::message(format_args!("\x1b[1;31merror\x1b[0m: {}{line}: {message}", problem.file));
    }
    output::message(format_args!(
        "\x1b[1;32madded\x1b[0m {}, removed {}; {} of {} files were as before{}",
        crate::report::plural(report.put, "record"),
        report.removed,
        report.unchanged_files,
        report.files,
        if vectors > 0 { format!("; {vectors} vectors made") } else { String::new() },
    ));
    if !report.problems.is_empty() {
        output::message(format_args!(
            "  \x1b[1mhelp\x1b[0m: {} could not be read; mend them and add the files again (docs/reference/knowledge-base.md)",
            crate::report::plural(report.problems.len(), "part"),
        ));
    }
    Ok(())
}

fn search(common: &Common, kb: &Kb, search: &KbSearch) -> Result<ExitCode> {
    let filter = Filter {
        namespace: namespace(&search.namespace)?,
        owner: search.owner.clone(),
        kind: search.kind.clone(),
        tags: search.tags.clone(),
        from: moment(search.since.as_deref(), DayEnd::First)?,
        until: moment(search.until.as_deref(), DayEnd::Last)?,
    };
    if filter.namespace == Namespace::Personal && filter.owner.is_none() {
        return Err(Failure::usage("personal records belong to somebody", "add `--owner USER`").into());
    }
    if filter.from.zip(filter.until).is_some_and(|(from, until)| from > until) {
        return Err(Failure::usage("`--since` is later than `--until`", "turn the dates round").into());
    }
    if !search.query.contains(char::is_alphanumeric) {
        return Err(Failure::usage("there is nothing to look for", "name a word, or ask a question").into());
    }
    let query = Query { text: search.query.clone(), filter, top_k: search.top_k.into(), deadline: None };
    let begun = Instant::now();
    let (hits, retrieval) = kb.search(&query).map_err(failed)?;
    let took = begun.elapsed();
    if common.format == Format::Json {
        let results: Vec<Value> = hits.iter().map(row).collect();
        output::data_line(json!({ "results": results, "retrieval": retrieval.as_str(),
            "query_time_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX) }));
        return Ok(ExitCode::SUCCESS);
    }
    for hit in &hits {
        output::data_line(format_args!(
            "\x1b[1m{:.2}  {}\x1b[0m  {}\n      {}",
            hit.score,
            output::plain(&hit.record.id),
            output::plain(&hit.record.title),
            output::plain(&hit.snippet),
        ));
    }
    let how = retrieval.as_str();
    output::message(format_args!("{} found in {:.1} ms ({how})", hits.len(), took.as_secs_f64() * 1e3));
    Ok(ExitCode::SUCCESS)
}

fn row(hit: &Hit) -> Value {
    let record = &hit.record;
    json!({ "id": record.id, "type": record.kind, "title": record.title, "score": search::shown_score(hit.score), "snippet": hit.snippet,
        "source_type": record.source_type, "last_updated": record.last_updated, "url": record.url,
        "metadata": record.metadata })
}

fn get(common: &Common, kb: &Kb, ids: &[String]) -> Result<ExitCode> {
    let records = kb.get(ids, None).map_err(failed)?;
    let found: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
    match common.format {
        Format::Json => {
            output::data_line(json!({ "records": records, "notFound": not_found(ids, &found) }));
        }
        Format::Human => {
            for record in &records {
                output::data_line(serde_json::to_string_pretty(record)?);
            }
        }
    }
    Ok(missing(ids, &found))
}

fn remove(common: &Common, kb: &Kb, ids: &[String]) -> Result<ExitCode> {
    let removed = kb.remove(ids).map_err(failed)?;
    match common.format {
        Format::Json => {
            output::data_line(json!({ "removed": removed, "notFound": not_found(ids, &removed) }));
        }
        Format::Human => output::message(format_args!("\x1b[1;32mremoved\x1b[0m {}", removed.len())),
    }
    Ok(missing(ids, &removed))
}

fn not_found<'i>(ids: &'i [String], found: &[String]) -> Vec<&'i String> {
    ids.iter().filter(|id| !found.contains(id)).collect()
}

fn missing(ids: &[String], found: &[String]) -> ExitCode {
    let missing = not_found(ids, found);
    for id in &missing {
        output::message(format_args!("\x1b[1;31merror\x1b[0m: there is no record {}", output::plain(id)));
    }
    if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn stats(common: &Common, config: &Config, kb: &Kb) -> Result<ExitCode> {
    let stats = kb.store.stats().map_err(failed)?;
    if common.format == Format::Json {
        output::data_line(serde_json::to_string(&stats)?);
        return Ok(ExitCode::SUCCESS);
    }
    let Stats { records, by_namespace, by_type, sources, passages, with_vector, embedder, bytes } = &stats;
    let counts = |counts: &std::collections::BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    output::data_line(format_args!("{}", config.kb));
    output::data_line(format_args!(
        "records   {records} from {sources} sources ({:.1} MB)",
        *bytes as f64 / 1e6
    ));
    output::data_line(format_args!("          {}", counts(by_namespace)));
    output::data_line(format_args!("          {}", counts(by_type)));
    let by = embedder.as_ref().map_or_else(|| "none yet".to_owned(), |maker| maker.name.clone());
    output::data_line(format_args!("vectors   {with_vector} of {passages} passages, by {by}"));
    Ok(ExitCode::SUCCESS)
}

fn rebuild(common: &Common, kb: &Kb) -> Result<ExitCode> {
    kb.rebuild().map_err(failed)?;
    let vectors = embed(kb)?;
    match common.format {
        Format::Json => output::data_line(json!({ "vectors": vectors })),
        Format::Human => output::message(format_args!("\x1b[1;32mrebuilt\x1b[0m; {vectors} vectors made")),
    }
    Ok(ExitCode::SUCCESS)
}

fn export(kb: &Kb) -> Result<ExitCode> {
    let each = kb.store.each(&mut |record| {
        let line = serde_json::to_string(&record).map_err(|error| Error::Unusable(error.to_string()))?;
        output::data_line(line);
        Ok(())
    });
    each.map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

fn namespace(name: &str) -> Result<Namespace, Failure> {
    let help = "there are studio, personal and public";
    name.parse().map_err(|()| Failure::usage(format!("there is no namespace {name:?}"), help))
}

fn moment(text: Option<&str>, end: DayEnd) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let help = "a date is written 2026-01-31, a time 2026-01-31T09:00:00Z";
    instant(text, end).map(Some).ok_or_else(|| Failure::usage(format!("{text:?} is no date"), help))
}

fn failed(error: Error) -> Failure {
    let help = match &error {
        Error::Busy => "one process writes at a time; readers go on meanwhile",
        Error::OtherEmbedder { .. } => "or set up the embedder that made them",
        Error::NoVectors(_) => {
            "records are kept and found by words: mend `[kb.embedder]` or start its service, then `toolwright kb rebuild`"
        }
        _ => "another knowledge base can be named by `--kb dir:PATH`",
    };
    Failure::new(error, help)
}
