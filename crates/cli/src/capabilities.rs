//! Sets up the capabilities of handlers from the configuration. Each opens its back end on first use, since most
//! commands need none.

use std::sync::Arc;

use toolwright_calendar::Calendar;
use toolwright_kb::{EmbedderSource, KbCapability, Options};
use toolwright_orchestrator::capabilities::Capabilities;
use toolwright_orchestrator::capabilities::images::Images;
use toolwright_text::Text;

use crate::config::Config;

/// The capabilities of one process, shared by all toolsets that it loads.
pub fn set_up(config: &Config) -> Capabilities {
    Capabilities::default()
        .with("text", Arc::new(Text))
        .with("images", Arc::new(Images::new(config.images())))
        .with("calendar", Arc::new(calendar(config)))
        .with("kb", config.knowledge_base())
}

/// The calendar of `[calendar]`.
pub fn calendar(config: &Config) -> Calendar {
    let secrets = |variable: &str| std::env::var(variable).ok();
    Calendar::new(config.settings.calendar.clone(), config.calendar_file(), secrets)
}

/// The knowledge base of `[kb]`.
pub fn knowledge_base(config: &Config) -> KbCapability {
    KbCapability::new(Options {
        url: config.kb.clone(),
        sources: config.settings.kb.sources.clone(),
        base: config.beside(""),
        embedder_source: embedders(config),
        min_score: config.settings.kb.min_score,
    })
}

/// The embedder of the knowledge base; without one, search is by keyword.
pub fn embedders(config: &Config) -> EmbedderSource {
    let opener = Arc::clone(&config.embedders);
    Arc::new(move || opener.get().map_err(|why| format!("{}; {}", why.reason, why.help)))
}
