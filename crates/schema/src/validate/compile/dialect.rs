//! Which keywords mean something: a schema's `$schema` may name an older draft, or a meta-schema of the author's own
//! that leaves vocabularies out.

use serde_json::Value;

use super::keyword::Keywords;
use crate::lint::uri::normal_id;

/// The keywords without a meaning; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect {
    missing: u8,
}

const APPLICATOR: u8 = 1;
const UNEVALUATED: u8 = 2;
const VALIDATION: u8 = 4;
const FORMAT: u8 = 8;
const PREFIX_ITEMS: u8 = 16;

/// By the last part of a vocabulary's URI. One that is not here has no keywords that constrain an instance.
const VOCABULARIES: [(&str, u8); 5] = [
    ("/vocab/applicator", APPLICATOR),
    ("/vocab/unevaluated", UNEVALUATED),
    ("/vocab/validation", VALIDATION),
    ("/vocab/format-annotation", FORMAT),
    ("/vocab/format-assertion", FORMAT),
];

impl Dialect {
    /// The dialect that `$schema` names; a meta-schema that nobody knows is taken for the current draft's.
    pub fn named(uri: &str, documents: &[(&str, &Value)]) -> Self {
        let uri = normal_id(uri);
        let older = ["https://json-schema.org/draft/2019-09/", "http://json-schema.org/draft-0"];
        if older.iter().any(|start| uri.starts_with(start)) {
            return Self { missing: PREFIX_ITEMS };
        }
        let own = documents.iter().find(|(name, _)| normal_id(name) == uri);
        match own.and_then(|(_, document)| document.get("$vocabulary")).and_then(Value::as_object) {
            None => Self::default(),
            Some(listed) => {
                let has = |end: &str| listed.keys().any(|name| name.ends_with(end));
                let present = VOCABULARIES.iter().filter(|(end, _)| has(end));
                let present = present.fold(PREFIX_ITEMS, |sum, (_, vocabulary)| sum | vocabulary);
                Self { missing: !present }
            }
        }
    }

    /// Drops what has no meaning.
    pub fn restrict(self, words: &mut Keywords<'_>) {
        let drop = |vocabulary: u8, fields: &mut [&mut Option<&Value>]| {
            if self.missing & vocabulary != 0 {
                fields.iter_mut().for_each(|field| **field = None);
            }
        };
        if self == Self::default() {
            return;
        }
        let w = words;
        drop(PREFIX_ITEMS, &mut [&mut w.prefix_items]);
        drop(FORMAT, &mut [&mut w.format]);
        drop(UNEVALUATED, &mut [&mut w.unevaluated_items, &mut w.unevaluated_properties]);
        drop(
            APPLICATOR,
            &mut [&mut w.prefix_items, &mut w.items, &mut w.contains, &mut w.additional_properties],
        );
        drop(APPLICATOR, &mut [&mut w.properties, &mut w.pattern_properties, &mut w.dependent_schemas]);
        drop(APPLICATOR, &mut [&mut w.property_names, &mut w.test, &mut w.then, &mut w.otherwise]);
        drop(APPLICATOR, &mut [&mut w.all_of, &mut w.any_of, &mut w.one_of, &mut w.not]);
        drop(VALIDATION, &mut [&mut w.kind, &mut w.constant, &mut w.values, &mut w.multiple_of]);
        drop(VALIDATION, &mut [&mut w.maximum, &mut w.exclusive_maximum]);
        drop(VALIDATION, &mut [&mut w.minimum, &mut w.exclusive_minimum]);
        drop(VALIDATION, &mut [&mut w.max_length, &mut w.min_length, &mut w.pattern]);
        drop(VALIDATION, &mut [&mut w.max_items, &mut w.min_items, &mut w.unique_items]);
        drop(VALIDATION, &mut [&mut w.max_contains, &mut w.min_contains]);
        drop(VALIDATION, &mut [&mut w.max_properties, &mut w.min_properties]);
        drop(VALIDATION, &mut [&mut w.required, &mut w.dependent_required]);
    }
}
