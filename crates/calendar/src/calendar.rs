//! The door: a function of `calendar.*` asked for, one answer. What is behind it is opened when it is first needed.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;
use toolwright_capabilities::{Answer, Answered, Asker, Capability, Fault};

use crate::answer;
use crate::asked;
use crate::back::Back;
use crate::busy::Span;
use crate::caldav::CalDav;
use crate::records::Owner;
use crate::service::Secret;
use crate::settings::Settings;
use crate::store::{self, Store};
use crate::zoom::Zoom;

const CONNECT: Duration = Duration::from_secs(10);

/// Passwords and keys, by the name of the environment variable that holds them.
pub type Secrets = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The calendar of a server.
pub struct Calendar {
    settings: Arc<Settings>,
    file: PathBuf,
    secrets: Secrets,
    back: Mutex<Option<Arc<Back>>>,
}

/// For whom, until when, and at which time.
#[derive(Debug, Clone)]
pub struct Asking {
    pub owner: Owner,
    /// Where the ids of calls mean something: a session, or a client that has none.
    pub scope: String,
    pub deadline: Instant,
    pub now: DateTime<Utc>,
}

impl fmt::Debug for Calendar {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Calendar")
            .field("settings", &self.settings)
            .field("file", &self.file)
            .finish()
    }
}

impl Calendar {
    /// Opens nothing yet. `file` keeps drafts, and events too unless they are on a CalDAV server.
    pub fn new(settings: Settings, file: PathBuf, secrets: Secrets) -> Self {
        Self { settings: Arc::new(settings), file, secrets, back: Mutex::new(None) }
    }

    fn back(&self) -> Result<Arc<Back>, Fault> {
        let mut kept = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(back) = &*kept {
            return Ok(Arc::clone(back));
        }
        let back = Arc::new(self.open()?);
        *kept = Some(Arc::clone(&back));
        Ok(back)
    }

    fn open(&self) -> Result<Back, Fault> {
        let store = Store::open(&self.file).map_err(|error| told(&error))?;
        let settings = &self.settings;
        let caldav = self.caldav()?;
        let zoom = match &settings.zoom {
            Some(zoom) => {
                Some(Zoom::new(zoom.clone(), self.secret(&zoom.client_secret_env)?, client_of_service()?))
            }
            None => None,
        };
        Ok(Back { settings: Arc::clone(settings), store, caldav, zoom, at_work: Mutex::default() })
    }

    fn caldav(&self) -> Result<Option<CalDav>, Fault> {
        let settings = &self.settings;
        let Some(url) = &settings.url else { return Ok(None) };
        let login = settings.user.clone().zip(settings.password_env.as_deref());
        let login = login.map(|(user, variable)| Ok((user, self.secret(variable)?))).transpose()?;
        Ok(Some(CalDav::new(client_of_service()?, &url.0, login, Arc::clone(settings))))
    }

    /// Asks the CalDAV server, if there is one, what is on today. Opens no file.
    ///
    /// # Errors
    /// When it cannot be asked, or does not answer as such a server does.
    pub async fn reach(&self) -> Result<(), Fault> {
        let Some(caldav) = self.caldav()? else { return Ok(()) };
        let start = Utc::now();
        let today = Span { start, end: start + chrono::Duration::days(1) };
        caldav.busy(&[], today, Instant::now() + CONNECT).await.map(drop)
    }

    fn secret(&self, variable: &str) -> Result<Secret, Fault> {
        let secret = (self.secrets)(variable).filter(|secret| !secret.is_empty()).map(Secret);
        secret.ok_or_else(|| not_configured(&format!("the environment variable {variable} is not set")))
    }
}

impl Capability for Calendar {
    fn call(&self, asker: &Asker<'_>, function: &str, args: Vec<Value>) -> Answer {
        let now = asker.now.and_then(DateTime::from_timestamp_millis).unwrap_or_else(Utc::now);
        let owner = Owner { org: asker.org.unwrap_or_default().to_owned(), user: asker.user.to_owned() };
        let scope =
            asker.session.map_or_else(|| format!("client {}", asker.client_id), |id| format!("session {id}"));
        let asking = Asking { owner, scope, deadline: asker.deadline, now };
        let (back, function) = (self.back(), function.to_owned());
        Box::pin(async move { run(&*back?, asking, &function, args).await.map(Answered::from) })
    }
}

async fn run(back: &Back, asking: Asking, function: &str, args: Vec<Value>) -> Result<Value, Fault> {
    match function {
        "freeBusy" => back.free_busy(&asking, &asked::read(args)?).await,
        "propose" => back.propose(asking, asked::read(args)?).await,
        "getDraft" => {
            let asked::GetDraft { draft_id } = asked::read(args)?;
            let (owner, now) = (asking.owner, asking.now);
            let looked = back.store.run(move |store| store.look(&owner, &draft_id)).await;
            let (draft, progress) = looked.map_err(|error| told(&error))?;
            Ok(answer::draft(&draft, progress.as_ref(), now))
        }
        "commit" => back.commit(asking, asked::read(args)?).await.map(|event| answer::event(&event)),
        _ => Err(Fault::new("NOT_CONFIGURED", format!("there is no `calendar.{function}`"))),
    }
}

fn client_of_service() -> Result<reqwest::Client, Fault> {
    toolwright_capabilities::http::for_service(CONNECT).map_err(|error| not_configured(&error))
}

/// What the file says, as a handler is told.
pub fn told(error: &store::Error) -> Fault {
    use store::Error;
    let code = match error {
        Error::NotFound => "NOT_FOUND",
        Error::Expired => "EXPIRED",
        Error::NoSuchSlot(_) => "INVALID_ARGUMENT",
        Error::Used(_) | Error::Taken => "CONFLICT",
        Error::InProgress => "UNREACHABLE",
        Error::Sqlite(_) | Error::File(_) => {
            tracing::error!("{error}");
            return Fault::new("UNREACHABLE", "the calendar's file cannot be used");
        }
    };
    Fault::new(code, error.to_string())
}

fn not_configured(why: &str) -> Fault {
    tracing::error!("the calendar cannot be used: {why}");
    Fault::new("NOT_CONFIGURED", "the calendar is not set up rightly on this server")
}
