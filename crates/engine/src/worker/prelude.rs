//! The engine's own JavaScript, compiled once by the spawner and evaluated for each new realm.
use std::{fmt::Write, rc::Rc, sync::OnceLock};

use rquickjs::{Array, Ctx, Error, Function, Module, Object, Result, Value, module::Declared};

use super::{
    bridge::{Bridge, RealmParts},
    compile::{Bytecode, compile_own},
    modules::ERROR_TYPES,
    native, rquickjs_unsafe,
};
use crate::call::HostFunction;

/// Names with a scheme, to which no import of a handler resolves.
const PRELUDE: &str = "toolwright:prelude";
const WEB_GLOBALS: &str = "toolwright:web-globals";

static CODE: OnceLock<Bytecode> = OnceLock::new();

/// Compiles the modules for realms whose `context` has these host functions.
pub(crate) fn prepare(functions: &[HostFunction]) {
    let globals = include_str!("../js/globals.js");
    let prelude = [globals, &context_source(functions), include_str!("../js/prelude.js")].concat();
    let web_globals = concat!(include_str!("../js/web-globals.js"), include_str!("../js/url-globals.js"));
    let error_types = include_str!("../js/error-types.js");
    let modules = [(ERROR_TYPES, error_types), (WEB_GLOBALS, web_globals), (PRELUDE, &prelude)];
    if let Ok(code) = compile_own(&modules) {
        let _ = CODE.set(code);
    }
}

/// A member of `context`: a host function by its number, or a group of members.
enum Member {
    Function(usize),
    Group(Vec<(String, Member)>),
}

/// `makeContext` for these functions. Evaluating a literal is far cheaper than building the object from a list of
/// paths.
fn context_source(functions: &[HostFunction]) -> String {
    let mut root = Vec::new();
    for (index, function) in functions.iter().enumerate() {
        add_member(&mut root, &function.path, index);
    }
    let mut source = "function makeContext(native) { return {".to_owned();
    write_members(&mut source, &root);
    source.push_str("get signal() { return contextSignal(); } }; }\n");
    source
}

fn add_member(group: &mut Vec<(String, Member)>, path: &str, index: usize) {
    let Some((first, rest)) = path.split_once('.') else {
        group.push((path.to_owned(), Member::Function(index)));
        return;
    };
    let known = group.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
        group.push((first.to_owned(), Member::Group(Vec::new())));
        group.len() - 1
    });
    if let Member::Group(inner) = &mut group[known].1 {
        add_member(inner, rest, index);
    }
}

fn write_members(source: &mut String, members: &[(String, Member)]) {
    for (name, member) in members {
        // Writing to a string does not fail.
        let _ = write!(source, "{name:?}: freeze(");
        match member {
            Member::Function(index) => drop(write!(source, "(...args) => native(CALL, {index}, args)")),
            Member::Group(inner) => {
                source.push('{');
                write_members(source, inner);
                source.push('}');
            }
        }
        source.push_str("), ");
    }
}

/// Creates the realm's globals and stores the [`Bridge`] in it.
pub(crate) fn install(ctx: &Ctx<'_>, parts: &Rc<RealmParts>) -> Result<()> {
    let install: Function<'_> = evaluate(ctx, PRELUDE)?.get("install")?;
    let made: Array<'_> = install.call((native::function(ctx)?,))?;
    let bridge = Bridge::new(&made, Rc::clone(parts))?;
    ctx.store_userdata(bridge).map_err(|_| Error::Unknown)?;
    Ok(())
}

/// The function that makes the globals of `web-globals.js`. Few handlers use them, so that a realm is created without.
pub(crate) fn web_globals<'js>(ctx: &Ctx<'js>) -> Result<Value<'js>> {
    evaluate(ctx, WEB_GLOBALS)?.get("make")
}

/// Loads one of the modules above, without evaluating it.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
    let bytecode = CODE.get().and_then(|code| code.get(name)).ok_or(Error::Unknown)?;
    rquickjs_unsafe::load(ctx, bytecode)
}

/// Loads and evaluates one of the modules above.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
    let (module, evaluated) = load(ctx, name)?.eval()?;
    // Without a top-level await, a module has been evaluated when `eval` returns.
    evaluated.result::<()>().unwrap_or(Err(Error::Unknown))?;
    Module::namespace(&module)
}
