//! References to JavaScript values through QuickJS's C API. rquickjs counts the context with every value, which is too
//! slow for converting many small values.
#![allow(unsafe_code)]
use std::{marker::PhantomData, os::raw::c_char, ptr, slice, str};

use rquickjs::{
    Ctx, Error, Result, Value,
    qjs::{self, JSAtom, JSContext, JSPropertyEnum, JSValue},
};

/// The kind of a value, as `JSON.stringify` sees it.
pub(crate) enum Shape {
    Null,
    Bool(bool),
    Number(f64),
    Text,
    Array,
    Object,
    /// `undefined`, functions and symbols, which JSON leaves out.
    Nothing,
    BigInt,
}

/// A counted reference to a value of the realm that `'a` borrows.
pub(crate) struct JsRef<'a> {
    ctx: *mut JSContext,
    value: JSValue,
    _realm: PhantomData<&'a ()>,
}

impl Drop for JsRef<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is owned, and the context is alive while its realm is borrowed.
        unsafe { qjs::JS_FreeValue(self.ctx, self.value) }
    }
}

impl<'a> JsRef<'a> {
    pub fn new<'js>(ctx: &'a Ctx<'js>, value: &Value<'js>) -> Self {
        let ctx = ctx.as_raw().as_ptr();
        // SAFETY: the value is alive, and belongs to this realm by its lifetime.
        let value = unsafe { qjs::JS_DupValue(ctx, value.as_raw()) };
        Self { ctx, value, _realm: PhantomData }
    }

    /// Takes ownership of a value that QuickJS returned, unless it marks a pending exception.
    fn checked(&self, value: JSValue) -> Result<Self> {
        // SAFETY: only the tag is read.
        if unsafe { qjs::JS_IsException(value) } {
            return Err(Error::Exception);
        }
        Ok(Self { ctx: self.ctx, value, _realm: PhantomData })
    }

    pub fn shape(&self) -> Shape {
        // SAFETY: the value is alive; the parts are read that its tag says it has.
        unsafe {
            match qjs::JS_VALUE_GET_NORM_TAG(self.value) {
                qjs::JS_TAG_NULL => Shape::Null,
                qjs::JS_TAG_BOOL => Shape::Bool(qjs::JS_VALUE_GET_BOOL(self.value)),
                qjs::JS_TAG_INT => Shape::Number(qjs::JS_VALUE_GET_INT(self.value).into()),
                qjs::JS_TAG_FLOAT64 => Shape::Number(qjs::JS_VALUE_GET_FLOAT64(self.value)),
                qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => Shape::Text,
                qjs::JS_TAG_BIG_INT | qjs::JS_TAG_SHORT_BIG_INT => Shape::BigInt,
                qjs::JS_TAG_OBJECT if qjs::JS_IsFunction(self.ctx, self.value) => Shape::Nothing,
                qjs::JS_TAG_OBJECT if qjs::JS_IsArray(self.value) => Shape::Array,
                qjs::JS_TAG_OBJECT => Shape::Object,
                _ => Shape::Nothing,
            }
        }
    }

    pub fn is_undefined(&self) -> bool {
        // SAFETY: only the tag is read.
        unsafe { qjs::JS_IsUndefined(self.value) }
    }

    pub fn is_object(&self) -> bool {
        // SAFETY: only the tag is read.
        unsafe { qjs::JS_IsObject(self.value) }
    }

    /// Identifies an object while it is alive.
    pub fn address(&self) -> usize {
        // SAFETY: only the word of the value is read.
        unsafe { qjs::JS_VALUE_GET_PTR(self.value).addr() }
    }

    /// A property of an object.
    pub fn member(&self, key: JSAtom) -> Result<Self> {
        // SAFETY: the object is alive, and so is the atom: it is predefined, or held by `PropertyNames`.
        self.checked(unsafe { qjs::JS_GetProperty(self.ctx, self.value, key) })
    }

    /// An element of an array.
    pub fn item(&self, index: usize) -> Result<Self> {
        // SAFETY: the array is alive.
        self.checked(unsafe { qjs::JS_GetPropertyInt64(self.ctx, self.value, index as i64) })
    }

    /// The length of an array.
    pub fn length(&self) -> Result<usize> {
        let mut length = 0;
        // SAFETY: the array is alive, and the length is written to where it is read.
        match unsafe { qjs::JS_GetLength(self.ctx, self.value, &raw mut length) } {
            0 => Ok(usize::try_from(length).unwrap_or(0)),
            _ => Err(Error::Exception),
        }
    }

    /// The result of an object's `toJSON`, if it has one.
    pub fn to_json(&self, key: impl FnOnce() -> String) -> Result<Option<Self>> {
        let method = self.member(qjs::JS_ATOM_toJSON as JSAtom)?;
        // SAFETY: the method is alive.
        if !unsafe { qjs::JS_IsFunction(method.ctx, method.value) } {
            return Ok(None);
        }
        let key = key();
        // SAFETY: the text is that long, and the engine copies it; all values outlive the call.
        unsafe {
            let key = qjs::JS_NewStringLen(self.ctx, key.as_ptr().cast(), key.len() as _);
            let mut key = self.checked(key)?;
            let made = qjs::JS_Call(self.ctx, method.value, self.value, 1, &raw mut key.value);
            self.checked(made).map(Some)
        }
    }

    /// The text of a string; `None` if it contains lone surrogates, which UTF-8 cannot encode.
    pub fn text(&self) -> Result<Option<String>> {
        let mut length = 0;
        // SAFETY: the value is alive, and the length is written to where it is read.
        let text = unsafe { qjs::JS_ToCStringLen2(self.ctx, &raw mut length, self.value, false) };
        // SAFETY: it was returned a line above, with that length.
        unsafe { copy_c_string(self.ctx, text, length as usize) }
    }

    /// As a value of rquickjs.
    pub fn value<'js>(&self, ctx: &Ctx<'js>) -> Value<'js> {
        // SAFETY: the value is alive; its reference is added here.
        unsafe { Value::from_raw(ctx.clone(), qjs::JS_DupValue(self.ctx, self.value)) }
    }

    /// The names of an object's own enumerable properties.
    pub fn names(&self) -> Result<PropertyNames<'a>> {
        let mut names =
            PropertyNames { ctx: self.ctx, table: ptr::null_mut(), length: 0, _realm: PhantomData };
        let which = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY) as i32;
        // SAFETY: the object is alive; table and length are written to where they are read.
        let done = unsafe {
            qjs::JS_GetOwnPropertyNames(
                self.ctx,
                &raw mut names.table,
                &raw mut names.length,
                self.value,
                which,
            )
        };
        if done < 0 { Err(Error::Exception) } else { Ok(names) }
    }
}

/// Property names. They are valid as long as the list.
pub(crate) struct PropertyNames<'a> {
    ctx: *mut JSContext,
    table: *mut JSPropertyEnum,
    length: u32,
    _realm: PhantomData<&'a ()>,
}

impl Drop for PropertyNames<'_> {
    fn drop(&mut self) {
        if !self.table.is_null() {
            // SAFETY: the table came from the engine, with that length, and is freed once.
            unsafe { qjs::JS_FreePropertyEnum(self.ctx, self.table, self.length) }
        }
    }
}

impl PropertyNames<'_> {
    pub fn as_slice(&self) -> &[JSPropertyEnum] {
        if self.table.is_null() {
            return &[];
        }
        // SAFETY: the table has that length and does not change.
        unsafe { slice::from_raw_parts(self.table, self.length as usize) }
    }

    /// The text of a name; see `JsRef::text`.
    pub fn text(&self, name: JSAtom) -> Result<Option<String>> {
        let mut length = 0;
        // SAFETY: the atom is one of this list's; the length is written to where it is read.
        let text = unsafe { qjs::JS_AtomToCStringLen(self.ctx, &raw mut length, name) };
        // SAFETY: it was returned a line above, with that length.
        unsafe { copy_c_string(self.ctx, text, length as usize) }
    }

    /// A name as a value, if it has no text.
    pub fn value<'js>(&self, ctx: &Ctx<'js>, name: JSAtom) -> Result<Value<'js>> {
        // SAFETY: the atom is one of this list's; the reference is new.
        unsafe {
            let value = qjs::JS_AtomToString(self.ctx, name);
            if qjs::JS_IsException(value) {
                return Err(Error::Exception);
            }
            Ok(Value::from_raw(ctx.clone(), value))
        }
    }
}

/// Caches the texts of property names: lists often contain many objects with the same properties.
pub(crate) struct NameCache<'a> {
    ctx: *mut JSContext,
    /// Each atom is referenced, so that its number is not reused for another name.
    names: Vec<(JSAtom, String)>,
    _realm: PhantomData<&'a ()>,
}

const MAX_CACHED_NAMES: usize = 32;

impl<'a> NameCache<'a> {
    pub fn new(ctx: &'a Ctx<'_>) -> Self {
        Self { ctx: ctx.as_raw().as_ptr(), names: Vec::new(), _realm: PhantomData }
    }

    /// Like `PropertyNames::text`.
    pub fn text(&mut self, names: &PropertyNames<'a>, name: JSAtom) -> Result<Option<String>> {
        if let Some((_, text)) = self.names.iter().find(|(known, _)| *known == name) {
            return Ok(Some(text.clone()));
        }
        let text = names.text(name)?;
        if let (Some(text), true) = (&text, self.names.len() < MAX_CACHED_NAMES) {
            // SAFETY: the atom is one of the list's, alive; `drop` releases the reference.
            let held = unsafe { qjs::JS_DupAtom(self.ctx, name) };
            self.names.push((held, text.clone()));
        }
        Ok(text)
    }
}

impl Drop for NameCache<'_> {
    fn drop(&mut self) {
        for (name, _) in &self.names {
            // SAFETY: `text` has added the reference.
            unsafe { qjs::JS_FreeAtom(self.ctx, *name) }
        }
    }
}

/// # Safety
/// `text` must be null or come from the engine's functions for C strings, with that length, and not be freed elsewhere.
unsafe fn copy_c_string(ctx: *mut JSContext, text: *const c_char, length: usize) -> Result<Option<String>> {
    if text.is_null() {
        return Err(Error::Exception);
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let copied = str::from_utf8(slice::from_raw_parts(text.cast(), length)).ok().map(str::to_owned);
        qjs::JS_FreeCString(ctx, text);
        Ok(copied)
    }
}
