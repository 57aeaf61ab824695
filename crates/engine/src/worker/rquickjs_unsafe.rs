//! The unsafe calls into rquickjs, except those of the allocator.
#![allow(unsafe_code)]
use std::mem::forget;

use rquickjs::{Context, Ctx, JsLifetime, Module, Result, Runtime, TypedArray, module::Declared};

use super::{bridge::Bridge, memory::Meter};

/// Loads bytecode and its imports without evaluating them. Only bytecode that `compile.rs` has written in this process
/// may be passed.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Module<'js, Declared>> {
    // SAFETY: the bytes were written by this engine, are private and never change.
    unsafe { Module::load(ctx.clone(), bytecode) }
}

/// Frees the memory of a realm as a whole. Freeing each of its objects takes a fifth of the CPU time of a short call.
pub(crate) fn discard(context: Context, runtime: Runtime, meter: &Meter) {
    forget(context);
    forget(runtime);
    // SAFETY: only the runtime and the context use these blocks, and neither is dropped.
    unsafe { meter.free_all() };
}

/// A copy of the bytes, or `None` if the buffer is detached.
pub(crate) fn bytes_of(array: &TypedArray<'_, u8>) -> Option<Vec<u8>> {
    // SAFETY: no JavaScript runs while the slice is alive; it is copied at once.
    unsafe { array.as_bytes() }.map(<[u8]>::to_vec)
}

// SAFETY: the one lifetime of `Bridge` is that of its values, and `Changed` differs in nothing else.
unsafe impl<'js> JsLifetime<'js> for Bridge<'js> {
    type Changed<'to> = Bridge<'to>;
}
