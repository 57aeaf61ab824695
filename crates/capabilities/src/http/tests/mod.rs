//! Tests of the whole capability against tiny servers on loopback; nothing here talks to any other address.

mod address;
mod allow;
mod answers;
mod arguments;
mod guard;
mod limits;
mod redirects;
pub(crate) mod server;
mod tls;

use crate::Fault;
use crate::http::lookup::Guard;
use crate::http::{AllowList, Fetcher, Options, client};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn options() -> Options {
    Options {
        connect_timeout: Duration::from_secs(5),
        total_timeout: Duration::from_secs(20),
        max_response_bytes: 1000,
        max_request_bytes: 1000,
        max_redirects: 3,
    }
}

/// In these tests 127.0.0.2 plays the public internet, and nothing else is public.
pub(crate) fn plays_public(address: IpAddr) -> bool {
    address == IpAddr::from([127, 0, 0, 2])
}

/// A fetcher for which DNS is the function `names`.
pub(crate) fn fetcher_with(
    names: impl Fn(&str) -> Vec<[u8; 4]> + Send + Sync + 'static,
    options: Options,
) -> Fetcher {
    let names = Arc::new(names);
    let lookup = Arc::new(move |name: String| {
        let answer = names(&name).into_iter().map(IpAddr::from).collect();
        Box::pin(std::future::ready(Ok(answer))) as crate::http::lookup::Answer
    });
    Fetcher::with_guard(options, Guard { lookup, is_public: plays_public, trusted: None }, client::no_trust)
        .unwrap()
}

/// `public.test` and what is below it are at 127.0.0.2, `private.test` is at 127.0.0.1; no other name exists.
pub(crate) fn fetcher() -> Fetcher {
    fetcher_with(known_names, options())
}

pub(crate) fn known_names(name: &str) -> Vec<[u8; 4]> {
    match name {
        "private.test" => vec![[127, 0, 0, 1]],
        "mixed.test" => vec![[127, 0, 0, 2], [127, 0, 0, 1]],
        name if name.ends_with("public.test") => vec![[127, 0, 0, 2]],
        _ => vec![],
    }
}

pub(crate) fn allow(entries: &[&str]) -> AllowList {
    AllowList::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
}

pub(crate) async fn get(fetcher: &Fetcher, allow: &AllowList, url: &str) -> Result<Value, Fault> {
    fetcher.fetch(allow, &[json!(url)]).await
}

pub(crate) fn code(result: Result<Value, Fault>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.code,
    }
}
