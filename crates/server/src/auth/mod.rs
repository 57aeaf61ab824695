//! Authentication: by API key or JWT; on loopback, while there is neither, the local user.

#![expect(clippy::disallowed_methods, reason = "the expiry of keys and JWTs")]

mod jwks;
mod jwt;
pub mod keys;

use std::sync::Arc;

use hyper::header::{AUTHORIZATION, HeaderMap};

pub use jwks::Source as JwksSource;
pub use jwt::Options as JwtOptions;

use crate::problem::{Kind, Problem};
use crate::route::ADMIN;
use keys::KeyFile;
use toolwright_contract::Principal;

/// How callers are authenticated.
#[derive(Debug)]
pub struct Auth {
    keys: KeyFile,
    jwt: Option<jwt::Verifier>,
    local: Arc<Principal>,
    /// Only for a server on loopback: elsewhere a deleted key file would open the server.
    allows_anonymous: bool,
}

impl Auth {
    /// Keys from a file, which need not exist; JWTs if an issuer is configured.
    pub fn new(keys: KeyFile, jwt: Option<JwtOptions>) -> Self {
        let jwt = jwt.map(jwt::Verifier::new);
        Self { keys, jwt, local: Arc::new(local_principal()), allows_anonymous: false }
    }

    /// Accepts requests without credentials as long as there is no key and no issuer.
    pub(crate) fn allow_anonymous_local(&mut self) {
        self.allows_anonymous = true;
    }

    /// There is no key and no issuer, so no caller can authenticate.
    pub fn is_open(&self) -> bool {
        self.jwt.is_none() && self.keys.current().is_ok_and(|keys| keys.is_empty())
    }

    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return if self.allows_anonymous && self.is_open() {
                Ok(Arc::clone(&self.local))
            } else {
                Err(unauthenticated("Send `authorization: Bearer …`."))
            };
        };
        let text = header.to_str().unwrap_or_default();
        let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else {
            return Err(unauthenticated("The `authorization` header must be `Bearer …`."));
        };
        let token = token.trim();
        if token.starts_with(keys::PREFIX) {
            let principal = self.keys.principal(token, now()).map_err(|error| {
                tracing::error!("could not read the API keys: {error}");
                Problem::new(Kind::UNAVAILABLE, "The server's keys cannot be read.")
            })?;
            return principal
                .ok_or_else(|| unauthenticated("This key is unknown, has expired or was revoked."));
        }
        match &self.jwt {
            Some(jwt) => Box::pin(jwt.principal(token, now()))
                .await
                .map(Arc::new)
                .map_err(|error| unauthenticated(&format!("{error}."))),
            None => Err(unauthenticated(
                "The token is not a key of this server, and no JWT issuer is configured.",
            )),
        }
    }
}

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(Kind::UNAUTHENTICATED, detail)
}

/// The principal of the local user: on loopback without keys, and over stdio.
pub(crate) fn local_principal() -> Principal {
    Principal { id: "local".to_owned(), org: None, roles: vec![ADMIN.to_owned()] }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    chrono::Utc::now().timestamp()
}
