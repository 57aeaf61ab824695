//! The calls of one model message: together when they only read, one after the other as soon as one writes.

use std::future::poll_fn;
use std::task::Poll;

use toolwright_contract::{Envelope, SideEffects};

use crate::orchestrator::{Orchestrator, ToolCall, unshared};
use crate::store::Backend;

impl Orchestrator {
    /// Runs the calls of one model message: at the same time when none of them writes, otherwise in order. The answers
    /// keep the calls' order.
    pub async fn calls(&self, session: &str, calls: Vec<ToolCall>) -> Vec<Envelope> {
        let toolset = self
            .0
            .store
            .session(session)
            .await
            .ok()
            .flatten()
            .and_then(|session| self.runtime(&session.toolset));
        let writes = |call: &ToolCall| {
            let spec = toolset.as_ref().and_then(|runtime| runtime.toolset().metadata(&call.tool));
            spec.is_some_and(|spec| spec.side_effects == SideEffects::Writes)
        };
        let in_order = calls.iter().any(writes);
        let mut answers = Vec::with_capacity(calls.len());
        let numbered = calls.into_iter().enumerate();
        if in_order {
            for (position, call) in numbered {
                answers.push(unshared(self.call_at(session, call, position, None).await));
            }
            return answers;
        }
        let mut running: Vec<_> =
            numbered.map(|(position, call)| Box::pin(self.call_at(session, call, position, None))).collect();
        let mut done: Vec<Option<Envelope>> = running.iter().map(|_| None).collect();
        poll_fn(|wakeup| {
            let mut waiting = false;
            for (call, done) in running.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
                match call.as_mut().poll(wakeup) {
                    Poll::Ready(envelope) => *done = Some(unshared(envelope)),
                    Poll::Pending => waiting = true,
                }
            }
            if waiting { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        done.into_iter().flatten().collect()
    }
}
