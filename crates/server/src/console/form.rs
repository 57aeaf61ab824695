//! The forms of the console: read within the limits, and accepted only with the token of their page.

use std::borrow::Cow;

use hyper::header::CONTENT_TYPE;

use crate::auth::CSRF_HEADER;
use crate::problem::{Kind, Problem};
use crate::request::ApiRequest;

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
const TOKEN: &str = "csrf";

/// The fields of a form, in their order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// The first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(own, value)| (own == name).then_some(value.as_str()))
    }

    /// The value of a field that must be there.
    pub fn required(&self, name: &str) -> Result<&str, Problem> {
        self.get(name)
            .ok_or_else(|| Problem::new(Kind::BAD_REQUEST, format!("The form has no field `{name}`.")))
    }

    /// All fields.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Reads the form of a page. Its token comes in the field `csrf`, or in the header of a script's request.
pub(crate) async fn read(request: &mut ApiRequest<'_>) -> Result<Form, Problem> {
    let form = read_without_token(request).await?;
    let header = request.head.headers.get(&CSRF_HEADER).and_then(|token| token.to_str().ok());
    let token = header.or(form.get(TOKEN)).unwrap_or_default();
    request.app.auth.check_csrf(&request.head.headers, token)?;
    Ok(Form(form.0.into_iter().filter(|(name, _)| name != TOKEN).collect()))
}

/// Reads the form of a page that has no token yet: the one to sign in.
pub(super) async fn read_without_token(request: &mut ApiRequest<'_>) -> Result<Form, Problem> {
    let text = request.read_body().await?;
    let media_type = request.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = media_type.is_some_and(|value| value.split(';').next() == Some(MEDIA_TYPE));
    if !text.is_empty() && !is_form {
        return Err(Problem::new(Kind::BAD_REQUEST, format!("A form must have the type {MEDIA_TYPE}.")));
    }
    let fields = url::form_urlencoded::parse(&text);
    Ok(Form(fields.map(|(name, value)| (Cow::into_owned(name), Cow::into_owned(value))).collect()))
}
