//! The one end of every execution and of every answered confirmation request: audit entry, metrics, span and log line.
//! Nothing else writes them.

use std::sync::Arc;
use std::time::Duration;

use toolwright_contract::{Envelope, ErrorKind, ExecutionMode, ToolSpec};

use crate::describe::DESCRIBE;
use crate::execution::Execution;
use crate::gate::retrieval;
use crate::metrics::ExceededLimits;
use crate::orchestrator::Orchestrator;
use crate::redaction;
use crate::spans::FinishedCall;
use crate::steps::Steps;
use crate::store::{self, AuditEntry, Backend, SettleOutcome, Settlement};

/// The target of the log lines of calls.
pub const CALL_LOG: &str = "call";
/// The most bytes of the name that a handler gives an audit entry.
const MAX_EVENT_BYTES: usize = 200;

/// How an execution or its confirmation request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecutionEnd {
    Ran,
    /// A background tool's call has stored its task.
    Queued,
    Described,
    Replayed,
    Refused,
    Approved,
    Rejected,
    Expired,
    /// The approved call was refused before it ran.
    Closed,
}

/// The record that the store writes.
pub(crate) enum EndRecord {
    Append(AuditEntry),
    /// The envelope of a stored claim and the audit entry, in one step.
    Settle(Settlement),
}

impl ExecutionEnd {
    /// Its name in the audit log.
    pub fn event(self) -> &'static str {
        match self {
            Self::Ran => "called",
            Self::Queued => "queued",
            Self::Described => "described",
            Self::Replayed => "replayed",
            Self::Refused => "refused",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Closed => "closed",
        }
    }
}

impl Orchestrator {
    /// Writes the audit entry, metrics, span and log line of an end. Returns what the store recorded. The answer to a
    /// confirmation request has no execution: it is audited, but not measured.
    pub(crate) async fn finish(
        &self,
        end: ExecutionEnd,
        execution: Option<(&Execution, &Arc<Envelope>)>,
        record: EndRecord,
    ) -> store::Result<SettleOutcome> {
        let error = execution.and_then(|(_, envelope)| envelope.outcome.as_ref().err());
        let error = error.map(|failure| failure.kind);
        let measured = execution.map(|(execution, _)| (execution, execution.started.elapsed()));
        let entry = match &record {
            EndRecord::Append(entry) => entry,
            EndRecord::Settle(settlement) => &settlement.audit,
        };
        let AuditEntry { session, tool, tool_version, execution_id, .. } = entry;
        tracing::debug!(session, tool, execution_id, event = end.event(), ?error);
        let tool_version = tool_version.clone();
        if let Some((execution, envelope)) = execution {
            self.0.recent_calls.add(execution, end, envelope);
        }
        let live = self.0.call_feed.is_watched().then(|| Arc::new(entry.clone()));
        let recorded = match record {
            EndRecord::Append(entry) => {
                self.0.store.append_audit(entry).await.map(|()| SettleOutcome::Recorded)
            }
            EndRecord::Settle(settlement) => self.0.store.settle(settlement).await,
        };
        match &recorded {
            Ok(SettleOutcome::Recorded | SettleOutcome::AlreadySettled(_) | SettleOutcome::TakenOver) => {}
            Ok(SettleOutcome::Unclaimed) => {
                tracing::error!("could not record the end of a call: its claim is gone")
            }
            Err(error) => tracing::error!("could not write the audit entry: {error}"),
        }
        if let Some((execution, elapsed)) = measured {
            let exceeded = match end {
                ExecutionEnd::Ran => self.exceeded_limits(execution, elapsed),
                _ => ExceededLimits::default(),
            };
            let (name, version) = metrics_row(execution, &tool_version);
            self.0.metrics.update(name, version, |metrics| {
                metrics.count(end, error, elapsed, exceeded);
                metrics.count_duration(end, elapsed);
            });
            self.0.series.count(self.0.clock.now(), (name, version), end, error, elapsed);
            self.report_span(execution, end, error);
            if end == ExecutionEnd::Ran {
                log_call(execution, version, error, elapsed);
            }
        }
        if let Some(entry) = live {
            self.0.call_feed.send(entry);
        }
        recorded
    }

    /// Finishes an execution whose handler did not run.
    pub(crate) async fn finish_without_run(
        &self,
        execution: &Execution,
        envelope: Envelope,
        end: ExecutionEnd,
    ) -> Arc<Envelope> {
        let record = EndRecord::Append(execution.audit_entry(end.event(), &envelope));
        let envelope = Arc::new(envelope);
        // A failure is logged. It does not change the result of a call that has done nothing.
        let _ = self.finish(end, Some((execution, &envelope)), record).await;
        envelope
    }

    /// Writes the audit entries of the handler.
    pub(crate) async fn write_handler_entries(&self, execution: &mut Execution, envelope: &Envelope) {
        for (mut event, mut data) in std::mem::take(&mut execution.handler_entries) {
            event.truncate(event.floor_char_boundary(MAX_EVENT_BYTES));
            redaction::scrub(&mut event, &execution.secrets);
            redaction::scrub_value(&mut data, &execution.secrets);
            let steps = Steps::default();
            let entry =
                AuditEntry { data, steps, ..execution.audit_entry(&format!("handler:{event}"), envelope) };
            if let Err(error) = self.0.store.append_audit(entry).await {
                tracing::error!("could not write an audit entry of a handler: {error}");
            }
        }
    }

    fn report_span(&self, execution: &Execution, end: ExecutionEnd, error: Option<ErrorKind>) {
        let (Some(observer), Some(span)) = (&self.0.observer, execution.span) else { return };
        let runtime = execution.runtime.as_ref();
        observer.finished(&FinishedCall {
            span,
            tool: &execution.tool,
            tool_version: execution.prepared.as_ref().map(|prepared| &*prepared.version),
            registry_version: runtime.map_or("", |runtime| &runtime.toolset().version),
            session: &execution.session.id,
            mode: execution.session.mode,
            execution_id: &execution.id,
            end: match end {
                ExecutionEnd::Replayed => "replayed",
                ExecutionEnd::Refused => "refused",
                ExecutionEnd::Queued => "queued",
                _ => "ran",
            },
            error,
            elapsed: execution.started.elapsed(),
        });
    }

    /// Whether the call took longer than the tool's latency budget, and than the mode's soft limit. Both are logged and
    /// counted. Nobody waits for a task, and a test measures its stubs.
    fn exceeded_limits(&self, execution: &Execution, elapsed: Duration) -> ExceededLimits {
        let Some(prepared) = &execution.prepared else { return ExceededLimits::default() };
        if execution.is_test() || prepared.tool.spec.execution == Some(ExecutionMode::Background) {
            return ExceededLimits::default();
        }
        let (spec, mode) = (&prepared.tool.spec, execution.session.mode);
        let soft_limit = self.0.policy.for_mode(mode).limits.retrieval_soft_limit_ms;
        let exceeded = exceeded_limits(spec, soft_limit, elapsed);
        let (tool, elapsed) = (&execution.tool, elapsed.as_millis());
        if exceeded.latency_budget {
            let budget = &spec.latency_budget_ms;
            tracing::warn!(tool, "took {elapsed} ms, longer than its `latencyBudgetMs` of {budget}");
        }
        if exceeded.soft_limit {
            let name = format!("`[limits.{mode}] retrieval_soft_limit_ms`");
            tracing::warn!(tool, "took {elapsed} ms, longer than the {soft_limit} ms of {name}");
        }
        exceeded
    }
}

/// The log line of a call that ran.
fn log_call(execution: &Execution, version: &str, error: Option<ErrorKind>, elapsed: Duration) {
    let Execution { tool, id, session, prepared, .. } = execution;
    tracing::info!(
        target: CALL_LOG,
        tool,
        category = prepared.as_ref().map(|prepared| prepared.tool.spec.category.as_str()),
        outcome = error.map_or("ok", ErrorKind::as_str),
        duration_ms = (elapsed.as_secs_f64() * 1e6).round() / 1000.0,
        version,
        registry_version = session.registry_version(),
        execution_id = &**id,
        session = session.id,
        "call"
    );
}

/// The soft limit is for retrieval only.
fn exceeded_limits(spec: &ToolSpec, soft_limit_ms: u32, elapsed: Duration) -> ExceededLimits {
    let elapsed = elapsed.as_secs_f64() * 1000.0;
    ExceededLimits {
        latency_budget: spec.latency_budget_ms.as_f64().is_some_and(|budget| elapsed > budget),
        soft_limit: retrieval::is_retrieval(spec) && elapsed > f64::from(soft_limit_ms),
    }
}

/// The tool and version of an execution in the metrics. Names that models invent share one row, so that they cannot
/// fill the memory.
fn metrics_row<'a>(execution: &'a Execution, tool_version: &'a str) -> (&'a str, &'a str) {
    let Execution { tool, runtime, prepared, .. } = execution;
    if prepared.is_some() && !tool_version.is_empty() {
        return (tool, tool_version);
    }
    // It was refused before its tool was prepared.
    if let Some(spec) = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(tool)) {
        return (tool, &spec.version);
    }
    // A tool that is in no toolset has the version of this program.
    (if tool == DESCRIBE { tool } else { "(unknown)" }, env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_latency_budget_and_the_soft_limit_are_told_apart() {
        let spec = |category: &str, budget: u32| -> ToolSpec {
            let effects = if category == "retrieval" { "read_only" } else { "none" };
            serde_json::from_value(json!({
                "toolId": "look", "version": "1.0.0", "description": "Looks.", "category": category,
                "sideEffects": effects, "idempotent": true, "requiresConfirmation": false, "allowedModes": ["text"],
                "latencyBudgetMs": budget, "jsonSchema": Value::Bool(true),
            }))
            .unwrap()
        };
        let exceeded = |category: &str, budget: u32, ms: u64| {
            let exceeded = exceeded_limits(&spec(category, budget), 800, Duration::from_millis(ms));
            (exceeded.latency_budget, exceeded.soft_limit)
        };
        assert_eq!(exceeded("retrieval", 2000, 900), (false, true));
        assert_eq!(exceeded("retrieval", 500, 900), (true, true));
        assert_eq!(exceeded("retrieval", 500, 700), (true, false));
        assert_eq!(exceeded("retrieval", 2000, 800), (false, false));
        assert_eq!(exceeded("utility", 500, 900), (true, false));
        assert_eq!(exceeded("utility", 2000, 900), (false, false));
    }
}
