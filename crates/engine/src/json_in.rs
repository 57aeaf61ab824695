//! `serde_json::Value` into a realm, by walking. In the engine's own terms, because this and what follows from it was
//! a large part of a short call when each step went through the binding.
#![allow(unsafe_code)]
use std::os::raw::c_int;

use rquickjs::{
    Ctx, Error, Exception, Object, Result, Value,
    qjs::{self, JSAtom, JSContext, JSValue},
};
use serde_json::{Map, Value as Json};

/// Deeper data is refused: the walk uses the native stack.
const MAX_DEPTH: usize = 256;

/// How the members of what is made may be changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Frozen,
}

/// The handler's own copy.
pub(crate) fn value<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<Value<'js>> {
    nesting(ctx, json)?;
    let made = Walk { ctx: ctx.as_raw().as_ptr(), kind: Kind::Plain }.value(json);
    owned(ctx, made)
}

/// Adds frozen data to the `context`, which has its functions already, and closes it.
pub(crate) fn add_to_context<'js>(ctx: &Ctx<'js>, context: &Object<'js>, json: &Json) -> Result<()> {
    nesting(ctx, json)?;
    let walk = Walk { ctx: ctx.as_raw().as_ptr(), kind: Kind::Frozen };
    let mut data = json.as_object().into_iter().flatten();
    // A function of the same name stays: it cannot be defined anew.
    let whole = data.all(|(name, json)| walk.add(context.as_raw(), name, json));
    // SAFETY: the context is alive.
    let closed = whole && unsafe { qjs::JS_PreventExtensions(walk.ctx, context.as_raw()) } >= 0;
    if closed { Ok(()) } else { Err(Error::Exception) }
}

/// Before the walk begins, so that it cannot fail by depth halfway.
fn nesting(ctx: &Ctx<'_>, json: &Json) -> Result<()> {
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
    // SAFETY: the walk has returned a new reference to a value of this realm.
    Ok(unsafe { Value::from_raw(ctx.clone(), made) })
}

struct Walk {
    /// Of the realm that the caller is in.
    ctx: *mut JSContext,
    kind: Kind,
}

/// Every function returns new references, or `JS_EXCEPTION` with the exception pending and nothing left behind.
impl Walk {
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
        let Some(mut values) = self.column(&items) else { return qjs::JS_EXCEPTION };
        let Ok(count) = c_int::try_from(values.list.len()) else { return qjs::JS_EXCEPTION };
        let values = std::mem::take(&mut values.list);
        // SAFETY: `JS_NewArrayFrom` copies that many values and takes them over, whether it succeeds or not.
        let array = unsafe { qjs::JS_NewArrayFrom(self.ctx, count, values.as_ptr()) };
        if self.seal(array) { array } else { qjs::JS_EXCEPTION }
    }

    /// A value for each of those that lie side by side; nothing if an exception is pending.
    fn column(&self, cells: &[&Json]) -> Option<Made> {
        if let Some(records) = alike(cells) {
            return self.records(&records);
        }
        let mut made = Made::new(self.ctx, cells.len());
        cells.iter().all(|cell| made.push(self.value(cell))).then_some(made)
    }

    /// Objects of the same make, built name by name: each but the first finds the shape that the engine has just made for
    /// its neighbour. One after the other, each would get shapes of its own, which takes twice as long.
    fn records(&self, records: &[&Map<String, Json>]) -> Option<Made> {
        let mut made = Made::new(self.ctx, records.len());
        // SAFETY: the context is alive.
        records.iter().all(|_| made.push(unsafe { qjs::JS_NewObject(self.ctx) })).then_some(())?;
        let mut rows: Vec<_> = records.iter().map(|record| record.iter()).collect();
        let mut cells = Vec::with_capacity(rows.len());
        for name in records.first()?.keys() {
            cells.clear();
            cells.extend(rows.iter_mut().filter_map(|row| row.next().map(|(_, cell)| cell)));
            let mut members = self.column(&cells)?;
            let name = Name::new(self.ctx, name)?;
            let mut both = made.list.iter().zip(&mut members.list);
            both.all(|(object, member)| self.define(*object, &name, taken(member))).then_some(())?;
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
        match Name::new(self.ctx, name) {
            Some(name) => self.define(object, &name, member),
            None => {
                // SAFETY: the member is the walk's own.
                unsafe { qjs::JS_FreeValue(self.ctx, member) };
                false
            }
        }
    }

    /// Defines a member, of whatever name: `__proto__` is data like any other. Takes over the member.
    fn define(&self, object: JSValue, name: &Name, member: JSValue) -> bool {
        let flags = match self.kind {
            Kind::Plain => qjs::JS_PROP_C_W_E,
            Kind::Frozen => qjs::JS_PROP_ENUMERABLE,
        };
        // SAFETY: the object is alive; `JS_DefinePropertyValue` takes over the member, whether it succeeds or not.
        unsafe { qjs::JS_DefinePropertyValue(self.ctx, object, name.atom, member, flags as c_int) >= 0 }
    }

    /// The members of an object are defined as frozen; what is left is that none may be added. Arrays are frozen whole.
    fn seal(&self, made: JSValue) -> bool {
        if is_exception(made) {
            return false;
        }
        if self.kind == Kind::Plain {
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

/// All of them, if they are objects with the same names in the same order, and more than one.
fn alike<'a>(cells: &[&'a Json]) -> Option<Vec<&'a Map<String, Json>>> {
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

fn taken(value: &mut JSValue) -> JSValue {
    std::mem::replace(value, qjs::JS_UNDEFINED)
}

/// Values that are the walk's own until they are taken from it.
struct Made {
    ctx: *mut JSContext,
    list: Vec<JSValue>,
}

impl Made {
    fn new(ctx: *mut JSContext, count: usize) -> Self {
        Self { ctx, list: Vec::with_capacity(count) }
    }

    /// False for the mark of an exception.
    fn push(&mut self, value: JSValue) -> bool {
        let is_value = !is_exception(value);
        if is_value {
            self.list.push(value);
        }
        is_value
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for value in self.list.drain(..) {
            // SAFETY: the reference is this one's own.
            unsafe { qjs::JS_FreeValue(self.ctx, value) }
        }
    }
}

/// A member's name, as the engine keeps names.
struct Name {
    ctx: *mut JSContext,
    atom: JSAtom,
}

impl Name {
    /// Nothing if an exception is pending.
    fn new(ctx: *mut JSContext, text: &str) -> Option<Self> {
        // SAFETY: the text is that long, and the engine copies it.
        let atom = unsafe { qjs::JS_NewAtomLen(ctx, text.as_ptr().cast(), text.len() as _) };
        (atom != qjs::JS_ATOM_NULL).then_some(Self { ctx, atom })
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and given back once.
        unsafe { qjs::JS_FreeAtom(self.ctx, self.atom) }
    }
}
