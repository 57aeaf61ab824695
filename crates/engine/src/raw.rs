//! The unsafe calls into rquickjs, apart from the allocator's: each with the reason why it is sound.
#![allow(unsafe_code)]
use rquickjs::{Ctx, JsLifetime, Module, Result, TypedArray, module::Declared};

use crate::bridge::Bridge;

/// Loads, with all that it imports but without evaluating anything, bytecode that `program.rs` has written in this process; no other bytes may come here.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Result<Module<'js, Declared>> {
    // SAFETY: the bytes are this engine's own output, kept in private memory and never changed.
    unsafe { Module::load(ctx.clone(), bytecode) }
}

/// A copy of the bytes, or nothing when the buffer is detached.
pub(crate) fn bytes_of(array: &TypedArray<'_, u8>) -> Option<Vec<u8>> {
    // SAFETY: no JavaScript runs while the slice is alive; it is copied at once.
    unsafe { array.as_bytes() }.map(<[u8]>::to_vec)
}

// SAFETY: the one lifetime of `Bridge` is that of its values, and `Changed` differs in nothing else.
unsafe impl<'js> JsLifetime<'js> for Bridge<'js> {
    type Changed<'to> = Bridge<'to>;
}
