//! The module that handlers import has the same error and intent types as the contract.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolwright_contract::{ErrorKind, IntentKind};

use crate::support::{call, engine, program};

const SOURCE: &str = "
    import { ErrorType, IntentType } from '../_core/error-types.js';
    export async function execute() { return { ErrorType, IntentType }; }
";

#[tokio::test]
async fn error_types_js_matches_the_contract() {
    let exported = engine().run(call(&program(SOURCE), json!({}))).await.unwrap();
    for (name, words) in [("ErrorType", ErrorKind::WORDS), ("IntentType", IntentKind::WORDS)] {
        let types: BTreeMap<String, String> = serde_json::from_value(exported[name].clone()).unwrap();
        let values: BTreeSet<&str> = types.values().map(String::as_str).collect();
        assert_eq!(values, words.iter().copied().collect(), "{name}");
        assert!(types.iter().all(|(key, value)| key == value), "{name}: {types:?}");
    }
}
