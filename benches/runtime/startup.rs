//! Start-up: time until a process is ready and until its first calls end, compared with a runtime on Node.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::{Column, Goal, Row, Section};
use crate::{Options, Result, clock, node, support};

const COLUMNS: &[Column] = &[
    Column { key: "ready_cpu_ms", title: "CPU to ready", unit: "ms", digits: 1 },
    Column { key: "ready_wall_ms", title: "wall", unit: "ms", digits: 1 },
    Column { key: "ready_rss_mb", title: "RSS, ready", unit: "MB", digits: 1 },
    Column { key: "peak_rss_mb", title: "RSS, peak", unit: "MB", digits: 1 },
    Column { key: "first_call_ms", title: "first call", unit: "ms", digits: 2 },
    Column { key: "next_call_ms", title: "next tool's", unit: "ms", digits: 2 },
];

/// The first call of the process also starts the engine; the next one only loads another tool.
const GOALS: &[Goal] = &[
    Goal { row: SMALL, key: "ready_cpu_ms", most: 40.0 },
    Goal { row: LARGE, key: "ready_cpu_ms", most: 150.0 },
    Goal { row: SMALL, key: "peak_rss_mb", most: 40.0 },
    Goal { row: LARGE, key: "peak_rss_mb", most: 200.0 },
    Goal { row: SMALL, key: "first_call_ms", most: 15.0 },
    Goal { row: SMALL, key: "next_call_ms", most: 15.0 },
    Goal { row: LARGE, key: "first_call_ms", most: 15.0 },
    Goal { row: LARGE, key: "next_call_ms", most: 15.0 },
];

const SMALL: &str = "toolwright, 12 tools";
const LARGE: &str = "toolwright, 10,000 tools";
const NODE_EAGER_LARGE: &str = "node eager, 10,000 tools";

/// For two generated tools, both of them searches.
const ARGS: &str =
    r#"{"query": "latest record", "filters": {"status": "open", "tags": ["alpha"]}, "top_k": 3}"#;

enum Program {
    Toolwright,
    Node { when: &'static str },
}

struct Contestant {
    name: &'static str,
    program: Program,
    artifact: PathBuf,
    /// The two tools that are called.
    tools: [String; 2],
}

pub fn run(options: &Options) -> Result<Section> {
    if options.with_node {
        node::install_packages().map_err(|error| error.to_string())?;
    }
    let contestants = contestants(options.with_node)?;
    let mut rows: Vec<Row> = contestants.iter().map(|contestant| Row::new(contestant.name)).collect();
    for round in 0..options.rounds {
        for step in 0..contestants.len() {
            let at = (step + round) % contestants.len();
            let contestant = &contestants[at];
            // It takes almost a minute.
            if round > 0 && contestant.name == NODE_EAGER_LARGE {
                continue;
            }
            let sample = contestant.measure()?;
            let cpu = sample.get("ready_cpu_ms").map_or_else(String::new, ToString::to_string);
            eprintln!("round {} {:<30} {cpu} ms CPU", round + 1, contestant.name);
            rows[at].samples.push(sample);
        }
    }
    Ok(Section { name: "startup", rounds: options.rounds, columns: COLUMNS, rows, goals: GOALS })
}

fn contestants(with_node: bool) -> Result<Vec<Contestant>> {
    let mut found = Vec::new();
    let (small, large) = (support::generated(12)?, support::generated(10_000)?);
    let mut add = |name, program, artifact: &Path| -> Result<()> {
        let tools = [support::id_of(artifact, 0)?, support::id_of(artifact, 1)?];
        found.push(Contestant { name, program, artifact: artifact.to_owned(), tools });
        Ok(())
    };
    add(SMALL, Program::Toolwright, &small)?;
    add(LARGE, Program::Toolwright, &large)?;
    if with_node {
        add("node eager, 12 tools", Program::Node { when: "eager" }, &small)?;
        add("node lazy, 10,000 tools", Program::Node { when: "lazy" }, &large)?;
        add(NODE_EAGER_LARGE, Program::Node { when: "eager" }, &large)?;
    }
    Ok(found)
}

impl Contestant {
    fn measure(&self) -> Result<crate::report::Sample> {
        let mut command = match self.program {
            Program::Toolwright => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--child", "load"]);
                command
            }
            Program::Node { when } => {
                let mut command = Command::new("node");
                command.arg(node::script("load.mjs")).arg(when);
                command
            }
        };
        command.arg(&self.artifact).arg(clock::monotonic().as_nanos().to_string());
        for tool in &self.tools {
            command.args([tool, ARGS]);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{command:?} failed: {}", output.status).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
