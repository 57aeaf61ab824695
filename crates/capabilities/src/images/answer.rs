//! What an images endpoint answers: pictures in base64 or as addresses, or an error that becomes one of ours.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::kind::Kind;
use super::shelf::Made;
use crate::Fault;

/// One picture of an answer.
#[derive(Debug)]
pub struct Found {
    pub picture: Part,
    pub revised_prompt: Option<String>,
}

#[derive(Debug)]
pub enum Part {
    Bytes(Vec<u8>),
    At(String),
}

/// The longest text of a service that is handed on.
const LONGEST: usize = 300;

/// Reads an answer as the fetcher gives it.
pub fn read(answered: &Value) -> Result<Vec<Found>, Fault> {
    let status = answered["status"].as_u64().unwrap_or_default();
    let text = answered["body"].as_str().unwrap_or_default();
    let parsed = match &answered["json"] {
        Value::Null => serde_json::from_str(text).unwrap_or_default(),
        json => json.clone(),
    };
    if !(200..300).contains(&status) {
        return Err(failure(status, &parsed));
    }
    let unclear =
        || Fault::timeout("the image service has answered with something that is no list of pictures");
    let items = parsed["data"].as_array().ok_or_else(unclear)?;
    items.iter().map(|item| found(item).ok_or_else(unclear)).collect()
}

fn found(item: &Value) -> Option<Found> {
    let revised_prompt = item["revised_prompt"].as_str().map(str::to_owned);
    let picture = match (item["b64_json"].as_str(), item["url"].as_str()) {
        (Some(encoded), _) => Part::Bytes(STANDARD.decode(encoded.trim()).ok()?),
        (None, Some(url)) => match url.strip_prefix("data:") {
            Some(data) => Part::Bytes(STANDARD.decode(data.split_once(";base64,")?.1).ok()?),
            None => Part::At(url.to_owned()),
        },
        (None, None) => return None,
    };
    Some(Found { picture, revised_prompt })
}

/// The bytes of an answer with a picture: the fetcher gives what is no text in base64.
pub fn body(answered: &Value) -> Option<Vec<u8>> {
    answered["ok"].as_bool().filter(|ok| *ok)?;
    STANDARD.decode(answered["body"].as_str()?).ok()
}

/// A picture of a known kind that is not too large.
pub fn checked(bytes: Vec<u8>, revised_prompt: Option<String>, most: usize) -> Result<Made, Fault> {
    if bytes.len() > most {
        return Err(Fault::timeout(format!("a picture has more than {most} bytes")));
    }
    let (kind, width, height) =
        Kind::of(&bytes).ok_or_else(|| Fault::timeout("a picture is neither PNG, JPEG nor WebP"))?;
    Ok(Made { bytes, kind, width, height, revised_prompt })
}

fn failure(status: u64, answer: &Value) -> Fault {
    let error = &answer["error"];
    let word = |name: &str| error[name].as_str().unwrap_or_default();
    let message = match error["message"].as_str().or_else(|| error.as_str()) {
        Some(message) => message.chars().take(LONGEST).collect(),
        None => format!("the image service has answered with status {status}"),
    };
    let is_refused = ["content_policy", "moderation", "safety", "content_filter"]
        .iter()
        .any(|sign| word("code").contains(sign) || word("type").contains(sign));
    match status {
        _ if is_refused => Fault::new("REJECTED", message),
        // Money that is used up does not come back by waiting.
        429 if word("code") == "insufficient_quota" || word("type") == "insufficient_quota" => {
            Fault::new("FORBIDDEN", message)
        }
        429 => Fault::new("RATE_LIMIT", message),
        401 | 403 => Fault::new("FORBIDDEN", "the image service does not accept the key".to_owned()),
        // Another address, or a model that the service does not have: no argument mends that.
        300..400 | 404 | 405 => {
            Fault::new("NOT_CONFIGURED", format!("check `[images] url` and `model`: {message}"))
        }
        400 | 413 | 422 => Fault::invalid(message),
        _ => Fault::timeout(message),
    }
}
