use serde_json::json;

use super::*;

fn shared(files: &[(&str, Value)]) -> (tempfile::TempDir, Shared) {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("_shared")).unwrap();
    for (name, value) in files {
        fs::write(root.path().join("_shared").join(name), value.to_string()).unwrap();
    }
    let shared = Shared::load(&root.path().canonicalize().unwrap()).unwrap();
    (root, shared)
}

#[test]
fn a_shared_definition_is_copied_in_with_its_own_references() {
    let (_root, shared) = shared(&[
        (
            "person.json",
            json!({"$id": "x", "type": "object", "properties": {
            "home": {"$ref": "address.json"}, "boss": {"$ref": "#"}, "name": {"$ref": "#/$defs/name"}},
            "$defs": {"name": {"type": "string"}}}),
        ),
        ("address.json", json!({"type": "string", "minLength": 3})),
    ]);
    let schema = json!({"type": "object", "properties": {"who": {"$ref": "../_shared/person.json"},
        "name": {"$ref": "../_shared/person.json#/$defs/name"}, "ref": {"const": {"$ref": "../_shared/no.json"}}}});
    let bundled = bundle(&schema, &shared);
    assert_eq!(bundled.missing, []);
    assert_eq!(
        bundled.schema.into_owned(),
        json!({"type": "object", "properties": {"who": {"$ref": "#/$defs/_shared_person"},
            "name": {"$ref": "#/$defs/_shared_person/$defs/name"}, "ref": {"const": {"$ref": "../_shared/no.json"}}},
          "$defs": {
            "_shared_address": {"type": "string", "minLength": 3},
            "_shared_person": {"type": "object", "properties": {
                "home": {"$ref": "#/$defs/_shared_address"}, "boss": {"$ref": "#/$defs/_shared_person"},
                "name": {"$ref": "#/$defs/_shared_person/$defs/name"}}, "$defs": {"name": {"type": "string"}}}}})
    );
}

#[test]
fn a_reference_to_a_missing_or_invalid_shared_file_is_reported() {
    let (root, _) = shared(&[("address.json", json!({}))]);
    fs::write(root.path().join("_shared/broken.json"), "{").unwrap();
    let shared = Shared::load(&root.path().canonicalize().unwrap()).unwrap();
    let schema = json!({"properties": {"a": {"$ref": "../_shared/adress.json"}, "b": {"$ref": "_shared/broken.json"}}});
    let missing = bundle(&schema, &shared).missing;
    assert_eq!(missing.len(), 2);
    assert_eq!(missing[0].0, "/properties/a/$ref");
    assert_eq!(missing[0].2, "did you mean `address.json`?");
    assert!(missing[1].1.contains("not JSON"), "{missing:?}");
}

#[test]
fn a_schema_without_shared_references_is_unchanged() {
    let (_root, shared) = shared(&[]);
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}});
    assert!(matches!(bundle(&schema, &shared).schema, Cow::Borrowed(_)));
}
