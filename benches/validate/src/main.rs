//! The cost of checking arguments, compared with the `jsonschema` crate, which decides but fills in
//! nothing. `validate` fills in defaults and collects every error; the other side is its fastest call for the same
//! outcome, on the same values.
//!
//!   cargo run --release --manifest-path benches/validate/Cargo.toml
//!   cargo run --release --manifest-path benches/validate/Cargo.toml -- --rounds 200
//!
//! Every round runs both sides on fresh copies of a value, parsed as a call's arguments are, in alternating order,
//! and takes the ratio; parsing and dropping is outside the measured time. Medians are shown. The allocator is the
//! program's own.
//! `--case nested` keeps the cases with that in their names; `--only ours` runs our side alone, for a profiler.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use serde_json::{Value, json};
use toolwright_contract::arguments;
use toolwright_schema::Validator;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Copies of the value that one measurement goes through: enough for the clock, few enough for the caches.
const COPIES: usize = 64;

struct Case {
    name: &'static str,
    schema: Value,
    value: Value,
    outcome: Outcome,
    theirs: Theirs,
}

/// The value for the other side. It fills in nothing: as it stands a value is less work than once it is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Theirs {
    AsGiven,
    FilledIn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Valid,
    Invalid,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let rounds: usize = after("--rounds").map_or(Ok(2001), str::parse)?;
    println!("{:<44} {:>9} {:>11} {:>7}", "nanoseconds a check, medians", "ours", "jsonschema", "ratio");
    let wanted = after("--case").unwrap_or_default();
    for case in cases()?.into_iter().filter(|case| case.name.contains(wanted)) {
        if after("--only") == Some("ours") {
            let validator = Validator::compile(&case.schema)?;
            let text = case.value.to_string();
            (0..rounds).for_each(|_| {
                ours(&validator, &text);
            });
            continue;
        }
        let (ours, theirs, ratio) = compare(&case, rounds)?;
        println!("{:<44} {ours:>9.0} {theirs:>11.0} {ratio:>7.2}", case.name);
    }
    Ok(())
}

fn cases() -> Result<Vec<Case>, Box<dyn Error>> {
    let tool: Value = serde_json::from_str(include_str!("../../../tools/kb-search/schema.json"))?;
    let nested: Value = serde_json::from_str(include_str!("nested.json"))?;
    let search = |name, value| Case {
        name,
        schema: tool["parameters"].clone(),
        value,
        outcome: Outcome::Valid,
        theirs: Theirs::AsGiven,
    };
    let nested = |name, value: &str, outcome, theirs| Case {
        name,
        schema: nested["schema"].clone(),
        value: nested[value].clone(),
        outcome,
        theirs,
    };
    let all = json!({
        "query": "who founded the studio",
        "namespace": "studio",
        "filters": {
            "type": "person",
            "tags": ["founder", "team"],
            "date_range": { "start": "2026-01-01T00:00:00Z", "end": "2026-01-31T23:59:59Z" },
        },
        "top_k": 3,
        "return_fields": ["snippet", "url"],
        "include_snippets": true,
    });
    Ok(vec![
        search("kb_search, 3 defaults filled in", json!({ "query": "who founded the studio" })),
        search("kb_search, every argument given", all),
        nested("nested, 16 defaults filled in", "good", Outcome::Valid, Theirs::AsGiven),
        nested("nested, 16 filled in on both sides", "good", Outcome::Valid, Theirs::FilledIn),
        nested("nested, 15 errors with paths and messages", "bad", Outcome::Invalid, Theirs::AsGiven),
    ])
}

fn compare(case: &Case, rounds: usize) -> Result<(f64, f64, f64), Box<dyn Error>> {
    let validator = Validator::compile(&case.schema)?;
    let other = jsonschema::options().should_validate_formats(true).build(&case.schema)?;
    agree(case, &validator, &other);
    let mut given = case.value.clone();
    if case.theirs == Theirs::FilledIn {
        let _ = validator.validate(&mut given);
    }
    let (mine, given) = (case.value.to_string(), given.to_string());
    let (mut left, mut right, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (ours, theirs) = if round % 2 == 0 {
            let ours = ours(&validator, &mine);
            (ours, theirs(&other, &given, case.outcome))
        } else {
            let theirs = theirs(&other, &given, case.outcome);
            (ours(&validator, &mine), theirs)
        };
        left.push(ours);
        right.push(theirs);
        ratios.push(ours / theirs);
    }
    Ok((median(left), median(right), median(ratios)))
}

/// The verdict must be the same, and the case must do what its name says.
fn agree(case: &Case, validator: &Validator, other: &jsonschema::Validator) {
    let mut value = case.value.clone();
    let outcome = validator.validate(&mut value);
    assert_eq!(outcome.is_ok(), case.outcome == Outcome::Valid, "{}: {outcome:?}", case.name);
    assert_eq!(other.is_valid(&value), outcome.is_ok(), "{}", case.name);
    let filled = leaves(&value) - leaves(&case.value);
    let found = outcome.err().map_or(0, |errors| errors.len());
    let count = if case.outcome == Outcome::Valid { filled } else { found };
    let named = case.name.split(' ').find_map(|word| word.parse().ok()).unwrap_or(0);
    assert_eq!(count, named, "{}: {found} errors, {filled} defaults", case.name);
}

fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(members) => members.values().map(leaves).sum(),
        _ => 1,
    }
}

fn copies(text: &str) -> Vec<Value> {
    (0..COPIES).filter_map(|_| arguments::value(&mut serde_json::Deserializer::from_str(text)).ok()).collect()
}

/// Nanoseconds a check.
fn ours(validator: &Validator, text: &str) -> f64 {
    let mut values = copies(text);
    let mut kept = Vec::with_capacity(COPIES);
    let start = Instant::now();
    for value in &mut values {
        kept.push(black_box(validator.validate(black_box(value))));
    }
    nanoseconds(start)
}

fn theirs(validator: &jsonschema::Validator, text: &str, outcome: Outcome) -> f64 {
    let values = copies(text);
    let mut kept = Vec::with_capacity(COPIES);
    let start = Instant::now();
    for value in &values {
        match outcome {
            Outcome::Valid => assert!(black_box(validator.is_valid(black_box(value)))),
            Outcome::Invalid => {
                let text = |error: jsonschema::ValidationError<'_>| {
                    (error.instance_path().to_string(), error.schema_path().to_string(), error.to_string())
                };
                kept.push(black_box(validator.iter_errors(black_box(value)).map(text).collect::<Vec<_>>()));
            }
        }
    }
    nanoseconds(start)
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / COPIES as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
