//! `dependencies`, `dependentRequired` and `dependentSchemas`.

use serde_json::{Value, json};

use super::super::compiled_schema::Dependencies;
use super::{Mode, Position, Validation};

impl Validation<'_> {
    #[inline(never)]
    pub(super) fn dependencies<M: Mode>(
        &mut self,
        rules: &Dependencies,
        data: &mut M::Ref<'_>,
        position: Position<'_>,
        keyword: &'static str,
    ) -> bool {
        let mut is_valid = true;
        for (property, required) in &rules.required {
            if data.get(&**property).is_none() {
                continue;
            }
            for missing in required.iter().filter(|name| data.get(&***name).is_none()) {
                is_valid = self.fail::<M>(position, keyword, || missing_error(property, missing, required));
            }
        }
        for (property, schema) in &rules.schemas {
            if data.get(&**property).is_some() {
                is_valid &= self.tracked_if_valid(|validation| {
                    validation.visit::<M>(*schema, M::reborrow(data), position.instance)
                });
            }
        }
        is_valid
    }
}

fn missing_error(property: &str, missing: &str, required: &[Box<str>]) -> (Value, String) {
    let names = required.join(", ");
    let noun = if required.len() == 1 { "property" } else { "properties" };
    let message = format!("must have {noun} {names} when property {property} is present");
    let params = json!({
        "property": property,
        "missingProperty": missing,
        "depsCount": required.len(),
        "deps": names,
    });
    (params, message)
}
