use super::*;

pub(super) struct Files(pub Vec<(&'static str, &'static str)>);

impl Siblings for Files {
    fn read(&self, path: &str) -> Result<String, String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    }
}

/// Each diagnostic as `[file:]code text-under-the-span`: those of the handler first, each file in reading order.
pub(super) fn found(source: &str, files: &[(&'static str, &'static str)]) -> Vec<String> {
    let mut diagnostics = check_handler(source, &Files(files.to_vec())).diagnostics;
    diagnostics.sort_by_key(|draft| (draft.file != HANDLER, draft.file.clone(), draft.span().start));
    let text = |file: &str| match file {
        HANDLER => source,
        other => files.iter().find(|(name, _)| *name == other).unwrap().1,
    };
    let line = |draft: &DiagnosticDraft| {
        let file = if draft.file == HANDLER { String::new() } else { format!("{}:", draft.file) };
        format!("{file}{} {}", draft.code, &text(&draft.file)[draft.span()])
    };
    diagnostics.iter().map(line).collect()
}

pub(super) fn check(source: &str, files: &[(&'static str, &'static str)], expected: &[&str]) {
    assert_eq!(found(source, files), expected, "{source}");
}

pub(super) fn help(source: &str) -> String {
    let diagnostics = check_handler(source, &Files(vec![])).diagnostics;
    diagnostics.into_iter().next().and_then(|draft| draft.help).unwrap_or_default()
}

#[test]
fn all_forms_of_exporting_a_function_are_accepted() {
    for source in [
        "export async function execute({ args }) { return { ok: true }; }",
        "export function execute() {}",
        "export const execute = async ({ args }) => ({ ok: true });",
        "export let execute = function () {};",
        "export var execute = async function named() {};",
        "const run = () => {}; export const execute = run;",
        "export const execute = run; function run() {}",
        "export const execute = wrap(async () => {});",
        "export const execute = a ? b : c;",
        "export const execute = handlers.execute;",
        "function execute() {} export { execute };",
        "export { execute }; async function execute() {}",
        "const run = async () => {}; export { run as execute };",
        "const run = async () => {}; export { run as 'execute' };",
        "const obj = {}; export const { execute } = obj;",
        "const obj = {}; export const { run: execute } = obj;",
        "export const execute = (0, () => {});",
        "export let execute = null; execute = async () => {};",
        "export let execute; if (true) execute = () => {};",
        "if (true) { var execute = () => {}; } export { execute };",
        "const x = await Promise.resolve(1); export const execute = () => x;",
        "#!/usr/bin/env node\nexport function execute() {}",
        "\u{FEFF}export function execute() {}",
        "'use strict';\r\nexport function execute() {\r\n}\r\n",
        "export default function other() {} export const execute = other;",
        "var a = 1; var a = 2; export function execute() { let b = 1; { let b = 2; } }",
        "const b = a, a = b; export { a as execute };",
    ] {
        check(source, &[], &[]);
    }
}

#[test]
fn an_execute_that_is_not_a_function_is_reported_where_it_is_defined() {
    for (source, place) in [
        ("export const execute = 5;", "5"),
        ("export const execute = 'x';", "'x'"),
        ("export const execute = `x`;", "`x`"),
        ("export const execute = { run() {} };", "{ run() {} }"),
        ("export const execute = [];", "[]"),
        ("export const execute = null;", "null"),
        ("export const execute = undefined;", "undefined"),
        ("export const execute = /x/;", "/x/"),
        ("export const execute = class {};", "class {}"),
        ("export class execute {}", "class execute {}"),
        ("export const execute = !run;", "!run"),
        ("export let execute = 1;", "1"),
        ("export let execute;", "execute"),
        ("export function* execute() {}", "function* execute() {}"),
        ("export async function* execute() {}", "async function* execute() {}"),
        ("export const execute = function* () {};", "function* () {}"),
        ("const a = {}; const b = a; export { b as execute };", "{}"),
        ("import * as all from './handler.js'; export { all as execute };", "execute"),
        ("export * as execute from './handler.js';", "execute"),
        ("export { ToolError as execute } from '../_core/error-types.js';", "execute"),
        ("import { ErrorType } from '../error-types.js'; export const execute = ErrorType;", "execute"),
    ] {
        check(source, &[], &[&format!("handler-not-a-function {place}")]);
    }
}

#[test]
fn execute_is_followed_into_other_modules() {
    let fine = ("impl.js", "export async function execute() {} export const run = () => {};");
    let wrong = ("impl.js", "export const execute = 7; export let run = 'x';");
    for source in [
        "export { execute } from './impl.js';",
        "export { run as execute } from './impl.js';",
        "export * from './impl.js';",
        "import { run } from './impl.js'; export { run as execute };",
        "import { run } from './impl.js'; export const execute = run;",
    ] {
        check(source, &[fine], &[]);
        assert_eq!(found(source, &[wrong]).len(), 1, "{source}");
    }
    check("export * from './impl.js';", &[wrong], &["impl.js:handler-not-a-function 7"]);
    let reached = ("impl.js", "export { run as execute } from './lib/deep.mjs';");
    let deep = ("lib/deep.mjs", "export * from '../impl.js'; export default 1; const run = () => 1; export { run };");
    check("export * from './impl.js';", &[reached, deep], &[]);
    let default = ("impl.js", "export default async () => {};");
    check("import run from './impl.js'; export { run as execute };", &[default], &[]);
    check("export { default as execute } from './impl.js';", &[default], &[]);
    check("export * from './impl.js';", &[default], &["handler-no-execute "]);
    let two = [("a.js", "export * from './b.js';"), ("b.js", "export * from './a.js';")];
    check("export * from './a.js';", &two, &["handler-no-execute "]);
}

#[test]
fn the_help_for_a_missing_execute_depends_on_the_source() {
    for (source, place, helped) in [
        ("", "", "export async function execute"),
        ("// nothing\n", "", "export async function execute"),
        ("export default async function () {}", "export default", "default export is not enough"),
        ("module.exports = { execute() {} };", "module.exports", "not CommonJS"),
        ("exports.execute = () => {};", "exports.", "not CommonJS"),
        ("const fs = require('fs');", "require(", "not CommonJS"),
        ("async function execute() {}", "execute", "put `export` before it"),
        ("const execute = () => {};", "execute", "put `export` before it"),
        ("export function exceute() {}", "exceute", "did you mean `execute`"),
        ("export function Execute() {}", "Execute", "did you mean `execute`"),
        ("export function run() {}", "", "export async function execute"),
    ] {
        let all = found(source, &[]);
        assert_eq!(
            all.iter().find(|line| line.contains("no-execute")),
            Some(&format!("handler-no-execute {place}")),
            "{source}"
        );
        let report = check_handler(source, &Files(vec![]));
        let missing = report.diagnostics.iter().find(|draft| draft.code == "handler-no-execute");
        assert!(missing.unwrap().help.as_ref().unwrap().contains(helped), "{source}");
    }
}

#[test]
fn syntax_errors_are_reported_with_their_span() {
    for (source, expected) in [
        ("export function execute( {", "handler-syntax "),
        ("export const execute = () => { return 1 + ; };", "handler-syntax ;"),
        ("export function execute() { const a: string = 1; }", "handler-syntax a"),
        ("export function execute() { await x(); }", "handler-syntax await"),
        ("export const execute = () => /(/;", "handler-syntax "),
        ("export { nope }; export const execute = () => {};", "handler-syntax nope"),
        ("export const execute = () => {}; export { execute };", "handler-syntax execute"),
        ("export const execute = () => {}; let a = 1; const a = 2;", "handler-syntax a"),
        ("export const execute = () => {}; import { execute } from './handler.js';", "handler-syntax execute"),
        ("export const execute = () => <div/>;", "handler-syntax "),
        ("export const execute = () => 'é", "handler-syntax "),
    ] {
        let all = found(source, &[]);
        assert!(all.iter().any(|line| line.starts_with(expected)), "{source}: {all:?}");
        assert!(all.iter().all(|line| line.starts_with("handler-syntax")), "{source}: {all:?}");
    }
}

#[test]
fn unavailable_globals_are_reported_without_false_positives() {
    for (body, expected) in [
        ("await fetch('x')", "fetch"),
        ("return () => { if (a) process.env.X; }", "process"),
        ("return { fetch }", "fetch"),
        ("return Buffer.from('x')", "Buffer"),
        ("setInterval(() => {}, 1)", "setInterval"),
        ("return new Intl.NumberFormat()", "Intl"),
        ("return context.http.fetch('x')", ""),
        ("return context.http\n.fetch('x')", ""),
        ("return context . http . fetch('x')", ""),
        ("const { fetch } = context.http; await fetch('x')", ""),
        ("const process = 1; return process", ""),
        ("return ['document'].map((document) => document)", ""),
        ("return { process: 1, window: 2 }.window", ""),
        ("return 'fetch process'; /* require('x') */", ""),
        ("return typeof process !== 'undefined' ? process.env : {}", ""),
        ("fetch: for (;;) break fetch;", ""),
        (
            "return [new Date(), Math.PI, crypto.randomUUID(), new URL('x:y'), structuredClone({}), setTimeout, console]",
            "",
        ),
    ] {
        let source = format!("export async function execute({{ args, context }}) {{ {body} }}");
        let expected: Vec<String> = Some(expected)
            .filter(|name| !name.is_empty())
            .map(|name| format!("handler-unavailable-global {name}"))
            .into_iter()
            .collect();
        assert_eq!(found(&source, &[]), expected, "{body}");
    }
}

#[test]
fn bidirectional_controls_are_reported_as_warnings() {
    check("export const execute = () => '\u{202E}';", &[], &["handler-hidden-unicode \u{202E}"]);
    check("// naïve – ok\nexport const execute = () => 'é';", &[], &[]);
}

#[test]
fn the_reference_handlers_have_no_diagnostics() {
    let tools = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let mut checked = 0;
    for tool in std::fs::read_dir(tools).unwrap() {
        let Ok(source) = std::fs::read_to_string(tool.unwrap().path().join("handler.js")) else { continue };
        check(&source, &[], &[]);
        checked += 1;
    }
    assert!(checked >= 14, "{checked}");
}

#[test]
fn a_misspelt_parameter_of_execute_is_an_error() {
    check(
        "export async function execute({ args, contex }) { return context.kb.get(args); }",
        &[],
        &["handler-unknown-context contex"],
    );
    check("export const execute = async ({ arg, context }) => context.kb.get(arg);", &[], &[
        "handler-unknown-context arg",
    ]);
    assert_eq!(help("export function execute({ args, contex }) {}"), "did you mean `context`?");
    for source in [
        "export async function execute({ args, context }) {}",
        "export async function execute({ args, contex = {} }) {}",
        "export async function execute({ args, contex: other = {} }) {}",
        "export async function execute({ args, extra }) {}",
        "const f = ({ contex }) => contex; export async function execute({ args }) { return f(args); }",
    ] {
        check(source, &[], &[]);
    }
}
