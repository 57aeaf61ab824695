//! The runtime benchmark: start-up of 12 and of 10,000 tools, beside Node; what a call of a handler costs; what the
//! orchestrator around it costs.
//!
//!   cargo bench --bench runtime                                all sections, 5 rounds
//!   cargo bench --bench runtime -- startup --rounds 3 --no-node
//!   cargo bench --bench runtime -- calls --millis 1000 --json
//!
//! Every round runs all contestants in another order, and medians are taken over the rounds. Start-up is measured in
//! child processes, which this program starts with `--child`. On a busy machine only the CPU time is meaningful.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "runtime/calls.rs"]
mod calls;
#[path = "runtime/case.rs"]
mod case;
#[path = "runtime/child.rs"]
mod child;
#[path = "runtime/clock.rs"]
mod clock;
#[path = "build/generate.rs"]
mod generate;
#[path = "build/node.rs"]
mod node;
#[path = "runtime/orchestrator.rs"]
mod orchestrator;
#[path = "runtime/report.rs"]
mod report;
#[path = "runtime/startup.rs"]
mod startup;
#[path = "runtime/support.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use report::Section;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Options {
    sections: Vec<String>,
    rounds: usize,
    /// How long each kind of call is repeated in a round.
    time: Duration,
    with_node: bool,
    as_json: bool,
}

fn main() -> Result<()> {
    toolwright::orchestrator::run_if_worker();
    // The program does it, too.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, what, rest @ ..] = arguments.as_slice()
        && (flag.as_str(), what.as_str()) == ("--child", "load")
    {
        return child::load(rest);
    }
    let options = Options::parse(arguments)?;
    let mut sections: Vec<Section> = Vec::new();
    for name in &options.sections {
        sections.push(match name.as_str() {
            "startup" => startup::run(&options)?,
            "calls" => calls::run(&options)?,
            _ => orchestrator::run(&options)?,
        });
    }
    if options.as_json {
        println!("{}", report::json(&sections));
    } else {
        sections.iter().for_each(Section::print);
    }
    Ok(())
}

impl Options {
    fn parse(arguments: Vec<String>) -> Result<Self> {
        let time = Duration::from_millis(400);
        let mut options = Self { sections: Vec::new(), rounds: 5, time, with_node: true, as_json: false };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<usize> {
                let text = arguments.next().ok_or_else(|| format!("{argument} needs a number"))?;
                Ok(text.parse::<usize>().map_err(|error| format!("{argument} {text}: {error}"))?.max(1))
            };
            match argument.as_str() {
                "--rounds" => options.rounds = number()?,
                "--millis" => options.time = Duration::from_millis(number()? as u64),
                "--no-node" => options.with_node = false,
                "--json" => options.as_json = true,
                // Cargo passes it.
                "--bench" => {}
                "startup" | "calls" | "orchestrator" => options.sections.push(argument),
                other => {
                    return Err(format!(
                        "`{other}` is neither a section (startup, calls, orchestrator) nor a flag"
                    )
                    .into());
                }
            }
        }
        if options.sections.is_empty() {
            options.sections = ["startup", "calls", "orchestrator"].map(str::to_owned).to_vec();
        }
        Ok(options)
    }
}
