//! Names to addresses, guarded: the HTTP client asks here whenever it opens a connection, and gets only public addresses.
//! It must not know requests or allow lists; what a name may lead to depends on the name alone.

use crate::http::address;
use crate::http::entry::is_localhost;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

pub(crate) type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Where answers come from, and what counts as public: the system and the real table, or a test's.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) lookup: Arc<dyn Fn(String) -> Answer + Send + Sync>,
    pub(crate) is_public: fn(IpAddr) -> bool,
    /// A name that the operator vouches for: it may lead into the own network.
    pub(crate) trusted: Option<Arc<str>>,
}

impl Guard {
    pub(crate) fn system() -> Self {
        let lookup: Arc<dyn Fn(String) -> Answer + Send + Sync> = Arc::new(|name| Box::pin(ask_system(name)));
        Self { lookup, is_public: address::is_public, trusted: None }
    }
}

async fn ask_system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

/// The answer holds an address that is not public. It does not say which: that is nobody's business outside.
#[derive(Debug)]
pub(crate) struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name leads to an address that is not public")
    }
}

impl std::error::Error for NotPublic {}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let name = name.as_str();
            // No question is asked: a server on this machine is opened by `localhost:port`, and is on this machine.
            if is_localhost(name) {
                return Ok(sockets(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
            }
            let addresses = (guard.lookup)(name.to_owned()).await?;
            // One bad address spoils the answer: a mixed one is a rebinding attempt or a mistake, and which of its
            // addresses would be used is up to the connector.
            let is_trusted = guard.trusted.as_deref() == Some(name);
            if !is_trusted && !addresses.iter().all(|address| (guard.is_public)(*address)) {
                return Err(NotPublic.into());
            }
            Ok(sockets(addresses))
        })
    }
}

/// Port 0 stands for the port of the URL.
fn sockets(addresses: Vec<IpAddr>) -> Addrs {
    Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)))
}
