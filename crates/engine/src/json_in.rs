//! `serde_json::Value` into a realm, by walking. In the engine's own terms, because this and what follows from it was
//! a large part of a short call when each step went through the binding.
#![allow(unsafe_code)]
use std::os::raw::c_int;

use rquickjs::{
    Ctx, Error, Exception, Object, Result, Value,
    qjs::{self, JSContext, JSValue},
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
    // SAFETY: the walk returns a new reference to a value of this realm, or the mark of a pending exception.
    unsafe {
        if qjs::JS_IsException(made) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), made))
    }
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
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.value(item);
            // SAFETY: the references are the walk's own; `JS_NewArrayFrom` takes them over, whether it succeeds or not.
            unsafe {
                if qjs::JS_IsException(value) {
                    values.into_iter().for_each(|made| qjs::JS_FreeValue(self.ctx, made));
                    return qjs::JS_EXCEPTION;
                }
            }
            values.push(value);
        }
        let Ok(count) = c_int::try_from(values.len()) else { return qjs::JS_EXCEPTION };
        // SAFETY: as above; the engine copies that many values.
        let array = unsafe { qjs::JS_NewArrayFrom(self.ctx, count, values.as_ptr()) };
        self.sealed(array)
    }

    fn object(&self, members: &Map<String, Json>) -> JSValue {
        // SAFETY: a value that is just made; if a member fails, the object goes with all that it holds.
        unsafe {
            let object = qjs::JS_NewObject(self.ctx);
            if qjs::JS_IsException(object) {
                return object;
            }
            if !members.iter().all(|(name, json)| self.add(object, name, json)) {
                qjs::JS_FreeValue(self.ctx, object);
                return qjs::JS_EXCEPTION;
            }
            self.sealed(object)
        }
    }

    fn add(&self, object: JSValue, name: &str, json: &Json) -> bool {
        let member = self.value(json);
        // SAFETY: only the tag is read.
        !unsafe { qjs::JS_IsException(member) } && self.define(object, name, member)
    }

    /// Defines a member, of whatever name: `__proto__` is data like any other. Takes over the member.
    fn define(&self, object: JSValue, name: &str, member: JSValue) -> bool {
        let flags = match self.kind {
            Kind::Plain => qjs::JS_PROP_C_W_E,
            Kind::Frozen => qjs::JS_PROP_ENUMERABLE,
        };
        // SAFETY: the name is that long; `JS_DefinePropertyValue` takes over the member, whether it succeeds or not.
        unsafe {
            let atom = qjs::JS_NewAtomLen(self.ctx, name.as_ptr().cast(), name.len() as _);
            if atom == qjs::JS_ATOM_NULL {
                qjs::JS_FreeValue(self.ctx, member);
                return false;
            }
            let defined = qjs::JS_DefinePropertyValue(self.ctx, object, atom, member, flags as c_int);
            qjs::JS_FreeAtom(self.ctx, atom);
            defined >= 0
        }
    }

    /// The members of an object are defined as frozen; what is left is that none may be added. Arrays are frozen whole.
    fn sealed(&self, made: JSValue) -> JSValue {
        if self.kind == Kind::Plain {
            return made;
        }
        // SAFETY: a value that was just made, or the mark of an exception.
        unsafe {
            if qjs::JS_IsException(made) {
                return made;
            }
            let done = match qjs::JS_IsArray(made) {
                true => qjs::JS_FreezeObject(self.ctx, made),
                false => qjs::JS_PreventExtensions(self.ctx, made),
            };
            if done < 0 {
                qjs::JS_FreeValue(self.ctx, made);
                return qjs::JS_EXCEPTION;
            }
        }
        made
    }
}
