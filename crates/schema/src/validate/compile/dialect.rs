//! Which keywords apply: `$schema` may name an older draft, or a custom meta-schema without some of the vocabularies.

use serde_json::Value;

use crate::keyword::{Keywords, Vocabulary};
use crate::uri::normalize_id;

/// The vocabularies that do not apply, a bit each; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect(u8);

/// By the end of a vocabulary's URI. A vocabulary that is not listed has no keywords that constrain an instance.
const VOCABULARIES: [(Vocabulary, &[&str]); 5] = [
    (Vocabulary::Applicator, &["/vocab/applicator"]),
    (Vocabulary::PrefixItems, &["/vocab/applicator"]),
    (Vocabulary::Unevaluated, &["/vocab/unevaluated"]),
    (Vocabulary::Validation, &["/vocab/validation"]),
    (Vocabulary::Format, &["/vocab/format-annotation", "/vocab/format-assertion"]),
];

impl Dialect {
    /// The dialect that `$schema` names. An unknown meta-schema counts as the current draft's.
    pub fn from_name(uri: &str, documents: &[(&str, &Value)]) -> Self {
        let uri = normalize_id(uri);
        let older = ["https://json-schema.org/draft/2019-09/", "http://json-schema.org/draft-0"];
        if older.iter().any(|start| uri.starts_with(start)) {
            return Self(bit(Vocabulary::PrefixItems));
        }
        let own = documents.iter().find(|(name, _)| normalize_id(name) == uri);
        let listed = own.and_then(|(_, document)| document.get("$vocabulary")).and_then(Value::as_object);
        let Some(listed) = listed else { return Self::default() };
        let is_listed = |ends: &[&str]| listed.keys().any(|name| ends.iter().any(|end| name.ends_with(end)));
        let missing = VOCABULARIES.iter().filter(|(_, ends)| !is_listed(ends));
        Self(missing.fold(0, |bits, (vocabulary, _)| bits | bit(*vocabulary)))
    }

    /// Removes the keywords that do not apply.
    pub fn restrict(self, keywords: &mut Keywords<'_>) {
        if self != Self::default() {
            keywords.retain(|keyword| self.0 & bit(keyword.vocabulary()) == 0);
        }
    }
}

const fn bit(vocabulary: Vocabulary) -> u8 {
    1 << vocabulary as u8
}
