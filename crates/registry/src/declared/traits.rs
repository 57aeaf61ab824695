//! What policy asks about a declared tool. What a definition leaves out gets the careful value: a handler that
//! says nothing of itself is taken to write.

use std::collections::BTreeMap;

use semver::Version;
use serde_json::{Map, Number, Value};
use toolwright_contract::{Category, Confirmation, Mode, SideEffects, ToolSpec};

use super::{Report, fields, shown};

/// What policy asks about a tool.
pub(super) struct Traits {
    version: String,
    category: Category,
    side_effects: SideEffects,
    idempotent: bool,
    requires_confirmation: bool,
    allowed_modes: Vec<Mode>,
    latency_budget_ms: Number,
    timeout_ms: Option<Number>,
    tags: Vec<String>,
}

impl Traits {
    pub(super) fn read(report: &mut Report<'_>, members: &Map<String, Value>, is_mock: bool) -> Self {
        let mut field = Field { report, members };
        let category = field
            .get("category", |report, name, value| {
                fields::word(report, name, value, Category::WORDS, Category::from_word)
            })
            .unwrap_or(Category::Utility);
        // To be called retrieval is to promise both.
        let reads = is_mock || category == Category::Retrieval;
        let effects = match (is_mock, reads) {
            (true, _) => SideEffects::None,
            (_, true) => SideEffects::ReadOnly,
            _ => SideEffects::Writes,
        };
        let traits = Self {
            category,
            version: field.get("version", semantic_version).unwrap_or_else(|| "1.0.0".to_owned()),
            side_effects: field
                .get("sideEffects", |report, name, value| {
                    fields::word(report, name, value, SideEffects::WORDS, SideEffects::from_word)
                })
                .unwrap_or(effects),
            idempotent: field.get("idempotent", fields::boolean).unwrap_or(reads),
            requires_confirmation: field.get("requiresConfirmation", fields::boolean).unwrap_or(false),
            allowed_modes: field
                .get("allowedModes", fields::modes)
                .unwrap_or_else(|| vec![Mode::Text, Mode::Voice]),
            latency_budget_ms: field
                .get("latencyBudgetMs", fields::milliseconds)
                .unwrap_or_else(|| 1000.into()),
            timeout_ms: field.get("timeoutMs", fields::milliseconds),
            tags: field.get("tags", fields::strings).unwrap_or_default(),
        };
        traits.check(field.report);
        traits
    }

    /// The rules between fields are those of the tools directory.
    fn check(&self, report: &mut Report<'_>) {
        if self.category != Category::Retrieval {
            return;
        }
        if self.side_effects == SideEffects::Writes {
            report.problem("a retrieval tool must not write", "make it an `action`, or `read_only`");
        }
        if !self.idempotent {
            report.problem("a retrieval tool must be idempotent", "make it an `action`, or `idempotent`");
        }
    }

    pub(super) fn into_spec(self, tool_id: String, description: String, json_schema: Value) -> ToolSpec {
        ToolSpec {
            tool_id,
            version: self.version,
            description,
            category: self.category,
            side_effects: self.side_effects,
            idempotent: self.idempotent,
            requires_confirmation: Confirmation::Always(self.requires_confirmation),
            allowed_modes: self.allowed_modes,
            latency_budget_ms: self.latency_budget_ms,
            timeout_ms: self.timeout_ms,
            execution: None,
            availability: None,
            permissions: None,
            clamp: BTreeMap::new(),
            tags: self.tags,
            json_schema,
            output: None,
        }
    }
}

/// The optional fields of one definition.
struct Field<'a, 'r, 'm> {
    report: &'a mut Report<'r>,
    members: &'m Map<String, Value>,
}

impl<'r> Field<'_, 'r, '_> {
    fn get<T>(&mut self, name: &str, read: impl Fn(&mut Report<'r>, &str, &Value) -> Option<T>) -> Option<T> {
        self.members.get(name).and_then(|value| read(self.report, name, value))
    }
}

fn semantic_version(report: &mut Report<'_>, name: &str, value: &Value) -> Option<String> {
    let Some(version) = value.as_str() else {
        return fields::wrong_type(report, name, value, "a string such as \"1.0.0\"");
    };
    if let Err(error) = Version::parse(version) {
        let message = format!("`{name}` is `{}`, not a semantic version: {error}", shown(version));
        report.problem(message, "write major.minor.patch, such as `1.0.0`");
        return None;
    }
    Some(version.to_owned())
}
