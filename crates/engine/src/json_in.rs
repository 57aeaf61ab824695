//! Converts `serde_json::Value` to JavaScript values, through QuickJS's C API because rquickjs is too slow for it.
#![allow(unsafe_code)]
use std::os::raw::c_int;

use rquickjs::{
    Ctx, Error, Exception, Object, Result, Value,
    qjs::{self, JSAtom, JSContext, JSValue},
};
use serde_json::{Map, Value as Json};

/// The limit of nesting, because the conversion is recursive.
const MAX_DEPTH: usize = 256;

/// Whether the created objects may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mutability {
    Plain,
    Frozen,
}

/// A mutable copy for the handler.
pub(crate) fn value<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<Value<'js>> {
    check_depth(ctx, json)?;
    let made = ValueBuilder { ctx: ctx.as_raw().as_ptr(), mutability: Mutability::Plain }.value(json);
    owned(ctx, made)
}

/// Adds frozen data to `context`, which already has its functions, and prevents further properties.
pub(crate) fn add_to_context<'js>(ctx: &Ctx<'js>, context: &Object<'js>, json: &Json) -> Result<()> {
    check_depth(ctx, json)?;
    let builder = ValueBuilder { ctx: ctx.as_raw().as_ptr(), mutability: Mutability::Frozen };
    let mut data = json.as_object().into_iter().flatten();
    // An existing function with the same name cannot be redefined, and stays.
    let whole = data.all(|(name, json)| builder.add(context.as_raw(), name, json));
    // SAFETY: the context is alive.
    let closed = whole && unsafe { qjs::JS_PreventExtensions(builder.ctx, context.as_raw()) } >= 0;
    if closed { Ok(()) } else { Err(Error::Exception) }
}

/// Checks the nesting before the conversion starts.
fn check_depth(ctx: &Ctx<'_>, json: &Json) -> Result<()> {
    fn fits(json: &Json, left: usize) -> bool {
        match json {
            Json::Array(items) => left > 0 && items.iter().all(|item| fits(item, left - 1)),
            Json::Object(members) => left > 0 && members.values().all(|member| fits(member, left - 1)),
            _ => true,
        }
    }
    if fits(json, MAX_DEPTH) {
        return Ok(());
    }
    Err(Exception::throw_range(ctx, "the data is nested too deeply"))
}

fn owned<'js>(ctx: &Ctx<'js>, made: JSValue) -> Result<Value<'js>> {
    if is_exception(made) {
        return Err(Error::Exception);
    }
    // SAFETY: the builder has returned a new reference to a value of this realm.
    Ok(unsafe { Value::from_raw(ctx.clone(), made) })
}

struct ValueBuilder {
    /// The context of the caller's realm.
    ctx: *mut JSContext,
    mutability: Mutability,
}

/// Every function returns new references, or `JS_EXCEPTION` with a pending exception and no leaked reference.
impl ValueBuilder {
    fn value(&self, json: &Json) -> JSValue {
        match json {
            Json::Null => qjs::JS_NULL,
            Json::Bool(truth) => {
                if *truth {
                    qjs::JS_TRUE
                } else {
                    qjs::JS_FALSE
                }
            }
            Json::Number(number) => match number.as_i64().and_then(|whole| i32::try_from(whole).ok()) {
                Some(whole) => qjs::JS_MKVAL(qjs::JS_TAG_INT, whole),
                None => qjs::JS_NewFloat64(number.as_f64().unwrap_or(f64::NAN)),
            },
            // SAFETY: the text is that long, and the engine copies it.
            Json::String(text) => unsafe {
                qjs::JS_NewStringLen(self.ctx, text.as_ptr().cast(), text.len() as _)
            },
            Json::Array(items) => self.array(items),
            Json::Object(members) => self.object(members),
        }
    }

    fn array(&self, items: &[Json]) -> JSValue {
        let items: Vec<&Json> = items.iter().collect();
        let Some(mut values) = self.values(&items) else { return qjs::JS_EXCEPTION };
        let Ok(count) = c_int::try_from(values.list.len()) else { return qjs::JS_EXCEPTION };
        let values = std::mem::take(&mut values.list);
        // SAFETY: `JS_NewArrayFrom` copies that many values and takes them over, whether it succeeds or not.
        let array = unsafe { qjs::JS_NewArrayFrom(self.ctx, count, values.as_ptr()) };
        if self.seal(array) { array } else { qjs::JS_EXCEPTION }
    }

    /// A value for each item; `None` if an exception is pending.
    fn values(&self, cells: &[&Json]) -> Option<OwnedValues> {
        if let Some(records) = same_shape(cells) {
            return self.records(&records);
        }
        let mut made = OwnedValues::new(self.ctx, cells.len());
        cells.iter().all(|cell| made.push(self.value(cell))).then_some(made)
    }

    /// Builds objects with the same properties property by property, so that QuickJS shares their shapes. Building them
    /// one after the other takes twice as long.
    fn records(&self, records: &[&Map<String, Json>]) -> Option<OwnedValues> {
        let mut made = OwnedValues::new(self.ctx, records.len());
        // SAFETY: the context is alive.
        records.iter().all(|_| made.push(unsafe { qjs::JS_NewObject(self.ctx) })).then_some(())?;
        let mut rows: Vec<_> = records.iter().map(|record| record.iter()).collect();
        let mut cells = Vec::with_capacity(rows.len());
        for name in records.first()?.keys() {
            cells.clear();
            cells.extend(rows.iter_mut().filter_map(|row| row.next().map(|(_, cell)| cell)));
            let mut members = self.values(&cells)?;
            let name = PropertyName::new(self.ctx, name)?;
            let mut both = made.list.iter().zip(&mut members.list);
            both.all(|(object, member)| self.define(*object, &name, take(member))).then_some(())?;
        }
        made.list.iter().all(|object| self.seal(*object)).then_some(made)
    }

    fn object(&self, members: &Map<String, Json>) -> JSValue {
        // SAFETY: the context is alive.
        let object = unsafe { qjs::JS_NewObject(self.ctx) };
        let whole = !is_exception(object)
            && members.iter().all(|(name, json)| self.add(object, name, json))
            && self.seal(object);
        if whole {
            return object;
        }
        // SAFETY: the object is just made, or the mark of an exception; it goes with all that it holds.
        unsafe { qjs::JS_FreeValue(self.ctx, object) };
        qjs::JS_EXCEPTION
    }

    fn add(&self, object: JSValue, name: &str, json: &Json) -> bool {
        let member = self.value(json);
        if is_exception(member) {
            return false;
        }
        match PropertyName::new(self.ctx, name) {
            Some(name) => self.define(object, &name, member),
            None => {
                // SAFETY: the reference is owned.
                unsafe { qjs::JS_FreeValue(self.ctx, member) };
                false
            }
        }
    }

    /// Defines a property of any name, including `__proto__`. Takes ownership of the value.
    fn define(&self, object: JSValue, name: &PropertyName, member: JSValue) -> bool {
        let flags = match self.mutability {
            Mutability::Plain => qjs::JS_PROP_C_W_E,
            Mutability::Frozen => qjs::JS_PROP_ENUMERABLE,
        };
        // SAFETY: the object is alive; `JS_DefinePropertyValue` takes ownership of the value, whether it succeeds or not.
        unsafe { qjs::JS_DefinePropertyValue(self.ctx, object, name.atom, member, flags as c_int) >= 0 }
    }

    /// Freezes an array. Properties of objects are already read-only, so only additions are prevented.
    fn seal(&self, made: JSValue) -> bool {
        if is_exception(made) {
            return false;
        }
        if self.mutability == Mutability::Plain {
            return true;
        }
        // SAFETY: a living value of the realm.
        let done = unsafe {
            match qjs::JS_IsArray(made) {
                true => qjs::JS_FreezeObject(self.ctx, made),
                false => qjs::JS_PreventExtensions(self.ctx, made),
            }
        };
        done >= 0
    }
}

/// The items as objects, if there are several and all have the same names in the same order.
fn same_shape<'a>(cells: &[&'a Json]) -> Option<Vec<&'a Map<String, Json>>> {
    let [Json::Object(first), Json::Object(_), ..] = cells else { return None };
    let like_first = |cell: &&'a Json| match cell {
        Json::Object(other) => (other.len() == first.len() && other.keys().eq(first.keys())).then_some(other),
        _ => None,
    };
    cells.iter().map(like_first).collect()
}

fn is_exception(value: JSValue) -> bool {
    // SAFETY: only the tag is read.
    unsafe { qjs::JS_IsException(value) }
}

fn take(value: &mut JSValue) -> JSValue {
    std::mem::replace(value, qjs::JS_UNDEFINED)
}

/// Values that are released on drop unless they are taken.
struct OwnedValues {
    ctx: *mut JSContext,
    list: Vec<JSValue>,
}

impl OwnedValues {
    fn new(ctx: *mut JSContext, count: usize) -> Self {
        Self { ctx, list: Vec::with_capacity(count) }
    }

    /// False for `JS_EXCEPTION`.
    fn push(&mut self, value: JSValue) -> bool {
        let is_value = !is_exception(value);
        if is_value {
            self.list.push(value);
        }
        is_value
    }
}

impl Drop for OwnedValues {
    fn drop(&mut self) {
        for value in self.list.drain(..) {
            // SAFETY: the reference is owned.
            unsafe { qjs::JS_FreeValue(self.ctx, value) }
        }
    }
}

/// A property name as a QuickJS atom.
struct PropertyName {
    ctx: *mut JSContext,
    atom: JSAtom,
}

impl PropertyName {
    /// `None` if an exception is pending.
    fn new(ctx: *mut JSContext, text: &str) -> Option<Self> {
        // SAFETY: the text is that long, and the engine copies it.
        let atom = unsafe { qjs::JS_NewAtomLen(ctx, text.as_ptr().cast(), text.len() as _) };
        (atom != qjs::JS_ATOM_NULL).then_some(Self { ctx, atom })
    }
}

impl Drop for PropertyName {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and released once.
        unsafe { qjs::JS_FreeAtom(self.ctx, self.atom) }
    }
}
