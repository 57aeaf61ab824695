//! The page to sign in with an API key.

use askama::Template;

use crate::asset::asset_url;

#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub struct SignInPage<'a> {
    /// Where to go afterwards.
    pub next: &'a str,
    /// Why the last attempt failed.
    pub error: Option<&'a str>,
}

impl SignInPage<'_> {
    fn asset(&self, name: &str) -> String {
        asset_url(name)
    }
}
