//! The calls of a conversation that run in the background: their tasks, and the results that the log has of them.

use std::collections::HashSet;

use futures_util::future::{pending, select_all};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use toolwright_orchestrator::DeferredResult;
use toolwright_orchestrator::store::{self, ConversationLog};

use crate::agent::Agent;
use crate::conversation::{Conversation, from_entry};
use crate::error::Error;
use crate::event::{Event, EventBody};

/// How many entries are read at a time.
const PAGE: usize = 512;

/// The calls of a session that run in the background, or have run there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BackgroundCalls {
    /// The ids of tasks whose results the log does not have yet.
    pub open_tasks: Vec<String>,
    /// The [`EventBody::ToolFinished`] events with results of tasks, in the order of the log.
    pub results: Vec<Event>,
}

/// Reports ends of tasks of one session in this process.
#[derive(Debug)]
pub struct TaskEnds(broadcast::Receiver<DeferredResult>);

impl Agent {
    /// The tasks of a session that are open, and the results of tasks after a position of the log. First records the
    /// results of tasks that have ended.
    pub async fn background_calls(&self, session: &str, after: u64) -> Result<BackgroundCalls, Error> {
        let record = self.session(session).await?;
        let conversation = self.load_recovered(&record).await?;
        let mut open_tasks = Vec::new();
        for id in tasks_of(&conversation) {
            if self.is_open(id).await? {
                open_tasks.push(id.to_owned());
            }
        }
        let results = self.task_results_after(session, after).await?;
        Ok(BackgroundCalls { open_tasks, results })
    }

    /// Subscribes to the ends of a session's tasks. To miss none, subscribe before [`Self::background_calls`].
    pub fn task_ends(&self, session: &str) -> TaskEnds {
        TaskEnds(self.0.orchestrator.deferred_results_for(session))
    }

    /// Waits until a task of the session has ended, in this process or in another, and no turn holds the log.
    pub async fn wait_for_task_end(&self, session: &str, open_tasks: &[String], ends: &mut TaskEnds) {
        let known = open_tasks.iter().map(|id| self.0.orchestrator.wait_for_task(id));
        let any_known = async {
            match open_tasks.is_empty() {
                true => pending().await,
                false => drop(select_all(known).await),
            }
        };
        tokio::select! {
            () = any_known => {}
            // Also of tasks that were begun after `open_tasks` was read. After missed ends, all are read again.
            end = ends.0.recv() => if matches!(end, Err(RecvError::Closed)) { pending().await },
        }
        if self.0.orchestrator.store().log_writer(session).await.is_ok_and(|writer| writer.is_some()) {
            self.wait_for_running(session).await;
        }
    }

    /// Whether the result of a task is still to come. One whose record is gone will never have any.
    async fn is_open(&self, id: &str) -> store::Result<bool> {
        match self.0.orchestrator.task(id).await? {
            Some(task) if task.has_ended() => Ok(self.0.orchestrator.task_envelope(&task).await?.is_some()),
            task => Ok(task.is_some()),
        }
    }

    async fn task_results_after(&self, session: &str, after: u64) -> store::Result<Vec<Event>> {
        let (mut position, mut in_background, mut results) = (0, HashSet::new(), Vec::new());
        loop {
            let entries = self.0.orchestrator.store().log_entries(session, position, PAGE).await?;
            for entry in &entries {
                let event = from_entry(entry)?;
                position = event.position;
                let EventBody::ToolFinished { result } = &event.body else { continue };
                if result.task.is_some() {
                    in_background.insert(result.call_id.clone());
                } else if in_background.remove(&result.call_id) && event.position > after {
                    results.push(event);
                }
            }
            if entries.len() < PAGE {
                return Ok(results);
            }
        }
    }
}

/// The tasks of the calls that have no other result.
fn tasks_of(conversation: &Conversation) -> impl Iterator<Item = &str> {
    let tools = conversation.turns.iter().flat_map(|turn| turn.reply.tools());
    tools.filter_map(|tool| tool.result.as_ref()?.task.as_deref())
}
