//! `serde_json::Value` into a realm, by walking.
use rquickjs::{Array, Ctx, Exception, Object, Result, String as JsString, Value, object::Property};
use serde_json::Value as Json;

/// Deeper data is refused: the walk uses the native stack.
const MAX_DEPTH: usize = 256;

pub(crate) fn value<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<Value<'js>> {
    nested(ctx, json, 0)
}

fn nested<'js>(ctx: &Ctx<'js>, json: &Json, depth: usize) -> Result<Value<'js>> {
    if depth > MAX_DEPTH {
        return Err(Exception::throw_range(ctx, "the data is nested too deeply"));
    }
    Ok(match json {
        Json::Null => Value::new_null(ctx.clone()),
        Json::Bool(truth) => Value::new_bool(ctx.clone(), *truth),
        Json::Number(number) => match number.as_i64().and_then(|whole| i32::try_from(whole).ok()) {
            Some(whole) => Value::new_int(ctx.clone(), whole),
            None => Value::new_float(ctx.clone(), number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => JsString::from_str(ctx.clone(), text)?.into_value(),
        Json::Array(items) => {
            let array = Array::new(ctx.clone())?;
            for (index, item) in items.iter().enumerate() {
                array.set(index, nested(ctx, item, depth + 1)?)?;
            }
            array.into_value()
        }
        Json::Object(members) => {
            let object = Object::new(ctx.clone())?;
            for (key, member) in members {
                let member = nested(ctx, member, depth + 1)?;
                // Assigning to `__proto__` would call its setter; as data it is a member like any other.
                if key == "__proto__" {
                    object
                        .prop(key.as_str(), Property::from(member).writable().enumerable().configurable())?;
                } else {
                    object.set(key.as_str(), member)?;
                }
            }
            object.into_value()
        }
    })
}
