//! The compiled form of a schema: nodes with their keywords grouped and ordered as Ajv runs them. Plain data; the
//! schema's text is not needed again.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Number, Value};

use super::bound::Bound;
use crate::format::Format;
use crate::keyword::Keyword;
use crate::number::Divisor;
use crate::pattern::Pattern;
use crate::pointer::escape;
use crate::types::TypeSet;

/// The index of a node.
pub type NodeId = u32;

#[derive(Debug, Default)]
pub struct CompiledSchema {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    /// Whether a called schema inside `anyOf` and the like may fill in defaults. Ajv compiles such schemas as
    /// functions, which do not know that they are only tried.
    pub fills_in_branches: bool,
    pub has_defaults: bool,
    /// For each anchor that dynamic references name: the target in each resource that has it.
    pub dynamic_targets: Vec<Vec<(u32, NodeId)>>,
}

#[derive(Debug, Default)]
pub struct Node {
    pub types: TypeSet,
    /// `type` as written, for errors; boxed because it is only read on failure.
    pub type_value: Option<Box<Value>>,
    /// Whether the type is checked before all keywords, or with the keywords for that type.
    pub checks_type_first: bool,
    /// The boolean schema `false`.
    pub is_false: bool,
    /// Has an `unevaluated…` keyword.
    pub tracks_evaluated: bool,
    /// Constrains scalars only and has no subschemas.
    pub is_leaf: bool,
    pub resource: u32,
    pub any: Box<[Rule]>,
    pub number: Box<[NumberRule]>,
    pub string: Box<[StringRule]>,
    pub array: Option<Box<ArrayRules>>,
    pub object: Option<Box<ObjectRules>>,
    pub location: SchemaLocation,
}

/// The place of a node in the schema, for the schema path of an error.
#[derive(Debug, Default)]
pub enum SchemaLocation {
    #[default]
    Root,
    /// Inlined for a `$ref` with this text.
    Reference(Box<str>),
    /// The value of a keyword, or the member or item of that value with this name or index.
    Keyword(NodeId, Keyword, Option<Box<str>>),
}

/// A subschema that a keyword applies; `None` if it accepts everything, so that there is nothing to visit.
pub type Subschema = Option<NodeId>;

/// How a keyword (`additional…`, `unevaluated…`) treats the remaining properties or items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remainder {
    Allowed,
    Forbidden,
    Schema(NodeId),
}

impl From<Subschema> for Remainder {
    fn from(schema: Subschema) -> Self {
        schema.map_or(Self::Allowed, Self::Schema)
    }
}

/// Keywords for values of any type.
#[derive(Debug)]
pub enum Rule {
    /// The target of a reference, inlined or called.
    Reference(NodeId),
    /// The static target, and the index of the table of dynamic targets.
    DynamicReference(NodeId, usize),
    Const(Box<Value>),
    Enum(Box<[Value]>),
    Not(Subschema),
    AnyOf(Box<[Subschema]>),
    OneOf(Box<[Subschema]>),
    AllOf(Box<[NodeId]>),
    If(Box<Condition>),
}

#[derive(Debug)]
pub struct Condition {
    pub test: Subschema,
    pub then: Subschema,
    pub otherwise: Subschema,
}

#[derive(Debug)]
pub enum NumberRule {
    Bound(&'static Bound, Number),
    MultipleOf(Box<Divisor>),
    Format(&'static Format, fn(&Number) -> bool),
}

#[derive(Debug)]
pub enum StringRule {
    /// The limit as written and as a count.
    MaxLength(Number, usize),
    MinLength(Number, usize),
    Pattern(Box<Pattern>),
    Format(&'static Format),
    FormatBound(&'static Bound, &'static Format, Box<str>),
}

#[derive(Debug, Default)]
pub struct ArrayRules {
    pub max_items: Option<Number>,
    pub min_items: Option<Number>,
    /// Defaults by position, which only the older array form of `items` has.
    pub defaults: Box<[Option<Value>]>,
    pub prefix: Box<[Subschema]>,
    pub items: Option<ItemsRule>,
    pub contains: Option<Box<Contains>>,
    pub unique: Option<UniqueItems>,
    pub unevaluated: Option<Remainder>,
}

/// `items`, or `additionalItems` in older drafts: the items after the prefix.
#[derive(Debug)]
pub struct ItemsRule {
    pub keyword: Keyword,
    pub from: usize,
    /// Forbidden only after a prefix, which is one error; otherwise `false` is a schema, with an error for each item.
    pub rest: Remainder,
}

#[derive(Debug)]
pub struct Contains {
    pub item: Subschema,
    pub min: Number,
    pub max: Option<Number>,
}

/// How Ajv searches for duplicates, which decides the indices it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UniqueItems {
    Pairs,
    /// Items of these scalar types only; others are skipped.
    Scalars(TypeSet),
}

#[derive(Debug, Default)]
pub struct ObjectRules {
    pub properties: Box<[Property]>,
    /// The slots sorted by name.
    pub sorted_slots: Box<[u16]>,
    pub defaults: Box<[PropertyDefault]>,
    pub max_properties: Option<Number>,
    pub min_properties: Option<Number>,
    pub required: Box<[RequiredProperty]>,
    /// The required properties that have a presence bit.
    pub required_bits: u64,
    /// There are other rules about the whole object: counts, names, dependencies, required properties without a bit.
    pub has_other_rules: bool,
    /// Properties are validated after defaults are filled in and dependencies are checked.
    pub defers_properties: bool,
    pub names: Subschema,
    pub additional: Option<Remainder>,
    pub patterns: Box<[(Pattern, Subschema)]>,
    pub dependencies: Option<Box<Dependencies>>,
    pub dependent: Option<Box<Dependencies>>,
    pub unevaluated: Option<Remainder>,
}

#[derive(Debug)]
pub struct Property {
    pub name: Box<str>,
    pub schema: Subschema,
}

/// The default of an absent property.
#[derive(Debug)]
pub struct PropertyDefault {
    pub slot: u16,
    pub value: Value,
    /// Known to be valid, so that it need not be validated each time it is filled in.
    pub is_valid: bool,
}

#[derive(Debug)]
pub struct RequiredProperty {
    pub name: Box<str>,
    pub slot: u16,
}

pub type Names = Box<[Box<str>]>;

#[derive(Debug, Default)]
pub struct Dependencies {
    pub required: Box<[(Box<str>, Names)]>,
    pub schemas: Box<[(Box<str>, NodeId)]>,
}

/// The slot of a name that is no property.
pub const NO_SLOT: u16 = u16::MAX;
/// The first properties have a bit that says whether they are present.
pub const PRESENCE_BITS: u16 = 64;

/// The characters that `encodeURIComponent` of JavaScript encodes.
const URI_COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

impl CompiledSchema {
    /// The schema path of a keyword in a node: a URI fragment, as Ajv writes it.
    pub fn path(&self, node: NodeId, keyword: &str) -> String {
        let mut path = String::with_capacity(64);
        self.push_location(node, &mut path);
        path.push('/');
        path.push_str(keyword);
        path
    }

    fn push_location(&self, node: NodeId, path: &mut String) {
        let Some(node) = self.nodes.get(node as usize) else { return };
        match &node.location {
            SchemaLocation::Root => path.push('#'),
            SchemaLocation::Reference(reference) => path.push_str(reference),
            SchemaLocation::Keyword(parent, keyword, member) => {
                self.push_location(*parent, path);
                path.push('/');
                path.push_str(keyword.name());
                if let Some(member) = member {
                    path.push('/');
                    path.extend(utf8_percent_encode(&escape(member), URI_COMPONENT));
                }
            }
        }
    }
}

impl ObjectRules {
    /// Computes the fields that follow from the keywords.
    pub fn summarize(&mut self) {
        let bits = self.required.iter().filter(|required| required.slot < PRESENCE_BITS);
        self.required_bits = bits.fold(0, |bits, required| bits | 1 << required.slot);
        self.has_other_rules = self.max_properties.is_some()
            || self.min_properties.is_some()
            || self.names.is_some()
            || self.dependencies.is_some()
            || self.required.iter().any(|required| required.slot >= PRESENCE_BITS);
        self.defers_properties =
            self.dependencies.is_some() || self.defaults.iter().any(|default| !default.is_valid);
    }

    /// The index of a property by name. Members often have the order of the schema, so `hint`, the slot after the last
    /// one found, is tried first.
    #[inline]
    pub fn slot(&self, name: &str, hint: usize) -> u16 {
        if self.properties.get(hint).is_some_and(|property| *property.name == *name) {
            return hint as u16;
        }
        self.search_slot(name)
    }

    #[inline(never)]
    fn search_slot(&self, name: &str) -> u16 {
        let name_of = |slot: &u16| self.properties.get(usize::from(*slot)).map(|property| &*property.name);
        let found = self.sorted_slots.binary_search_by(|slot| name_of(slot).cmp(&Some(name)));
        found.ok().and_then(|found| self.sorted_slots.get(found)).copied().unwrap_or(NO_SLOT)
    }
}
