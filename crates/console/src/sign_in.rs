//! The page to sign in with an API key.

use askama::Template;

use crate::asset::asset_url;

#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub struct SignInPage<'a> {
    /// The path to redirect to after the sign-in.
    pub next: &'a str,
    /// The error of the last attempt.
    pub error: Option<&'a str>,
}

impl SignInPage<'_> {
    fn asset(&self, name: &str) -> String {
        asset_url(name)
    }
}
