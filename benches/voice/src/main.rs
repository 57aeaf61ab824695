//! Sessions of real-time audio through `toolwright serve`: what the bridge takes for a frame, frames that were dropped,
//! and memory for each session.
//!
//! usage: voice-bench TOOLWRIGHT [SECONDS] [SAMPLE_RATE] [SESSIONS…]
//!
//! The model takes 16,000 samples a second and sends 24,000. SAMPLE_RATE is that of the clients in both directions; 0
//! is that of the model, so that nothing is resampled.

mod model;

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use model::Counts;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

const FRAME: Duration = Duration::from_millis(20);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let program =
        arguments.next().expect("usage: voice-bench TOOLWRIGHT [SECONDS] [SAMPLE_RATE] [SESSIONS…]");
    let seconds: u64 = arguments.next().map_or(20, |text| text.parse().expect("seconds"));
    let rate: u64 = arguments.next().map_or(0, |text| text.parse().expect("a sample rate"));
    let rates = if rate == 0 { (16_000, 24_000) } else { (rate, rate) };
    let mut sessions: Vec<u64> = arguments.map(|text| text.parse().expect("sessions")).collect();
    if sessions.is_empty() {
        sessions = vec![1, 50, 100, 200, 300, 400, 500];
    }
    println!(
        "| sessions | frame p50 | p99 | frames in | of these dropped | frames out | missing | kB each | processor |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for count in sessions {
        measure(&program, seconds, rates, count).await;
    }
}

/// The frames that all clients have sent, and the bytes that they have received.
#[derive(Debug, Default)]
struct Traffic {
    sent: AtomicU64,
    received_bytes: AtomicU64,
}

async fn measure(program: &str, seconds: u64, rates: (u64, u64), count: u64) {
    let counts = Arc::<Counts>::default();
    let url = model::serve(Arc::clone(&counts)).await;
    let directory = tempfile::tempdir().expect("a directory");
    let (server, address) = start(program, directory.path(), &url).await;
    let pid = server.id().expect("it runs");
    let before = resident_kb(pid);
    let traffic = Arc::<Traffic>::default();
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(tokio::spawn(talk(address.clone(), seconds, rates, Arc::clone(&traffic))));
        // The sessions begin over a second, so that their frames do not come at once.
        tokio::time::sleep(Duration::from_millis(1000 / count.max(1))).await;
    }
    tokio::time::sleep(Duration::from_secs(seconds * 3 / 4)).await;
    let each = resident_kb(pid).saturating_sub(before) / count;
    for client in clients {
        client.await.expect("no panic");
    }
    // Frames on the way still arrive.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let metrics = get(&address, "/metrics").await;
    let sent = traffic.sent.load(Ordering::Relaxed);
    let lost = sent.saturating_sub(counts.heard.load(Ordering::Relaxed));
    let said = counts.said.load(Ordering::Relaxed);
    let received = traffic.received_bytes.load(Ordering::Relaxed) / (rates.1 * 2 / 25);
    let dropped = total(&metrics, "toolwright_voice_dropped_frames_total");
    let [p50, p99] = [0.5, 0.99].map(|part| quantile(&metrics, part));
    println!(
        "| {count} | ≤ {p50} | ≤ {p99} | {sent} | {lost} ({dropped} by the bridge) | {said} | {} | {each} | {:.0} % |",
        said.saturating_sub(received),
        processor_seconds(pid) * 100.0 / seconds as f64,
    );
}

/// Talks in real time, and listens until the server has sent everything.
async fn talk(address: String, seconds: u64, rates: (u64, u64), traffic: Arc<Traffic>) {
    let (socket, _) = connect_async(format!("ws://{address}/voice")).await.expect("a connection");
    let (mut sink, mut frames) = socket.split();
    let (input, output) = rates;
    let start =
        json!({ "type": "start", "version": 1, "inputSampleRate": input, "outputSampleRate": output });
    sink.send(Message::text(start.to_string())).await.expect("start");
    let ready = frames.next().await.expect("an answer").expect("a frame");
    assert!(ready.to_text().is_ok_and(|text| text.contains("\"ready\"")), "{ready:?}");
    let mut clock = tokio::time::interval(FRAME);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let mut left = seconds * 50;
    let pcm = Message::Binary([0_u8, 2].repeat((input / 50) as usize).into());
    loop {
        tokio::select! {
            _ = clock.tick() => {
                if left == 0 {
                    break;
                }
                left -= 1;
                sink.send(pcm.clone()).await.expect("the server takes audio");
                traffic.sent.fetch_add(1, Ordering::Relaxed);
            }
            frame = frames.next() => match frame {
                Some(Ok(Message::Binary(audio))) => {
                    traffic.received_bytes.fetch_add(audio.len() as u64, Ordering::Relaxed);
                }
                Some(Ok(_)) => {}
                other => panic!("the session has ended: {other:?}"),
            },
        }
    }
    let _ = sink.send(Message::text(r#"{"type":"stop"}"#)).await;
    while let Some(Ok(frame)) = frames.next().await {
        if let Message::Binary(audio) = frame {
            traffic.received_bytes.fetch_add(audio.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Starts the server; it is killed when it is dropped.
async fn start(program: &str, directory: &Path, url: &str) -> (Child, String) {
    let settings = format!(
        "[agent]\nprovider = \"offline\"\n[server]\nmax_connections = 4096\nmax_connections_per_peer = 2048\n\
         [voice]\nprovider = \"gemini-live\"\nmodel = \"gemini-2.5-live\"\nurl = \"{url}\"\nsessions = 1000\n\
         sessions_per_principal = 1000\n"
    );
    std::fs::write(directory.join("toolwright.toml"), settings).expect("a file");
    std::fs::create_dir(directory.join("tools")).expect("a directory");
    let mut server = Command::new(program)
        .args(["serve", "--listen", "127.0.0.1:0", "--access-log", "false"])
        .current_dir(directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the program");
    let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines();
    while let Some(line) = lines.next_line().await.expect("text") {
        if let Some((_, rest)) = line.split_once("http://") {
            let address: String =
                rest.chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (server, address);
        }
    }
    panic!("the server has not started");
}

async fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("text");
    response
}

fn total(metrics: &str, name: &str) -> u64 {
    let values =
        metrics.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
    values.filter_map(|value| value.parse::<u64>().ok()).sum()
}

/// The upper bound of the bucket that has this part of the frames.
fn quantile(metrics: &str, part: f64) -> String {
    let buckets: Vec<(f64, f64)> = metrics
        .lines()
        .filter(|line| line.starts_with("toolwright_voice_frame_seconds_bucket"))
        .filter_map(|line| {
            let bound = line.split("le=\"").nth(1)?.split('"').next()?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            Some((bound, line.rsplit(' ').next()?.parse().ok()?))
        })
        .collect();
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let found = buckets.iter().find(|(_, count)| *count >= all * part);
    found.map_or_else(|| "?".to_owned(), |(bound, _)| format!("{} µs", bound * 1e6))
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The processor time of the server's threads.
fn processor_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks: f64 = fields[11..13].iter().filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / 100.0
}
