//! Who asks: an API key, a JWT, or, on loopback while there are neither, whoever sits at the machine.

mod jwks;
mod jwt;
pub mod keys;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{AUTHORIZATION, HeaderMap};

pub use jwks::Source as JwksSource;
pub use jwt::Options as JwtOptions;

use crate::problem::{Kind, Problem};
use crate::route::ADMIN;
use keys::KeyFile;
use toolwright_contract::Principal;

/// How principals are known.
#[derive(Debug)]
pub struct Auth {
    keys: KeyFile,
    jwt: Option<jwt::Verifier>,
    local: Arc<Principal>,
    /// Only this machine can reach the server: or else keys that are gone would open it.
    may_be_open: bool,
}

impl Auth {
    /// Keys from a file, which need not exist; JWTs if an issuer is named.
    pub fn new(keys: KeyFile, jwt: Option<JwtOptions>) -> Self {
        let local = Principal { id: "local".to_owned(), org: None, roles: vec![ADMIN.to_owned()] };
        Self { keys, jwt: jwt.map(jwt::Verifier::new), local: Arc::new(local), may_be_open: false }
    }

    /// Lets those in who do not say who they are, as long as there is no key: for a server on loopback.
    pub(crate) fn open_to_this_machine(&mut self) {
        self.may_be_open = true;
    }

    /// Nobody has to say who they are: there is no key that counts, and no issuer.
    pub fn is_open(&self) -> bool {
        self.jwt.is_none() && self.keys.current().is_ok_and(|keys| keys.is_empty())
    }

    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return if self.may_be_open && self.is_open() {
                Ok(Arc::clone(&self.local))
            } else {
                Err(unknown("Send `authorization: Bearer …`."))
            };
        };
        let text = given.to_str().unwrap_or_default();
        let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else {
            return Err(unknown("Only `authorization: Bearer …` is understood."));
        };
        let token = token.trim();
        if token.starts_with(keys::PREFIX) {
            let principal = self.keys.principal(token, now()).map_err(|error| {
                tracing::error!("{error}");
                Problem::new(Kind::Unavailable, "The keys cannot be read.")
            })?;
            return principal.ok_or_else(|| unknown("This key is not known, has expired or was revoked."));
        }
        match &self.jwt {
            Some(jwt) => Box::pin(jwt.principal(token, now()))
                .await
                .map(Arc::new)
                .map_err(|error| unknown(&format!("{error}."))),
            None => Err(unknown("This is not a key of this server.")),
        }
    }
}

fn unknown(detail: &str) -> Problem {
    Problem::new(Kind::Unauthenticated, detail)
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}
