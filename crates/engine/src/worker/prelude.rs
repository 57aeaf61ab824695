//! The engine's own JavaScript, compiled once by the spawner and evaluated for each new realm.
use std::{rc::Rc, sync::LazyLock};

use rquickjs::{Array, Ctx, Error, Function, Module, Object, Result, Value};

use super::{
    bridge::{Bridge, RealmParts},
    compile::{Bytecode, compile_own},
    modules::ERROR_TYPES,
    native, raw,
};

/// Names with a scheme, to which no import of a handler resolves.
const PRELUDE: &str = "toolwright:prelude";
const GLOBALS: &str = "toolwright:globals";

static CODE: LazyLock<Option<Bytecode>> = LazyLock::new(|| {
    let globals = concat!(include_str!("../js/globals.js"), include_str!("../js/url-globals.js"));
    let error_types = (ERROR_TYPES, include_str!("../js/error-types.js"));
    compile_own(&[error_types, (GLOBALS, globals), (PRELUDE, include_str!("../js/prelude.js"))]).ok()
});

/// Compiles the modules, unless that is done.
pub(crate) fn prepare() {
    LazyLock::force(&CODE);
}

/// Creates the realm's globals and stores the [`Bridge`] in it.
pub(crate) fn install(ctx: &Ctx<'_>, parts: &Rc<RealmParts>) -> Result<()> {
    // Loaded in advance for the handlers' imports.
    evaluate(ctx, ERROR_TYPES)?;
    let (globals, prelude) = (evaluate(ctx, GLOBALS)?, evaluate(ctx, PRELUDE)?);
    let install: Function<'_> = prelude.get("install")?;
    let make: Value<'_> = globals.get("make")?;
    let paths: Vec<&str> = parts.functions.iter().map(|function| function.path.as_str()).collect();
    let made: Array<'_> = install.call((native::function(ctx)?, make, paths))?;
    let bridge = Bridge::new(&made, Rc::clone(parts))?;
    ctx.store_userdata(bridge).map_err(|_| Error::Unknown)?;
    Ok(())
}

/// Evaluates one of the modules above.
fn evaluate<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Object<'js>> {
    let bytecode = CODE.as_ref().and_then(|code| code.get(name)).ok_or(Error::Unknown)?;
    let (module, evaluated) = raw::load(ctx, bytecode)?.eval()?;
    // Without a top-level await, a module has been evaluated when `eval` returns.
    evaluated.result::<()>().unwrap_or(Err(Error::Unknown))?;
    Module::namespace(&module)
}
