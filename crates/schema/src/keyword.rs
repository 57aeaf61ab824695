//! The keywords of JSON Schema, one row each: class, vocabulary, the types that it constrains and the form of its
//! value. The linter and the validator both read schemas through this table.

use serde_json::{Map, Value};

use crate::types::TypeSet;

/// The role of a keyword in Ajv's 2020 build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Constrains the instance (an entry of Ajv's `RULES.all`).
    Rule,
    /// Known, but constrains nothing.
    Annotation,
    /// Unknown to strict mode; the validator applies it in schemas of an older draft.
    NotStrict,
}

/// The vocabulary of a keyword, as far as a meta-schema can leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    Applicator,
    /// The only applicator that older drafts lack.
    PrefixItems,
    Format,
    Unevaluated,
    Validation,
    Other,
}

/// The value that the meta-schema requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Any,
    Anchor,
    Array,
    Boolean,
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
    ($($variant:ident $name:literal $class:ident $vocabulary:ident $types:ident $shape:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Keyword { $($variant,)* }

        impl Keyword {
            const ALL: &'static [Self] = &[$(Self::$variant,)*];

            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }

            pub const fn vocabulary(self) -> Vocabulary {
                match self { $(Self::$variant => Vocabulary::$vocabulary,)* }
            }

            /// The types that this keyword constrains, one of which `type` must declare; empty: any.
            pub const fn types(self) -> TypeSet {
                match self { $(Self::$variant => TypeSet::$types,)* }
            }

            pub const fn shape(self) -> Shape {
                match self { $(Self::$variant => Shape::$shape,)* }
            }
        }

        /// Candidates for a misspelt keyword.
        pub const KEYWORD_NAMES: &[&str] = &[$($name,)*];
    };
}

// Keywords that are read through `Keywords` come first, rules before the others: their position is their slot.
keywords! {
    DynamicAnchor "$dynamicAnchor" Rule Other NONE Anchor;
    DynamicRef "$dynamicRef" Rule Other NONE Text;
    RecursiveAnchor "$recursiveAnchor" Rule Other NONE Anchor;
    RecursiveRef "$recursiveRef" Rule Other NONE Text;
    Comment "$comment" Rule Other NONE Text;
    LegacyId "id" Rule Other NONE Any;
    Ref "$ref" Rule Other NONE Text;
    Maximum "maximum" Rule Validation NUMBER Number;
    Minimum "minimum" Rule Validation NUMBER Number;
    ExclusiveMaximum "exclusiveMaximum" Rule Validation NUMBER Number;
    ExclusiveMinimum "exclusiveMinimum" Rule Validation NUMBER Number;
    MultipleOf "multipleOf" Rule Validation NUMBER PositiveNumber;
    MaxLength "maxLength" Rule Validation STRING NonNegativeInteger;
    MinLength "minLength" Rule Validation STRING NonNegativeInteger;
    Pattern "pattern" Rule Validation STRING Text;
    MaxProperties "maxProperties" Rule Validation OBJECT NonNegativeInteger;
    MinProperties "minProperties" Rule Validation OBJECT NonNegativeInteger;
    Required "required" Rule Validation OBJECT TextList;
    MaxItems "maxItems" Rule Validation ARRAY NonNegativeInteger;
    MinItems "minItems" Rule Validation ARRAY NonNegativeInteger;
    UniqueItems "uniqueItems" Rule Validation ARRAY Boolean;
    Type "type" Rule Validation NONE TypeNames;
    Nullable "nullable" Rule Other NONE Any;
    Const "const" Rule Validation NONE Any;
    Enum "enum" Rule Validation NONE Array;
    Not "not" Rule Applicator NONE Schema;
    AnyOf "anyOf" Rule Applicator NONE SchemaList;
    OneOf "oneOf" Rule Applicator NONE SchemaList;
    AllOf "allOf" Rule Applicator NONE SchemaList;
    If "if" Rule Applicator NONE Schema;
    Then "then" Rule Applicator NONE Schema;
    Else "else" Rule Applicator NONE Schema;
    PropertyNames "propertyNames" Rule Applicator OBJECT Schema;
    AdditionalProperties "additionalProperties" Rule Applicator OBJECT Schema;
    Dependencies "dependencies" Rule Other OBJECT Dependencies;
    Properties "properties" Rule Applicator OBJECT SchemaMap;
    PatternProperties "patternProperties" Rule Applicator OBJECT SchemaMap;
    PrefixItems "prefixItems" Rule PrefixItems ARRAY SchemaList;
    Items "items" Rule Applicator ARRAY Schema;
    Contains "contains" Rule Applicator ARRAY Schema;
    Format "format" Rule Format NUMBER_OR_STRING Text;
    DependentRequired "dependentRequired" Rule Validation OBJECT TextListMap;
    DependentSchemas "dependentSchemas" Rule Applicator OBJECT SchemaMap;
    MaxContains "maxContains" Rule Validation ARRAY NonNegativeInteger;
    MinContains "minContains" Rule Validation ARRAY NonNegativeInteger;
    UnevaluatedProperties "unevaluatedProperties" Rule Unevaluated OBJECT Schema;
    UnevaluatedItems "unevaluatedItems" Rule Unevaluated ARRAY Schema;
    FormatMaximum "formatMaximum" Rule Other STRING Any;
    FormatMinimum "formatMinimum" Rule Other STRING Any;
    FormatExclusiveMaximum "formatExclusiveMaximum" Rule Other STRING Any;
    FormatExclusiveMinimum "formatExclusiveMinimum" Rule Other STRING Any;
    Id "$id" Annotation Other NONE Id;
    Default "default" Annotation Other NONE Any;
    Async "$async" Annotation Other NONE Any;
    AdditionalItems "additionalItems" NotStrict Other ARRAY Any;
    Schema "$schema" Annotation Other NONE Text;
    Defs "$defs" Annotation Other NONE SchemaMap;
    Vocabulary "$vocabulary" Annotation Other NONE Vocabulary;
    Definitions "definitions" Annotation Other NONE SchemaMap;
    Title "title" Annotation Other NONE Text;
    Description "description" Annotation Other NONE Text;
    Deprecated "deprecated" Annotation Other NONE Boolean;
    ReadOnly "readOnly" Annotation Other NONE Boolean;
    WriteOnly "writeOnly" Annotation Other NONE Boolean;
    Examples "examples" Annotation Other NONE Array;
    ContentMediaType "contentMediaType" Annotation Other NONE Text;
    ContentEncoding "contentEncoding" Annotation Other NONE Text;
    ContentSchema "contentSchema" Annotation Other NONE Schema;
    Anchor "$anchor" NotStrict Other NONE Anchor;
}

const SLOTS: usize = Keyword::Schema as usize + 1;
const RULES: usize = Keyword::FormatExclusiveMinimum as usize + 1;

/// The keywords of one schema object, by slot, so that they can be read in Ajv's order.
pub struct Keywords<'s> {
    values: [Option<&'s Value>; SLOTS],
}

impl<'s> Keywords<'s> {
    /// Sorts the members of a schema into slots; calls `unknown` for each name that strict mode does not know.
    pub fn read(schema: &'s Map<String, Value>, mut unknown: impl FnMut(&'s str)) -> Self {
        let mut keywords = Self { values: [None; SLOTS] };
        for (name, value) in schema {
            let keyword = Keyword::from_name(name);
            if let Some(keyword) = keyword
                && let Some(slot) = keywords.values.get_mut(keyword as usize)
            {
                *slot = Some(value);
            }
            if keyword.is_none_or(|keyword| keyword.class() == Class::NotStrict) {
                unknown(name);
            }
        }
        keywords
    }

    pub fn get(&self, keyword: Keyword) -> Option<&'s Value> {
        self.values.get(keyword as usize).copied().flatten()
    }

    pub fn has(&self, keyword: Keyword) -> bool {
        self.get(keyword).is_some()
    }

    /// The names that `type` lists.
    pub fn type_names(&self) -> &'s [Value] {
        match self.get(Keyword::Type) {
            Some(Value::Array(names)) => names,
            single => single.map_or(&[], std::slice::from_ref),
        }
    }

    /// Whether there is a keyword for values of these types.
    pub fn has_any_for(&self, types: TypeSet) -> bool {
        let constrains = |keyword: &Keyword| keyword.types().intersects(types);
        Keyword::ALL.iter().take(SLOTS).any(|keyword| self.has(*keyword) && constrains(keyword))
    }

    /// Removes the keywords for which `applies` is false.
    pub fn retain(&mut self, applies: impl Fn(Keyword) -> bool) {
        for (keyword, slot) in Keyword::ALL.iter().zip(&mut self.values) {
            if !applies(*keyword) {
                *slot = None;
            }
        }
    }

    /// The keywords that constrain an instance, in Ajv's order.
    pub fn rules(&self) -> impl Iterator<Item = Keyword> {
        Keyword::ALL.iter().take(RULES).copied().filter(|keyword| self.has(*keyword))
    }

    /// Whether anything here constrains an instance, as Ajv counts it (`$comment` counts).
    pub fn has_rules(&self) -> bool {
        self.rules().next().is_some()
    }
}

/// Whether a schema can reject an instance: the negation of Ajv's `alwaysValidSchema`, for older drafts too.
pub fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Bool(allows) => !allows,
        Value::Object(object) => object.keys().any(|name| constrains(name)),
        _ => false,
    }
}

/// Whether a keyword constrains an instance, in the current draft or an older one.
pub fn constrains(name: &str) -> bool {
    let is_rule = |keyword: Keyword| keyword.class() == Class::Rule || keyword == Keyword::AdditionalItems;
    Keyword::from_name(name).is_some_and(is_rule)
}
