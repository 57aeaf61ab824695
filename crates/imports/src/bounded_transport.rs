//! Limits the pending requests of a server, which would pile up if the server never reads the replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use crate::limits::LimitExceeded;

/// No client capabilities are announced, so a server has no reason to send more than a ping.
const MAX_UNANSWERED_REQUESTS: usize = 256;

pub(crate) struct BoundedTransport<T> {
    inner: T,
    unanswered: Arc<AtomicUsize>,
    limit_exceeded: LimitExceeded,
}

impl<T> BoundedTransport<T> {
    pub fn new(inner: T, limit_exceeded: &LimitExceeded) -> Self {
        Self { inner, unanswered: Arc::default(), limit_exceeded: limit_exceeded.clone() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for BoundedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_reply = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let unanswered = Arc::clone(&self.unanswered);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            if is_reply {
                // A reply to an invalid message is not counted, so the count may be 0 already.
                let _ =
                    unanswered.try_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await?;
        if matches!(message, JsonRpcMessage::Request(_))
            && self.unanswered.fetch_add(1, Ordering::AcqRel) >= MAX_UNANSWERED_REQUESTS
        {
            let what =
                format!("sent more than {MAX_UNANSWERED_REQUESTS} requests without reading the replies");
            let message = self.limit_exceeded.report_fixed(what);
            tracing::error!("{message}");
            return None;
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), T::Error>> + Send {
        self.inner.close()
    }
}
