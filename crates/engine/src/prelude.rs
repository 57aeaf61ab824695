//! The engine's own JavaScript, compiled once per process and evaluated whenever a realm is made.
use std::sync::{Arc, OnceLock};

use rquickjs::{Array, Ctx, Error, Function, Module, Object, Result, Value};

use crate::{
    binding::Binding, bridge::Bridge, call, modules::ERROR_TYPES, native, program::compile_one, raw,
};

/// Names with a scheme: no import of a handler resolves to one.
const PRELUDE: &str = "toolwright:prelude";
const GLOBALS: &str = "toolwright:globals";

type Bytecode = OnceLock<Option<Vec<u8>>>;

/// Makes the realm's globals, and stores the [`Bridge`] in it.
pub(crate) fn install(ctx: &Ctx<'_>, functions: &[call::Function], binding: &Arc<Binding>) -> Result<()> {
    static PRELUDE_CODE: Bytecode = OnceLock::new();
    static GLOBALS_CODE: Bytecode = OnceLock::new();
    static ERROR_TYPES_CODE: Bytecode = OnceLock::new();
    // The handlers' imports find it loaded.
    evaluate(ctx, compiled(&ERROR_TYPES_CODE, ERROR_TYPES, include_str!("js/error-types.js"))?)?;
    let source = concat!(include_str!("js/globals.js"), include_str!("js/addresses.js"));
    let globals = evaluate(ctx, compiled(&GLOBALS_CODE, GLOBALS, source)?)?;
    let prelude = evaluate(ctx, compiled(&PRELUDE_CODE, PRELUDE, include_str!("js/prelude.js"))?)?;
    let install: Function<'_> = prelude.get("install")?;
    let native = native::function(ctx, binding)?;
    let make: Value<'_> = globals.get("make")?;
    let paths: Vec<&str> = functions.iter().map(|function| function.path.as_str()).collect();
    let made: Array<'_> = install.call((native.clone(), make, paths))?;
    let bridge = Bridge::new(&made, native, binding.clone())?;
    ctx.store_userdata(bridge).map_err(|_| Error::Unknown)?;
    Ok(())
}

fn compiled<'a>(slot: &'a Bytecode, name: &str, source: &str) -> Result<&'a [u8]> {
    slot.get_or_init(|| compile_one(name, source).ok()).as_deref().ok_or(Error::Unknown)
}

fn evaluate<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Object<'js>> {
    let (module, evaluated) = raw::load(ctx, bytecode)?.eval()?;
    // Without a top-level await, a module has been evaluated when `eval` returns.
    evaluated.result::<()>().unwrap_or(Err(Error::Unknown))?;
    Module::namespace(&module)
}
