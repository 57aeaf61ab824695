//! `toolwright calendar`: lists and exports the booked events.

use anyhow::Result;
use clap::{Args, Subcommand};
use toolwright_calendar::{EventList, EventRow};
use toolwright_contract::escape::escape;

use crate::args::Format;
use crate::config::Config;
use crate::output::{self, Failure};

pub const EXAMPLES: &str = "Examples:
  toolwright calendar list
  toolwright calendar list --from 2026-03-02 --to 2026-03-09 --format json
  toolwright calendar export > events.ics";

#[derive(Debug, Subcommand)]
pub enum CalendarCommand {
    /// List the events, the earliest first
    #[command(after_help = "Examples:
  toolwright calendar list
  toolwright calendar list --from 2026-03-02 --format json")]
    List(Period),
    /// Print the events as iCalendar (.ics), for import into other programs
    #[command(after_help = "Examples:
  toolwright calendar export > events.ics
  toolwright calendar export --from 2026-03-01 --to 2026-04-01 > march.ics")]
    Export(Period),
}

#[derive(Debug, Args)]
pub struct Period {
    /// Only events that begin then or later: a date, or a time with an offset
    #[arg(long, value_name = "DATE|TIME")]
    from: Option<String>,
    /// Only events that begin before: a date, or a time with an offset
    #[arg(long, value_name = "DATE|TIME")]
    to: Option<String>,
}

pub fn run(config: &Config, command: &CalendarCommand) -> Result<()> {
    match command {
        CalendarCommand::List(period) => list(config, &read(config, period)?),
        CalendarCommand::Export(period) => {
            output::print(read(config, period)?.to_ics());
            Ok(())
        }
    }
}

fn read(config: &Config, period: &Period) -> Result<EventList, Failure> {
    let (from, to) = (period.from.as_deref(), period.to.as_deref());
    EventList::read(&config.calendar_file(), &config.settings.calendar, from, to).map_err(|error| {
        let help =
            "write dates such as --from 2026-03-02 --to 2026-03-09; their time zone is `[calendar] timezone`";
        Failure::usage(error, help)
    })
}

fn list(config: &Config, listing: &EventList) -> Result<()> {
    if config.format == Format::Json {
        return output::print_json_pretty(&listing.to_json());
    }
    let rows = listing.rows();
    if rows.is_empty() {
        output::message("no events; `toolwright call calendar_propose_event` proposes times for one");
    }
    if !rows.is_empty() {
        let header = ["START", "END", "TITLE", "ATTENDEES", "ID", "LINK"];
        output::print_table(header, rows.iter().map(to_row).collect());
    }
    Ok(())
}

/// Titles may come from a model.
fn to_row(row: &EventRow) -> [String; 6] {
    let EventRow { id, title, start, end, attendees, conference } = row;
    let link = conference.as_deref().map(|link| escape(link).into_owned()).unwrap_or_default();
    let people = attendees.join(", ");
    let (title, people) = (escape(title).into_owned(), escape(&people).into_owned());
    [start.to_string(), end.to_string(), title, people, id.clone(), link]
}
