//! Plays steps on a fixture. Each caller is a task of its own; all tasks share one thread, so that events have an
//! order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet, yield_now};
use toolwright_contract::Envelope;
use toolwright_orchestrator::CallRequest;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::store::{AuditRow, Backend};

use crate::history::{Event, History, Replied, Task};
use crate::steps::{Reply, SESSIONS, Sender, Step, TestCall, UserAnswer};
use crate::support::{Fixture, session};

/// Longer than any test that does not hang.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLLS: usize = 100;

pub struct Player {
    pub fixture: Fixture,
    /// How long other tasks run at a time.
    pace: Pace,
    running: JoinSet<()>,
    /// The callers that may disconnect.
    present: Vec<(Task, AbortHandle)>,
    tasks: usize,
    /// A token, its confirmation request and its session.
    tokens: Vec<(String, String, usize)>,
    /// How much of the history has been searched for tokens.
    seen: usize,
}

/// How other tasks get time to run.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// Everything is in memory: yielding is enough.
    Turns,
    /// A disk is involved.
    Milliseconds,
}

/// The outcome of a run, after all tasks have ended.
pub struct Played {
    pub events: Vec<Event>,
    pub audit: Vec<AuditRow>,
    /// Approvals that never ran: session and call.
    pub unused_approvals: Vec<(String, String)>,
}

impl Player {
    pub fn new(fixture: Fixture, pace: Pace) -> Self {
        let (present, tokens) = (Vec::new(), Vec::new());
        Self { fixture, pace, running: JoinSet::new(), present, tasks: 0, tokens, seen: 0 }
    }

    /// Plays the steps, waits for all tasks, and sends all calls again.
    pub async fn play(mut self, steps: &[Step]) -> Played {
        for step in steps {
            self.step(step).await;
        }
        self.finish_tasks().await;
        // By now, every call has a result.
        let sent = self.fixture.history.events().into_iter().filter_map(|event| match event {
            Event::Sent { session, test_call, .. } => Some((session, test_call)),
            _ => None,
        });
        let again: std::collections::BTreeSet<_> = sent.collect();
        for (session, test_call) in again {
            self.call(session, vec![test_call], false);
            self.finish_tasks().await;
        }
        self.played().await
    }

    async fn played(self) -> Played {
        let store = self.fixture.orchestrator.store();
        let mut approved = store.approved_confirmations().await.unwrap();
        // An approval whose sender disconnected may still be running.
        for _ in 0..MAX_POLLS {
            if approved.is_empty() {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            approved = store.approved_confirmations().await.unwrap();
        }
        let unused_approvals =
            approved.iter().map(|asked| (asked.session.clone(), asked.execution.clone())).collect();
        store.flush().await.unwrap();
        let audit = store.audit_rows(0, usize::MAX >> 1).await.unwrap();
        Played { events: self.fixture.history.events(), audit, unused_approvals }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Call(session, test_call) => self.call(*session, vec![*test_call], false),
            Step::Message(session, test_calls) => self.call(*session, test_calls.clone(), true),
            Step::Disconnect(which) => self.disconnect(*which),
            Step::Open(count) => self.fixture.gate.add_permits(*count),
            Step::Turn(number) => {
                self.fixture.orchestrator.begin_turn(&session(*number)).await.unwrap();
                self.fixture.history.add(Event::Turn { session: *number });
            }
            Step::Answer(reply) => self.reply(reply),
            Step::Pass(milliseconds) => self.fixture.clock.advance(*milliseconds),
            Step::Sweep => self.fixture.orchestrator.sweep().await.unwrap(),
            Step::Wait(times) => self.run_other_tasks(*times).await,
        }
    }

    async fn run_other_tasks(&self, times: usize) {
        for _ in 0..times {
            match self.pace {
                Pace::Turns => yield_now().await,
                Pace::Milliseconds => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    fn task(&mut self) -> Task {
        self.tasks += 1;
        self.tasks
    }

    fn call(&mut self, number: usize, test_calls: Vec<TestCall>, is_message: bool) {
        let (task, history) = (self.task(), Arc::clone(&self.fixture.history));
        let orchestrator = self.fixture.orchestrator.clone();
        let begun = TaskGuard::new(task, &history);
        let handle = self.running.spawn(async move {
            for test_call in &test_calls {
                history.add(Event::Sent { task, session: number, test_call: *test_call });
            }
            let envelopes = if is_message {
                let id = session(number);
                let loaded = orchestrator.session(&id).await.unwrap().unwrap();
                let request = |(position, call): (usize, &TestCall)| {
                    CallRequest::new(&id, call.call()).position(position)
                };
                let requests = test_calls.iter().enumerate().map(request).collect();
                orchestrator.calls(&loaded, requests, |_, _| {}).await
            } else {
                vec![orchestrator.call(CallRequest::new(&session(number), test_calls[0].call())).await]
            };
            begun.done(Event::Answered { task, envelopes });
        });
        self.present.push((task, handle));
    }

    fn disconnect(&mut self, which: usize) {
        self.present.retain(|(_, handle)| !handle.is_finished());
        if !self.present.is_empty() {
            let (_, handle) = self.present.swap_remove(which % self.present.len());
            handle.abort();
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.find_tokens();
        let Some(count) = self.tokens.len().checked_sub(1) else { return };
        let (mut token, confirmation, mut number) = self.tokens[reply.token % (count + 1)].clone();
        match reply.how {
            Sender::Genuine => {}
            Sender::WithAnotherSecret => token = format!("{confirmation}.{}", "0".repeat(64)),
            Sender::FromAnotherSession => number = (number + 1) % SESSIONS,
        }
        let (task, history) = (self.task(), Arc::clone(&self.fixture.history));
        let (orchestrator, clock) = (self.fixture.orchestrator.clone(), self.fixture.clock.clone());
        let (answer, is_genuine) = (reply.answer, reply.how == Sender::Genuine);
        let begun = TaskGuard::new(task, &history);
        let handle = self.running.spawn(async move {
            let reply = Replied { confirmation, answer, token: token.clone(), is_genuine, now: clock.now() };
            history.add(Event::Replied { task, reply });
            let session = session(number);
            let approver = Approver {
                token: &token,
                proof: AnswerProof::Token,
                session: &session,
                client_id: &session,
                by: "mira",
                principal: None,
            };
            let answered = match answer {
                UserAnswer::Approve => orchestrator.approve(&approver, None).await,
                UserAnswer::ApproveEdited => {
                    orchestrator.approve(&approver, Some(serde_json::json!({ "edited": true }))).await
                }
                UserAnswer::Reject => orchestrator.reject(&approver, None).await,
            };
            begun.done(match answered {
                Ok(envelope) => Event::Accepted { task, envelope },
                Err(Error::Refused | Error::Answered | Error::Expired | Error::WrongToken) => {
                    Event::Refused { task }
                }
                Err(error) => panic!("{error}"),
            });
        });
        self.present.push((task, handle));
    }

    /// Collects the tokens that were issued so far.
    fn find_tokens(&mut self) {
        let events = self.fixture.history.events();
        for event in &events[self.seen..] {
            let Event::Answered { task, envelopes } = event else { continue };
            let of = events.iter().find_map(|event| match event {
                Event::Sent { task: sent, session, .. } if sent == task => Some(*session),
                _ => None,
            });
            for (token, confirmation) in envelopes.iter().filter_map(|envelope| token(envelope)) {
                self.tokens.push((token, confirmation, of.unwrap()));
            }
        }
        self.seen = events.len();
    }

    /// Waits until all tasks have ended.
    async fn finish_tasks(&mut self) {
        self.fixture.gate.add_permits(10_000);
        let end = async {
            while let Some(ended) = self.running.join_next().await {
                if let Err(error) = ended {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
            // Writes continue without their caller.
            while !self.fixture.is_idle() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            assert!(
                self.fixture.orchestrator.wait_until_idle(TIMEOUT).await,
                "work without a caller never ends"
            );
        };
        tokio::time::timeout(TIMEOUT, end).await.expect("a task never ends");
        self.present.clear();
    }
}

/// The token and id of the confirmation request, if the envelope has one.
pub fn token(envelope: &Envelope) -> Option<(String, String)> {
    let request = envelope.outcome.as_ref().err()?.confirmation.as_ref()?;
    Some((request.token.as_ref()?.reveal().to_owned(), request.confirmation_id.clone()))
}

/// Adds `Disconnected` to the history unless its task was done.
struct TaskGuard {
    task: Task,
    history: Option<Arc<History>>,
}

impl TaskGuard {
    fn new(task: Task, history: &Arc<History>) -> Self {
        Self { task, history: Some(Arc::clone(history)) }
    }

    fn done(mut self, event: Event) {
        if let Some(history) = self.history.take() {
            history.add(event);
        }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if let Some(history) = self.history.take() {
            history.add(Event::Disconnected { task: self.task });
        }
    }
}
