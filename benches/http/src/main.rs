//! Compares the cost of a call with a bare axum handler that parses, validates and responds, and with a plain server on
//! the same MCP library; neither has gates, sessions, records or an audit log.
//!
//!   cargo build --release
//!   cargo run --release --manifest-path benches/http/Cargo.toml
//!   cargo run --release --manifest-path benches/http/Cargo.toml -- --rounds 9 --seconds 2 --only axum,rest
//!   cargo run --release --manifest-path benches/http/Cargo.toml -- --others benches/http/others.json
//!
//! All servers run at once, on one core; the load comes from the other. Every round measures all of them in a new
//! order, and ratios compare servers within one round. The measure is the server's CPU time per request, which is
//! stable on a busy machine as well. Toolwright is the release binary of the repository, with SQLite, audit log and
//! access log; its two tools return a constant, like those of the others.
//!
//! `--others FILE` names more servers: `[{"name", "cmd": [...], "protocol": "mcp 2025-11-25"}]`. They listen on `PORT`
//! and have the tools of `axum_server.rs`.

mod axum_server;
mod load;
mod rmcp_server;
mod servers;
mod workload;

use std::collections::BTreeMap;
use std::error::Error;

use load::Measurement;
use servers::{RunningServer, ServerConfig};
use workload::Workload;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve-axum") => return axum_server::serve(),
        Some("serve-mcp") => return rmcp_server::serve(),
        _ => {}
    }
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let rounds: usize = after("--rounds").map_or(Ok(7), str::parse)?;
    let seconds: f64 = after("--seconds").map_or(Ok(1.5), str::parse)?;
    let connections: usize = after("--connections").map_or(Ok(64), str::parse)?;
    let others = after("--others").map(servers::from_file).transpose()?.unwrap_or_default();
    let only: Option<Vec<&str>> = after("--only").map(|names| names.split(',').collect());
    let is_wanted =
        |server: &ServerConfig| only.as_ref().is_none_or(|only| only.contains(&server.name.as_str()));
    let mut running = Vec::new();
    for server in servers::built_in()?.into_iter().chain(others).filter(is_wanted) {
        running.push(server.start()?);
    }
    let mut all: BTreeMap<(&str, usize), Vec<Measurement>> = BTreeMap::new();
    for workload in &workload::ALL {
        for server in &running {
            server.measure(workload, connections.min(8), 1.0)?;
        }
    }
    for round in 0..rounds {
        for workload in &workload::ALL {
            for number in order(running.len(), round) {
                let measured = running[number].measure(workload, connections, seconds)?;
                all.entry((workload.name, number)).or_default().push(measured);
            }
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    for workload in &workload::ALL {
        show(workload, &running, &all);
    }
    Ok(())
}

/// A different order in each round, the same in each run.
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.rotate_left(round % count.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn show(workload: &Workload, running: &[RunningServer], all: &BTreeMap<(&str, usize), Vec<Measurement>>) {
    let measured = |number: usize| all.get(&(workload.name, number)).map_or(&[][..], Vec::as_slice);
    let named = |name: &str| running.iter().position(|server| server.name() == name);
    println!(
        "\n{:<22} {:>9} {:>8} {:>8} {:>8} {:>7}  {:>16} {:>16}",
        workload.name, "CPU us", "p50 us", "p99 us", "calls/s", "RSS MB", "CPU : axum", "CPU : plain MCP"
    );
    for (number, server) in running.iter().enumerate() {
        let median = |value: fn(&Measurement) -> f64| median(measured(number).iter().map(value).collect());
        let ratio = |base: Option<usize>| {
            let Some(base) = base else { return String::new() };
            let pairs = measured(number).iter().zip(measured(base));
            let ratios: Vec<f64> = pairs.map(|(own, other)| own.cpu_us / other.cpu_us).collect();
            let (least, most) =
                ratios.iter().fold((f64::MAX, 0.0), |(a, b): (f64, f64), r| (a.min(*r), b.max(*r)));
            format!("{:.2} ({least:.2}-{most:.2})", self::median(ratios))
        };
        println!(
            "{:<22} {:>9.1} {:>8.0} {:>8.0} {:>8.0} {:>7.0}  {:>16} {:>16}",
            server.name(),
            median(|measured| measured.cpu_us),
            median(|measured| measured.p50_us),
            median(|measured| measured.p99_us),
            median(|measured| measured.per_second),
            server.resident_mb(),
            ratio(named("axum")),
            ratio(named("plain MCP")),
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
