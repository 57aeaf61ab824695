//! Cases decided by real Ajv 8: verdict, data after defaults, and errors.

use serde_json::{Value, json};
use toolwright_schema::Validator;

use crate::ajv_cases::{own_ajv_cases, read_cases};
use crate::corpora::corpus;

/// Where we differ from Ajv, case by case. The rule: where Ajv and the official suite decide the same case differently,
/// the suite is followed (`official_suite.rs` enforces it), and then the errors of other keywords in the same schema
/// differ too. Only decimals and prototypes go beyond that. `docs/decisions/0003-validation.md` has the table.
const DEVIATIONS: &[(&str, &str)] = &[
    ("errors-0029", DECIMALS),
    ("errors-0032", DECIMALS),
    ("formats-0006", MAILBOX),
    ("formats-0007", MAILBOX),
    ("formats-0008", MAILBOX),
    ("formats-0009", MAILBOX),
    ("formats-0010", MAILBOX),
    ("formats-0045", RFC_3339),
    ("formats-0046", RFC_3339),
    ("formats-0047", RFC_3339),
    ("formats-0086", RFC_3986),
    ("formats-0087", RFC_3986),
    ("formats-0088", RFC_3986),
    ("formats-0105", UUID),
    ("formats-0329", DURATION),
    ("formats-0332", DURATION),
    ("formats-0352", ROOT_DOT),
    ("formats-0364", A_LABEL),
    ("formats-0366", A_LABEL),
    ("formats-0367", A_LABEL),
    ("formats-0368", A_LABEL),
    ("formats-0369", A_LABEL),
    ("formats-0372", A_LABEL),
    ("formats-0373", A_LABEL),
    ("formats-0374", A_LABEL),
    ("formats-0375", A_LABEL),
    ("formats-0376", A_LABEL),
    ("formats-0377", A_LABEL),
    ("formats-0379", A_LABEL),
    ("formats-0380", A_LABEL),
    ("formats-0382", A_LABEL),
    ("formats-0383", A_LABEL),
    ("formats-0385", A_LABEL),
    ("formats-0386", A_LABEL),
    ("formats-0388", A_LABEL),
    ("formats-0389", A_LABEL),
    ("formats-0393", A_LABEL),
    ("formats-0396", A_LABEL),
    ("formats-0397", A_LABEL),
    ("formats-0401", A_LABEL),
    ("formats-0417", RFC_3986),
    ("formats-0418", RFC_3986),
    ("formats-0419", RFC_3986),
    ("formats-0420", RFC_3986),
    ("formats-0421", RFC_3986),
    ("formats-0422", RFC_3986),
    ("formats-0481", RFC_6570),
    ("formats-0487", RFC_6570),
    ("formats-0491", RFC_6570),
    ("json_schema_suite-0153", DYNAMIC),
    ("json_schema_suite-0154", DYNAMIC),
    ("json_schema_suite-0155", DYNAMIC),
    ("json_schema_suite-0156", DYNAMIC),
    ("json_schema_suite-0159", DYNAMIC),
    ("json_schema_suite-0160", DYNAMIC),
    ("json_schema_suite-0162", DYNAMIC),
    ("json_schema_suite-0163", DYNAMIC),
    ("json_schema_suite-0164", DYNAMIC),
    ("json_schema_suite-0165", DYNAMIC),
    ("json_schema_suite-0166", DYNAMIC),
    ("json_schema_suite-0167", DYNAMIC),
    ("json_schema_suite-0178", DYNAMIC),
    ("json_schema_suite_typed-0114", DYNAMIC),
    ("json_schema_suite_typed-0117", DYNAMIC),
    ("json_schema_suite_typed-0122", DYNAMIC),
    ("json_schema_suite_typed-0123", DYNAMIC),
    ("json_schema_suite_typed-0455", PROTOTYPE),
    ("json_schema_suite_typed-0456", PROTOTYPE),
    ("json_schema_suite_typed-0457", PROTOTYPE),
    ("json_schema_suite_typed-0458", PROTOTYPE),
    ("json_schema_suite_typed-0549", UNEVALUATED),
    ("json_schema_suite_typed-0550", UNEVALUATED),
    ("json_schema_suite_typed-0566", CONTAINS),
    ("json_schema_suite_typed-0608", UNEVALUATED),
    ("json_schema_suite_typed-0609", UNEVALUATED),
    ("json_schema_suite_typed-0611", UNEVALUATED),
    ("use_defaults-0104", PROTOTYPE),
];

const A_LABEL: &str = "Ajv accepts every label that starts with `xn--`; IDNA 2008 says which are host names";
const CONTAINS: &str = "in Ajv, `contains` evaluates all items and not only the matching ones";
const DECIMALS: &str = "Ajv divides binary floats and refuses 0.07 for multipleOf 0.01";
const DURATION: &str = "Ajv lets a unit between two others be left out; the grammar of RFC 3339 does not";
const DYNAMIC: &str =
    "Ajv treats most `$dynamicRef` as a reference to the root; the specification is followed";
const MAILBOX: &str = "Ajv refuses the quoted local parts and address literals of RFC 5321";
const PROTOTYPE: &str = "Ajv finds properties of JavaScript's prototypes in every object";
const RFC_3339: &str = "Ajv accepts offsets without minutes and an hour 24, and rounds fractions of seconds";
const RFC_3986: &str = "Ajv checks neither ports nor the positions of brackets, colons, quotes and at-signs";
const RFC_6570: &str = "Ajv knows no dots in names, accepts control characters, and refuses an apostrophe";
const ROOT_DOT: &str = "Ajv accepts the dot that ends a fully qualified name; RFC 1123 has none";
const UNEVALUATED: &str = "Ajv confuses its own variables for what a branch has evaluated";
const UUID: &str = "Ajv accepts a URN as a UUID";

fn cases() -> Vec<Value> {
    let directory = corpus("ajv").unwrap_or_else(own_ajv_cases);
    let is_decided = |case: &Value| case["expect"]["compile"] == "ok" && case["expect"]["errors"].is_array();
    read_cases(&directory).into_iter().filter(is_decided).collect()
}

/// 1 and 1.0 are the same number in JavaScript.
fn with_float_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(with_float_numbers).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), with_float_numbers(value))).collect()
        }
        other => other.clone(),
    }
}

fn error_fields(errors: &Value) -> Vec<Value> {
    let fields = ["instancePath", "schemaPath", "keyword", "params", "message"];
    let pick = |error: &Value| fields.iter().map(|field| with_float_numbers(&error[field])).collect();
    errors.as_array().into_iter().flatten().map(pick).collect()
}

fn paths_and_keywords(errors: &[Value]) -> Vec<String> {
    let mut keys: Vec<String> = errors.iter().map(|error| format!("{} {}", error[0], error[2])).collect();
    keys.sort();
    keys
}

fn problem(case: &Value, same: &mut usize) -> Option<String> {
    let expect = &case["expect"];
    let validator = match Validator::compile(&case["schema"]) {
        Ok(validator) => validator,
        Err(error) => return Some(format!("does not compile: {error}")),
    };
    let valid_before = validator.is_valid(&case["data"]);
    let mut data = case["data"].clone();
    let outcome = validator.validate(&mut data);
    let valid = outcome.is_ok();
    let errors = error_fields(&serde_json::to_value(outcome.err().unwrap_or_default()).unwrap());
    let wanted = error_fields(&expect["errors"]);
    if json!(valid) != expect["valid"] {
        return Some(format!("valid {valid}, errors {errors:?}, wanted {wanted:?}"));
    }
    if with_float_numbers(&data) == with_float_numbers(&case["data"]) && valid != valid_before {
        return Some("is_valid disagrees with validate".to_owned());
    }
    if with_float_numbers(&data) != with_float_numbers(&expect["dataAfter"]) {
        return Some(format!("data {data}, wanted {}", expect["dataAfter"]));
    }
    if paths_and_keywords(&errors) != paths_and_keywords(&wanted) {
        return Some(format!("errors {errors:?}, wanted {wanted:?}"));
    }
    if errors == wanted {
        *same += 1;
    } else if std::env::var_os("SHOW").is_some() {
        println!("DIFF {} {}\n  {errors:?}\n  {wanted:?}", case["id"], case["schema"]);
    }
    None
}

#[test]
fn every_case_is_decided_as_by_ajv() {
    let (mut same, mut total) = (0, 0);
    let mut problems = Vec::new();
    for case in cases() {
        total += 1;
        let id = case["id"].as_str().unwrap();
        let found = problem(&case, &mut same);
        let allowed = DEVIATIONS.iter().any(|(name, _)| *name == id);
        // Some cases carry the suite's verdict: only a contradiction is a reason to differ.
        if case["suiteValid"].is_boolean() {
            assert_eq!(allowed, case["suiteValid"] != case["expect"]["valid"], "{id}");
        }
        if found.is_some() != allowed {
            problems.push(format!(
                "{id} {} {} {}\n   {}",
                case["title"],
                case["schema"],
                case["data"],
                found.unwrap_or_else(|| "agrees now: remove it from the list".to_owned())
            ));
        }
    }
    println!("{total} cases, {} deviations, {same} equal in all fields and in order", DEVIATIONS.len());
    assert!(problems.is_empty(), "{} of {total} differ\n{}", problems.len(), problems.join("\n"));
}
