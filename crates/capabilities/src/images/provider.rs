//! One request to an endpoint that speaks OpenAI's images API, and what its answers mean.

use std::time::Duration;

use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::answer::{self, Part};
use super::shelf::Made;
use super::{Options, Wanted};
use crate::Fault;
use crate::http::{self, AllowList, Fetcher, Methods, is_localhost};

/// How an image service is set up. A model reads it too, and tells the user.
pub(super) const NOT_SET_UP: &str = "write `[images] url = \"https://api.openai.com/v1\"` \
     and `model` into toolwright.toml, and the key into the variable that `key_env` names (docs/reference/configuration.md, Images)";

/// Pictures in base64, with the rest of an answer.
const MOST_AT_ONCE: usize = 4;
const REST: usize = 64 << 10;

/// The fetcher for this endpoint: the one that handlers have, but for its limits, and that the operator may name a host of
/// the own network.
pub(super) fn fetcher(options: &Options) -> Result<Fetcher, String> {
    let endpoint = endpoint(options)?;
    let limits = http::Options {
        total_timeout: options.timeout,
        max_response_bytes: (options.max_bytes / 3 * 4 + 4).saturating_mul(MOST_AT_ONCE) + REST,
        ..http::Options::default()
    };
    Fetcher::trusting(limits, endpoint.host_str().unwrap_or_default())
}

/// `<url>/images/generations`.
fn endpoint(options: &Options) -> Result<Url, String> {
    let base = options.url.as_deref().unwrap_or_default().trim_end_matches('/');
    let url = Url::parse(&format!("{base}/images/generations")).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it is no http(s) address".to_owned());
    }
    Ok(url)
}

/// Asks for pictures, and fetches those that come as addresses.
pub(super) async fn generate(
    fetcher: &Fetcher,
    options: &Options,
    wanted: &Wanted,
    within: Duration,
) -> Result<Vec<Made>, Fault> {
    let late = || Fault::timeout(format!("no whole answer within {} ms", within.as_millis()));
    tokio::time::timeout(within, request(fetcher, options, wanted)).await.map_err(|_| late())?
}

async fn request(fetcher: &Fetcher, options: &Options, wanted: &Wanted) -> Result<Vec<Made>, Fault> {
    let endpoint = endpoint(options).map_err(|error| Fault::new("NOT_CONFIGURED", error))?;
    let mut headers = Map::new();
    if let Some(key) = &options.key {
        headers.insert("authorization".to_owned(), format!("Bearer {key}").into());
    }
    let init = json!({ "method": "POST", "headers": headers, "body": body(options, wanted) });
    let allow = opened(&endpoint)?;
    let answered = fetcher.fetch(&allow, &[endpoint.as_str().into(), init]).await.map_err(oversized)?;
    let parts = answer::read(&answered)?;
    let mut made = Vec::with_capacity(parts.len());
    for part in parts.into_iter().take(wanted.count) {
        let bytes = match part.picture {
            Part::Bytes(bytes) => bytes,
            Part::At(address) => download(fetcher, &endpoint, &address).await?,
        };
        made.push(answer::checked(bytes, part.revised_prompt, options.max_bytes)?);
    }
    if made.is_empty() {
        return Err(Fault::timeout("the image service has answered without a picture"));
    }
    Ok(made)
}

/// Only members that every such endpoint knows, and those that the operator's model needs.
fn body(options: &Options, wanted: &Wanted) -> Value {
    let Wanted { prompt, size, count, quality } = wanted;
    let model = options.model.as_deref().unwrap_or_default();
    let is_gpt = model.starts_with("gpt-image");
    // Those of gpt-image are less wide, and no other size is taken.
    let size = match size.as_str() {
        "1792x1024" if is_gpt => "1536x1024",
        "1024x1792" if is_gpt => "1024x1536",
        size => size,
    };
    let mut body = json!({ "prompt": prompt, "n": count, "size": size });
    if !model.is_empty() {
        body["model"] = model.into();
    }
    // The default quality needs no word, and the words differ: gpt-image says "high" for "hd".
    if quality == "hd" {
        body["quality"] = if is_gpt { "high".into() } else { "hd".into() };
    }
    // Those of gpt-image always come in base64, and the member is refused.
    if !is_gpt {
        body["response_format"] = "b64_json".into();
    }
    body
}

/// A picture that comes as an address: from the endpoint's own host, or from anywhere public by https.
async fn download(fetcher: &Fetcher, endpoint: &Url, address: &str) -> Result<Vec<u8>, Fault> {
    let refused = || Fault::timeout("the image service has answered with an address that is not fetched");
    let url = Url::parse(address).map_err(|_| refused())?;
    let is_own = url.origin() == endpoint.origin();
    let is_elsewhere = |name: &str| !is_localhost(name.trim_end_matches('.'));
    let is_public =
        url.scheme() == "https" && matches!(url.host(), Some(Host::Domain(name)) if is_elsewhere(name));
    if !is_own && !is_public {
        return Err(refused());
    }
    let allow = opened(&url).map_err(|_| refused())?.with_methods(Methods::ReadOnly);
    let answered = fetcher.fetch(&allow, &[url.as_str().into()]).await;
    // The pictures were made, whatever goes wrong on their way here.
    let answered =
        answered.map_err(|fault| Fault::timeout(format!("a picture was not fetched: {}", fault.message)))?;
    answer::body(&answered)
        .ok_or_else(|| Fault::timeout("a picture was not fetched: the answer was no success"))
}

/// An allow list for the host of this address alone.
fn opened(url: &Url) -> Result<AllowList, Fault> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    AllowList::parse(&[format!("{}://{host}:{port}", url.scheme())])
        .map_err(|error| Fault::new("NOT_CONFIGURED", error))
}

/// Too large an answer to a request that was sent: pictures were made.
fn oversized(fault: Fault) -> Fault {
    match fault.code {
        "NOT_ALLOWED" if fault.message.contains("larger") => Fault::timeout(fault.message),
        "NOT_ALLOWED" => Fault::new("NOT_CONFIGURED", format!("`[images] url`: {}", fault.message)),
        _ => fault,
    }
}
