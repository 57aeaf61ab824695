//! Conditions in CEL over `tool`, `mode`, `session`, `user`, `args` and `settings`, with the function `mentions`. The
//! caller decides what a condition that cannot be evaluated means.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::{Value, json};
use toolwright_registry::condition;
use toolwright_registry::condition_types::{type_errors, variables};
use unicode_normalization::UnicodeNormalization;

use crate::store::SessionRecord;

/// A compiled condition.
pub(crate) struct Condition {
    program: Program,
    source: String,
    /// Most conditions do not use `settings`.
    uses_settings: bool,
    uses_args: bool,
}

/// The variables of a condition.
#[derive(Clone, Copy)]
pub(crate) struct ConditionInput<'a> {
    pub session: &'a SessionRecord,
    pub tool: &'a str,
    pub args: &'a Value,
    /// The operator's settings for conditions.
    pub settings: &'a Value,
}

/// A variable that only the operator's rules have.
pub(crate) const TOOL: &str = "tool";
const SETTINGS: &str = "settings";
const ARGS: &str = "args";

impl Condition {
    /// Compiles a condition; the error is for the operator.
    pub fn compile(source: &str) -> Result<Self, String> {
        let program = condition::compile(source)
            .map_err(|unclear| format!("`{source}` is not a valid condition: {unclear}"))?;
        let known: Vec<&str> = condition::NAMES.iter().copied().chain([TOOL]).collect();
        let names = condition::names(&program).variables;
        let (uses_settings, uses_args) = (names.contains(SETTINGS), names.contains(ARGS));
        match condition::unknown_names(&names, &known).first() {
            Some((name, help)) => Err(format!("`{source}` uses the unknown variable `{name}`: {help}")),
            None => Ok(Self { program, source: source.to_owned(), uses_settings, uses_args }),
        }
    }

    /// Whether it depends on the arguments of a call.
    pub const fn uses_args(&self) -> bool {
        self.uses_args
    }

    /// As [`Self::compile`], for a rule of the operator, which no build has checked: its types too.
    pub fn compile_rule(source: &str) -> Result<Self, String> {
        let rule = Self::compile(source)?;
        match type_errors(&rule.program, variables(None)).first() {
            Some(problem) => Err(format!("`{source}` can never hold: {problem}")),
            None => Ok(rule),
        }
    }

    /// Whether it is true. `Err` when it cannot be evaluated.
    pub fn holds(&self, input: ConditionInput<'_>) -> Result<bool, String> {
        let ConditionInput { session, tool, args, settings } = input;
        let user = json!({ "id": session.principal.id, "org": session.principal.org, "roles": session.principal.roles });
        let about = json!({ "id": session.id, "clientId": session.client_id, "turn": session.turn,
            "mode": session.mode, "state": session.state });
        let evaluated = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::default();
            context.add_variable_from_value(TOOL, tool);
            context.add_variable_from_value("mode", session.mode.as_str());
            context.add_variable_from_value("session", cel_value(&about));
            context.add_variable_from_value("user", cel_value(&user));
            context.add_variable_from_value(ARGS, cel_value(args));
            if self.uses_settings {
                context.add_variable_from_value(SETTINGS, cel_value(settings));
            }
            // Fails only for names that CEL itself defines.
            let _ = context.add_function("mentions", mentions);
            self.program.execute(&context)
        }));
        match evaluated {
            Ok(Ok(Cel::Bool(holds))) => Ok(holds),
            Ok(Ok(_)) => Err(format!("`{}` is neither true nor false", self.source)),
            // The name of a member is quoted only where it is the condition's own text: it may be an argument's value.
            Ok(Err(ExecutionError::NoSuchKey(name))) if self.source.contains(name.as_str()) => Err(format!(
                "`{}` reads the member `{name}`, which does not exist here: guard it with `has(…)`, as in \
                 `has(session.state.x) && session.state.x`",
                self.source
            )),
            // CEL's own message may quote arguments.
            Ok(Err(_)) | Err(_) => Err(format!("`{}` cannot be evaluated", self.source)),
        }
    }
}

/// `mentions(text, words)`: whether the text contains one of the words as a whole word, in any case and Unicode form.
/// `gun*` matches all words that start with it; a phrase matches consecutive words.
fn mentions(text: Arc<String>, words: Cel) -> Result<bool, ExecutionError> {
    let Cel::List(words) = words else {
        return Err(ExecutionError::function_error(
            "mentions",
            "the second argument must be a list of words",
        ));
    };
    // An invisible character may separate two words or be inside one: both readings count.
    let (joined, separated) = (normalize_text(&text, ""), normalize_text(&text, " "));
    let readings: [Vec<&str>; 2] = [words_of(&joined).collect(), words_of(&separated).collect()];
    Ok(words.iter().any(|word| match word {
        Cel::String(word) => readings.iter().any(|words| contains_phrase(words, &normalize_text(word, ""))),
        // The list is wrong: matching is the safe result.
        _ => true,
    }))
}

fn contains_phrase(words: &[&str], phrase: &str) -> bool {
    let (phrase, is_prefix) = phrase.strip_suffix('*').map_or((phrase, false), |prefix| (prefix, true));
    let wanted: Vec<&str> = words_of(phrase).collect();
    let Some((last, before)) = wanted.split_last() else { return false };
    words.windows(wanted.len()).any(|window| {
        let Some((end, begin)) = window.split_last() else { return false };
        begin == before && if is_prefix { end.starts_with(last) } else { end == last }
    })
}

/// Normalizes a text: NFKC, lower case, and `replacement` for each invisible character.
fn normalize_text(text: &str, replacement: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_invisible(letter) {
            visible.push_str(replacement);
        } else {
            visible.push(letter);
        }
    }
    visible.nfkc().collect::<String>().to_lowercase()
}

/// Joiners, direction marks, variation selectors and tags.
const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{E0000}'..='\u{E0FFF}')
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Whole numbers become signed integers, so that `args.count > 1` compares integers; larger ones unsigned, to stay
/// exact.
fn cel_value(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(yes) => Cel::Bool(*yes),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(whole)) => Cel::UInt(whole),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(cel_value).collect())),
        Value::Object(members) => {
            let key = |name: &String| Key::String(Arc::new(name.clone()));
            let map = members.iter().map(|(name, value)| (key(name), cel_value(value))).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::session;

    fn holds(source: &str, args: &Value) -> Result<bool, String> {
        let settings = json!({ "words": ["gun*", "Self-Harm", "öl"] });
        let about = ConditionInput { session: &session("s"), tool: "tool", args, settings: &settings };
        Condition::compile(source)?.holds(about)
    }

    #[test]
    fn words_are_found_whole_and_in_any_case() {
        let found = |text: &str| holds("mentions(args.text, settings.words)", &json!({ "text": text }));
        for text in ["A GUN", "two guns!", "gunfire", "scenes of self harm", "Self-harm.", "Öl, Farbe"] {
            assert_eq!(found(text), Ok(true), "{text}");
        }
        for text in [
            "a ｇｕｎ",
            "a g\u{200B}un",
            "g\u{AD}un\u{FEFF}fire",
            "O\u{308}l",
            "buy\u{200B}guns",
            "g\u{202D}u\u{FE0F}n",
        ] {
            assert_eq!(found(text), Ok(true), "{text}");
        }
        for text in ["", "begun", "a self portrait, no harm", "Köln", "harm self"] {
            assert_eq!(found(text), Ok(false), "{text}");
        }
        assert!(holds("mentions(args.text, settings.missing)", &json!({ "text": "x" })).is_err());
        assert!(holds("mentions(args.text, 3)", &json!({ "text": "x" })).is_err());
        assert_eq!(holds("mentions(args.text, [1])", &json!({ "text": "x" })), Ok(true));
    }

    #[test]
    fn a_condition_uses_mode_session_user_and_arguments() {
        let args =
            json!({ "count": 3, "large": u64::MAX, "price": 9.5, "tags": ["a", "b"], "deep": { "x": "y" } });
        for source in [
            "mode == \"text\"",
            "args.count > 1 && args.price < 10.0",
            "args.large == 18446744073709551615u && args.large > 9223372036854775807",
            "\"a\" in args.tags && args.tags.size() == 2",
            "args.deep.x == \"y\" && !has(args.deep.z)",
            "\"staff\" in user.roles && user.org == \"studio\"",
            "session.clientId == \"client\" && session.turn == 0",
        ] {
            assert_eq!(holds(source, &args), Ok(true), "{source}");
        }
        assert_eq!(holds("mode == \"voice\"", &args), Ok(false));
    }

    #[test]
    fn a_condition_that_cannot_be_evaluated_is_an_error() {
        let args = json!({});
        for source in ["args.absent > 1", "1", "\"text\"", "args", "1 / 0 == 1", "args.x.y.z"] {
            assert!(holds(source, &args).is_err(), "{source}");
        }
    }

    #[test]
    fn a_missing_member_is_named_unless_the_name_is_a_value_of_the_arguments() {
        let missing = holds("session.state.premium == true", &json!({})).unwrap_err();
        assert!(missing.contains("the member `premium`") && missing.contains("`has(…)`"), "{missing}");
        let secret = holds("settings[args.key] == 1", &json!({ "key": "hunter2" })).unwrap_err();
        assert_eq!(secret, "`settings[args.key] == 1` cannot be evaluated");
    }

    #[test]
    fn an_invalid_condition_is_not_compiled() {
        let refused = |source: &str| Condition::compile(source).err().unwrap();
        assert_eq!(refused("mode =="), "`mode ==` is not a valid condition: it ends too early, at column 8");
        assert_eq!(
            refused("usr.id == 1"),
            "`usr.id == 1` uses the unknown variable `usr`: did you mean `user`?"
        );
        let never = Condition::compile_rule("tool.toolId == 'pay'").err().unwrap();
        assert_eq!(
            never,
            "`tool.toolId == 'pay'` can never hold: `tool` is a string, which has no member `toolId`"
        );
        assert!(Condition::compile_rule("tool == 'pay' && args.amount < 10").is_ok());
        assert!(Condition::compile("tool == \"x\" && user.roles.exists(role, role == \"y\")").is_ok());
    }
}
