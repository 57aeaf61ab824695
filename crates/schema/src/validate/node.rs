//! The compiled form of a schema: an arena of nodes, each with its keywords grouped and ordered as
//! Ajv runs them. Plain data: no schema text is looked at again after compiling.

use serde_json::{Number, Value};

use crate::validate::bound::Bound;
use crate::validate::format::Format;
use crate::validate::number::Multiple;
use crate::validate::pattern::Pattern;

/// A node, by its place in the arena.
pub type Id = u32;

#[derive(Debug, Default)]
pub struct Arena {
    pub nodes: Vec<Node>,
    pub root: Id,
    /// Whether a call inside `anyOf` and the like may fill in defaults (Ajv compiles such targets as
    /// functions of their own, which do not know that they are only being tried).
    pub fills_in_branches: bool,
    pub has_defaults: bool,
    /// For each anchor that dynamic references name: the target in each resource that has it.
    pub dynamic: Vec<Vec<(u32, Id)>>,
}

#[derive(Debug, Default)]
pub struct Node {
    pub types: Types,
    /// `type` as written, for the error; boxed because it is only read on failure.
    pub type_value: Option<Box<Value>>,
    /// Whether the type is checked first or by the group of keywords for that type.
    pub type_first: bool,
    /// The boolean schema `false`.
    pub never: bool,
    /// Holds an `unevaluated…` keyword.
    pub tracks: bool,
    /// Looks at one scalar and nothing below it.
    pub is_leaf: bool,
    pub resource: u32,
    pub any: Box<[Rule]>,
    pub number: Box<[OfNumber]>,
    pub string: Box<[OfString]>,
    pub array: Option<Box<OfArray>>,
    pub object: Option<Box<OfObject>>,
    pub place: Place,
}

/// Where a node stands, from which the schema path of an error is written.
#[derive(Debug, Default)]
pub enum Place {
    #[default]
    Root,
    /// Written into the place of a `$ref` with this text.
    Reference(Box<str>),
    Keyword(Id, &'static str),
    Index(Id, &'static str, usize),
    Member(Id, &'static str, Box<str>),
}

/// A set of JSON types.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Types(pub u8);

impl Types {
    pub const NULL: u8 = 1;
    pub const BOOLEAN: u8 = 2;
    pub const INTEGER: u8 = 4;
    pub const NUMBER: u8 = 8;
    pub const STRING: u8 = 16;
    pub const ARRAY: u8 = 32;
    pub const OBJECT: u8 = 64;

    pub fn named(name: &str) -> Option<u8> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// The type of a value; integers count as numbers.
    pub const fn of(value: &Value) -> u8 {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub fn takes(self, value: &Value) -> bool {
        self.takes_kind(Self::of(value), value)
    }

    /// As [`Types::takes`], with the type already known.
    pub fn takes_kind(self, kind: u8, value: &Value) -> bool {
        self.0 & kind != 0
            || (self.0 & Self::INTEGER != 0
                && matches!(value, Value::Number(number) if crate::validate::number::is_integer(number)))
    }

    pub fn is_scalar(self) -> bool {
        self.0 != 0 && self.0 & (Self::ARRAY | Self::OBJECT) == 0
    }
}

/// A subschema that a keyword applies; `Always` saves the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sub {
    Always,
    Node(Id),
}

/// Keywords for values of any type.
#[derive(Debug)]
pub enum Rule {
    /// A target that is checked as if written here.
    Inline(Id),
    /// A target with references of its own.
    Call(Id),
    /// Static target, and the table of those that the way here may put in its place.
    Dynamic(Id, usize),
    Const(Box<Value>),
    Enum(Box<[Value]>),
    /// An `enum` of nothing but strings.
    Words(Names),
    Not(Sub),
    AnyOf(Box<[Sub]>),
    OneOf(Box<[Sub]>),
    AllOf(Box<[Id]>),
    If(Box<Condition>),
}

#[derive(Debug)]
pub struct Condition {
    pub test: Sub,
    pub then: Option<Id>,
    pub otherwise: Option<Id>,
}

#[derive(Debug)]
pub enum OfNumber {
    Bound(Bound, Number),
    MultipleOf(Box<Multiple>),
    Format(Format),
}

#[derive(Debug)]
pub enum OfString {
    /// The limit as written and as a count.
    MaxLength(Number, usize),
    MinLength(Number, usize),
    Pattern(Box<Pattern>),
    Format(Format),
    FormatBound(Bound, Format, Box<str>),
}

#[derive(Debug, Default)]
pub struct OfArray {
    pub max_items: Option<Number>,
    pub min_items: Option<Number>,
    /// Defaults for positions, which only the older array form of `items` has.
    pub defaults: Box<[Option<Value>]>,
    pub prefix: Option<Prefix>,
    pub rest: Option<Rest>,
    pub contains: Option<Box<Contains>>,
    pub unique: Option<Unique>,
    pub unevaluated: Option<Sub2>,
}

#[derive(Debug)]
pub struct Prefix {
    pub items: Box<[Sub]>,
}

/// `items`, or `additionalItems` in older drafts.
#[derive(Debug)]
pub struct Rest {
    pub keyword: &'static str,
    pub from: usize,
    /// Beside a prefix, `false` is one error and not one for each item.
    pub closed: bool,
    pub item: Sub,
}

/// A subschema of an `unevaluated…` or `additional…` keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sub2 {
    Always,
    Never,
    Node(Id),
}

#[derive(Debug)]
pub struct Contains {
    pub item: Sub,
    pub min: Number,
    pub max: Option<Number>,
    pub least: usize,
    pub most: Option<usize>,
}

/// How Ajv looks for duplicates, which shows in the indices it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unique {
    Pairs,
    /// Items of these scalar types only; others are passed over.
    Scalars(Types),
}

#[derive(Debug, Default)]
pub struct OfObject {
    pub properties: Box<[Property]>,
    /// Places of the properties by name, when there are too many to search one by one.
    pub sorted: Box<[u16]>,
    pub defaults: Box<[Filling]>,
    pub max_properties: Option<Number>,
    pub min_properties: Option<Number>,
    pub required: Box<[Required]>,
    /// Those of the required that have a bit.
    pub required_bits: u64,
    /// There are rules about the object as a whole besides that: counts, names, dependencies, more that is required.
    pub has_more_rules: bool,
    /// Properties cannot be visited until defaults are filled in and dependencies are followed.
    pub properties_wait: bool,
    pub names: Option<Id>,
    pub additional: Option<Sub2>,
    pub patterns: Box<[(Pattern, Sub)]>,
    pub dependencies: Option<Box<Dependencies>>,
    pub dependent: Option<Box<Dependencies>>,
    pub unevaluated: Option<Sub2>,
}

#[derive(Debug)]
pub struct Property {
    pub name: Box<str>,
    pub schema: Sub,
}

/// What a property is when it is not there.
#[derive(Debug)]
pub struct Filling {
    pub slot: u16,
    pub value: Value,
    /// Known to fit its own schema, so that it need not be checked whenever it is filled in.
    pub holds: bool,
}

#[derive(Debug)]
pub struct Required {
    pub name: Box<str>,
    /// Its place among the properties.
    pub slot: u16,
}

pub type Names = Box<[Box<str>]>;

#[derive(Debug, Default)]
pub struct Dependencies {
    pub required: Box<[(Box<str>, Names)]>,
    pub schemas: Box<[(Box<str>, Id)]>,
}

/// The place of what is no property.
pub const NO_SLOT: u16 = u16::MAX;
/// So many properties have a bit that says whether they are there.
pub const BITS: u16 = 64;

/// So many properties are searched one by one.
pub const FEW_PROPERTIES: usize = 16;

impl OfObject {
    /// Works out what follows from the keywords.
    pub fn summarise(&mut self) {
        let bits = self.required.iter().filter(|required| required.slot < BITS);
        self.required_bits = bits.fold(0, |bits, required| bits | 1 << required.slot);
        self.has_more_rules = self.max_properties.is_some()
            || self.min_properties.is_some()
            || self.names.is_some()
            || self.dependencies.is_some()
            || self.required.iter().any(|required| required.slot >= BITS);
        self.properties_wait =
            self.dependencies.is_some() || self.defaults.iter().any(|filling| !filling.holds);
    }

    /// The place of a name among the properties. Members often come in the order of the schema, so
    /// the search starts where the last one ended.
    #[inline]
    pub fn slot(&self, name: &str, hint: usize) -> u16 {
        if self.properties.get(hint).is_some_and(|property| *property.name == *name) {
            return hint as u16;
        }
        self.search(name, hint)
    }

    #[inline(never)]
    fn search(&self, name: &str, hint: usize) -> u16 {
        let is_it = |property: &Property| *property.name == *name;
        if self.properties.len() <= FEW_PROPERTIES {
            let later = self.properties.get(hint + 1..).and_then(|rest| rest.iter().position(is_it));
            let found = later.map(|at| hint + 1 + at);
            let found = found.or_else(|| self.properties.iter().take(hint).position(is_it));
            return found.map_or(NO_SLOT, |found| found as u16);
        }
        let name_of = |slot: &u16| self.properties.get(usize::from(*slot)).map(|property| &*property.name);
        let found = self.sorted.binary_search_by(|slot| name_of(slot).cmp(&Some(name)));
        found.ok().and_then(|found| self.sorted.get(found)).copied().unwrap_or(NO_SLOT)
    }
}
