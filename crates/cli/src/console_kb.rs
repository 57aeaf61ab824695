//! The knowledge base of the configuration, for the console. Texts that people add there become files beside the store,
//! so that they can be read, changed and ingested again like any other source.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolwright_kb::ingest::{Defaults, Progress};
use toolwright_kb::search::Query;
use toolwright_kb::store::{Filter, Stats};
use toolwright_kb::{Kb, KbCapability, Namespace};
use toolwright_server::knowledge_base::{
    KbAddError, KbAdded, KbHit, KbQuery, KbRecord, KbResults, KbText, KnowledgeBase,
};

use crate::config::Config;

/// The directory of added texts, beside the configuration.
const DIRECTORY: &str = ".toolwright/kb-texts";
const EXTENSIONS: [&str; 5] = ["md", "markdown", "txt", "jsonl", "ndjson"];
const MAX_NAME_BYTES: usize = 100;

#[derive(Debug)]
pub struct ConsoleKb {
    capability: Arc<KbCapability>,
    base: PathBuf,
}

impl ConsoleKb {
    pub fn new(config: &Config) -> Self {
        Self { capability: config.knowledge_base(), base: config.beside("") }
    }

    fn open(&self) -> Result<Arc<Kb>, String> {
        self.capability.open().map_err(|error| error.to_string())
    }
}

impl KnowledgeBase for ConsoleKb {
    fn facts(&self) -> Result<Vec<(String, String)>, String> {
        let stats = self.open()?.store.stats().map_err(|error| error.to_string())?;
        let Stats { records, sources, passages, with_vector, embedder, .. } = stats;
        let mut facts = vec![
            ("Records".to_owned(), records.to_string()),
            ("Sources".to_owned(), sources.to_string()),
            ("Vectors".to_owned(), format!("{with_vector} of {passages}")),
        ];
        let embedder = embedder.map_or("none: search by keyword".to_owned(), |embedder| embedder.name);
        facts.push(("Embedder".to_owned(), embedder));
        Ok(facts)
    }

    fn search(&self, query: &KbQuery) -> Result<KbResults, String> {
        let namespace: Namespace =
            query.namespace.parse().map_err(|()| format!("there is no namespace {:?}", query.namespace))?;
        let owner = (namespace == Namespace::Personal).then(|| query.user.clone());
        let query = Query {
            text: query.text.clone(),
            filter: Filter { namespace, owner, ..Filter::default() },
            top_k: query.limit,
            min_score: self.capability.min_score(),
            deadline: None,
        };
        let (hits, retrieval) = self.open()?.search(&query).map_err(|error| error.to_string())?;
        let hits = hits.into_iter().map(|hit| KbHit {
            id: hit.record.id,
            kind: hit.record.kind,
            title: hit.record.title,
            snippet: hit.snippet,
            score: hit.score,
        });
        Ok(KbResults { hits: hits.collect(), retrieval: retrieval.as_str().to_owned() })
    }

    fn record(&self, id: &str, user: &str) -> Result<Option<KbRecord>, String> {
        let found = self.open()?.get(&[id.to_owned()], Some(user)).map_err(|error| error.to_string())?;
        Ok(found.into_iter().next().map(|record| KbRecord {
            id: record.id,
            kind: record.kind,
            title: record.title,
            text: record.text,
            namespace: record.namespace.to_string(),
            tags: record.tags,
            source_type: record.source_type.unwrap_or_default(),
            last_updated: record.last_updated.unwrap_or_default(),
            url: record.url,
            metadata: record.metadata.into(),
        }))
    }

    fn add(&self, text: &KbText) -> Result<KbAdded, KbAddError> {
        check_name(&text.name).map_err(KbAddError::Invalid)?;
        let namespace: Namespace = text.namespace.parse().map_err(|()| {
            KbAddError::Invalid(format!(
                "There is no namespace `{}`: use studio, personal or public.",
                text.namespace
            ))
        })?;
        let owner = (namespace == Namespace::Personal).then(|| text.user.clone());
        // Texts of one name in two namespaces, or of two owners, are two texts.
        let directory = self.base.join(DIRECTORY).join(match &owner {
            Some(owner) => format!("personal-{}", toolwright_registry::hex(owner.as_bytes())),
            None => namespace.to_string(),
        });
        let failed = |error: String| KbAddError::Failed(error);
        let kb = self.open().map_err(failed)?;
        let path = directory.join(&text.name);
        write(&directory, &path, &text.text)
            .map_err(|error| failed(format!("{}: {error}", path.display())))?;
        let defaults = Defaults { namespace, owner };
        let report = kb
            .add(&self.base, &[path], &defaults, &Progress::default())
            .map_err(|error| failed(error.to_string()))?;
        if let Err(error) = kb.embed(&Progress::default()) {
            tracing::warn!("cannot create vectors: {error}");
        }
        let problem = |problem: &toolwright_kb::ingest::Problem| {
            let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{}", problem.message)
        };
        Ok(KbAdded {
            records: report.put + report.unchanged,
            problems: report.problems.iter().map(problem).collect(),
        })
    }
}

fn write(directory: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(path, text)
}

/// A plain file name with a known extension, so that it stays in its directory.
fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_. ".contains(&byte);
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.starts_with('.') || !name.bytes().all(is_plain)
    {
        return Err(format!(
            "The name `{name}` must have 1 to {MAX_NAME_BYTES} letters, digits, spaces, `-`, `_` or `.`, and no `.` in front."
        ));
    }
    if !EXTENSIONS.contains(&extension) {
        return Err(format!("The name `{name}` must end with .{}.", EXTENSIONS.join(", .")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_out_of_its_directory() {
        assert_eq!(check_name("opening hours-2.md"), Ok(()));
        for name in [
            "",
            "../keys.md",
            "a/b.md",
            ".md",
            "..",
            "a\\b.md",
            "a\0.md",
            "größe.md",
            "a.exe",
            "a",
            &"a".repeat(200),
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
