//! What an approver has changed in the arguments of a call: paths, old and new values, for the audit. Values that the
//! schema marks `writeOnly` are hidden, and long ones are left out.

use serde_json::Value;

use crate::redaction;
use crate::store::ArgumentEdit;

/// In place of a `writeOnly` value.
const HIDDEN: &str = "(hidden)";
/// In place of a longer value.
const TOO_LONG: &str = "(too long)";
const MAX_VALUE_BYTES: usize = 1000;
/// More edits are not listed; the last one then has the path of all arguments.
const MAX_EDITS: usize = 50;

/// The edits that make `after` of `before`, in the order of their paths.
pub(crate) fn between(schema: &Value, before: &Value, after: &Value) -> Vec<ArgumentEdit> {
    let visible = [redaction::redacted(schema, before), redaction::redacted(schema, after)];
    let mut edits = Vec::new();
    let [visible_before, visible_after] = &visible;
    collect(
        &mut String::new(),
        &[Some(before), Some(visible_before)],
        &[Some(after), Some(visible_after)],
        &mut edits,
    );
    if edits.len() > MAX_EDITS {
        edits.truncate(MAX_EDITS - 1);
        let too_long = || Some(Value::from(TOO_LONG));
        edits.push(ArgumentEdit { path: String::new(), from: too_long(), to: too_long() });
    }
    edits
}

/// A value as it is and as it is shown; `None` if there is none at this path.
type Shown<'v> = [Option<&'v Value>; 2];

fn collect(path: &mut String, before: &Shown<'_>, after: &Shown<'_>, edits: &mut Vec<ArgumentEdit>) {
    let ([old, shown_old], [new, shown_new]) = (before, after);
    if old == new || edits.len() > MAX_EDITS {
        return;
    }
    let length = path.len();
    let mut descend = |name: &str, before: Shown<'_>, after: Shown<'_>| {
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        collect(path, &before, &after, edits);
        path.truncate(length);
    };
    match (shown_old, shown_new) {
        (Some(Value::Object(old_members)), Some(Value::Object(new_members))) => {
            let names: std::collections::BTreeSet<&String> =
                old_members.keys().chain(new_members.keys()).collect();
            for name in names {
                let [before, after] = [before, after].map(|shown| shown.map(|value| value?.get(name)));
                descend(name, before, after);
            }
        }
        (Some(Value::Array(old_items)), Some(Value::Array(new_items))) => {
            for at in 0..old_items.len().max(new_items.len()) {
                let [before, after] = [before, after].map(|shown| shown.map(|value| value?.get(at)));
                descend(&at.to_string(), before, after);
            }
        }
        _ => {
            edits.push(ArgumentEdit { path: path.clone(), from: audit_value(before), to: audit_value(after) })
        }
    }
}

/// A value for the audit.
fn audit_value([value, visible]: &Shown<'_>) -> Option<Value> {
    let (value, visible) = ((*value)?, (*visible)?);
    Some(match visible {
        _ if *visible == redaction::REDACTED && value != visible => HIDDEN.into(),
        Value::Object(_) | Value::Array(_) | Value::String(_)
            if visible.to_string().len() > MAX_VALUE_BYTES =>
        {
            TOO_LONG.into()
        }
        _ => visible.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(path: &str, from: Option<Value>, to: Option<Value>) -> ArgumentEdit {
        ArgumentEdit { path: path.to_owned(), from, to }
    }

    #[test]
    fn edits_are_listed_by_path() {
        let before = json!({ "to": "ada", "cc": ["x", "y"], "deep": { "a/b~c": 1, "same": 2 }, "old": null });
        let after =
            json!({ "to": "mira", "cc": ["x", "z", "w"], "deep": { "a/b~c": 3, "same": 2 }, "new": [1] });
        let found = between(&json!(true), &before, &after);
        assert_eq!(
            found,
            [
                edit("/cc/1", Some(json!("y")), Some(json!("z"))),
                edit("/cc/2", None, Some(json!("w"))),
                edit("/deep/a~1b~0c", Some(json!(1)), Some(json!(3))),
                edit("/new", None, Some(json!([1]))),
                edit("/old", Some(Value::Null), None),
                edit("/to", Some(json!("ada")), Some(json!("mira"))),
            ]
        );
        assert_eq!(between(&json!(true), &before, &before), []);
    }

    #[test]
    fn secrets_are_hidden_and_long_values_left_out() {
        let schema = json!({ "properties": { "pin": { "writeOnly": true } } });
        let long = "x".repeat(2000);
        let found = between(
            &schema,
            &json!({ "pin": { "code": 1 }, "text": "a" }),
            &json!({ "pin": { "code": 2 }, "text": long }),
        );
        let hidden = || Some(json!("(hidden)"));
        let expected =
            [edit("/pin", hidden(), hidden()), edit("/text", Some(json!("a")), Some(json!("(too long)")))];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_number_of_edits_is_bounded() {
        let items = |from: u64| (from..from + 100).collect::<Vec<_>>();
        let found = between(&json!(true), &json!({ "items": items(0) }), &json!({ "items": items(500) }));
        assert_eq!(found.len(), MAX_EDITS);
        assert_eq!(found[MAX_EDITS - 1].path, "");
    }
}
