//! Text and values of a file as messages show them: on one line, visible and bounded in length.

use serde_json::Value;

use toolwright_contract::escape::is_hidden;

const MAX_CHARACTERS: usize = 200;

/// The text on one line, at most 200 characters of it.
pub(crate) fn excerpt(text: &str) -> String {
    let visible = |c: char| if is_hidden(c) { ' ' } else { c };
    let mut out: String = text.chars().take(MAX_CHARACTERS).map(visible).collect();
    if text.chars().nth(MAX_CHARACTERS).is_some() {
        out.push('…');
    }
    out
}

/// A scalar as JSON; of an array or object only its type.
pub(crate) fn value_excerpt(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => excerpt(&scalar.to_string()),
    }
}
