//! `toolwright calendar`: the events that were booked, listed and exported.

use std::process::ExitCode;

use anyhow::Result;
use toolwright_calendar::{Listed, Listing};

use crate::args::{Calendar, Common, During, Format};
use crate::config::Config;
use crate::output::{self, Failure};

pub fn run(common: &Common, what: &Calendar) -> Result<ExitCode> {
    let config = Config::load(common, None)?;
    match what {
        Calendar::List(during) => list(common, &read(&config, during)?)?,
        Calendar::Export(during) => output::data(read(&config, during)?.to_ics()),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(config: &Config, during: &During) -> Result<Listing, Failure> {
    let (from, to) = (during.from.as_deref(), during.to.as_deref());
    Listing::read(&config.calendar_file(), &config.calendar, from, to).map_err(|error| {
        let help = "dates are of the zone in `[calendar] timezone`: --from 2026-03-02 --to 2026-03-09";
        Failure::usage(error, help)
    })
}

fn list(common: &Common, listing: &Listing) -> Result<()> {
    if common.format == Format::Json {
        output::data_line(serde_json::to_string_pretty(&listing.to_json())?);
        return Ok(());
    }
    let rows = listing.rows();
    if rows.is_empty() {
        output::message("no events; `toolwright call calendar_propose_event` is the way to the first one");
    }
    rows.iter().for_each(|row| output::data_line(line(row)));
    Ok(())
}

/// Titles may come from a model.
fn line(row: &Listed) -> String {
    let Listed { id, title, start, end, attendees, conference } = row;
    let link = conference.as_deref().map(|link| format!("  {}", output::plain(link))).unwrap_or_default();
    let (title, people) = (output::plain(title), output::plain(&attendees.join(", ")));
    format!("{start}–{end}  \x1b[1m{title}\x1b[0m  {people}  \x1b[2m{id}\x1b[0m{link}")
}
