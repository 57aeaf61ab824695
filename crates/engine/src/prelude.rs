//! The engine's own JavaScript, compiled once per process and evaluated in every realm.
use std::sync::OnceLock;

use rquickjs::{Array, Ctx, Error, Function, Module, Object, Result, Value};

use crate::{bridge::Bridge, native, program::compile_one, raw};

/// Names with a scheme: no import of a handler resolves to one.
const PRELUDE: &str = "toolwright:prelude";
const GLOBALS: &str = "toolwright:globals";

/// Makes the prelude's globals and stores the [`Bridge`] in the realm.
pub(crate) fn install(ctx: &Ctx<'_>) -> Result<()> {
    static BYTECODE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let exports = evaluate(ctx, compiled(&BYTECODE, PRELUDE, include_str!("js/prelude.js"))?)?;
    let install: Function<'_> = exports.get("install")?;
    let functions: Array<'_> = install.call((native::function(ctx)?,))?;
    ctx.store_userdata(Bridge::from_functions(&functions)?).map_err(|_| Error::Unknown)?;
    Ok(())
}

/// The rarely used globals, as a module's exports.
pub(crate) fn load_globals<'js>(ctx: &Ctx<'js>) -> Result<Value<'js>> {
    static BYTECODE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let source = concat!(include_str!("js/globals.js"), include_str!("js/addresses.js"));
    Ok(evaluate(ctx, compiled(&BYTECODE, GLOBALS, source)?)?.into_value())
}

fn compiled<'a>(slot: &'a OnceLock<Option<Vec<u8>>>, name: &str, source: &str) -> Result<&'a [u8]> {
    slot.get_or_init(|| compile_one(name, source).ok()).as_deref().ok_or(Error::Unknown)
}

fn evaluate<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Object<'js>> {
    let (module, evaluated) = raw::load(ctx, bytecode)?.eval()?;
    // Without a top-level await, a module has been evaluated when `eval` returns.
    evaluated.result::<()>().unwrap_or(Err(Error::Unknown))?;
    Module::namespace(&module)
}
