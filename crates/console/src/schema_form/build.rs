//! Makes the fields of a form: from a schema, the values to begin with, and the errors of the last attempt.

use serde_json::Value;

use super::decode::FormValues;
use super::schema::{Schema, Shape};
use super::{Control, Field, MAX_DEPTH, NEW_ITEM, ROOT};
use crate::format::shorten;
use crate::parameters::MAX_DESCRIPTION;
use crate::parts::Choice;

/// The most empty items that a list begins with.
const MAX_EMPTY_ITEMS: usize = 5;
/// Longer texts get several lines.
const LINE_LENGTH: u64 = 200;

/// The fields of a tool's parameters. `errors` are pairs of a JSON pointer into the arguments and a message.
pub fn build(schema: &Value, begin: &FormValues, errors: &[(String, String)]) -> Field {
    let builder = Builder { begin, errors };
    let schema = Schema::new(schema).resolved();
    let mut root = builder.field(schema, Some(&begin.args), Place::root());
    root.is_required = true;
    root
}

struct Builder<'a> {
    begin: &'a FormValues,
    errors: &'a [(String, String)],
}

/// The place of a value: the name of its control, its pointer, its label.
struct Place {
    name: String,
    pointer: String,
    label: String,
    is_required: bool,
    /// An item of a list, which the user has added.
    is_item: bool,
    /// A spare item, for browsers without scripts: each list in it has one item.
    is_spare: bool,
    depth: usize,
}

impl Place {
    fn root() -> Self {
        Self {
            name: ROOT.to_owned(),
            pointer: String::new(),
            label: String::new(),
            is_required: true,
            is_item: false,
            is_spare: false,
            depth: 0,
        }
    }

    fn member(&self, key: &str, is_required: bool) -> Self {
        Self { label: key.to_owned(), is_required, ..self.child(key) }
    }

    fn item(&self, key: &str) -> Self {
        Self {
            label: format!("{} item", self.label).trim_start().to_owned(),
            is_required: true,
            is_item: true,
            ..self.child(key)
        }
    }

    fn child(&self, key: &str) -> Self {
        let key = key.replace('~', "~0").replace('/', "~1");
        Self {
            name: format!("{}/{key}", self.name),
            pointer: format!("{}/{key}", self.pointer),
            label: String::new(),
            is_required: false,
            is_item: false,
            is_spare: self.is_spare,
            depth: self.depth + 1,
        }
    }

    fn alternative(&self, index: usize) -> Self {
        Self {
            name: format!("{}@{index}", self.name),
            pointer: self.pointer.clone(),
            label: self.label.clone(),
            is_required: self.is_required,
            is_item: self.is_item,
            is_spare: self.is_spare,
            depth: self.depth + 1,
        }
    }
}

impl Builder<'_> {
    fn field(&self, schema: Schema<'_>, value: Option<&Value>, place: Place) -> Field {
        let control = self.control(schema, value, &place);
        let mut errors = self.errors_at(&place.pointer);
        errors.extend(self.begin.rejected_at(&place.name).map(|rejected| rejected.message.clone()));
        Field {
            description: shorten(schema.text("description"), MAX_DESCRIPTION),
            hint: schema.constraints(),
            is_required: place.is_required && !place.is_item,
            errors,
            control,
            label: place.label,
            name: place.name,
        }
    }

    fn errors_at(&self, pointer: &str) -> Vec<String> {
        let here = self.errors.iter().filter(|(at, _)| at == pointer);
        here.map(|(_, message)| message.clone()).collect()
    }

    fn control(&self, schema: Schema<'_>, value: Option<&Value>, place: &Place) -> Control {
        let shape = if place.depth > MAX_DEPTH { Shape::Json } else { schema.shape() };
        let value = value.or(schema.default());
        let text = || self.text(value, place);
        match shape {
            Shape::String => string(schema, text()),
            Shape::Number => number(schema, text(), "any"),
            Shape::Integer => number(schema, text(), "1"),
            Shape::Boolean => {
                Control::Choice { choices: choices(&[&true.into(), &false.into()], value, place.is_required) }
            }
            Shape::Enum => Control::Choice { choices: choices(&schema.values(), value, place.is_required) },
            Shape::Object => Control::Object { fields: self.members(schema, value, place) },
            Shape::List => self.list(schema, value, place),
            Shape::Alternatives => self.alternatives(schema, value, place),
            Shape::Json => Control::Json { value: self.json(value, place) },
        }
    }

    fn text(&self, value: Option<&Value>, place: &Place) -> String {
        match (self.begin.rejected_at(&place.name), value) {
            (Some(rejected), _) => rejected.text.clone(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(Value::Null) | None) => String::new(),
            (None, Some(other)) => other.to_string(),
        }
    }

    fn json(&self, value: Option<&Value>, place: &Place) -> String {
        match self.begin.rejected_at(&place.name) {
            Some(rejected) => rejected.text.clone(),
            None => value.map(crate::format::pretty).unwrap_or_default(),
        }
    }

    fn members(&self, schema: Schema<'_>, value: Option<&Value>, place: &Place) -> Vec<Field> {
        let member = |(name, node): (&String, _)| {
            let own = value.and_then(|value| value.get(name));
            self.field(schema.with_node(node), own, place.member(name, schema.is_required(name)))
        };
        schema.properties().map(member).collect()
    }

    fn list(&self, schema: Schema<'_>, value: Option<&Value>, place: &Place) -> Control {
        let Some(of_items) = schema.items() else { return Control::Json { value: self.json(value, place) } };
        let values = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let item = |index: usize| self.field(of_items, values.get(index), place.item(&index.to_string()));
        let template = Box::new(self.field(of_items, None, place.item(NEW_ITEM)));
        let number = |name| schema.node.get(name).and_then(Value::as_u64);
        let least = number("minItems").filter(|_| place.is_required).unwrap_or_default();
        let least =
            usize::try_from(least).unwrap_or_default().clamp(usize::from(place.is_spare), MAX_EMPTY_ITEMS);
        let shown = values.len().max(least);
        let items = (0..shown).map(item).collect();
        // Without a script, no item can be added. The item for that case contains no such item in turn.
        let spare = Place { is_spare: true, ..place.item("0") };
        let spare = (shown == 0).then(|| Box::new(self.field(of_items, None, spare)));
        Control::List { items, spare, template, most: number("maxItems") }
    }

    fn alternatives(&self, schema: Schema<'_>, value: Option<&Value>, place: &Place) -> Control {
        let all = schema.alternatives();
        let fitting = value.and_then(|value| all.iter().position(|one| one.may_be(value)));
        let chosen = self.begin.chosen_at(&place.name).or(fitting);
        let selected = chosen.map(|index| index.to_string());
        let title = |(index, one): (usize, &Schema<'_>)| {
            Choice::new(index.to_string(), one.title(index), selected.as_deref())
        };
        let mut choices: Vec<Choice> = all.iter().enumerate().map(title).collect();
        if !place.is_required {
            choices.insert(0, Choice::new("", "not set", Some(selected.as_deref().unwrap_or_default())));
        }
        let field = |(index, one): (usize, &Schema<'_>)| {
            let own = value.filter(|_| chosen == Some(index));
            Field { label: one.title(index), ..self.field(*one, own, place.alternative(index)) }
        };
        let fields = all.iter().enumerate().map(field).collect();
        Control::Alternatives { choice: format!("{}@", place.name), choices, fields }
    }
}

fn string(schema: Schema<'_>, value: String) -> Control {
    let most = schema.node.get("maxLength").and_then(Value::as_u64);
    let is_long = most.is_some_and(|most| most > LINE_LENGTH) || value.contains('\n');
    let kind = match schema.text("format") {
        "email" => "email",
        "uri" | "url" => "url",
        "date" => "date",
        "password" => "password",
        _ if schema.node.get("writeOnly") == Some(&Value::Bool(true)) => "password",
        _ if is_long => return Control::Text { value },
        _ => "text",
    };
    Control::Line { kind, value }
}

fn number(schema: Schema<'_>, value: String, step: &'static str) -> Control {
    Control::Number { value, step, min: schema.number("minimum"), max: schema.number("maximum") }
}

/// The values as choices, each as JSON. An optional one can be left out.
fn choices(values: &[&Value], selected: Option<&Value>, is_required: bool) -> Vec<Choice> {
    let selected = selected.map(Value::to_string);
    let label = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let choice = |value: &&Value| Choice::new(value.to_string(), label(value), selected.as_deref());
    let none = (!is_required || selected.is_none())
        .then(|| Choice::new("", "not set", Some(selected.as_deref().unwrap_or_default())));
    none.into_iter().chain(values.iter().map(choice)).collect()
}
