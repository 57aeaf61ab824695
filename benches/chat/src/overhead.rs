//! One turn at a time: what the server adds to the first token, and to each chunk after it.

use std::time::Duration;

use crate::Result;
use crate::client::{Answer, Client};
use crate::model::{self, Script};
use crate::server::Server;
use crate::stats::{percentile_ms, to_floats};

const NAMES: [&str; 3] = ["direct", "new chat", "next message"];
const WARM_UP: usize = 20;

pub async fn run(rounds: usize, first_ms: u64) -> Result<()> {
    let script =
        Script { first: Duration::from_millis(first_ms), interval: Duration::from_millis(3), chunks: 20 };
    let address = model::start(script).await?;
    let server = Server::start(address)?;
    let mut direct = Client::connect(address).await?;
    let mut through = Client::connect(server.address).await?;
    let mut answers: [Vec<Answer>; 3] = Default::default();
    let mut spent = 0;
    for round in 0..rounds + WARM_UP {
        for kind in order(round) {
            let before = server.processor_time();
            let answer = match kind {
                0 => direct.ask().await?,
                1 => through.say(&format!("chat-{round}"), 0).await?,
                // A chat of ten messages, and then another.
                _ => through.say(&format!("long-{}", round / 10), round).await?,
            };
            if round >= WARM_UP {
                answers[kind].push(answer);
                spent += if kind == 0 { 0 } else { server.processor_time() - before };
            }
        }
    }
    println!("\nThe model's first chunk after {first_ms} ms, 20 chunks, {rounds} rounds");
    println!(
        "{:<14} {:>38}   {:>38}",
        "", "first token ms: p50, p95, added p50", "chunk ms: p50, p95, added p50"
    );
    for (kind, name) in NAMES.iter().enumerate() {
        let first = to_floats(answers[kind].iter().map(|answer| answer.first));
        let chunks = to_floats(answers[kind].iter().flat_map(|answer| answer.chunks.clone()));
        let added = difference(&answers[kind], &answers[0], |answer| answer.first as f64);
        let added_chunk = difference(&answers[kind], &answers[0], mean_chunk);
        println!(
            "{name:<14} {:>12.2} {:>12.2} {:>12.2}   {:>12.3} {:>12.3} {:>12.3}",
            percentile_ms(&first, 0.5),
            percentile_ms(&first, 0.95),
            added,
            percentile_ms(&chunks, 0.5),
            percentile_ms(&chunks, 0.95),
            added_chunk,
        );
    }
    println!("processor time of a turn in the server: {:.2} ms", spent as f64 / 1e6 / (2 * rounds) as f64);
    Ok(())
}

/// The median of the differences within the rounds, in milliseconds.
fn difference(own: &[Answer], direct: &[Answer], value: impl Fn(&Answer) -> f64) -> f64 {
    let differences: Vec<f64> =
        own.iter().zip(direct).map(|(own, direct)| value(own) - value(direct)).collect();
    percentile_ms(&differences, 0.5)
}

fn mean_chunk(answer: &Answer) -> f64 {
    answer.chunks.iter().sum::<u64>() as f64 / answer.chunks.len().max(1) as f64
}

/// A different order in each round, the same in each run.
fn order(round: usize) -> [usize; 3] {
    let mut order = [0, 1, 2];
    order.rotate_left(round % 3);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}
