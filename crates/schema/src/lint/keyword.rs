//! The keywords Ajv's 2020 build knows: what each one is for, which types it needs, and which
//! shape the meta-schema gives its value. One table, from which everything else is generated.

use serde_json::{Map, Value};

use super::types::Types;

/// What a keyword means to the strict walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Constrains the instance (an entry of `RULES.all`).
    Rule,
    /// Known, but constrains nothing.
    Note,
    /// The meta-schema describes it, strict mode refuses it.
    Refused,
}

/// The value the meta-schema demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Any,
    Anchor,
    Array,
    Bool,
    Dependencies,
    Id,
    NonNegativeInteger,
    Number,
    PositiveNumber,
    Schema,
    SchemaList,
    SchemaMap,
    Text,
    TextList,
    TextListMap,
    TypeNames,
    Vocabulary,
}

macro_rules! keywords {
    ($($variant:ident $name:literal $class:ident $types:ident $shape:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Keyword { $($variant,)* }

        impl Keyword {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }

            /// The types of which one must be declared beside this keyword; none: no demand.
            pub const fn types(self) -> Types {
                match self { $(Self::$variant => Types::$types,)* }
            }

            pub const fn shape(self) -> Shape {
                match self { $(Self::$variant => Shape::$shape,)* }
            }
        }

        /// Names worth suggesting for a misspelt keyword.
        pub const NAMES: &[&str] = &[$($name,)*];
    };
}

// The rules and the few notes that the walk reads come first: they have a slot in `Node`.
keywords! {
    DynamicAnchor "$dynamicAnchor" Rule NONE Anchor;
    DynamicRef "$dynamicRef" Rule NONE Text;
    RecursiveAnchor "$recursiveAnchor" Rule NONE Anchor;
    RecursiveRef "$recursiveRef" Rule NONE Text;
    Comment "$comment" Rule NONE Text;
    LegacyId "id" Rule NONE Any;
    Ref "$ref" Rule NONE Text;
    Maximum "maximum" Rule NUMBER Number;
    Minimum "minimum" Rule NUMBER Number;
    ExclusiveMaximum "exclusiveMaximum" Rule NUMBER Number;
    ExclusiveMinimum "exclusiveMinimum" Rule NUMBER Number;
    MultipleOf "multipleOf" Rule NUMBER PositiveNumber;
    MaxLength "maxLength" Rule STRING NonNegativeInteger;
    MinLength "minLength" Rule STRING NonNegativeInteger;
    Pattern "pattern" Rule STRING Text;
    MaxProperties "maxProperties" Rule OBJECT NonNegativeInteger;
    MinProperties "minProperties" Rule OBJECT NonNegativeInteger;
    Required "required" Rule OBJECT TextList;
    MaxItems "maxItems" Rule ARRAY NonNegativeInteger;
    MinItems "minItems" Rule ARRAY NonNegativeInteger;
    UniqueItems "uniqueItems" Rule ARRAY Bool;
    Type "type" Rule NONE TypeNames;
    Nullable "nullable" Rule NONE Any;
    Const "const" Rule NONE Any;
    Enum "enum" Rule NONE Array;
    Not "not" Rule NONE Schema;
    AnyOf "anyOf" Rule NONE SchemaList;
    OneOf "oneOf" Rule NONE SchemaList;
    AllOf "allOf" Rule NONE SchemaList;
    If "if" Rule NONE Schema;
    Then "then" Rule NONE Schema;
    Else "else" Rule NONE Schema;
    PropertyNames "propertyNames" Rule OBJECT Schema;
    AdditionalProperties "additionalProperties" Rule OBJECT Schema;
    Dependencies "dependencies" Rule OBJECT Dependencies;
    Properties "properties" Rule OBJECT SchemaMap;
    PatternProperties "patternProperties" Rule OBJECT SchemaMap;
    PrefixItems "prefixItems" Rule ARRAY SchemaList;
    Items "items" Rule ARRAY Schema;
    Contains "contains" Rule ARRAY Schema;
    Format "format" Rule NUMBER_OR_STRING Text;
    DependentRequired "dependentRequired" Rule OBJECT TextListMap;
    DependentSchemas "dependentSchemas" Rule OBJECT SchemaMap;
    MaxContains "maxContains" Rule ARRAY NonNegativeInteger;
    MinContains "minContains" Rule ARRAY NonNegativeInteger;
    UnevaluatedProperties "unevaluatedProperties" Rule OBJECT Schema;
    UnevaluatedItems "unevaluatedItems" Rule ARRAY Schema;
    FormatMaximum "formatMaximum" Rule STRING Any;
    FormatMinimum "formatMinimum" Rule STRING Any;
    FormatExclusiveMaximum "formatExclusiveMaximum" Rule STRING Any;
    FormatExclusiveMinimum "formatExclusiveMinimum" Rule STRING Any;
    Id "$id" Note NONE Id;
    Default "default" Note NONE Any;
    Async "$async" Note NONE Any;
    Schema "$schema" Note NONE Text;
    Defs "$defs" Note NONE SchemaMap;
    Vocabulary "$vocabulary" Note NONE Vocabulary;
    Definitions "definitions" Note NONE SchemaMap;
    Title "title" Note NONE Text;
    Description "description" Note NONE Text;
    Deprecated "deprecated" Note NONE Bool;
    ReadOnly "readOnly" Note NONE Bool;
    WriteOnly "writeOnly" Note NONE Bool;
    Examples "examples" Note NONE Array;
    ContentMediaType "contentMediaType" Note NONE Text;
    ContentEncoding "contentEncoding" Note NONE Text;
    ContentSchema "contentSchema" Note NONE Schema;
    Anchor "$anchor" Refused NONE Anchor;
}

const SLOTS: usize = Keyword::Async as usize + 1;
const RULES: u64 = (1 << (Keyword::FormatExclusiveMinimum as u64 + 1)) - 1;

/// One schema object with its keywords sorted into slots, so that the rules can be taken in Ajv's
/// order without looking names up again.
pub struct Node<'s> {
    present: u64,
    slots: [Option<&'s Value>; SLOTS],
}

impl<'s> Node<'s> {
    /// Sorts the members; `unknown` hears of each name that strict mode does not know.
    pub fn read(object: &'s Map<String, Value>, mut unknown: impl FnMut(&'s str)) -> Self {
        let mut node = Self { present: 0, slots: [None; SLOTS] };
        for (name, value) in object {
            match Keyword::of(name) {
                Some(keyword) if keyword.class() != Class::Refused => node.put(keyword, value),
                _ => unknown(name),
            }
        }
        node
    }

    fn put(&mut self, keyword: Keyword, value: &'s Value) {
        if let Some(slot) = self.slots.get_mut(keyword as usize) {
            *slot = Some(value);
            self.present |= 1 << keyword as u64;
        }
    }

    pub fn get(&self, keyword: Keyword) -> Option<&'s Value> {
        self.slots.get(keyword as usize).copied().flatten()
    }

    pub fn has(&self, keyword: Keyword) -> bool {
        self.present & (1 << keyword as u64) != 0
    }

    /// The keywords that have a slot and are there.
    pub fn keywords(&self) -> impl Iterator<Item = Keyword> {
        let mut rest = self.present;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let index = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            Keyword::ALL.get(index).copied()
        })
    }

    /// Whether anything here can refuse an instance, as Ajv counts it (`$comment` counts).
    pub fn has_rules(&self) -> bool {
        self.present & RULES != 0
    }

    pub fn has_rules_besides(&self, keyword: Keyword) -> bool {
        self.present & RULES & !(1 << keyword as u64) != 0
    }
}

/// The negation of Ajv's `alwaysValidSchema`, without its report of unknown keywords.
pub fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Bool(verdict) => !verdict,
        Value::Object(object) => object.keys().any(|name| is_rule(name)),
        _ => false,
    }
}

pub fn is_rule(name: &str) -> bool {
    Keyword::of(name).is_some_and(|keyword| keyword.class() == Class::Rule)
}
