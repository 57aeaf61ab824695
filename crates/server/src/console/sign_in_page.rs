//! `/sign-in` and `/sign-out`: a person signs in with an API key, or with a JWT of the configured issuer.

use hyper::header::{HeaderMap, HeaderValue, ORIGIN, SET_COOKIE};
use hyper::http::request::Parts;
use toolwright_console::format::url_part;
use toolwright_console::sign_in::SignInPage;

use super::{form, page, redirect, refused_page};
use crate::auth::{COOKIE_NAME, LIFETIME_S};
use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResult};

/// The path of the sign-in page, which leads back to this request.
pub(super) fn path_for(head: &Parts) -> String {
    let wanted = head.uri.path_and_query().map_or("/", |path| path.as_str());
    if wanted == "/" { "/sign-in".to_owned() } else { format!("/sign-in?next={}", url_part(wanted)) }
}

pub(crate) async fn show(request: ApiRequest<'_>) -> ApiResult {
    let [next] = request.query(["next"])?;
    let next = own_path(next.as_deref());
    // On loopback without keys there is nothing to sign in to.
    match request.app.auth.identify(&request.head.headers).await {
        Ok(_) => Ok(redirect(next)),
        Err(_) => page(&SignInPage { next, error: None }),
    }
}

pub(crate) async fn sign_in(mut request: ApiRequest<'_>) -> ApiResult {
    let form = form::read_without_token(&mut request).await?;
    let next = own_path(form.get("next"));
    let headers = &request.head.headers;
    match request.app.auth.sign_in(form.required("key")?.trim()).await {
        Ok(id) => {
            // An earlier sign-in of this browser ends.
            request.app.auth.sign_out(headers);
            let mut response = redirect(next);
            response.headers_mut().insert(SET_COOKIE, cookie(headers, &id, LIFETIME_S)?);
            Ok(response)
        }
        Err(problem) => refused_page(&SignInPage { next, error: Some(problem.detail()) }),
    }
}

pub(crate) async fn sign_out(mut request: ApiRequest<'_>) -> ApiResult {
    form::read(&mut request).await?;
    let headers = &request.head.headers;
    request.app.auth.sign_out(headers);
    let mut response = redirect("/sign-in");
    response.headers_mut().insert(SET_COOKIE, cookie(headers, "", 0)?);
    Ok(response)
}

/// The cookie of a sign-in; `Secure` if the form was sent over TLS.
fn cookie(headers: &HeaderMap, id: &str, seconds: i64) -> Result<HeaderValue, Problem> {
    let is_tls = headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let secure = if is_tls { "; Secure" } else { "" };
    let text = format!("{COOKIE_NAME}={id}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).map_err(|error| {
        tracing::error!("cannot write the cookie of a sign-in: {error}");
        Problem::internal()
    })
}

/// A path of this server, or `/`: a link must not lead to another site after signing in.
fn own_path(next: Option<&str>) -> &str {
    let is_own = |path: &&str| {
        path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t'])
    };
    next.filter(is_own).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_signing_in_a_browser_stays_on_this_server() {
        assert_eq!(own_path(Some("/tools?q=a")), "/tools?q=a");
        for other in ["https://evil.example/", "//evil.example", "/\\evil.example", "tools", "", "/\tx"] {
            assert_eq!(own_path(Some(other)), "/", "{other:?}");
        }
    }
}
