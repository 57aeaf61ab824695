//! What one property of an object demands of the others.

use serde_json::{Value, json};

use super::object::members_of;
use super::{Mode, ObjectRules, Run, Seen};
use crate::validate::node::Dependencies;

impl<'c> Run<'c> {
    #[inline(never)]
    pub(super) fn dependencies<M: Mode>(
        &mut self,
        here: ObjectRules<'_, 'c>,
        rules: &Dependencies,
        data: &mut M::Ref<'_>,
        mut seen: Option<&mut Seen<'c>>,
        keyword: &'static str,
    ) -> bool {
        let mut valid = true;
        for (property, wanted) in &rules.required {
            let has = |name: &str| members_of(M::get(data)).is_some_and(|members| members.contains_key(name));
            if !has(property) {
                continue;
            }
            for missing in wanted.iter().filter(|name| !has(name)) {
                valid =
                    self.fail::<M>(here.id, here.at, keyword, || missing_error(property, missing, wanted));
            }
        }
        for (property, schema) in &rules.schemas {
            if !members_of(M::get(data)).is_some_and(|members| members.contains_key(&**property)) {
                continue;
            }
            let mut own = seen.is_some().then(Seen::default);
            let holds = self.node::<M>(*schema, M::again(data), here.at, own.as_mut());
            if let (true, Some(seen), Some(own)) = (holds, seen.as_deref_mut(), own) {
                seen.merge(own);
            }
            valid &= holds;
        }
        valid
    }
}

fn missing_error(property: &str, missing: &str, wanted: &[Box<str>]) -> (Value, String) {
    let wanted_names = wanted.join(", ");
    let noun = if wanted.len() == 1 { "property" } else { "properties" };
    let message = format!("must have {noun} {wanted_names} when property {property} is present");
    let params = json!({
        "property": property,
        "missingProperty": missing,
        "depsCount": wanted.len(),
        "deps": wanted_names,
    });
    (params, message)
}
