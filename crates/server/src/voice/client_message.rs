//! The messages of a client, strictly read: an error names the field.

use serde_json::{Map, Value};
use toolwright_agent::voice::{ClientInput, SAMPLE_RATES};

/// The protocol's version.
pub(super) const VERSION: u64 = 1;
const MAX_TEXT_CHARS: usize = 8000;
const MAX_ID_BYTES: usize = 256;

/// A text frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClientMessage {
    Start(Start),
    Input(ClientInput),
    Ping { id: Option<String> },
}

/// The first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub session: Option<String>,
    pub resume_token: Option<String>,
    pub client_id: Option<String>,
    pub input_rate: u32,
    pub output_rate: u32,
    pub language: Option<String>,
}

/// A message that breaks the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtocolError {
    pub code: &'static str,
    pub message: String,
    pub field: Option<String>,
}

impl ProtocolError {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: None }
    }

    fn field(code: &'static str, field: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), field: Some(field.chars().take(100).collect()) }
    }
}

/// Types with their fields.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "start",
        &[
            "version",
            "sessionId",
            "resumeToken",
            "clientId",
            "inputSampleRate",
            "outputSampleRate",
            "language",
        ],
    ),
    ("played", &["item", "ms"]),
    ("farewell_played", &[]),
    ("interrupt", &[]),
    ("confirm", &["id", "approved"]),
    ("text", &["text"]),
    ("mute", &["muted"]),
    ("stop", &[]),
    ("ping", &["id"]),
];

pub(super) fn parse(text: &str) -> Result<ClientMessage, ProtocolError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        ProtocolError::new("invalid_json", format!("A text frame must be one JSON object: {error}."))
    })?;
    let Value::Object(members) = value else {
        return Err(ProtocolError::new("invalid_json", "A text frame must be one JSON object."));
    };
    let kind = required(&members, "type", Value::as_str, "a string")?.to_owned();
    let Some((_, fields)) = FIELDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<&str> = FIELDS.iter().map(|(known, _)| *known).collect();
        let kind: String = kind.chars().take(100).collect();
        let message = format!("There is no message of type `{kind}`; there are {}.", known.join(", "));
        return Err(ProtocolError::field("unknown_type", "type", message));
    };
    if let Some(unknown) = members.keys().find(|name| *name != "type" && !fields.contains(&name.as_str())) {
        let message = format!("`{kind}` has no field `{}`.", unknown.chars().take(100).collect::<String>());
        return Err(ProtocolError::field("unknown_field", unknown, message));
    }
    let text = |name: &str| required(&members, name, Value::as_str, "a string").map(str::to_owned);
    let flag = |name: &str| required(&members, name, Value::as_bool, "true or false");
    Ok(ClientMessage::Input(match kind.as_str() {
        "start" => return start(&members).map(ClientMessage::Start),
        "ping" => return Ok(ClientMessage::Ping { id: optional(&members, "id")? }),
        "played" => {
            let ms = required(&members, "ms", Value::as_u64, "a whole number of milliseconds")?;
            ClientInput::Played { item: text("item")?, ms }
        }
        "confirm" => ClientInput::Confirm { id: text("id")?, approved: flag("approved")? },
        "text" => text_input(text("text")?)?,
        "mute" => ClientInput::Mute(flag("muted")?),
        "farewell_played" => ClientInput::FarewellPlayed,
        "interrupt" => ClientInput::Interrupt,
        _ => ClientInput::Stop,
    }))
}

fn text_input(text: String) -> Result<ClientInput, ProtocolError> {
    let count = text.chars().count();
    if text.trim().is_empty() || count > MAX_TEXT_CHARS {
        let message = format!("`text` must have 1 to {MAX_TEXT_CHARS} characters, not {count}.");
        return Err(ProtocolError::field("invalid_field", "text", message));
    }
    Ok(ClientInput::Text(text))
}

fn start(members: &Map<String, Value>) -> Result<Start, ProtocolError> {
    let version = required(members, "version", Value::as_u64, "a number")?;
    if version != VERSION {
        let message = format!("`version` must be {VERSION}, not {version}.");
        return Err(ProtocolError::field("invalid_field", "version", message));
    }
    let language = optional(members, "language")?;
    let is_tag = |tag: &String| {
        (2..=35).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if language.as_ref().is_some_and(|tag| !is_tag(tag)) {
        let message = "`language` must be a BCP 47 tag such as `de` or `pt-BR`.";
        return Err(ProtocolError::field("invalid_field", "language", message));
    }
    Ok(Start {
        session: optional(members, "sessionId")?,
        resume_token: optional(members, "resumeToken")?,
        client_id: optional(members, "clientId")?,
        input_rate: rate(members, "inputSampleRate", 16_000)?,
        output_rate: rate(members, "outputSampleRate", 24_000)?,
        language,
    })
}

fn rate(members: &Map<String, Value>, name: &str, default: u32) -> Result<u32, ProtocolError> {
    let Some(value) = members.get(name) else { return Ok(default) };
    let rate = value.as_u64().and_then(|rate| u32::try_from(rate).ok());
    rate.filter(|rate| SAMPLE_RATES.contains(rate)).ok_or_else(|| {
        let value: String = value.to_string().chars().take(50).collect();
        let message = format!("`{name}` must be 8000, 16000, 24000 or 48000, not {value}.");
        ProtocolError::field("invalid_field", name, message)
    })
}

fn required<'v, T>(
    members: &'v Map<String, Value>,
    name: &str,
    read: impl FnOnce(&'v Value) -> Option<T>,
    kind: &str,
) -> Result<T, ProtocolError> {
    let value = members.get(name);
    let value =
        value.ok_or_else(|| ProtocolError::field("missing_field", name, format!("`{name}` is missing.")))?;
    read(value)
        .ok_or_else(|| ProtocolError::field("invalid_field", name, format!("`{name}` must be {kind}.")))
}

fn optional(members: &Map<String, Value>, name: &str) -> Result<Option<String>, ProtocolError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && text.len() <= MAX_ID_BYTES => Ok(Some(text.clone())),
        Some(_) => {
            let message = format!("`{name}` must be a string of 1 to {MAX_ID_BYTES} bytes.");
            Err(ProtocolError::field("invalid_field", name, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_with_its_fields_and_defaults() {
        let start = parse(r#"{"type": "start", "version": 1, "language": "pt-BR"}"#).unwrap();
        let expected = Start {
            session: None,
            resume_token: None,
            client_id: None,
            input_rate: 16_000,
            output_rate: 24_000,
            language: Some("pt-BR".to_owned()),
        };
        assert_eq!(start, ClientMessage::Start(expected));
        let played = parse(r#"{"type": "played", "item": "i", "ms": 20}"#).unwrap();
        assert_eq!(played, ClientMessage::Input(ClientInput::Played { item: "i".to_owned(), ms: 20 }));
        assert_eq!(parse(r#"{"type": "ping"}"#), Ok(ClientMessage::Ping { id: None }));
    }

    #[test]
    fn a_breach_names_its_code_and_field() {
        for (text, code, field) in [
            ("RIFF", "invalid_json", None),
            ("[]", "invalid_json", None),
            ("{}", "missing_field", Some("type")),
            (r#"{"type": "shout"}"#, "unknown_type", Some("type")),
            (r#"{"type": "stop", "now": true}"#, "unknown_field", Some("now")),
            (r#"{"type": "start"}"#, "missing_field", Some("version")),
            (r#"{"type": "start", "version": 2}"#, "invalid_field", Some("version")),
            (
                r#"{"type": "start", "version": 1, "inputSampleRate": 44100}"#,
                "invalid_field",
                Some("inputSampleRate"),
            ),
            (
                r#"{"type": "start", "version": 1, "outputSampleRate": "x"}"#,
                "invalid_field",
                Some("outputSampleRate"),
            ),
            (r#"{"type": "start", "version": 1, "language": "!"}"#, "invalid_field", Some("language")),
            (r#"{"type": "start", "version": 1, "sessionId": ""}"#, "invalid_field", Some("sessionId")),
            (r#"{"type": "text", "text": " "}"#, "invalid_field", Some("text")),
            (r#"{"type": "confirm", "id": "c", "approved": "yes"}"#, "invalid_field", Some("approved")),
            (r#"{"type": "played", "item": "i", "ms": -1}"#, "invalid_field", Some("ms")),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.code, error.field.as_deref()), (code, field), "{text}");
        }
    }
}
