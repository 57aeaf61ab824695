//! The key of one run of the server, for programs of the same user on this machine. A program that can read the key can
//! read the store anyway, so the key acts for the operator and for any principal that the request names.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName};
use serde::Deserialize;
use toolwright_contract::Principal;
use toolwright_contract::object::ObjectOnly;

use super::keys::{Error, equal_in_constant_time, random};
use super::{local_principal, unauthenticated};
use crate::problem::Problem;

/// The prefix of such keys.
pub const PREFIX: &str = "twl_";
/// Names the principal of a request, in JSON.
static PRINCIPAL: HeaderName = HeaderName::from_static("toolwright-principal");

/// A key that ends with the process.
#[derive(Clone)]
pub struct LocalKey(Arc<str>);

impl std::fmt::Debug for LocalKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LocalKey(…)")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPrincipal {
    id: String,
    org: Option<String>,
    #[serde(default)]
    roles: Vec<String>,
}

impl LocalKey {
    /// # Errors
    /// When the system provides no random bytes.
    pub fn random() -> Result<Self, Error> {
        Ok(Self(format!("{PREFIX}{}", random::<32>()?).into()))
    }

    /// The key itself, for the file that only its owner can read.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn is(&self, token: &str) -> bool {
        equal_in_constant_time(self.0.as_bytes(), token.as_bytes())
    }
}

/// Whether a request with the local key names the principal that it acts for.
pub(crate) fn names_principal(headers: &HeaderMap) -> bool {
    headers.contains_key(&PRINCIPAL)
}

/// The principal that a request with the local key acts for: the one it names, or the local user.
pub(super) fn principal(headers: &HeaderMap) -> Result<Arc<Principal>, Problem> {
    let Some(header) = headers.get(&PRINCIPAL) else { return Ok(Arc::new(local_principal())) };
    let ObjectOnly(NamedPrincipal { id, org, roles }) = serde_json::from_slice(header.as_bytes())
        .map_err(|error| unauthenticated(&format!("The header `{PRINCIPAL}` is invalid: {error}.")))?;
    Ok(Arc::new(Principal { id, org, roles }))
}
