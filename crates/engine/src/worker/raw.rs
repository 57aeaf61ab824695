//! The unsafe calls into rquickjs, except those of the allocator.
#![allow(unsafe_code)]
use rquickjs::{Ctx, JsLifetime, Module, Result, TypedArray, module::Declared};

use super::bridge::Bridge;

/// Loads bytecode and its imports without evaluating them. Only bytecode that `compile.rs` has written in this process may
/// be passed.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Module<'js, Declared>> {
    // SAFETY: the bytes were written by this engine, are private and never change.
    unsafe { Module::load(ctx.clone(), bytecode) }
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
