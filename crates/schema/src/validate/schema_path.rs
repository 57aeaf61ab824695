//! Schema paths of errors: URI fragments, as Ajv writes them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::compiled_schema::{CompiledSchema, NodeId, SchemaLocation};
use crate::pointer::escape;

/// What `encodeURIComponent` of JavaScript encodes.
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

/// The schema path of a keyword in a node.
pub fn schema_path(schema: &CompiledSchema, node: NodeId, keyword: &str) -> String {
    let mut path = String::with_capacity(64);
    push_location(schema, node, &mut path);
    path.push('/');
    path.push_str(keyword);
    path
}

fn push_location(schema: &CompiledSchema, node: NodeId, path: &mut String) {
    let Some(node) = schema.nodes.get(node as usize) else { return };
    match &node.location {
        SchemaLocation::Root => path.push('#'),
        SchemaLocation::Reference(reference) => path.push_str(reference),
        SchemaLocation::Keyword(parent, keyword, member) => {
            push_location(schema, *parent, path);
            path.push('/');
            path.push_str(keyword.name());
            if let Some(member) = member {
                path.push('/');
                path.extend(utf8_percent_encode(&escape(member), URI_COMPONENT));
            }
        }
    }
}
