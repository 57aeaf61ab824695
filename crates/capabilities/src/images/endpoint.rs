//! Sends a request to an endpoint with OpenAI's images API, and downloads the images that it returns as URLs.

use std::time::Duration;

use serde_json::{Map, Value, json};
use url::{Host, Url};

use super::api_response::{self, ImageSource};
use super::image_store::StoredImage;
use super::{GenerateRequest, Options};
use crate::http::{self, AllowList, Fetcher, Methods, is_localhost};
use crate::{CapabilityError, Result, Secret};

/// How to configure an image service. Models read it too and tell the user.
pub(super) const SETUP_HELP: &str = "write `[images] url = \"https://api.openai.com/v1\"` \
     and `model` into toolwright.toml, and the key into the variable that `key_env` names (docs/reference/configuration.md, Images)";

/// The response holds at most this many images in base64, and this many bytes of other JSON.
const MAX_IMAGES: usize = 4;
const MAX_JSON_BYTES: usize = 64 << 10;

/// The fetcher for this endpoint. Its limits are higher than those of handlers, and the configured host may be private.
pub(super) fn create_fetcher(options: &Options) -> Result<Fetcher, String> {
    let endpoint = endpoint_url(options)?;
    let limits = http::Options {
        total_timeout: options.timeout,
        max_response_bytes: (options.max_bytes / 3 * 4 + 4).saturating_mul(MAX_IMAGES) + MAX_JSON_BYTES,
        ..http::Options::default()
    };
    Fetcher::for_configured_host(limits, endpoint.host_str().unwrap_or_default())
}

/// `<url>/images/generations`.
fn endpoint_url(options: &Options) -> Result<Url, String> {
    let base = options.url.as_deref().unwrap_or_default().trim_end_matches('/');
    let url = Url::parse(&format!("{base}/images/generations")).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it is not an http(s) URL".to_owned());
    }
    Ok(url)
}

/// The host of the endpoint, for the log.
pub(super) fn host(options: &Options) -> String {
    endpoint_url(options).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Requests images and downloads those that are returned as URLs.
pub(super) async fn generate(
    fetcher: &Fetcher,
    options: &Options,
    request: &GenerateRequest,
    timeout: Duration,
) -> Result<Vec<(StoredImage, Vec<u8>)>> {
    let late =
        |_| CapabilityError::timeout(format!("no complete response within {} ms", timeout.as_millis()));
    tokio::time::timeout(timeout, send(fetcher, options, request)).await.map_err(late)?
}

async fn send(
    fetcher: &Fetcher,
    options: &Options,
    request: &GenerateRequest,
) -> Result<Vec<(StoredImage, Vec<u8>)>> {
    let endpoint = endpoint_url(options).map_err(CapabilityError::not_configured)?;
    let mut headers = Map::new();
    if let Some(Secret(key)) = &options.key {
        headers.insert("authorization".to_owned(), format!("Bearer {key}").into());
    }
    let init = json!({ "method": "POST", "headers": headers, "body": request_body(options, request) });
    let allow = allow_host_of(&endpoint)?;
    let response = fetcher.fetch(&allow, &[endpoint.as_str().into(), init]).await.map_err(map_fetch_error)?;
    let mut images = Vec::new();
    for item in api_response::parse(&response)?.into_iter().take(request.count) {
        let bytes = match item.source {
            ImageSource::Bytes(bytes) => bytes,
            ImageSource::Url(url) => download(fetcher, &endpoint, &url).await?,
        };
        images.push(api_response::check_image(bytes, item.revised_prompt, options.max_bytes)?);
    }
    if images.is_empty() {
        return Err(CapabilityError::timeout("the image service returned no image"));
    }
    Ok(images)
}

/// The ids of the models that the service offers to this key; `None` if it has no list of them.
pub(super) async fn models(fetcher: &Fetcher, options: &Options) -> Result<Option<Vec<String>>> {
    let endpoint = endpoint_url(options).map_err(CapabilityError::not_configured)?;
    let base = options.url.as_deref().unwrap_or_default().trim_end_matches('/');
    let mut headers = Map::new();
    if let Some(Secret(key)) = &options.key {
        headers.insert("authorization".to_owned(), format!("Bearer {key}").into());
    }
    let allow = allow_host_of(&endpoint)?.with_methods(Methods::ReadOnly);
    let request = [format!("{base}/models").into(), json!({ "headers": headers })];
    let response = fetcher.fetch(&allow, &request).await.map_err(map_fetch_error)?;
    match response["status"].as_u64() {
        Some(401 | 403) => Err(CapabilityError::new("FORBIDDEN", "the service refuses the key")),
        Some(500..) => Err(CapabilityError::unreachable(format!("status {}", response["status"]))),
        Some(200) => Ok(response["json"]["data"].as_array().map(|models| {
            models.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect()
        })),
        _ => Ok(None),
    }
}

/// Only fields that every such endpoint knows, and those that the configured model needs.
fn request_body(options: &Options, request: &GenerateRequest) -> Value {
    let GenerateRequest { prompt, size, count, quality } = request;
    let model = options.model.as_deref().unwrap_or_default();
    let is_gpt = model.starts_with("gpt-image");
    // The gpt-image models have narrower formats and reject other sizes.
    let size = match size.as_str() {
        "1792x1024" if is_gpt => "1536x1024",
        "1024x1792" if is_gpt => "1024x1536",
        size => size,
    };
    let mut body = json!({ "prompt": prompt, "n": count, "size": size });
    if !model.is_empty() {
        body["model"] = model.into();
    }
    // The default quality is left out, because its names differ: gpt-image says "high" for "hd".
    if quality == "hd" {
        body["quality"] = if is_gpt { "high".into() } else { "hd".into() };
    }
    // The gpt-image models always return base64 and reject this field.
    if !is_gpt {
        body["response_format"] = "b64_json".into();
    }
    body
}

/// Downloads an image from the endpoint's own origin, or from any public host by https.
async fn download(fetcher: &Fetcher, endpoint: &Url, url: &str) -> Result<Vec<u8>> {
    let refused = || CapabilityError::timeout("the image service returned a URL that is not fetched");
    let url = Url::parse(url).map_err(|_| refused())?;
    let is_own = url.origin() == endpoint.origin();
    let is_remote = |name: &str| !is_localhost(name.trim_end_matches('.'));
    let is_public =
        url.scheme() == "https" && matches!(url.host(), Some(Host::Domain(name)) if is_remote(name));
    if !is_own && !is_public {
        return Err(refused());
    }
    let allow = allow_host_of(&url).map_err(|_| refused())?.with_methods(Methods::ReadOnly);
    // The images were generated and charged, so every failure is a `TIMEOUT`.
    let failed = |why: &str| CapabilityError::timeout(format!("an image was not fetched: {why}"));
    let response =
        fetcher.fetch(&allow, &[url.as_str().into()]).await.map_err(|error| failed(&error.message))?;
    api_response::decode_body(&response).ok_or_else(|| failed("the response was not a success"))
}

/// An allow list with the host of this URL alone.
fn allow_host_of(url: &Url) -> Result<AllowList> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    AllowList::parse(&[format!("{}://{host}:{port}", url.scheme())]).map_err(CapabilityError::not_configured)
}

/// A response that is too large comes after images were generated; other refusals come from the configuration.
fn map_fetch_error(error: CapabilityError) -> CapabilityError {
    match error.code {
        "NOT_ALLOWED" if error.message.contains("larger") => CapabilityError::timeout(error.message),
        "NOT_ALLOWED" => CapabilityError::not_configured(format!("`[images] url`: {}", error.message)),
        _ => error,
    }
}
