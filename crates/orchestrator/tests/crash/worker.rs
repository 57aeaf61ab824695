//! The server that is killed, and its callers: those who send calls, those who send them again, and the user who
//! answers questions.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use toolwright_contract::{Envelope, ErrorKind, Mode};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::confirm::{Answerer, Error, Proof};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store;

use crate::desk;
use crate::log::{Answer, Event, Line, Lines};
use crate::orders::{Left, Orders, PLACE, Place, Step, Task};
use crate::plan::{Fate, Id, Tool};

/// How many send calls at once.
pub const CALLERS: u64 = 16;
pub const STARTED: &str = "the worker has started";
pub const READY: &str = "the worker is ready";

/// One server with its callers.
struct Worker {
    orders: Orders,
    orchestrator: Orchestrator,
    log: Lines,
}

/// The process that is killed; by itself, it makes a few calls and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_at_work() {
    if let Some(directory) = std::env::var_os(PLACE) {
        let directory = PathBuf::from(directory);
        work(&directory, Orders::read(&directory)).await;
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = Place::Sqlite(directory.path().join("state.db"));
    let again = (0..10).map(|number| Left { id: Id { caller: 0, number }, token: None, step: Step::Sent });
    let task = Task::Finish { again: again.collect(), all: Vec::new() };
    work(directory.path(), Orders { seed: 1, generation: 1, place, task }).await;
}

async fn work(directory: &Path, orders: Orders) {
    // On a line of its own: the test harness has not ended its own.
    println!("\n{STARTED}");
    let store = desk::store(&orders.place).await;
    let orchestrator = desk::orchestrator(store, directory, orders.generation);
    orchestrator.resume().await.unwrap();
    let worker = Arc::new(Worker { orchestrator, log: Lines::log(directory), orders });
    println!("{READY}");
    match worker.orders.task.clone() {
        Task::Work { again, next } => worker.serve(again, next).await,
        Task::Finish { again, all } => worker.finish(again, all).await,
        Task::Twin { calls } => worker.race(calls).await,
    }
    if let store::Store::Postgres(postgres) = worker.orchestrator.store() {
        postgres.close().await;
    }
}

impl Worker {
    /// Until somebody kills it.
    async fn serve(self: &Arc<Self>, again: Vec<Left>, next: Vec<u64>) {
        let mut callers = JoinSet::new();
        for left in again {
            let worker = Arc::clone(self);
            callers.spawn(async move { worker.send_again(left).await });
        }
        for (caller, first) in (0..).zip(next) {
            let worker = Arc::clone(self);
            callers.spawn(async move {
                // The one before may have been killed on its way there.
                worker.begin_session(Id { caller, number: first }).await;
                for number in first.. {
                    let id = Id { caller, number };
                    worker.log(id, Event::Sent);
                    worker.send(id).await;
                }
            });
        }
        callers.join_all().await;
    }

    async fn finish(self: &Arc<Self>, again: Vec<Left>, all: Vec<Left>) {
        self.each(again).await;
        for waiting in self.orchestrator.pending(None).await.unwrap() {
            self.log(waiting.execution.parse().unwrap(), Event::Waiting);
        }
        self.each(all).await;
    }

    /// Sends all of these again, several at once.
    async fn each(self: &Arc<Self>, lefts: Vec<Left>) {
        let (lefts, next) = (Arc::new(lefts), Arc::new(AtomicUsize::new(0)));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (worker, lefts, next) = (Arc::clone(self), Arc::clone(&lefts), Arc::clone(&next));
            callers.spawn(async move {
                while let Some(left) = lefts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    worker.send_again(left.clone()).await;
                }
            });
        }
        callers.join_all().await;
    }

    /// The same calls as a twin makes, at the same time.
    async fn race(self: &Arc<Self>, calls: usize) {
        let plain = Id::plain(self.orders.seed, calls);
        std::io::stdin().lock().read_line(&mut String::new()).unwrap();
        self.each(plain.into_iter().map(|id| Left { id, token: None, step: Step::Sent }).collect()).await;
    }

    fn log(&self, id: Id, event: Event) {
        self.log.add(&Line { generation: self.orders.generation, id, event });
    }

    async fn send(&self, id: Id) {
        if id.begins_a_session() {
            self.begin_session(id).await;
        }
        let envelope = self.orchestrator.call(&id.session(), id.call(self.orders.seed)).await;
        let Tool::Careful(fate) = id.tool(self.orders.seed) else { return self.answered(id, &envelope) };
        let Some(token) = token(&envelope) else { return self.answered(id, &envelope) };
        self.log(id, Event::Asked { token: token.clone() });
        match fate {
            Fate::Nothing => {}
            Fate::Yes => self.approve(id, &token).await,
            Fate::No => self.reject(id, &token).await,
        }
    }

    async fn begin_session(&self, id: Id) {
        let mut new = NewSession::new("client", Mode::Text);
        new.id = Some(id.session());
        match self.orchestrator.create_session(new).await {
            Ok(_) | Err(store::Error::Exists(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Goes on with a call from where it was left.
    async fn send_again(&self, left: Left) {
        let Left { id, token, step } = left;
        match (step, token) {
            (Step::Asked, Some(token)) if id.tool(self.orders.seed) == Tool::Careful(Fate::No) => {
                self.reject(id, &token).await;
            }
            (Step::Asked, Some(token)) => self.approve(id, &token).await,
            (Step::Rejecting, Some(token)) => self.reject(id, &token).await,
            (Step::Sent, _) => {
                // It may have been killed before its session was there.
                self.begin_session(id).await;
                self.send(id).await;
            }
            _ => self.send(id).await,
        }
    }

    async fn approve(&self, id: Id, token: &str) {
        self.log(id, Event::Approving);
        match self.orchestrator.approve(&answerer(token, &id.session()), None).await {
            Ok(envelope) => self.answered(id, &envelope),
            Err(error) => self.log(id, Event::Answered(Answer::Unexpected(error.to_string().into()))),
        }
    }

    async fn reject(&self, id: Id, token: &str) {
        self.log(id, Event::Rejecting);
        match self.orchestrator.reject(&answerer(token, &id.session()), None).await {
            // The earlier one has arrived.
            Ok(_) | Err(Error::Refused) => self.log(id, Event::Rejected),
            Err(error) => panic!("{error}"),
        }
    }

    fn answered(&self, id: Id, envelope: &Envelope) {
        let replayed = envelope.meta.more.contains_key("replayed");
        let answer = match &envelope.outcome {
            Ok(success) => Answer::Ok { data: (*success.data).clone(), replayed },
            Err(failure) if failure.kind == ErrorKind::Internal && failure.partial_side_effects => {
                Answer::InDoubt
            }
            Err(failure) if failure.kind == ErrorKind::Transient && !failure.partial_side_effects => {
                Answer::TryAgain(failure.message.clone())
            }
            Err(_) => Answer::Unexpected(serde_json::to_value(envelope).unwrap()),
        };
        self.log(id, Event::Answered(answer));
    }
}

fn answerer<'a>(token: &'a str, session: &'a str) -> Answerer<'a> {
    Answerer { token, proof: Proof::Token, session, client_id: "client", by: "mira" }
}

/// The token of a question, if the answer is one.
fn token(envelope: &Envelope) -> Option<String> {
    let failure = envelope.outcome.as_ref().err()?;
    let request = failure.details.as_ref()?.get("confirmation_request")?;
    Some(request.get("confirmation_token")?.as_str()?.to_owned())
}
