//! Many turns at a time: the memory of each, and how late their chunks come.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::Result;
use crate::client::{Answer, Client};
use crate::model::{self, Script};
use crate::server::Server;
use crate::stats::{percentile_ms, to_floats};

/// Ten seconds of an answer, five chunks a second.
const SCRIPT: Script =
    Script { first: Duration::from_millis(50), interval: Duration::from_millis(200), chunks: 50 };

pub async fn run(counts: &[u64]) -> Result<()> {
    println!(
        "\n{:>8} {:>10} {:>9} {:>9} {:>14} {:>22} {:>20} {:>10}",
        "turns",
        "complete",
        "idle MB",
        "peak MB",
        "KB per turn",
        "first ms: p50, p99",
        "chunk ms: p50, p99",
        "cores"
    );
    for count in counts {
        measure(*count).await?;
    }
    Ok(())
}

async fn measure(count: u64) -> Result<()> {
    let model = model::start(SCRIPT).await?;
    let server = Server::start(model)?;
    // The first turn makes connections and caches; later turns are measured without them.
    Client::connect(server.address).await?.say("warm-up", 0).await?;
    let (idle, spent, begun) = (server.resident_kb(), server.processor_time(), Instant::now());
    let mut turns = JoinSet::new();
    for number in 0..count {
        let address = server.address;
        turns.spawn(async move { Client::connect(address).await?.say(&format!("chat-{number}"), 0).await });
    }
    let (mut peak, mut answers, mut failures) = (idle, Vec::<Answer>::new(), Vec::new());
    let mut samples = tokio::time::interval(Duration::from_millis(100));
    loop {
        tokio::select! {
            _ = samples.tick() => peak = peak.max(server.resident_kb()),
            ended = turns.join_next() => match ended {
                None => break,
                Some(ended) => match ended? {
                    Ok(answer) if answer.chunks.len() + 1 == SCRIPT.chunks => answers.push(answer),
                    Ok(answer) => failures.push(format!("{} chunks", answer.chunks.len() + 1)),
                    Err(error) => failures.push(error.to_string()),
                },
            },
        }
    }
    let cores = (server.processor_time() - spent) as f64 / begun.elapsed().as_nanos() as f64;
    let first = to_floats(answers.iter().map(|answer| answer.first));
    let chunks = to_floats(answers.iter().flat_map(|answer| answer.chunks.clone()));
    println!(
        "{count:>8} {:>10} {:>9.1} {:>9.1} {:>14.1} {:>11.1} {:>10.1} {:>10.2} {:>9.2} {cores:>10.2}",
        answers.len(),
        idle as f64 / 1024.0,
        peak as f64 / 1024.0,
        (peak - idle) as f64 / count as f64,
        percentile_ms(&first, 0.5),
        percentile_ms(&first, 0.99),
        percentile_ms(&chunks, 0.5),
        percentile_ms(&chunks, 0.99),
    );
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} turns failed, the first: {first}", failures.len()).into()),
    }
}
