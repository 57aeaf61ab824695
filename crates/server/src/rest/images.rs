//! `GET /images/{imageName}`: the images that tools have made. The URL is the permission: a browser that embeds an
//! image sends no key, and the name has 128 random bits. No other file of the directory is served.

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use toolwright_orchestrator::capabilities::images::{ImageStore, is_image_name};

use crate::body;
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};

/// An image never changes, and must not be cached by shared proxies.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

pub(crate) async fn get(request: ApiRequest<'_>) -> ApiResult {
    let missing = || Problem::not_found("Image", request.parameter);
    let name = request.parameter.to_owned();
    let dir = request.app.options.images.as_ref().filter(|_| is_image_name(&name)).ok_or_else(missing)?;
    let store = ImageStore::new(dir);
    let read = tokio::task::spawn_blocking(move || store.read(&name)).await;
    let read = read.map_err(|_| Problem::internal())?;
    let (kind, bytes) = read.ok_or_else(missing)?;
    let mut response = body::response(kind.media_type(), bytes);
    response.headers_mut().extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(response)
}
