use super::tests::{Files, check, help};
use super::*;

const RUN: &str = " export const execute = () => {};";

#[test]
fn only_files_of_the_tool_and_the_error_types_can_be_imported() {
    let files = [("x.js", "export const a = 1; export default 2;"), ("lib/x.js", "export const b = 1;"), ("m.mjs", "")];
    for (import, expected) in [
        ("import { ToolError, ErrorType, IntentType } from '../_core/error-types.js';", ""),
        ("import { ToolError } from '../error-types.js';", ""),
        ("import * as types from '../_core/error-types.js';", ""),
        ("import { a } from './x.js'; import d from './x.js'; import './m.mjs';", ""),
        ("import { b } from './lib/../lib/./x.js';", ""),
        ("export * as all from './lib/x.js';", ""),
        ("const x = () => import('./x.js');", ""),
        ("const x = () => import(`./x.js`);", ""),
        ("const x = () => import( /* why */ './x.js' /* not */, );", ""),
        ("import fs from 'fs';", "handler-import-forbidden 'fs'"),
        ("import fs from \"node:fs\";", "handler-import-forbidden \"node:fs\""),
        ("import 'axios';", "handler-import-forbidden 'axios'"),
        ("export * from 'https://a.example/x.js';", "handler-import-forbidden 'https://a.example/x.js'"),
        ("import '/etc/x.js';", "handler-import-forbidden '/etc/x.js'"),
        ("import '#x';", "handler-import-forbidden '#x'"),
        ("import '';", "handler-import-forbidden ''"),
        ("import '.';", "handler-import-forbidden '.'"),
        ("import './x';", "handler-import-forbidden './x'"),
        ("import './x.js?v=1';", "handler-import-forbidden './x.js?v=1'"),
        ("import './x%2ejs.js';", "handler-import-forbidden './x%2ejs.js'"),
        ("import './lib/.js';", "handler-import-forbidden './lib/.js'"),
        ("import data from './data.json';", "handler-import-forbidden './data.json'"),
        ("import { a } from './x.js' with { type: 'js' };", "handler-import-forbidden { type: 'js' }"),
        ("import('./x.js', { with: {} });", "handler-import-forbidden { with: {} }"),
        ("import '../other/x.js';", "handler-import-outside '../other/x.js'"),
        ("import './lib/../../x.js';", "handler-import-outside './lib/../../x.js'"),
        ("import '../../_core/error-types.js';", "handler-import-outside '../../_core/error-types.js'"),
        ("import '../_core/error-types.mjs';", "handler-import-outside '../_core/error-types.mjs'"),
        ("import './none.js';", "handler-import-missing './none.js'"),
        ("import('./none.js');", "handler-import-missing './none.js'"),
        ("import(name);", "handler-dynamic-import name"),
        ("import('./a' + b);", "handler-dynamic-import './a' + b"),
        ("import('./a' + '.js');", "handler-dynamic-import './a' + '.js'"),
        ("import(`./${x}.js`);", "handler-dynamic-import `./${x}.js`"),
        ("import { c } from './x.js';", "handler-import-name c"),
        ("import { c as d } from './x.js';", "handler-import-name c"),
        ("export { c } from './x.js';", "handler-import-name c"),
        ("import d from './lib/x.js';", "handler-import-name d"),
        ("import { ToolErr } from '../_core/error-types.js';", "handler-import-name ToolErr"),
        ("import types from '../_core/error-types.js';", "handler-import-name types"),
    ] {
        let expected: Vec<&str> = Some(expected).filter(|line| !line.is_empty()).into_iter().collect();
        check(&format!("{import}{RUN}"), &files, &expected);
    }
}

#[test]
fn the_help_names_what_to_use_instead() {
    for (import, helped) in [
        ("import 'axios';", "context.http.fetch"),
        ("import 'node:https';", "context.http.fetch"),
        ("import 'node:fs/promises';", "context.http.fetch"),
        ("import 'left-pad';", "../_core/error-types.js"),
        ("import 'lib/x.js';", "'./lib/x.js'"),
        ("import './x';", "'./x.js'"),
        ("import './data.json';", "JSON cannot be imported"),
        ("import { ToolErrors } from '../error-types.js';", "did you mean `ToolError`"),
        ("import { Foo } from '../error-types.js';", "`ErrorType`"),
        ("import '../../error-types.js';", "'../_core/error-types.js'"),
    ] {
        let help = help(&format!("{import}{RUN}"));
        assert!(help.contains(helped), "{import}: {help}");
    }
}

#[test]
fn imported_modules_are_checked_and_returned_in_order() {
    let files = [
        ("b.js", "import './lib/a.js'; import 'fs'; export const b = 1;"),
        (
            "lib/a.js",
            "import { ToolError } from '../../_core/error-types.js'; import '../b.js'; import '../../other/x.js';",
        ),
        ("lib/broken.js", "export const = 1;"),
    ];
    let source =
        format!("import {{ b }} from './b.js'; import {{ x }} from './lib/broken.js'; import './handler.js';{RUN}");
    check(
        &source,
        &files,
        &[
            "b.js:handler-import-forbidden 'fs'",
            "lib/a.js:handler-import-outside '../../other/x.js'",
            "lib/broken.js:handler-syntax =",
        ],
    );
    let report = check_handler(&source, &Files(files.to_vec()));
    let paths: Vec<&str> = report.modules.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["b.js", "lib/a.js", "lib/broken.js"]);
    assert_eq!(report.modules[0].1, files[0].1);
}
