//! Parses the response of an images endpoint: images in base64 or as URLs, or an error that is mapped to a capability
//! code.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::image_store::StoredImage;
use crate::{CapabilityError, Result};

/// One image of a response.
#[derive(Debug)]
pub struct ImageItem {
    pub source: ImageSource,
    pub revised_prompt: Option<String>,
}

#[derive(Debug)]
pub enum ImageSource {
    Bytes(Vec<u8>),
    Url(String),
}

/// The length to which error messages of the service are truncated.
const MAX_MESSAGE_CHARS: usize = 300;

/// Parses a response in the form that the fetcher returns.
pub fn parse(response: &Value) -> Result<Vec<ImageItem>> {
    let status = response["status"].as_u64().unwrap_or_default();
    let body = match &response["json"] {
        Value::Null => {
            serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or_default()
        }
        json => json.clone(),
    };
    if !(200..300).contains(&status) {
        let wait = response["headers"]["retry-after"].as_str();
        return Err(service_error(status, &body).retry_after(wait));
    }
    let invalid = || CapabilityError::timeout("the response of the image service is not a list of images");
    let items = body["data"].as_array().ok_or_else(invalid)?;
    items.iter().map(|item| parse_item(item).ok_or_else(invalid)).collect()
}

fn parse_item(item: &Value) -> Option<ImageItem> {
    let revised_prompt = item["revised_prompt"].as_str().map(str::to_owned);
    let source = match (item["b64_json"].as_str(), item["url"].as_str()) {
        (Some(encoded), _) => ImageSource::Bytes(STANDARD.decode(encoded.trim()).ok()?),
        (None, Some(url)) => match url.strip_prefix("data:") {
            Some(data) => ImageSource::Bytes(STANDARD.decode(data.split_once(";base64,")?.1).ok()?),
            None => ImageSource::Url(url.to_owned()),
        },
        (None, None) => return None,
    };
    Some(ImageItem { source, revised_prompt })
}

/// The bytes of a downloaded image, which the fetcher returns in base64.
pub fn decode_body(response: &Value) -> Option<Vec<u8>> {
    response["ok"].as_bool().filter(|ok| *ok)?;
    STANDARD.decode(response["body"].as_str()?).ok()
}

/// Checks the format and size of an image.
pub fn check_image(
    bytes: Vec<u8>,
    revised_prompt: Option<String>,
    max_bytes: usize,
) -> Result<(StoredImage, Vec<u8>)> {
    if bytes.len() > max_bytes {
        return Err(CapabilityError::timeout(format!(
            "an image is larger than the limit of {max_bytes} bytes"
        )));
    }
    let image = StoredImage::new(&bytes, revised_prompt)?;
    let image = image.ok_or_else(|| CapabilityError::timeout("an image is neither PNG, JPEG nor WebP"))?;
    Ok((image, bytes))
}

fn service_error(status: u64, body: &Value) -> CapabilityError {
    let error = &body["error"];
    let field = |name: &str| error[name].as_str().unwrap_or_default();
    let message = match error["message"].as_str().or_else(|| error.as_str()) {
        Some(message) => message.chars().take(MAX_MESSAGE_CHARS).collect(),
        None => format!("the image service responded with status {status}"),
    };
    let is_rejected = ["content_policy", "moderation", "safety", "content_filter"]
        .iter()
        .any(|word| field("code").contains(word) || field("type").contains(word));
    match status {
        _ if is_rejected => CapabilityError::new("REJECTED", message),
        // A used-up quota is not worth a retry.
        429 if field("code") == "insufficient_quota" || field("type") == "insufficient_quota" => {
            CapabilityError::new("FORBIDDEN", message)
        }
        429 => CapabilityError::new("RATE_LIMIT", message),
        401 | 403 => CapabilityError::new("FORBIDDEN", "the image service rejects the API key"),
        // A wrong URL or an unknown model: no argument of the tool can fix that.
        300..400 | 404 | 405 => {
            CapabilityError::not_configured(format!("check `[images] url` and `model`: {message}"))
        }
        400 | 413 | 422 => CapabilityError::invalid(message),
        _ => CapabilityError::timeout(message),
    }
}
