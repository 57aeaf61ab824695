//! The entry of the capability: dispatches the functions of `calendar.*`, and opens the backend on first use.

#![expect(clippy::disallowed_methods, reason = "the time of a call that brings none")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde_json::Value;
use toolwright_capabilities::http::service_client;
use toolwright_capabilities::{
    CallIdentity, Capability, CapabilityError, CapabilityFuture, CapabilityOutput, Result, Secret,
};

use crate::arguments::{self, GetDraftArgs};
use crate::backend::CalendarBackend;
use crate::caldav::CalDavClient;
use crate::output;
use crate::records::Owner;
use crate::settings::Settings;
use crate::span::Span;
use crate::store::{self, Store};
use crate::zoom_client::ZoomClient;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks up a password or key by the name of its environment variable.
pub type SecretLookup = fn(&str) -> Option<String>;

/// The functions of `context.calendar`.
#[derive(Debug)]
pub struct Calendar {
    settings: Arc<Settings>,
    file: PathBuf,
    secrets: SecretLookup,
    backend: Mutex<Option<Arc<CalendarBackend>>>,
}

/// The owner, deadline and time of one call.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub owner: Owner,
    /// The session, or the client of a call without one. Execution ids are unique within it.
    pub scope: String,
    pub deadline: Instant,
    pub now: DateTime<Utc>,
}

impl Calendar {
    /// Opens nothing yet. `file` stores the drafts, and the events unless they are on a CalDAV server.
    pub fn new(settings: Settings, file: PathBuf, secrets: SecretLookup) -> Self {
        Self { settings: Arc::new(settings), file, secrets, backend: Mutex::new(None) }
    }

    fn backend(&self) -> Result<Arc<CalendarBackend>> {
        let mut backend = self.backend.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match backend.take() {
            Some(opened) => opened,
            None => Arc::new(self.open()?),
        };
        Ok(Arc::clone(backend.insert(opened)))
    }

    fn open(&self) -> Result<CalendarBackend> {
        let store = Store::open(&self.file)?;
        let settings = Arc::clone(&self.settings);
        let caldav = self.caldav_client()?;
        let zoom = self.zoom_client()?;
        Ok(CalendarBackend { settings, store, caldav, zoom, active_drafts: Mutex::default() })
    }

    fn zoom_client(&self) -> Result<Option<ZoomClient>> {
        let Some(zoom) = self.settings.zoom.clone() else { return Ok(None) };
        let secret = self.secret(&zoom.client_secret_env)?;
        Ok(Some(ZoomClient::new(zoom, secret, http_client()?)))
    }

    fn caldav_client(&self) -> Result<Option<CalDavClient>> {
        let settings = &self.settings;
        let Some(url) = &settings.url else { return Ok(None) };
        let login = match (&settings.user, &settings.password_env) {
            (Some(user), Some(variable)) => Some((user.clone(), self.secret(variable)?)),
            _ => None,
        };
        Ok(Some(CalDavClient::new(http_client()?, &url.0, login, Arc::clone(settings))))
    }

    /// Queries the configured CalDAV server for today's events. Does nothing without one; opens no file.
    ///
    /// # Errors
    /// When the server does not respond, or not like a CalDAV server.
    pub async fn check_connection(&self) -> Result<()> {
        let Some(caldav) = self.caldav_client()? else { return Ok(()) };
        let start = Utc::now();
        let today = Span { start, end: start + chrono::Duration::days(1) };
        caldav.availability(&[], today, Instant::now() + CONNECT_TIMEOUT).await.map(drop)
    }

    /// Signs in at the configured Zoom account and reads its meetings. Does nothing without one; opens no file.
    ///
    /// # Errors
    /// When Zoom does not respond, or refuses the credentials or the user.
    pub async fn check_zoom(&self) -> Result<()> {
        let Some(zoom) = self.zoom_client()? else { return Ok(()) };
        zoom.check(Instant::now() + CONNECT_TIMEOUT).await
    }

    fn secret(&self, variable: &str) -> Result<Secret> {
        let secret = (self.secrets)(variable).filter(|secret| !secret.is_empty()).map(Secret);
        secret.ok_or_else(|| not_configured(&format!("the environment variable {variable} is not set")))
    }
}

impl Capability for Calendar {
    fn call(&self, caller: &CallIdentity<'_>, function: &str, args: Vec<Value>) -> CapabilityFuture {
        let context = CallContext {
            owner: Owner { org: caller.org.unwrap_or_default().to_owned(), user: caller.user.to_owned() },
            scope: match caller.session {
                Some(id) => format!("session {id}"),
                None => format!("client {}", caller.client_id),
            },
            deadline: caller.deadline,
            now: caller.now.and_then(DateTime::from_timestamp_millis).unwrap_or_else(Utc::now),
        };
        let (backend, function) = (self.backend(), function.to_owned());
        Box::pin(async move { run(&*backend?, context, &function, args).await.map(CapabilityOutput::from) })
    }
}

async fn run(
    backend: &CalendarBackend,
    context: CallContext,
    function: &str,
    args: Vec<Value>,
) -> Result<Value> {
    match function {
        "freeBusy" => backend.free_busy(&context, &arguments::parse(args)?).await,
        "propose" => backend.propose(context, arguments::parse(args)?).await,
        "getDraft" => {
            let GetDraftArgs { draft_id } = arguments::parse(args)?;
            let now = context.now;
            let (draft, reservation) = backend.find_draft(context.owner, draft_id).await?;
            Ok(output::draft(&draft, reservation.as_ref(), backend.place(), now))
        }
        "commit" => Ok(output::event(&backend.commit(context, arguments::parse(args)?).await?)),
        _ => Err(CapabilityError::not_configured(format!("unknown function `calendar.{function}`"))),
    }
}

fn http_client() -> Result<reqwest::Client> {
    service_client(CONNECT_TIMEOUT).map_err(|error| not_configured(&error))
}

impl From<store::Error> for CapabilityError {
    fn from(error: store::Error) -> Self {
        use store::Error;
        let code = match error {
            Error::NotFound => "NOT_FOUND",
            Error::Expired => "EXPIRED",
            Error::NoSuchSlot(_) => "INVALID_ARGUMENT",
            Error::Used(_) | Error::Taken => "CONFLICT",
            Error::InProgress => "UNREACHABLE",
            Error::Sqlite(_) | Error::File(_) => {
                tracing::error!("{error}");
                return Self::new("UNREACHABLE", "the calendar's file is not available");
            }
        };
        Self::new(code, error.to_string())
    }
}

/// The cause is only logged: it is not for handlers.
fn not_configured(cause: &str) -> CapabilityError {
    tracing::error!("the calendar is not configured correctly: {cause}");
    CapabilityError::not_configured("the calendar is not configured correctly on this server")
}
