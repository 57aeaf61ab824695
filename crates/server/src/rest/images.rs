//! `GET /images/{imageName}`: the pictures that tools have made. Whoever has an address may see its picture: a browser or a
//! phone that shows it sends no key, and the name is 128 random bits. Nothing else of the directory is served.

use std::path::Path;

use hyper::Response;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use toolwright_orchestrator::capabilities::images::{ImageStore, is_image_name};

use crate::body::Body;
use crate::dispatch::{Answer, Asked};
use crate::problem::{Kind, Problem};

/// A picture never changes, and is nobody's but its users'.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "private, max-age=31536000, immutable"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
];

pub(crate) async fn get(asked: &Asked<'_>) -> Answer {
    let missing = || Problem::not_found("image");
    let dir =
        asked.app.options.images.as_deref().filter(|_| is_image_name(asked.parameter)).ok_or_else(missing)?;
    let (store, name) = (ImageStore::new(Path::new(dir)), asked.parameter.to_owned());
    let read = tokio::task::spawn_blocking(move || store.read(&name)).await;
    let read = read.map_err(|_| Problem::new(Kind::Internal, "The cause is in the log."))?;
    let (kind, bytes) = read.ok_or_else(missing)?;
    let mut response = Response::new(Body::whole(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind.media_type()));
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(response)
}
