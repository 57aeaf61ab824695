//! A closed loop of keep-alive connections from one thread, and the CPU time of the server meanwhile.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::Result;
use crate::servers::NUMBER_PLACEHOLDER;

const WARM_UP: Duration = Duration::from_millis(200);

pub struct Load<'a> {
    pub address: SocketAddr,
    /// Head and body; the placeholder is replaced in every request.
    pub request: &'a [u8],
    pub expected: &'a str,
    pub connections: usize,
    pub seconds: f64,
    /// Its process id.
    pub server: u32,
}

pub struct Measurement {
    /// Of the server, per request.
    pub cpu_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub per_second: f64,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    sent: Instant,
}

/// The request, with a different number each time.
struct Requests {
    text: Vec<u8>,
    placeholder: Option<usize>,
    number: u64,
}

pub fn run(load: &Load<'_>) -> Result<Measurement> {
    let mut requests = Requests::new(load.request);
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for number in 0..load.connections {
        let stream = std::net::TcpStream::connect(load.address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
        requests.send(&mut stream)?;
        connections.push(Connection { stream, received: Vec::new(), sent: Instant::now() });
    }
    let begun = Instant::now();
    let mut events = Events::with_capacity(256);
    let mut counted: Option<(Instant, u64)> = None;
    let mut times: Vec<Duration> = Vec::new();
    loop {
        poll.poll(&mut events, Some(Duration::from_secs(5)))?;
        if events.is_empty() {
            return Err("no response within five seconds".into());
        }
        let now = Instant::now();
        match counted {
            None if now - begun >= WARM_UP => counted = Some((now, processor_time(load.server))),
            Some((since, cpu)) if now - since >= Duration::from_secs_f64(load.seconds) => {
                let spent = processor_time(load.server) - cpu;
                return Ok(Measurement::new(times, spent, now - since));
            }
            _ => {}
        }
        for event in &events {
            let connection = &mut connections[event.token().0];
            while connection.receive()? {
                let Some(length) = response_length(&connection.received) else { continue };
                check(&connection.received[..length], load.expected)?;
                if counted.is_some() {
                    times.push(connection.sent.elapsed());
                }
                connection.received.drain(..length);
                connection.sent = Instant::now();
                requests.send(&mut connection.stream)?;
            }
        }
    }
}

impl Connection {
    /// Whether more data has arrived.
    fn receive(&mut self) -> Result<bool> {
        let mut chunk = [0; 64 << 10];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err("the server has closed the connection".into()),
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Requests {
    fn new(text: &[u8]) -> Self {
        // Numbers must be unique across runs: a repeated call is answered from its record.
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        let number = 1_000_000_000 + u64::try_from(now % 8_000_000_000).unwrap_or(0);
        Self { placeholder: find(text, NUMBER_PLACEHOLDER.as_bytes()), text: text.to_vec(), number }
    }

    /// A small request on an idle connection is written at once.
    fn send(&mut self, stream: &mut TcpStream) -> Result<()> {
        if let Some(start) = self.placeholder {
            self.number += 1;
            let digits = format!("{:010}", self.number);
            self.text[start..start + NUMBER_PLACEHOLDER.len()]
                .copy_from_slice(&digits.as_bytes()[..NUMBER_PLACEHOLDER.len()]);
        }
        let sent = stream.write(&self.text)?;
        if sent == self.text.len() { Ok(()) } else { Err("a request was not written completely".into()) }
    }
}

impl Measurement {
    fn new(mut times: Vec<Duration>, spent_ns: u64, took: Duration) -> Self {
        times.sort_unstable();
        let count = times.len().max(1) as f64;
        let percentile = |share: f64| {
            let time = times.get((times.len() as f64 * share) as usize).or(times.last());
            time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
        };
        Self {
            cpu_us: spent_ns as f64 / 1e3 / count,
            p50_us: percentile(0.5),
            p99_us: percentile(0.99),
            per_second: count / took.as_secs_f64(),
        }
    }
}

/// The length of a complete response at the start, if there is one.
fn response_length(received: &[u8]) -> Option<usize> {
    let head = find(received, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&received[..head]).ok()?;
    let header = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    if let Some(length) = header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        return (received.len() >= head + length).then_some(head + length);
    }
    // The last chunk is empty.
    header("transfer-encoding")
        .and_then(|_| find(&received[head..], b"\r\n0\r\n\r\n").map(|at| head + at + 7))
}

fn check(response: &[u8], expected: &str) -> Result<()> {
    if response.starts_with(b"HTTP/1.1 200") && find(response, expected.as_bytes()).is_some() {
        return Ok(());
    }
    Err(format!("unexpected response: {}", String::from_utf8_lossy(&response[..response.len().min(900)]))
        .into())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The CPU time of all threads of a process, in nanoseconds.
fn processor_time(process: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let spent = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    spent.sum()
}
