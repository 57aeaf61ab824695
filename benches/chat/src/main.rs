//! The cost of the agent beside a direct client of the model: time to the first token, time of each chunk, memory of a
//! turn.
//!
//!   cargo build --release
//!   cargo run --release --manifest-path benches/chat/Cargo.toml
//!   cargo run --release --manifest-path benches/chat/Cargo.toml -- --rounds 500 --first-ms 0,50
//!   cargo run --release --manifest-path benches/chat/Cargo.toml -- --only curve --turns 100,1000
//!
//! A scripted model in this process streams chunks with the time at which each was sent. A client reads them directly
//! from the model, and through the release binary of the repository (SQLite on disk, access log on): the first message
//! of a new chat, and the next message of a chat. The three are interleaved, and differences are between requests of
//! one round. The curve starts a new server for each number of turns.

mod client;
mod curve;
mod model;
mod overhead;
mod server;
mod stats;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let numbers = |flag: &str, default: &str| -> Result<Vec<u64>> {
        after(flag).unwrap_or(default).split(',').map(|number| Ok(number.parse()?)).collect()
    };
    let rounds: usize = after("--rounds").map_or(Ok(300), str::parse)?;
    let only = after("--only");
    if only.is_none_or(|only| only == "overhead") {
        for first_ms in numbers("--first-ms", "0,50")? {
            overhead::run(rounds, first_ms).await?;
        }
    }
    if only.is_none_or(|only| only == "curve") {
        curve::run(&numbers("--turns", "100,250,500,1000")?).await?;
    }
    Ok(())
}
