//! The DNS resolver of the HTTP client: returns only public addresses. It must not know requests or allow lists,
//! because connections are shared by all tools.

use crate::http::address;
use crate::http::allow_entry::is_localhost;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

pub(crate) type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How names are resolved and which addresses are public; tests replace both.
#[derive(Clone)]
pub(crate) struct DnsGuard {
    pub(crate) lookup: Arc<dyn Fn(String) -> LookupFuture + Send + Sync>,
    pub(crate) is_public: fn(IpAddr) -> bool,
    /// A name that the operator has configured: it may resolve to a private address.
    pub(crate) configured_host: Option<Arc<str>>,
}

impl DnsGuard {
    pub(crate) fn system() -> Self {
        let lookup: Arc<dyn Fn(String) -> LookupFuture + Send + Sync> =
            Arc::new(|name| Box::pin(resolve_by_system(name)));
        Self { lookup, is_public: address::is_public, configured_host: None }
    }
}

async fn resolve_by_system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

/// The name resolves to an address that is not public. The address is left out, so that handlers cannot probe DNS.
#[derive(Debug, thiserror::Error)]
#[error("the name resolves to an address that is not public")]
pub(crate) struct NotPublic;

impl Resolve for DnsGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            // DNS is not asked: `localhost` is always this machine.
            if is_localhost(name) {
                return Ok(socket_addresses(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
            }
            let addresses = (guard.lookup)(name.to_owned()).await?;
            // One private address rejects the whole answer: a mixed answer is a rebinding attempt or a mistake, and
            // the connector chooses which address it uses.
            let is_configured = guard.configured_host.as_deref() == Some(name);
            if !is_configured && !addresses.iter().all(|address| (guard.is_public)(*address)) {
                return Err(NotPublic.into());
            }
            Ok(socket_addresses(addresses))
        })
    }
}

/// Port 0 means the port of the URL.
fn socket_addresses(addresses: Vec<IpAddr>) -> Addrs {
    Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)))
}
