//! `toolwright.d.ts` has the members that handlers really see, and so has the table that `check` uses.

use std::collections::BTreeMap;
use std::fs;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Declaration, Statement, TSNamespaceDeclarationBody, TSSignature, TSType, TSTypeName};
use oxc_parser::Parser;
use oxc_span::SourceType;
use toolwright_contract::handler_context::{DATA, FUNCTIONS};

use super::support::{Project, repository};

/// Path → what it is: `data`, `sync` or `async`.
type Members = BTreeMap<String, String>;

fn table() -> Members {
    let functions = FUNCTIONS.iter().map(|row| (row.path, if row.is_sync { "sync" } else { "async" }));
    let all = functions.chain(DATA.iter().map(|path| (*path, "data")));
    all.map(|(path, kind)| (path.to_owned(), kind.to_owned())).collect()
}

/// Lists every member; functions are called, to see whether they return a promise.
const HANDLER: &str = "export async function execute({ context }) {
  const found = {};
  const add = (path, value) => {
    if (typeof value === 'function') {
      let result;
      try { result = value(); } catch { result = undefined; }
      found[path] = result instanceof Promise ? 'async' : 'sync';
      if (result instanceof Promise) result.catch(() => {});
    } else found[path] = 'data';
  };
  for (const name of Reflect.ownKeys(context)) {
    const value = context[name];
    const isGroup = typeof value === 'object' && value !== null && name !== 'signal';
    if (isGroup) for (const inner of Reflect.ownKeys(value)) add(`${name}.${inner}`, value[inner]);
    else add(name, value);
  }
  return { ok: true, data: found };
}
";

#[test]
fn the_sandbox_offers_exactly_the_members_of_the_table() {
    let project = Project::with(&["one"]);
    project.write("one/handler.js", HANDLER);
    let envelope =
        project.run(&["call", "one", r#"{"query": "x"}"#, "--format", "json"]).expect_code(0).json();
    let found: Members = serde_json::from_value(envelope["data"].clone()).unwrap();
    assert_eq!(found, table());
}

#[test]
fn the_types_for_editors_have_exactly_the_members_of_the_table() {
    let text = fs::read_to_string(repository().join("crates/cli/templates/project/toolwright.d.ts")).unwrap();
    let arena = Allocator::default();
    let parsed = Parser::new(&arena, &text, SourceType::d_ts()).parse();
    assert!(!parsed.diagnostics.errors().any(|_| true), "toolwright.d.ts does not parse");
    let mut found = Members::new();
    for statement in &parsed.program.body {
        if let Some(Declaration::TSNamespaceDeclaration(namespace)) = statement.as_declaration()
            && let TSNamespaceDeclarationBody::TSModuleBlock(block) = &namespace.body
        {
            for statement in &block.body {
                collect_interface(statement, &mut found);
            }
        }
    }
    assert_eq!(found, table());
}

fn collect_interface(statement: &Statement, found: &mut Members) {
    if let Some(Declaration::TSInterfaceDeclaration(interface)) = statement.as_declaration()
        && interface.id.name == "Context"
    {
        interface.body.body.iter().for_each(|member| collect(member, "", found));
    }
}

fn collect(member: &TSSignature, prefix: &str, found: &mut Members) {
    match member {
        TSSignature::TSMethodSignature(method) => {
            let name = method.key.static_name().unwrap();
            let returned = method.return_type.as_ref().map(|returned| &returned.type_annotation);
            let is_promise = matches!(returned, Some(TSType::TSTypeReference(reference))
                if matches!(&reference.type_name, TSTypeName::IdentifierReference(name) if name.name == "Promise"));
            found.insert(format!("{prefix}{name}"), if is_promise { "async" } else { "sync" }.to_owned());
        }
        TSSignature::TSPropertySignature(property) => {
            let path = format!("{prefix}{}", property.key.static_name().unwrap());
            match property.type_annotation.as_ref().map(|annotation| &annotation.type_annotation) {
                Some(TSType::TSTypeLiteral(literal)) => {
                    literal.members.iter().for_each(|member| collect(member, &format!("{path}."), found));
                }
                _ => drop(found.insert(path, "data".to_owned())),
            }
        }
        _ => panic!("an unexpected member of `Context` below `{prefix}`"),
    }
}
