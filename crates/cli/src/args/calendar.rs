//! The arguments of `toolwright calendar`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub enum Calendar {
    /// The events, the earliest first
    #[command(after_help = "Examples:
  toolwright calendar list
  toolwright calendar list --from 2026-03-02 --format json")]
    List(During),
    /// The events as iCalendar (.ics), for other programs
    #[command(after_help = "Examples:
  toolwright calendar export > events.ics
  toolwright calendar export --from 2026-03-01 --to 2026-04-01 > march.ics")]
    Export(During),
}

/// Which events.
#[derive(Debug, ClapArgs)]
pub struct During {
    /// Only those that begin then or later: a date, or a time with an offset
    #[arg(long, value_name = "DATE|TIME")]
    pub from: Option<String>,
    /// Only those that begin before: a date, or a time with an offset
    #[arg(long, value_name = "DATE|TIME")]
    pub to: Option<String>,
}
