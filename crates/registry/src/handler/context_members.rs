//! Reports members of `context` that do not exist, such as `context.htp`, and misspelt `{ args, context }`. Calls of
//! unknown members are errors; reads are warnings, since handlers may test for features of other hosts.

use super::module::Module;
use super::parse_module::range;
use super::{ContextUse, HANDLER};
use oxc_ast::ast::{
    BindingPattern, CallExpression, Expression, FormalParameter, ImportDeclarationSpecifier, ObjectPattern,
    Program, StaticMemberExpression, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use std::collections::BTreeMap;
use std::ops::Range;
use toolwright_contract::handler_context::{FUNCTIONS, find_function, members};
use toolwright_contract::suggest::{list, nearest};

/// The name of the parameter.
const CONTEXT: &str = "context";
/// The members of the argument of `execute`.
pub(super) const PARAMETERS: [&str; 2] = ["args", CONTEXT];

pub(super) fn check(program: &Program, module: &mut Module) {
    let mut uses = Uses::default();
    uses.visit_program(program);
    let is_handler = module.file == HANDLER;
    for (name, near, span) in uses.misspelt.drain(..).filter(|_| is_handler) {
        let message = format!("`{name}` is not passed to `execute`, which gets `args` and `context`");
        module.error("handler-unknown-context", span, message).help(format!("did you mean `{near}`?"));
    }
    let mut found: BTreeMap<String, Finding> = BTreeMap::new();
    for member in &uses.members {
        let is_context = uses.contexts.contains(&member.root) && !uses.others.contains(&member.root);
        let (path, is_certain) = match member.path.split_first() {
            _ if is_context => (&member.path[..], is_handler),
            Some((first, rest)) if first.name == CONTEXT && uses.parameters.contains(&member.root) => {
                (rest, false)
            }
            _ => continue,
        };
        let Some(unknown) = UnknownMember::first(path) else {
            if is_certain {
                module.uses.extend(used_function(path, &module.uses));
            }
            continue;
        };
        let near = unknown.suggestion();
        // Another object may have the name `context` in a module that the handler imports.
        if near.is_none() && !is_certain {
            continue;
        }
        let throws = is_certain && unknown.throws(path, member.is_called);
        let finding = found.entry(unknown.path.clone()).or_insert_with(|| Finding {
            span: unknown.span.clone(),
            throws,
            help: unknown.help(near.as_deref()),
        });
        finding.throws &= throws;
    }
    for (path, Finding { span, throws, help }) in found {
        let message = format!("`context.{path}` does not exist");
        let draft = module.error("handler-unknown-context", span, message).help(help);
        if !throws {
            draft.warning();
        }
    }
}

/// The function that a path of members names, unless its use is known already.
fn used_function(path: &[Member<'_>], known: &[ContextUse]) -> Option<ContextUse> {
    let mut dotted = String::new();
    for Member { name, span, .. } in path {
        if !dotted.is_empty() {
            dotted.push('.');
        }
        dotted.push_str(name);
        if let Some(function) = find_function(&dotted) {
            let is_new = known.iter().all(|one| one.function != function);
            return is_new.then(|| ContextUse { function, file: HANDLER.to_owned(), span: span.clone() });
        }
    }
    None
}

struct Finding {
    span: Range<usize>,
    /// Every use would throw.
    throws: bool,
    help: String,
}

/// The first member of a path that does not exist.
struct UnknownMember<'p> {
    index: usize,
    name: &'p str,
    span: Range<usize>,
    path: String,
    parent: String,
    known: Vec<&'static str>,
}

impl<'p> UnknownMember<'p> {
    fn first(path: &'p [Member<'_>]) -> Option<Self> {
        let mut parent = String::new();
        for (index, Member { name, span, .. }) in path.iter().enumerate() {
            let known = members(&parent);
            if known.is_empty() {
                return None;
            }
            let path = if parent.is_empty() { (*name).to_owned() } else { format!("{parent}.{name}") };
            if !known.contains(name) {
                return Some(Self { index, name, span: span.clone(), path, parent, known });
            }
            parent = path;
        }
        None
    }

    /// Whether the use of an undefined member here throws.
    fn throws(&self, path: &[Member<'_>], is_called: bool) -> bool {
        path.get(self.index + 1).map_or(is_called, |next| !next.is_optional)
    }

    /// The member that is probably meant: `search` is in `kb`, `htp` is a typing error of `http`.
    fn suggestion(&self) -> Option<String> {
        let elsewhere = FUNCTIONS.iter().map(|row| row.path).find(|path| {
            self.parent.is_empty() && path.rsplit_once('.').is_some_and(|(_, last)| last == self.name)
        });
        let near = || {
            let near = nearest(self.name, self.known.iter().copied())?;
            Some(if self.parent.is_empty() { near.to_owned() } else { format!("{}.{near}", self.parent) })
        };
        elsewhere.map(str::to_owned).or_else(near)
    }

    fn help(&self, near: Option<&str>) -> String {
        let prefix =
            if self.parent.is_empty() { CONTEXT.to_owned() } else { format!("{CONTEXT}.{}", self.parent) };
        match near {
            Some(near) => format!("did you mean `{CONTEXT}.{near}`?"),
            None => format!("`{prefix}` has {}", list(&self.known)),
        }
    }
}

/// `root.a.b`, and whether it is called.
struct MemberUse<'a> {
    root: &'a str,
    path: Vec<Member<'a>>,
    is_called: bool,
}

struct Member<'a> {
    name: &'a str,
    span: Range<usize>,
    is_optional: bool,
}

#[derive(Default)]
struct Uses<'a> {
    members: Vec<MemberUse<'a>>,
    /// Names that a parameter or a pattern binds to the context.
    contexts: Vec<&'a str>,
    /// Names that parameters bind.
    parameters: Vec<&'a str>,
    /// Names that also mean something else. Scopes are ignored: a missing report is better than a wrong one.
    others: Vec<&'a str>,
    /// Names in a pattern like `{ args, contex }`, what they should probably be, and where they are.
    misspelt: Vec<(&'a str, &'static str, Range<usize>)>,
}

impl<'a> Uses<'a> {
    /// `{ context }`, `{ context: name }`, `{ context: { kb } }`.
    fn bind_pattern(&mut self, pattern: &ObjectPattern<'a>) {
        for property in pattern.properties.iter().filter(|property| is_named(property, CONTEXT)) {
            match &property.value {
                BindingPattern::BindingIdentifier(id) => self.contexts.push(id.name.as_str()),
                BindingPattern::ObjectPattern(inner) => {
                    self.contexts.push("");
                    self.read_pattern("", &[], inner);
                }
                _ => {}
            }
        }
    }

    /// `{ args, contex }`: a parameter that has one of the two names has no other that is nearly one of them.
    fn find_misspelt(&mut self, pattern: &ObjectPattern<'a>) {
        if !pattern.properties.iter().any(|property| PARAMETERS.iter().any(|name| is_named(property, name))) {
            return;
        }
        for property in pattern.properties.iter().filter(|property| !property.computed) {
            let oxc_ast::ast::PropertyKey::StaticIdentifier(key) = &property.key else { continue };
            let name = key.name.as_str();
            // A default value means that the handler expects hosts without it.
            let has_default = matches!(property.value, BindingPattern::AssignmentPattern(_));
            if PARAMETERS.contains(&name) || has_default {
                continue;
            }
            if let Some(near) = nearest(name, PARAMETERS) {
                self.misspelt.push((name, near, range(key.span)));
            }
        }
    }

    /// The members that `const { a, b } = root.path` reads.
    fn read_pattern(&mut self, root: &'a str, path: &[Member<'a>], pattern: &ObjectPattern<'a>) {
        for property in pattern.properties.iter().filter(|property| !property.computed) {
            let oxc_ast::ast::PropertyKey::StaticIdentifier(key) = &property.key else { continue };
            let mut path: Vec<Member<'a>> = path.iter().map(Member::copy).collect();
            path.push(Member { name: key.name.as_str(), span: range(key.span), is_optional: true });
            self.members.push(MemberUse { root, path, is_called: false });
        }
    }
}

impl<'a> Member<'a> {
    fn copy(&self) -> Self {
        Self { name: self.name, span: self.span.clone(), is_optional: self.is_optional }
    }
}

fn is_named(property: &oxc_ast::ast::BindingProperty, name: &str) -> bool {
    !property.computed && property.key.static_name().is_some_and(|key| key == name)
}

/// `name.a.b`: the name and the members.
fn chain<'a>(expression: &Expression<'a>) -> Option<(&'a str, Vec<Member<'a>>)> {
    match expression {
        Expression::Identifier(name) => Some((name.name.as_str(), Vec::new())),
        Expression::StaticMemberExpression(member) => member_chain(member),
        _ => None,
    }
}

fn member_chain<'a>(member: &StaticMemberExpression<'a>) -> Option<(&'a str, Vec<Member<'a>>)> {
    let (root, mut path) = chain(&member.object)?;
    let (name, span) = (member.property.name.as_str(), range(member.property.span));
    path.push(Member { name, span, is_optional: member.optional });
    Some((root, path))
}

impl<'a> Visit<'a> for Uses<'a> {
    fn visit_formal_parameter(&mut self, parameter: &FormalParameter<'a>) {
        if let BindingPattern::BindingIdentifier(id) = &parameter.pattern {
            let name = id.name.as_str();
            self.parameters.push(name);
            self.contexts.extend((name == CONTEXT).then_some(name));
        }
        if let BindingPattern::ObjectPattern(pattern) = &parameter.pattern {
            self.find_misspelt(pattern);
        }
        walk::walk_formal_parameter(self, parameter);
    }

    fn visit_object_pattern(&mut self, pattern: &ObjectPattern<'a>) {
        self.bind_pattern(pattern);
        walk::walk_object_pattern(self, pattern);
    }

    fn visit_variable_declarator(&mut self, variable: &VariableDeclarator<'a>) {
        match (&variable.id, variable.init.as_ref().and_then(chain)) {
            (BindingPattern::BindingIdentifier(id), _) => self.others.push(id.name.as_str()),
            (BindingPattern::ObjectPattern(pattern), Some((root, path))) => {
                self.read_pattern(root, &path, pattern);
            }
            _ => {}
        }
        walk::walk_variable_declarator(self, variable);
    }

    fn visit_import_declaration_specifier(&mut self, import: &ImportDeclarationSpecifier<'a>) {
        self.others.push(import.local().name.as_str());
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        match member_chain(member) {
            Some((root, path)) => self.members.push(MemberUse { root, path, is_called: false }),
            None => walk::walk_static_member_expression(self, member),
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::StaticMemberExpression(member) if !call.optional => match member_chain(member) {
                Some((root, path)) => {
                    self.members.push(MemberUse { root, path, is_called: true });
                    self.visit_arguments(&call.arguments);
                }
                None => walk::walk_call_expression(self, call),
            },
            _ => walk::walk_call_expression(self, call),
        }
    }
}
