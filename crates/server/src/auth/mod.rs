//! Authentication: by API key or JWT, or by a sign-in of the console with one of them; on loopback, while there is
//! neither, the local user.

#![expect(clippy::disallowed_methods, reason = "the expiry of keys and JWTs")]

mod jwks;
mod jwt;
pub mod keys;
mod local_key;
mod sign_in;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderMap};

pub use jwks::Source as JwksSource;
pub use jwt::Options as JwtOptions;
pub use local_key::LocalKey;
pub(crate) use sign_in::{COOKIE_NAME, CSRF_HEADER, LIFETIME_S};

use crate::problem::{Kind, Problem};
use crate::route::ADMIN;
use keys::KeyFile;
use sign_in::SignIns;
use toolwright_contract::{LOCAL, Principal};

const KEY_RECHECK_INTERVAL: Duration = Duration::from_secs(1);
const JWT_RECHECK_INTERVAL: Duration = Duration::from_secs(10);

/// How callers are authenticated.
#[derive(Debug)]
pub struct Auth {
    keys: KeyFile,
    jwt: Option<jwt::Verifier>,
    local: Arc<Principal>,
    local_key: Option<LocalKey>,
    sign_ins: SignIns,
    /// Only for a server on loopback: elsewhere a deleted key file would open the server.
    allows_anonymous: bool,
}

impl Auth {
    /// Keys from a file, which need not exist; JWTs if an issuer is configured.
    pub fn new(keys: KeyFile, jwt: Option<JwtOptions>) -> Self {
        let jwt = jwt.map(jwt::Verifier::new);
        let local = Arc::new(local_principal());
        let sign_ins = SignIns::default();
        Self { keys, jwt, local, local_key: None, sign_ins, allows_anonymous: false }
    }

    /// Accepts this key of programs of the same user; see [`LocalKey`].
    #[must_use]
    pub fn with_local_key(self, key: LocalKey) -> Self {
        Self { local_key: Some(key), ..self }
    }

    /// Whether a request has the local key and names no principal: it may act in any session, as the session's own
    /// principal.
    pub(crate) fn is_local_operator(&self, headers: &HeaderMap) -> bool {
        self.has_local_key(headers) && !local_key::names_principal(headers)
    }

    pub(crate) fn has_local_key(&self, headers: &HeaderMap) -> bool {
        let token =
            headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()?.strip_prefix("Bearer "));
        self.local_key.as_ref().is_some_and(|key| token.is_some_and(|token| key.is(token)))
    }

    /// Starts to fetch the issuer's keys, if there is an issuer: the first requests find them.
    pub(crate) fn fetch_ahead(&self) {
        if let Some(jwt) = &self.jwt {
            jwt.fetch_ahead();
        }
    }

    /// Accepts requests without credentials as long as there is no key and no issuer.
    pub(crate) fn allow_anonymous_local(&mut self) {
        self.allows_anonymous = true;
    }

    /// There is no key and no issuer, so no caller can authenticate.
    pub fn is_open(&self) -> bool {
        self.jwt.is_none() && self.keys.current().is_ok_and(|keys| keys.is_empty())
    }

    /// How often a stream checks whether its credentials are still valid. Revoked keys are noticed within a second; a
    /// JWT has an expiry that tolerates a minute, and costs more to verify.
    pub(crate) fn recheck_interval(&self, headers: &HeaderMap) -> Duration {
        let is_jwt = self.jwt.is_some() && headers.contains_key(AUTHORIZATION);
        if is_jwt { JWT_RECHECK_INTERVAL } else { KEY_RECHECK_INTERVAL }
    }

    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            if let Some(principal) = self.signed_in(headers).await? {
                return Ok(principal);
            }
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
        if token.starts_with(local_key::PREFIX) {
            return match &self.local_key {
                Some(key) if key.is(token) => local_key::principal(headers),
                _ => Err(unauthenticated("This local key is outdated: the server was restarted.")),
            };
        }
        self.identify_token(token).await
    }

    /// The principal of an API key or a JWT.
    async fn identify_token(&self, token: &str) -> Result<Arc<Principal>, Problem> {
        if token.starts_with(keys::PREFIX) {
            let principal = self.keys.principal(token, now()).map_err(|error| unreadable_keys(&error))?;
            return principal
                .ok_or_else(|| unauthenticated("This key is unknown, has expired or was revoked."));
        }
        match &self.jwt {
            Some(jwt) => {
                Box::pin(jwt.principal(token, now())).await.map(Arc::new).map_err(|error| match error {
                    jwt::Error::NoKeys => Problem::new(Kind::UNAVAILABLE, format!("{error}.")),
                    _ => unauthenticated(&format!("{error}.")),
                })
            }
            None => Err(unauthenticated(
                "The token is not a key of this server, and no JWT issuer is configured.",
            )),
        }
    }
}

fn unreadable_keys(error: &keys::Error) -> Problem {
    tracing::error!("could not read the API keys: {error}");
    Problem::new(Kind::UNAVAILABLE, "The server's keys cannot be read.")
}

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(Kind::UNAUTHENTICATED, detail)
}

/// The principal of the local user: on loopback without keys, and over stdio.
pub(crate) fn local_principal() -> Principal {
    Principal { id: LOCAL.to_owned(), org: None, roles: vec![ADMIN.to_owned()] }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    chrono::Utc::now().timestamp()
}
