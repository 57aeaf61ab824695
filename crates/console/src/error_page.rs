//! A request that failed, as a page.

use askama::Template;

use crate::asset::asset_url;

/// A page without navigation: it may be shown to anyone.
#[derive(Debug, Template)]
#[template(path = "error.html")]
pub struct ErrorPage<'a> {
    pub status: u16,
    pub title: &'a str,
    pub detail: &'a str,
    /// Finds the request in the log.
    pub request_id: &'a str,
}

impl ErrorPage<'_> {
    fn asset(&self, name: &str) -> String {
        asset_url(name)
    }
}
