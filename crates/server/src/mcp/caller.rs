//! The principal and the session of a request. The transport finds them and passes them on beside the request.

use std::sync::Arc;

use hyper::http::request::Parts;
use rmcp::ErrorData;
use rmcp::model::Extensions;
use toolwright_contract::Principal;
use toolwright_orchestrator::store::{self, SessionRecord};

#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub principal: Arc<Principal>,
    /// As it was when the request arrived; `None` for a stateless request.
    pub session: Option<Arc<SessionRecord>>,
}

impl Caller {
    /// The caller that the HTTP transport has put beside the request.
    pub fn from_extensions(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Parts>().and_then(|parts| parts.extensions.get())
    }
}

pub(super) fn store_unavailable(error: store::Error) -> ErrorData {
    tracing::error!("the store failed: {error}");
    ErrorData::internal_error("The store is unavailable. Try again.", None)
}
