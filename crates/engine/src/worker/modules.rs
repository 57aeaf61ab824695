//! Resolves and loads the imports of a program. Only its own modules and the error types can be imported.
use std::rc::Rc;

use rquickjs::{
    Ctx, Error, Module, Result,
    loader::{ImportAttributes, Loader, Resolver},
    module::Declared,
};

use super::{bridge::RealmParts, prelude, rquickjs_unsafe};

/// The internal name of the module with `ToolError`, `ErrorType` and `IntentType`.
pub(crate) const ERROR_TYPES: &str = "toolwright:error-types";

/// The paths under which handlers import that module, relative to the tool's directory or to a folder in it.
const ERROR_TYPES_PATHS: [&str; 4] =
    ["../_core/error-types.js", "../error-types.js", "_core/error-types.js", "error-types.js"];

pub(crate) fn resolve(base: &str, name: &str, own: impl Fn(&str) -> bool) -> Result<String> {
    // The engine loads the entry without a base; a handler's imports always have one.
    if base.is_empty() && own(name) {
        return Ok(name.to_owned());
    }
    if !name.starts_with("./") && !name.starts_with("../") {
        return Err(refused(base, name, "only relative imports within the tool are allowed"));
    }
    let path = joined(base, name);
    if own(&path) {
        return Ok(path);
    }
    if name.starts_with("../") && ERROR_TYPES_PATHS.contains(&path.as_str()) {
        return Ok(ERROR_TYPES.to_owned());
    }
    Err(refused(base, name, "the tool has no such file"))
}

/// The path from the tool's directory. Starts with `..` if it leaves the tool's directory.
fn joined(base: &str, name: &str) -> String {
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn refused(base: &str, name: &str, why: &str) -> Error {
    Error::new_resolving_message(base, name, why)
}

/// Resolves and loads the compiled modules of the realm's program.
pub(crate) struct Modules(pub Rc<RealmParts>);

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let program = self.0.program.borrow();
        resolve(base, name, |path| program.bytecode.contains_key(path))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        if name == ERROR_TYPES {
            return prelude::load(ctx, name);
        }
        let program = Rc::clone(&self.0.program.borrow());
        let bytecode = program.bytecode.get(name).ok_or_else(|| Error::new_loading(name))?;
        rquickjs_unsafe::load(ctx, bytecode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_module(base: &str, name: &str) -> Option<String> {
        resolve(base, name, |path| ["handler.js", "lib/x.js", "lib/y.js"].contains(&path)).ok()
    }

    #[test]
    fn imports_stay_within_the_tool() {
        let table = [
            ("handler.js", "./lib/x.js", Some("lib/x.js")),
            ("lib/x.js", "./y.js", Some("lib/y.js")),
            ("lib/x.js", "../handler.js", Some("handler.js")),
            ("lib/x.js", "./../lib/./y.js", Some("lib/y.js")),
            ("handler.js", "../_core/error-types.js", Some(ERROR_TYPES)),
            ("handler.js", "../error-types.js", Some(ERROR_TYPES)),
            ("lib/x.js", "../../_core/error-types.js", Some(ERROR_TYPES)),
            ("lib/x.js", "../_core/error-types.js", Some(ERROR_TYPES)),
            ("handler.js", "./_core/error-types.js", None),
            ("handler.js", "handler.js", None),
            ("handler.js", "/handler.js", None),
            ("handler.js", "fs", None),
            ("handler.js", "node:fs", None),
            ("handler.js", ERROR_TYPES, None),
            ("handler.js", "toolwright:prelude", None),
            ("handler.js", "file:///etc/passwd", None),
            ("handler.js", "../other/handler.js", None),
            ("handler.js", "../../../etc/passwd", None),
            ("lib/x.js", "./../../lib/x.js", None),
        ];
        for (base, name, expected) in table {
            assert_eq!(find_module(base, name).as_deref(), expected, "{name} from {base}");
        }
    }
}
