//! The build benchmark: `toolwright build` cold, without a change and with one change, against a builder on Node.
//!
//!   cargo bench --bench build                          10,000 tools, 3 rounds
//!   cargo bench --bench build -- --tools 1000 --rounds 5 --no-node
//!
//! Every round runs all contestants in another order; ratios are taken inside a round, so that a noisy machine
//! disturbs both sides alike. Node's packages are installed by `npm ci` on first use.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "build/generate.rs"]
mod generate;
#[path = "build/node.rs"]
mod node;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const NAMES: [&str; 4] =
    ["node, cold", "toolwright, cold", "toolwright, nothing changed", "toolwright, one tool changed"];

#[derive(Clone, Copy, Default)]
struct Sample {
    wall: f64,
    cpu: f64,
    peak_mb: f64,
}

struct Bench {
    tools: PathBuf,
    out: PathBuf,
    node_out: PathBuf,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, default: usize| -> usize {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (count, rounds) = (number("--tools", 10_000), number("--rounds", 3));
    let with_node = !arguments.iter().any(|argument| argument == "--no-node");
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("build-bench-{count}"));
    let bench =
        Bench { tools: work.join("tools"), out: work.join("ours.json"), node_out: work.join("node.json") };
    if !work.join("complete").exists() {
        eprintln!("generating {count} tools in {}", work.display());
        let _ = fs::remove_dir_all(&work);
        generate::generate(&bench.tools, count)?;
        fs::write(work.join("complete"), "")?;
    }
    if with_node {
        node::install_packages()?;
    }
    let contestants: Vec<usize> = (0..NAMES.len()).filter(|at| with_node || *at > 0).collect();
    let mut samples = vec![[Sample::default(); 4]; rounds];
    for (round, row) in samples.iter_mut().enumerate() {
        for step in 0..contestants.len() {
            let contestant = contestants[(step + round) % contestants.len()];
            row[contestant] = bench.run(contestant)?;
            eprintln!("round {} {:<30} {:>8.3} s", round + 1, NAMES[contestant], row[contestant].wall);
        }
    }
    report(count, &contestants, &samples);
    Ok(())
}

impl Bench {
    fn run(&self, contestant: usize) -> Result<Sample> {
        match contestant {
            0 => {
                let script = node::script("build.mjs");
                measure(Command::new("node").arg(script).arg(&self.tools).arg(&self.node_out))
            }
            1 => measure(self.build().arg("--no-cache")),
            2 => {
                // The first one makes the cache, the second one is measured.
                self.build().arg("--quiet").status()?;
                measure(&mut self.build())
            }
            _ => {
                self.build().arg("--quiet").status()?;
                self.change_one()?;
                measure(&mut self.build())
            }
        }
    }

    fn build(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
        command.arg("build").arg(&self.tools).arg("--out").arg(&self.out);
        command
    }

    /// A change that lasts: the next cold build has it too.
    fn change_one(&self) -> Result<()> {
        let dir = fs::read_dir(&self.tools)?.next().ok_or("no tools")??.path();
        let path = dir.join("doc.md");
        let text = fs::read_to_string(&path)?;
        let changed = match text.strip_suffix(" Changed.\n") {
            Some(before) => format!("{before}\n"),
            None => format!("{} Changed.\n", text.trim_end()),
        };
        Ok(fs::write(path, changed)?)
    }
}

fn measure(command: &mut Command) -> Result<Sample> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let (id, is_over) = (child.id(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // Rarely, so that watching does not take part in the race.
        let watcher = scope.spawn(|| {
            let mut sample = Sample::default();
            while !is_over.load(Ordering::Relaxed) {
                observe(id, &mut sample);
                std::thread::sleep(Duration::from_millis(10));
            }
            sample
        });
        let status = child.wait()?;
        let wall = started.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        let sample = watcher.join().map_err(|_| "the watcher failed")?;
        if status.success() {
            Ok(Sample { wall, ..sample })
        } else {
            Err(format!("{command:?} failed: {status}").into())
        }
    })
}

/// Processor time (user and system) and peak memory, as far as the process has come.
fn observe(process: u32, sample: &mut Sample) {
    let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    sample.cpu = sample.cpu.max((ticks(11) + ticks(12)) / 100.0);
    let peak = read("status")
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<f64>().ok());
    sample.peak_mb = sample.peak_mb.max(peak.unwrap_or(0.0) / 1024.0);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn report(count: usize, contestants: &[usize], samples: &[[Sample; 4]]) {
    let cores = std::thread::available_parallelism().map_or(0, Into::into);
    println!("\nbuild of {count} tools, {} rounds, {cores} cores (medians)\n", samples.len());
    println!("{:<30} {:>9} {:>9} {:>10}", "", "wall", "CPU", "peak");
    for &at in contestants {
        let of = |get: fn(&Sample) -> f64| median(samples.iter().map(|row| get(&row[at])).collect());
        println!(
            "{:<30} {:>7.3} s {:>7.2} s {:>7.0} MB",
            NAMES[at],
            of(|s| s.wall),
            of(|s| s.cpu),
            of(|s| s.peak_mb)
        );
    }
    println!();
    let ratio = |name: &str, get: &dyn Fn(&[Sample; 4]) -> f64, unit: &str| {
        let mut ratios: Vec<f64> = samples.iter().map(get).collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios.first().copied().unwrap_or(0.0), ratios.last().copied().unwrap_or(0.0));
        println!("{name:<44} {:>6.1}{unit}   ({low:.1} to {high:.1})", median(ratios));
    };
    if contestants.contains(&0) {
        ratio("Node's wall time / ours, cold", &|row| row[0].wall / row[1].wall, " x");
    }
    ratio("nothing changed / cold", &|row| 100.0 * row[2].wall / row[1].wall, " %");
    ratio("one tool changed / cold", &|row| 100.0 * row[3].wall / row[1].wall, " %");
    ratio("cores used, cold (CPU / wall)", &|row| row[1].cpu / row[1].wall, "  ");
}
