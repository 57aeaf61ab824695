//! Shapes of values, checked in the whole document: what is reported, where and with what help.

use super::super::support::check;

#[test]
fn values_of_the_wrong_shape_say_what_they_must_be() {
    check(
        r#"{"type": "object", "title": 1, "minProperties": -1, "maxProperties": 1.5, "uniqueItems": "yes", "properties": [], "allOf": [], "multipleOf": 0, "$id": "a#b", "$defs": {"x": 3}, "dependentRequired": {"a": "b"}, "$vocabulary": {"v": 1}, "$dynamicAnchor": "1"}"#,
        &[
            "schema-invalid /title Value: `title` must be a string, got 1 []",
            "schema-invalid /minProperties Value: `minProperties` must be a whole number, 0 or more, got -1 []",
            "schema-invalid /maxProperties Value: `maxProperties` must be a whole number, 0 or more, got 1.5 []",
            "schema-invalid /uniqueItems Value: `uniqueItems` must be true or false, got \"yes\" []",
            "schema-invalid /properties Value: `properties` must be an object of schemas, got an empty array []",
            "schema-invalid /allOf Value: `allOf` must be a list of at least one schema, got an empty array []",
            "schema-invalid /multipleOf Value: `multipleOf` must be a number above 0, got 0 []",
            "schema-invalid /$id Value: `$id` must be a URI without a fragment, got \"a#b\" []",
            "schema-invalid /$defs/x Value: `x` must be a schema (an object or a boolean), got 3 []",
            "schema-invalid /dependentRequired/a Value: `dependentRequired` must be a list of property names, got \"b\" []",
            "schema-invalid /$vocabulary Value: `$vocabulary` must be an object of booleans, got an object []",
            "schema-invalid /$dynamicAnchor Value: `$dynamicAnchor` must be a plain name (letters, digits, `-`, `.`, `_`), got \"1\" []",
            "schema-missing-type /multipleOf Key: `multipleOf` applies to number, but `type` is object [remove `multipleOf` or change `type`]",
            "schema-missing-type /uniqueItems Key: `uniqueItems` applies to array, but `type` is object [remove `uniqueItems` or change `type`]",
        ],
    );
}

#[test]
fn whole_numbers_may_have_a_decimal_point() {
    check(r#"{"type": "string", "minLength": 2.0}"#, &[]);
}

#[test]
fn unknown_types_get_a_suggestion() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "any"}, "b": {"type": "String"}, "c": {"type": "int"}, "d": {"type": ["string", "nul"]}, "e": {"type": []}, "f": {"type": ["null", "null"]}}}"#,
        &[
            "schema-unknown-type /properties/a/type Value: unknown `type`: `any` [leave `type` out to allow any value]",
            "schema-unknown-type /properties/b/type Value: unknown `type`: `String` [did you mean `string`?]",
            "schema-unknown-type /properties/c/type Value: unknown `type`: `int` [did you mean `integer`?]",
            "schema-unknown-type /properties/d/type/1 Value: unknown `type`: `nul` [did you mean `null`?]",
            "schema-invalid /properties/e/type Value: `type` must be a type name or a list of at least one, got an empty array []",
            "schema-invalid /properties/f/type/1 Value: `type` lists \"null\" twice []",
        ],
    );
}

#[test]
fn required_on_a_property_is_explained() {
    check(
        r#"{"type": "object", "properties": {"a": {"type": "string", "required": true}}}"#,
        &[
            "schema-invalid /properties/a/required Value: `required` must be a list of property names, got true [list the property's name in `required` of the enclosing object]",
            "schema-missing-type /properties/a/required Key: `required` applies to object, but `type` is string [remove `required` or change `type`]",
        ],
    );
}

#[test]
fn names_are_listed_once() {
    check(
        r#"{"type": "object", "properties": {"a": {}}, "required": ["a", "a", 1]}"#,
        &[
            "schema-invalid /required/1 Value: `required` lists `a` twice []",
            "schema-invalid /required/2 Value: `required/2` must be a string, got 1 []",
        ],
    );
}

#[test]
fn a_list_of_items_is_explained() {
    check(
        r#"{"type": "array", "items": [{"type": "string"}]}"#,
        &[
            "schema-invalid /items Value: `items` must be a schema (an object or a boolean), got an array [in 2020-12 a tuple is written with `prefixItems`]",
        ],
    );
}

#[test]
fn unreferenced_definitions_are_checked() {
    check(
        r#"{"$defs": {"a/b": {"type": "strin"}}}"#,
        &["schema-unknown-type /$defs/a~1b/type Value: unknown `type`: `strin` [did you mean `string`?]"],
    );
}

#[test]
fn the_root_must_be_a_schema() {
    check(r"[1]", &["schema-invalid  Value: a schema must be an object or a boolean, got an array []"]);
}

#[test]
fn an_unknown_dialect_is_refused() {
    check(
        r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#,
        &[
            "schema-unknown-dialect /$schema Value: `$schema` names an unknown dialect: `http://json-schema.org/draft-07/schema#` [remove `$schema`, or use `https://json-schema.org/draft/2020-12/schema`]",
        ],
    );
}
