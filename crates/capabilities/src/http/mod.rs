//! `http.fetch` for handlers (docs/reference/capabilities.md, "Network and Composition") and the guard against
//! server-side request forgery. It knows URLs, addresses and one request at a time; it must not know tools or sessions.
//!
//! # What an entry of the allow list permits
//!
//! | entry | permits |
//! |---|---|
//! | `api.example.com` | https on 443 |
//! | `api.example.com:8443` | https on 8443 |
//! | `api.example.com:80`, `http://api.example.com` | http on 80 |
//! | `http://api.example.com:8080`, `https://…:8443` | that scheme on that port |
//! | `*.example.com` (with scheme or port as above) | every subdomain, not `example.com` itself |
//! | `10.0.0.5` (a private or loopback address) | http on 80 and https on 443 |
//! | `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` | http and https on that port |
//!
//! Plain http to a public host must be written out, because it would send a handler's API keys unencrypted. Addresses
//! that are not public are permitted only by an entry with the address itself, or `localhost` with a port. A *name*
//! never resolves to one, whatever DNS answers.
//!
//! # Why DNS rebinding does not work
//!
//! Each connection resolves its name once. `DnsGuard` does it inside the HTTP client, rejects the whole answer if one
//! address in it is not public, and the client connects to an address of that same answer. Pooled connections are keyed
//! by scheme, host and port, and the permitted addresses depend on the name alone, so tools can share a pool.
//!
//! # Error codes
//!
//! `UNREACHABLE` means that there were no side effects, so it is used only while no request has been sent. Every later
//! failure, including a connection that breaks in the middle of a response, is `TIMEOUT` (side effects are possible).

mod address;
mod allow_entry;
mod allow_list;
mod dns_guard;
mod fetcher;
mod http_client;
mod redirect;
mod request;
mod response;

pub(crate) use allow_entry::is_localhost;
pub use allow_list::{AllowList, Methods};
pub use fetcher::{Fetcher, Options};
pub use http_client::{service_client, system_tls};

#[cfg(test)]
pub(crate) mod tests;
