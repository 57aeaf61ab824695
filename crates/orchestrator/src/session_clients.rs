//! The connected clients of sessions. A session may have several, for example two event streams: each of them receives
//! its messages and progress.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::join_all;
use serde_json::Value;
use toolwright_capabilities::{Client, NoClient, SendFuture};

type Clients = Vec<Arc<dyn Client>>;

#[derive(Default)]
pub(crate) struct SessionClients(RwLock<HashMap<String, Clients>>);

impl SessionClients {
    pub fn attach(&self, session: &str, client: Arc<dyn Client>) {
        let mut clients = self.0.write().unwrap_or_else(PoisonError::into_inner);
        clients.entry(session.to_owned()).or_default().push(client);
    }

    /// Removes one client of a session.
    pub fn detach(&self, session: &str, client: &Arc<dyn Client>) {
        let mut clients = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(of_session) = clients.get_mut(session) else { return };
        of_session.retain(|attached| !Arc::ptr_eq(attached, client));
        if of_session.is_empty() {
            clients.remove(session);
        }
    }

    /// Removes all clients of a session.
    pub fn detach_all(&self, session: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// The sessions that have clients.
    pub fn sessions(&self) -> Vec<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// All clients of a session as one.
    pub fn of_session(&self, session: &str) -> Arc<dyn Client> {
        let clients = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match clients.get(session).map(Vec::as_slice) {
            None | Some([]) => Arc::new(NoClient),
            Some([client]) => Arc::clone(client),
            Some(clients) => Arc::new(AllClients(clients.to_vec())),
        }
    }
}

/// Several clients of a session. A message is sent if one of them has received it.
#[derive(Debug)]
struct AllClients(Clients);

impl Client for AllClients {
    fn send(&self, message: Value) -> SendFuture {
        let sending: Vec<_> = self.0.iter().map(|client| client.send(message.clone())).collect();
        Box::pin(async move {
            let mut first_error = None;
            for sent in join_all(sending).await {
                match sent {
                    Ok(()) => return Ok(()),
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            first_error.map_or(Ok(()), Err)
        })
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        self.0.iter().for_each(|client| client.progress(fraction, message));
    }
}
