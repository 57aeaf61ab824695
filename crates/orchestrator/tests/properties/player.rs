//! Plays steps on a desk. Everybody who waits is a task of its own; all of them share one thread, so that what happened
//! has an order.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet, yield_now};
use toolwright_contract::Envelope;
use toolwright_orchestrator::confirm::{Answerer, Error, Proof};
use toolwright_orchestrator::store::{AuditRow, Backend};

use crate::desk::{Desk, session};
use crate::history::{Event, History, Replied, Task};
use crate::steps::{Ask, How, Reply, SESSIONS, Says, Step};

/// Long enough for a test that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(1);
const LOOKS: usize = 100;

pub struct Player {
    pub desk: Desk,
    /// How long it lets the world go on at a time.
    pace: Pace,
    running: JoinSet<()>,
    /// Those who may go away.
    present: Vec<(Task, AbortHandle)>,
    tasks: usize,
    /// A token, its question and its session.
    tokens: Vec<(String, String, usize)>,
    /// How much of the history has been searched for tokens.
    seen: usize,
}

/// How time is given to what runs.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// Everything is in memory: a turn of the scheduler is enough.
    Turns,
    /// A disk is involved.
    Milliseconds,
}

/// What is left when everything has come to its end.
pub struct Played {
    pub events: Vec<Event>,
    pub audit: Vec<AuditRow>,
    /// Approvals that never ran: session and call.
    pub lying: Vec<(String, String)>,
}

impl Player {
    pub fn new(desk: Desk, pace: Pace) -> Self {
        let (present, tokens) = (Vec::new(), Vec::new());
        Self { desk, pace, running: JoinSet::new(), present, tasks: 0, tokens, seen: 0 }
    }

    /// Plays, lets everything come to its end, and asks everything again.
    pub async fn play(mut self, steps: &[Step]) -> Played {
        for step in steps {
            self.step(step).await;
        }
        self.come_to_an_end().await;
        // Everybody asks again: by now there is an answer to everything.
        let sent = self.desk.history.events().into_iter().filter_map(|event| match event {
            Event::Sent { session, ask, .. } => Some((session, ask)),
            _ => None,
        });
        let again: std::collections::BTreeSet<_> = sent.collect();
        for (session, ask) in again {
            self.call(session, vec![ask], false);
            self.come_to_an_end().await;
        }
        self.played().await
    }

    async fn played(self) -> Played {
        let store = self.desk.orchestrator.store();
        let mut approved = store.approved().await.unwrap();
        // An approval whose author has gone away may still be on its way.
        for _ in 0..LOOKS {
            if approved.is_empty() {
                break;
            }
            tokio::time::sleep(LOOK).await;
            approved = store.approved().await.unwrap();
        }
        let lying = approved.iter().map(|asked| (asked.session.clone(), asked.execution.clone())).collect();
        store.flush().await.unwrap();
        let audit = store.audit(0, usize::MAX >> 1).await.unwrap();
        Played { events: self.desk.history.events(), audit, lying }
    }

    async fn step(&mut self, step: &Step) {
        match step {
            Step::Call(session, ask) => self.call(*session, vec![*ask], false),
            Step::Message(session, asks) => self.call(*session, asks.clone(), true),
            Step::GoAway(which) => self.go_away(*which),
            Step::Open(count) => self.desk.gate.add_permits(*count),
            Step::Turn(number) => {
                self.desk.orchestrator.begin_turn(&session(*number)).await.unwrap();
                self.desk.history.add(Event::Turn { session: *number });
            }
            Step::Answer(reply) => self.reply(reply),
            Step::Pass(milliseconds) => self.desk.clock.advance(*milliseconds),
            Step::Sweep => self.desk.orchestrator.sweep().await.unwrap(),
            Step::Let(times) => self.let_go_on(*times).await,
        }
    }

    async fn let_go_on(&self, times: usize) {
        for _ in 0..times {
            match self.pace {
                Pace::Turns => yield_now().await,
                Pace::Milliseconds => tokio::time::sleep(LOOK).await,
            }
        }
    }

    fn task(&mut self) -> Task {
        self.tasks += 1;
        self.tasks
    }

    fn call(&mut self, number: usize, asks: Vec<Ask>, is_message: bool) {
        let (task, history) = (self.task(), Arc::clone(&self.desk.history));
        let orchestrator = self.desk.orchestrator.clone();
        let begun = Begun::new(task, &history);
        let handle = self.running.spawn(async move {
            for ask in &asks {
                history.add(Event::Sent { task, session: number, ask: *ask });
            }
            let envelopes = if is_message {
                orchestrator.calls(&session(number), asks.iter().map(Ask::call).collect()).await
            } else {
                vec![orchestrator.call(&session(number), asks[0].call()).await]
            };
            begun.done(Event::Answered { task, envelopes });
        });
        self.present.push((task, handle));
    }

    fn go_away(&mut self, which: usize) {
        self.present.retain(|(_, handle)| !handle.is_finished());
        if !self.present.is_empty() {
            let (_, handle) = self.present.swap_remove(which % self.present.len());
            handle.abort();
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.find_tokens();
        let Some(count) = self.tokens.len().checked_sub(1) else { return };
        let (mut token, question, mut number) = self.tokens[reply.token % (count + 1)].clone();
        match reply.how {
            How::Honestly => {}
            How::WithAnotherSecret => token = format!("{question}.{}", "0".repeat(64)),
            How::FromAnotherSession => number = (number + 1) % SESSIONS,
        }
        let (task, history) = (self.task(), Arc::clone(&self.desk.history));
        let (orchestrator, clock) = (self.desk.orchestrator.clone(), self.desk.clock.clone());
        let (says, is_honest) = (reply.says, reply.how == How::Honestly);
        let begun = Begun::new(task, &history);
        let handle = self.running.spawn(async move {
            let reply = Replied { question, says, token: token.clone(), is_honest, now: clock.now() };
            history.add(Event::Replied { task, reply });
            let session = session(number);
            let answerer = Answerer {
                token: &token,
                proof: Proof::Token,
                session: &session,
                client_id: &session,
                by: "mira",
            };
            let heard = match says {
                Says::Yes => orchestrator.approve(&answerer, None).await,
                Says::YesBut => {
                    orchestrator.approve(&answerer, Some(serde_json::json!({ "edited": true }))).await
                }
                Says::No => orchestrator.reject(&answerer, None).await,
            };
            begun.done(match heard {
                Ok(envelope) => Event::Heeded { task, envelope: (*envelope).clone() },
                Err(Error::Refused) => Event::Refused { task },
                Err(error) => panic!("{error}"),
            });
        });
        self.present.push((task, handle));
    }

    /// The tokens that users have been shown by now.
    fn find_tokens(&mut self) {
        let events = self.desk.history.events();
        for event in &events[self.seen..] {
            let Event::Answered { task, envelopes } = event else { continue };
            let of = events.iter().find_map(|event| match event {
                Event::Sent { task: sent, session, .. } if sent == task => Some(*session),
                _ => None,
            });
            for (token, question) in envelopes.iter().filter_map(token) {
                self.tokens.push((token, question, of.unwrap()));
            }
        }
        self.seen = events.len();
    }

    /// Nothing waits any more, and everybody has an answer.
    async fn come_to_an_end(&mut self) {
        self.desk.gate.add_permits(10_000);
        let end = async {
            while let Some(ended) = self.running.join_next().await {
                if let Err(error) = ended {
                    assert!(error.is_cancelled(), "{error}");
                }
            }
            // What writes goes on without its caller.
            while !self.desk.is_idle() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(PATIENCE, end).await.expect("somebody waits for ever");
        self.present.clear();
    }
}

/// A token and its question, if the envelope has one.
pub fn token(envelope: &Envelope) -> Option<(String, String)> {
    let details = envelope.outcome.as_ref().err()?.details.as_ref()?;
    let request = details.get("confirmation_request")?;
    let text = |name: &str| request.get(name).and_then(|text| text.as_str()).map(str::to_owned);
    Some((text("confirmation_token")?, text("confirmation_id")?))
}

/// Notes that its task is gone unless it was done.
struct Begun {
    task: Task,
    history: Option<Arc<History>>,
}

impl Begun {
    fn new(task: Task, history: &Arc<History>) -> Self {
        Self { task, history: Some(Arc::clone(history)) }
    }

    fn done(mut self, event: Event) {
        if let Some(history) = self.history.take() {
            history.add(event);
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(history) = self.history.take() {
            history.add(Event::Gone { task: self.task });
        }
    }
}
