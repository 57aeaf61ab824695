//! Sign-ins of the console. The browser holds a random id in a cookie that scripts cannot read; this process holds the
//! id's digest, and which key has signed in, not its secret. A sign-in ends when it expires, when its key is revoked,
//! on sign-out, and with the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hyper::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName};
use ring::hmac;
use sha2::{Digest, Sha256};
use toolwright_contract::Principal;
use toolwright_registry::hex;

use super::keys::{self, KeyFile, equal_in_constant_time, random};
use super::{Auth, now, unreadable_keys};
use crate::problem::{Kind, Problem};

/// How long a sign-in lasts, in seconds.
pub(crate) const LIFETIME_S: i64 = 12 * 60 * 60;
/// The name of the cookie.
pub(crate) const COOKIE_NAME: &str = "toolwright_sign_in";
/// The header with the token, in requests of scripts.
pub(crate) static CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");
/// Maximum number of sign-ins; beyond it the oldest ends.
const MAX_SIGN_INS: usize = 10_000;

type IdDigest = [u8; 32];

/// The sign-ins of this process.
#[derive(Debug, Default)]
pub(super) struct SignIns {
    by_id: Mutex<HashMap<IdDigest, SignIn>>,
    /// Signs the tokens of forms.
    secret: OnceLock<Option<hmac::Key>>,
}

#[derive(Debug, Clone)]
struct SignIn {
    credential: Credential,
    expires_at: i64,
}

#[derive(Debug, Clone)]
enum Credential {
    /// The id of an API key.
    Key(String),
    /// A JWT, which is verified again with every request.
    Jwt(String),
}

impl SignIns {
    fn lock(&self) -> MutexGuard<'_, HashMap<IdDigest, SignIn>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(&self, id: &str, sign_in: SignIn) {
        let mut by_id = self.lock();
        let now = now();
        by_id.retain(|_, sign_in| now < sign_in.expires_at);
        if by_id.len() >= MAX_SIGN_INS {
            let oldest = by_id.iter().min_by_key(|(_, sign_in)| sign_in.expires_at).map(|(id, _)| *id);
            oldest.and_then(|oldest| by_id.remove(&oldest));
        }
        by_id.insert(digest(id), sign_in);
    }

    fn get(&self, id: &str) -> Option<SignIn> {
        let now = now();
        self.lock().get(&digest(id)).filter(|sign_in| now < sign_in.expires_at).cloned()
    }

    fn secret(&self) -> Option<&hmac::Key> {
        let random = || random::<32>().ok().map(|text| hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()));
        self.secret.get_or_init(random).as_ref()
    }
}

impl Auth {
    /// Signs in with an API key or a JWT. Returns the id for the cookie.
    pub(crate) async fn sign_in(&self, token: &str) -> Result<String, Problem> {
        self.identify_token(token).await?;
        let credential = match token.starts_with(keys::PREFIX) {
            true => Credential::Key(KeyFile::id_of(token).to_owned()),
            false => Credential::Jwt(token.to_owned()),
        };
        let id = random::<32>().map_err(|error| unreadable_keys(&error))?;
        self.sign_ins.insert(&id, SignIn { credential, expires_at: now() + LIFETIME_S });
        Ok(id)
    }

    /// Ends the sign-in of a request.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) {
        if let Some(id) = cookie(headers) {
            self.sign_ins.lock().remove(&digest(id));
        }
    }

    /// Whether the request comes from a browser that has signed in.
    pub(crate) fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        !headers.contains_key(AUTHORIZATION)
            && cookie(headers).is_some_and(|id| self.sign_ins.get(id).is_some())
    }

    /// The principal of a request's sign-in, if it is valid.
    pub(super) async fn signed_in(&self, headers: &HeaderMap) -> Result<Option<Arc<Principal>>, Problem> {
        let Some(sign_in) = cookie(headers).and_then(|id| self.sign_ins.get(id)) else { return Ok(None) };
        match &sign_in.credential {
            Credential::Key(id) => {
                let keys = self.keys.current().map_err(|error| unreadable_keys(&error))?;
                Ok(keys.principal_by_id(id, now()))
            }
            Credential::Jwt(token) => Ok(self.identify_token(token).await.ok()),
        }
    }

    /// The token that forms and scripts of this browser's pages send with what they change.
    pub(crate) fn csrf_token(&self, headers: &HeaderMap) -> Result<String, Problem> {
        let secret = self.sign_ins.secret().ok_or_else(|| {
            tracing::error!("the system provides no random bytes");
            Problem::internal()
        })?;
        Ok(hex(hmac::sign(secret, cookie(headers).unwrap_or_default().as_bytes()).as_ref()))
    }

    /// Refuses a form, or a changing request of a script, without the token of its page.
    pub(crate) fn check_csrf(&self, headers: &HeaderMap, token: &str) -> Result<(), Problem> {
        if equal_in_constant_time(self.csrf_token(headers)?.as_bytes(), token.as_bytes()) {
            return Ok(());
        }
        let detail =
            "The token of the page is missing or out of date. Load the page again, and repeat the action.";
        Err(Problem::new(Kind::FORBIDDEN, detail))
    }

    /// Refuses a request to the API that a browser has made with its sign-in, but without the token of a page.
    pub(crate) fn check_signed_in_request(&self, headers: &HeaderMap) -> Result<(), Problem> {
        if !self.is_signed_in(headers) {
            return Ok(());
        }
        let token = headers.get(&CSRF_HEADER).and_then(|token| token.to_str().ok());
        self.check_csrf(headers, token.unwrap_or_default())
    }
}

/// The id in a request's cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    all.flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
}

fn digest(id: &str) -> IdDigest {
    Sha256::digest(id).into()
}
