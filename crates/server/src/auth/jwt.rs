//! JSON Web Tokens of one issuer: RS256, ES256 or EdDSA only. Algorithms with a shared secret, and `none`, are not
//! implemented, so a token cannot select them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::Principal;
use toolwright_contract::object::ObjectOnly;

use super::jwks::{Jwk, Jwks, Source};

const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];
/// Tolerated difference between clocks.
const LEEWAY_S: i64 = 60;
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Which tokens are accepted, and the claims that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub jwks: Source,
    pub issuer: String,
    pub audience: String,
    /// The claim that lists the principal's roles.
    pub roles_claim: String,
    /// The claim that names the principal's org.
    pub org_claim: String,
}

/// Why a token is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("the issuer's keys could not be fetched yet, so no token can be checked; try again in a second")]
    NoKeys,
    #[error("the token is not a JWT")]
    Malformed,
    #[error("the token's algorithm must be RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("no key of the issuer has signed the token")]
    Signature,
    #[error("the token has expired, or has no `exp` claim")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token has no `sub` claim")]
    Subject,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; none is supported.
    crit: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Verifier {
    options: Options,
    jwks: Jwks,
}

impl Verifier {
    pub fn new(options: Options) -> Self {
        Self { jwks: Jwks::new(options.jwks.clone()), options }
    }

    /// Fetches the issuer's keys before there is a request.
    pub fn fetch_ahead(&self) {
        self.jwks.fetch_ahead();
    }

    /// The principal of a token that is valid at `now`, in seconds since 1970.
    pub async fn principal(&self, token: &str, now: i64) -> Result<Principal, Error> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Error::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Error::Malformed)?;
        let (head, body) = signed.split_once('.').ok_or(Error::Malformed)?;
        let header: Header = decode(head)?;
        let algorithm = header.alg.as_str();
        if !ALGORITHMS.contains(&algorithm) || header.crit.is_some() {
            return Err(Error::Algorithm);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Error::Malformed)?;
        let matches = |key: &Jwk| key.matches(algorithm, header.kid.as_deref());
        let keys = self.jwks.keys(|keys| keys.iter().any(matches)).await.ok_or(Error::NoKeys)?;
        let mut candidates = keys.iter().filter(|key| matches(key));
        if !candidates.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            return Err(Error::Signature);
        }
        principal(&decode(body)?, &self.options, now)
    }
}

/// The principal in the claims of a verified token.
fn principal(claims: &Map<String, Value>, options: &Options, now: i64) -> Result<Principal, Error> {
    let time = |name: &str| claims.get(name).map(|time| time.as_f64().map(|time| time as i64));
    // A time that is not a number is invalid.
    match time("exp") {
        Some(Some(expires)) if now < expires.saturating_add(LEEWAY_S) => {}
        _ => return Err(Error::Expired),
    }
    match time("nbf") {
        None => {}
        Some(Some(begins)) if begins <= now.saturating_add(LEEWAY_S) => {}
        _ => return Err(Error::TooEarly),
    }
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(&options.issuer) {
        return Err(Error::Issuer);
    }
    let is_for_us = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(&options.audience)),
        Some(one) => one.as_str() == Some(&options.audience),
        None => false,
    };
    if !is_for_us {
        return Err(Error::Audience);
    }
    let id = text("sub").filter(|subject| !subject.is_empty()).ok_or(Error::Subject)?;
    let roles = match claims.get(&options.roles_claim) {
        Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(roles)) => roles.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let org = text(&options.org_claim).map(str::to_owned);
    Ok(Principal { id: id.to_owned(), org, roles })
}

fn decode<T: for<'a> Deserialize<'a>>(part: &str) -> Result<T, Error> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| Error::Malformed)?;
    let ObjectOnly(value) = serde_json::from_slice(&text).map_err(|_| Error::Malformed)?;
    Ok(value)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
