//! The knowledge base in voice: a whole text is too long to be spoken, so a snippet takes its place, whatever a handler
//! asks for.

use serde_json::{Map, Value, json};

/// The field as handlers request it.
pub(crate) const FULL_TEXT: &str = "full_text";
const RETURN_FIELDS: &str = "returnFields";

/// Requests snippets instead of whole texts.
pub(crate) fn request_snippets(path: &str, args: &mut [Value]) {
    let Some(request) = args.first_mut().and_then(Value::as_object_mut) else { return };
    match request.get_mut(RETURN_FIELDS) {
        Some(Value::Array(fields)) => {
            for field in fields {
                if field == FULL_TEXT {
                    *field = "snippet".into();
                }
            }
        }
        // By default `kb.get` returns whole texts, and `kb.search` returns snippets.
        None | Some(Value::Null) if path == "kb.get" => {
            request.insert(RETURN_FIELDS.to_owned(), json!(["snippet", "metadata", "url"]));
        }
        _ => {}
    }
}

/// Removes the whole texts that a back end returns without being asked.
pub(crate) fn remove_full_texts(answer: &mut Value) {
    let records = match answer {
        Value::Object(found) => found.get_mut("records").and_then(Value::as_array_mut),
        Value::Array(results) => Some(results),
        _ => None,
    };
    let records = records.into_iter().flatten().filter_map(Value::as_object_mut);
    records.for_each(|record: &mut Map<String, Value>| drop(record.remove("fullText")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippets_take_the_place_of_whole_texts() {
        let requested = |path: &str, request: Value| {
            let mut args = [request];
            request_snippets(path, &mut args);
            args[0][RETURN_FIELDS].clone()
        };
        assert_eq!(requested("kb.get", json!({ "ids": [] })), json!(["snippet", "metadata", "url"]));
        assert_eq!(requested("kb.search", json!({ "query": "q" })), Value::Null);
        let fields = json!({ "returnFields": ["url", "full_text"] });
        assert_eq!(requested("kb.search", fields.clone()), json!(["url", "snippet"]));
        assert_eq!(requested("kb.get", fields), json!(["url", "snippet"]));
    }

    #[test]
    fn whole_texts_are_removed_from_both_forms_of_answers() {
        let record = json!({ "id": "a", "snippet": "s", "fullText": "long" });
        let short = json!({ "id": "a", "snippet": "s" });
        let (mut found, mut results) = (json!({ "records": [record], "notFound": [] }), json!([record]));
        remove_full_texts(&mut found);
        remove_full_texts(&mut results);
        assert_eq!((found, results), (json!({ "records": [short], "notFound": [] }), json!([short])));
    }
}
