//! JSON Web Tokens of one issuer: RS256, ES256 or EdDSA, nothing else. An algorithm with a shared secret, or none, is not
//! known here, so a token cannot ask for one.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolwright_contract::Principal;

use super::jwks::{Jwk, Jwks, Source};

const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];
/// Clocks differ.
const LEEWAY_S: i64 = 60;
const LONGEST: usize = 16 << 10;

/// Whose tokens count, and what is read from them.
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

/// Why a token does not count.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("the token is not a JWT")]
    Malformed,
    #[error("the token's algorithm must be RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("no key of the issuer has signed the token")]
    Signature,
    #[error("the token has expired, or does not say when it does")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
    #[error("the token is of another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token names no subject")]
    Subject,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that must be understood; none is.
    #[serde(default)]
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

    /// The principal of a token that counts at this moment (seconds since 1970).
    pub async fn principal(&self, token: &str, now: i64) -> Result<Principal, Error> {
        if token.len() > LONGEST {
            return Err(Error::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Error::Malformed)?;
        let (head, body) = signed.split_once('.').ok_or(Error::Malformed)?;
        let header: Header = decoded(head)?;
        let algorithm = header.alg.as_str();
        if !ALGORITHMS.contains(&algorithm) || header.crit.is_some() {
            return Err(Error::Algorithm);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Error::Malformed)?;
        let fits = |key: &Jwk| key.fits(algorithm, header.kid.as_deref());
        let keys = self.jwks.keys(|keys| keys.iter().any(fits)).await;
        let mut candidates = keys.iter().filter(|key| fits(key));
        if !candidates.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            return Err(Error::Signature);
        }
        claims(&decoded(body)?, &self.options, now)
    }
}

/// What a token that was verified says.
fn claims(claims: &Map<String, Value>, options: &Options, now: i64) -> Result<Principal, Error> {
    let time = |name: &str| claims.get(name).map(|time| time.as_f64().map(|time| time as i64));
    // A time that is no number is no time.
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

fn decoded<T: for<'a> Deserialize<'a>>(part: &str) -> Result<T, Error> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| Error::Malformed)?;
    serde_json::from_slice(&text).map_err(|_| Error::Malformed)
}

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;
