//! The server that is killed, with its callers and the user who answers confirmation requests.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::JoinSet;
use toolwright_contract::{Envelope, ErrorKind, Mode};
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store;
use toolwright_orchestrator::{CallRequest, Orchestrator};

use crate::instructions::{DIRECTORY, Instructions, SentCall, Step, StoreLocation, Task};
use crate::log::{Answer, Event, Line, Lines};
use crate::plan::{Id, Tool, UserAnswer};
use crate::support;

/// How many send calls at once.
pub const CALLERS: u64 = 16;
pub const STARTED: &str = "the worker has started";
pub const READY: &str = "the worker is ready";

/// One server with its callers.
struct Worker {
    instructions: Instructions,
    orchestrator: Orchestrator,
    log: Lines,
}

/// The process that is killed; run as a test, it makes a few calls and ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_the_instructions_of_its_parent() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = PathBuf::from(directory);
        work(&directory, Instructions::read(&directory)).await;
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let location = StoreLocation::Sqlite(directory.path().join("state.db"));
    let again =
        (0..10).map(|number| SentCall { id: Id { caller: 0, number }, token: None, step: Step::Sent });
    let task = Task::Finish { again: again.collect(), all: Vec::new() };
    work(directory.path(), Instructions { seed: 1, generation: 1, location, task }).await;
}

async fn work(directory: &Path, instructions: Instructions) {
    // The test harness has not ended its line.
    println!("\n{STARTED}");
    let store = support::store(&instructions.location).await;
    let orchestrator = support::orchestrator(store, directory, instructions.generation);
    orchestrator.resume().await.unwrap();
    let worker = Arc::new(Worker { orchestrator, log: Lines::log(directory), instructions });
    println!("{READY}");
    match worker.instructions.task.clone() {
        Task::Work { again, next } => worker.serve(again, next).await,
        Task::Finish { again, all } => worker.finish(again, all).await,
        Task::Race { calls } => worker.race(calls).await,
        Task::Background { .. } | Task::Pause { .. } => {
            panic!("these are the instructions of another worker")
        }
    }
    if let store::Store::Postgres(postgres) = worker.orchestrator.store() {
        postgres.close().await;
    }
}

impl Worker {
    /// Runs until it is killed.
    async fn serve(self: &Arc<Self>, again: Vec<SentCall>, next: Vec<u64>) {
        let mut callers = JoinSet::new();
        for left in again {
            let worker = Arc::clone(self);
            callers.spawn(async move { worker.send_again(left).await });
        }
        for (caller, first) in (0..).zip(next) {
            let worker = Arc::clone(self);
            callers.spawn(async move {
                // The process before may have been killed before it created the session.
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

    async fn finish(self: &Arc<Self>, again: Vec<SentCall>, all: Vec<SentCall>) {
        self.each(again).await;
        for waiting in self.orchestrator.pending_confirmations(None).await.unwrap() {
            self.log(waiting.execution.parse().unwrap(), Event::Waiting);
        }
        self.each(all).await;
    }

    /// Sends these calls again, several at a time.
    async fn each(self: &Arc<Self>, sent_calls: Vec<SentCall>) {
        let (sent_calls, next) = (Arc::new(sent_calls), Arc::new(AtomicUsize::new(0)));
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (worker, sent_calls, next) = (Arc::clone(self), Arc::clone(&sent_calls), Arc::clone(&next));
            callers.spawn(async move {
                while let Some(left) = sent_calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    worker.send_again(left.clone()).await;
                }
            });
        }
        callers.join_all().await;
    }

    /// Makes the same calls as the other server, at the same time.
    async fn race(self: &Arc<Self>, calls: usize) {
        let plain = Id::plain(self.instructions.seed, calls);
        std::io::stdin().lock().read_line(&mut String::new()).unwrap();
        self.each(plain.into_iter().map(|id| SentCall { id, token: None, step: Step::Sent }).collect()).await;
    }

    fn log(&self, id: Id, event: Event) {
        self.log.add(&Line { generation: self.instructions.generation, id, event });
    }

    async fn send(&self, id: Id) {
        if id.begins_a_session() {
            self.begin_session(id).await;
        }
        let envelope =
            self.orchestrator.call(CallRequest::new(&id.session(), id.call(self.instructions.seed))).await;
        let Tool::Confirmed(fate) = id.tool(self.instructions.seed) else {
            return self.answered(id, &envelope);
        };
        let Some(token) = token(&envelope) else { return self.answered(id, &envelope) };
        self.log(id, Event::ConfirmationRequested { token: token.clone() });
        match fate {
            UserAnswer::Nothing => {}
            UserAnswer::Yes => self.approve(id, &token).await,
            UserAnswer::No => self.reject(id, &token).await,
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

    /// Continues a call from its last known step.
    async fn send_again(&self, left: SentCall) {
        let SentCall { id, token, step } = left;
        match (step, token) {
            (Step::ConfirmationRequested, Some(token))
                if id.tool(self.instructions.seed) == Tool::Confirmed(UserAnswer::No) =>
            {
                self.reject(id, &token).await;
            }
            (Step::ConfirmationRequested, Some(token)) => self.approve(id, &token).await,
            (Step::Rejecting, Some(token)) => self.reject(id, &token).await,
            (Step::Sent, _) => {
                // The process may have been killed before it created the session.
                self.begin_session(id).await;
                self.send(id).await;
            }
            _ => self.send(id).await,
        }
    }

    async fn approve(&self, id: Id, token: &str) {
        self.log(id, Event::Approving);
        match self.orchestrator.approve(&approver(token, &id.session()), None).await {
            Ok(envelope) => self.answered(id, &envelope),
            Err(error) => self.log(id, Event::Answered(Answer::Unexpected(error.to_string().into()))),
        }
    }

    async fn reject(&self, id: Id, token: &str) {
        self.log(id, Event::Rejecting);
        match self.orchestrator.reject(&approver(token, &id.session()), None).await {
            // An earlier rejection has been recorded.
            Ok(_) | Err(Error::Answered) => self.log(id, Event::Rejected),
            Err(error) => panic!("{error}"),
        }
    }

    fn answered(&self, id: Id, envelope: &Envelope) {
        let replayed = envelope.meta.more.contains_key("replayed");
        let answer = match &envelope.outcome {
            // Every answer names the version of its tool, whatever was interrupted.
            _ if envelope.meta.tool_version.is_none() => {
                Answer::Unexpected(serde_json::to_value(envelope).unwrap())
            }
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

fn approver<'a>(token: &'a str, session: &'a str) -> Approver<'a> {
    Approver { token, proof: AnswerProof::Token, session, client_id: "client", by: "mira", principal: None }
}

/// The token of the confirmation request, if the result is one.
fn token(envelope: &Envelope) -> Option<String> {
    let request = envelope.outcome.as_ref().err()?.confirmation.as_ref()?;
    Some(request.token.as_ref()?.reveal().to_owned())
}
