//! The process in which start-up is measured: loads an artifact, makes the first calls, and prints the times.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolwright::contract::Mode;
use toolwright::orchestrator::session::NewSession;
use toolwright::orchestrator::{CallRequest, Orchestrator, Runtime, ToolCall};
use toolwright::registry::toolset::Toolset;

use crate::{Result, case, clock};

/// Until the first worker is ready.
const SETTLING: Duration = Duration::from_millis(50);

/// `ARTIFACT SINCE TOOL ARGS TOOL ARGS`; `SINCE` is the monotonic clock before this process was started.
pub fn load(arguments: &[String]) -> Result<()> {
    let [artifact, since, calls @ ..] = arguments else {
        return Err("--child load: missing arguments".into());
    };
    let since = Duration::from_nanos(since.parse()?);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let sample = tokio.block_on(measure(Path::new(artifact), since, calls))?;
    println!("{}", Value::Object(sample));
    Ok(())
}

async fn measure(artifact: &Path, since: Duration, calls: &[String]) -> Result<Map<String, Value>> {
    let engine = case::engine()?;
    engine.warm_up()?;
    let toolset = Arc::new(Toolset::load(artifact)?);
    let runtime = Runtime::builder(toolset, artifact.parent().unwrap_or(Path::new(".")));
    let runtime = runtime.engine(engine).build();
    let orchestrator = Orchestrator::builder(runtime).build()?;
    let (cpu, wall) = (clock::cpu(), clock::monotonic().saturating_sub(since));
    let mut sample = Map::new();
    sample.insert("ready_cpu_ms".to_owned(), json!(clock::millis(cpu)));
    sample.insert("ready_wall_ms".to_owned(), json!(clock::millis(wall)));
    sample.insert("ready_rss_mb".to_owned(), json!(clock::memory_mb("VmRSS")));
    for (key, call) in ["first_call_ms", "next_call_ms"].into_iter().zip(calls.chunks_exact(2)) {
        let (tool, args) = (call[0].clone(), serde_json::from_str(&call[1])?);
        let session = NewSession::new("bench", Mode::Text);
        let request = CallRequest::new(session, ToolCall { id: None, tool, args });
        let started = Instant::now();
        let envelope = orchestrator.call(request).await;
        sample.insert(key.to_owned(), json!(clock::millis(started.elapsed())));
        if let Err(failure) = &envelope.outcome {
            return Err(format!("{}: {failure:?}", call[0]).into());
        }
    }
    tokio::time::sleep(SETTLING).await;
    sample.insert("peak_rss_mb".to_owned(), json!(clock::memory_mb("VmHWM")));
    Ok(sample)
}
