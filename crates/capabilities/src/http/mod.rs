//! The `http.fetch` capability of tool handlers (docs/reference/capabilities.md, "Network and Composition") and its guard.
//! It knows URLs, addresses and one request at a time; it must not know tools, sessions or the JavaScript engine.
//!
//! # What an entry of the allow list opens
//!
//! | entry | opens |
//! |---|---|
//! | `api.example.com` | https on 443 |
//! | `api.example.com:8443` | https on 8443 |
//! | `api.example.com:80`, `http://api.example.com` | http on 80 |
//! | `http://api.example.com:8080`, `https://…:8443` | that scheme on that port |
//! | `*.example.com` (with scheme or port as above) | every sub-domain, not `example.com` itself |
//! | `10.0.0.5` (a private or loopback address) | http on 80 and https on 443 |
//! | `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` | http and https on that port |
//!
//! Plain http to the outside has to be asked for, because a handler's keys would travel in the clear. Addresses that are
//! not public are reached only by an entry that names the address itself, or `localhost` with a port; a *name* never
//! leads to one, whatever DNS says.
//!
//! # Why a name cannot be rebound
//!
//! There is one lookup for each connection. `lookup::Guard` makes it inside the HTTP client, refuses the answer as a
//! whole if one address in it is not public, and the client connects to that very answer. Pooled connections are keyed
//! by scheme, host and port, and what a host may resolve to depends on its name alone, so that a connection opened for
//! one tool is the one that any other tool admitted to the same host and port would have got.
//!
//! # Why the codes are what they are
//!
//! `UNREACHABLE` promises that nothing was done, so it is used only while no request has been sent. All that goes wrong
//! afterwards is `TIMEOUT` ("effects are possible"), a connection that breaks in the middle of an answer included.

mod address;
mod allow;
mod client;
mod entry;
mod fetcher;
mod lookup;
mod redirect;
mod request;
mod response;

pub use allow::{AllowList, Methods};
pub use client::for_service;
pub(crate) use entry::is_localhost;
pub use fetcher::{Fetcher, Options};

#[cfg(test)]
pub(crate) mod tests;
