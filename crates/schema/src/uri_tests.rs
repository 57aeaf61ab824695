//! Resolution of references against a base.

use super::{decode_segment, document, normalize_id, resolve};

#[test]
fn references_resolve_against_their_base() {
    for (base, reference, expected) in [
        ("", "#/a", "#/a"),
        ("http://ex.com/dir/root.json", "", "http://ex.com/dir/root.json"),
        ("http://ex.com/dir/root.json", "#x", "http://ex.com/dir/root.json#x"),
        ("http://ex.com/dir/root.json", "child", "http://ex.com/dir/child"),
        ("http://ex.com/dir/root.json", "../child", "http://ex.com/child"),
        ("http://ex.com/dir/root.json", "/abs", "http://ex.com/abs"),
        ("http://ex.com", "child", "http://ex.com/child"),
        ("list", "item", "item"),
        ("a/b", "../../c", "../c"),
        ("urn:example:root", "#/a", "urn:example:root#/a"),
        ("http://ex.com/a", "HTTP://Other.com/B", "http://other.com/B"),
    ] {
        assert_eq!(resolve(base, reference).as_deref(), Some(expected), "{reference} against {base}");
    }
}

#[test]
fn malformed_escapes_do_not_resolve() {
    assert_eq!(resolve("", "a%zz"), None);
    assert_eq!(decode_segment("%ff"), None);
}

#[test]
fn pointer_segments_are_decoded_twice() {
    assert_eq!(decode_segment("a~1b%25~0").as_deref(), Some("a/b%~"));
}

#[test]
fn ids_are_compared_without_their_fragment() {
    assert_eq!(document("http://ex.com#/a"), "http://ex.com/");
    assert_eq!(normalize_id("child#"), "child");
}
