//! `/assets/{name}`: the style sheet, the scripts and the icon.

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH};
use toolwright_console::asset::asset;

use crate::body;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};

/// An address with the digest always has the same content.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Scripts import each other without a digest: the browser asks whether they have changed.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("no-cache");

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let [digest] = request.query(["v"])?;
    let asset = asset(request.parameter).ok_or_else(|| Problem::not_found("File", request.parameter))?;
    let tag = format!("\"{}\"", asset.digest);
    let is_known = request.head.headers.get(IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let mut response = match is_known {
        true => {
            let mut response = body::no_content();
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        false => body::response(asset.media_type, asset.content.into_owned()),
    };
    let headers = response.headers_mut();
    let is_exact = digest.is_some_and(|digest| digest == asset.digest);
    headers.insert(CACHE_CONTROL, if is_exact { FOREVER } else { ASK_AGAIN });
    headers.extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    Ok(response)
}
