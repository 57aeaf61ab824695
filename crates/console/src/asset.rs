//! The style sheet, the scripts and the icon, embedded in the program. Their addresses contain a digest of the content,
//! so that browsers keep them until they change.

use std::borrow::Cow;

use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "assets/"]
struct Files;

/// One file.
#[derive(Debug)]
pub struct Asset {
    pub content: Cow<'static, [u8]>,
    pub media_type: &'static str,
    /// The digest of the content, in 16 hexadecimal digits.
    pub digest: String,
}

/// The asset with this file name.
pub fn asset(name: &str) -> Option<Asset> {
    let media_type = media_type(name)?;
    let EmbeddedFile { data, metadata } = Files::get(name)?;
    Some(Asset { media_type, digest: digest(&metadata.sha256_hash()), content: data })
}

/// The address of an asset, for templates.
pub fn asset_url(name: &str) -> String {
    let digest = asset(name).map(|asset| asset.digest).unwrap_or_default();
    format!("/assets/{name}?v={digest}")
}

/// The names of all assets.
pub fn names() -> impl Iterator<Item = Cow<'static, str>> {
    Files::iter()
}

fn media_type(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "css" => Some("text/css; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

fn digest(sha256: &[u8; 32]) -> String {
    sha256[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_asset_has_a_media_type_and_a_digest_in_its_address() {
        for name in names() {
            let found = asset(&name).unwrap_or_else(|| panic!("{name} cannot be served"));
            assert_eq!(found.digest.len(), 16);
            assert_eq!(asset_url(&name), format!("/assets/{name}?v={}", found.digest));
        }
        assert!(asset("../Cargo.toml").is_none() && asset("none.css").is_none());
    }
}
