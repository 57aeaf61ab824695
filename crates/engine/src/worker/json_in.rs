//! Converts `serde_json::Value` to JavaScript values.
use rquickjs::{
    Array, Ctx, Exception, Function, Object, Result, String as JsString, Value, object::Property,
};
use serde_json::{Number, Value as Json};

/// The limit of nesting, because the conversion is recursive.
const MAX_DEPTH: usize = 256;

/// A copy for the handler, which may change it.
pub(crate) fn value<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<Value<'js>> {
    convert(ctx, json, MAX_DEPTH, None)
}

/// A copy that the handler cannot change. `freeze` is the realm's `Object.freeze`.
pub(crate) fn frozen<'js>(ctx: &Ctx<'js>, json: &Json, freeze: &Function<'js>) -> Result<Value<'js>> {
    convert(ctx, json, MAX_DEPTH, Some(freeze))
}

fn convert<'js>(
    ctx: &Ctx<'js>,
    json: &Json,
    depth: usize,
    freeze: Option<&Function<'js>>,
) -> Result<Value<'js>> {
    let deeper =
        || depth.checked_sub(1).ok_or_else(|| Exception::throw_range(ctx, "the data is nested too deeply"));
    let made = match json {
        Json::Null => Value::new_null(ctx.clone()),
        Json::Bool(truth) => Value::new_bool(ctx.clone(), *truth),
        Json::Number(number) => Value::new_number(ctx.clone(), double(ctx, number)?),
        Json::String(text) => JsString::from_str(ctx.clone(), text)?.into_value(),
        Json::Array(items) => {
            let (array, left) = (Array::new(ctx.clone())?, deeper()?);
            for (index, item) in items.iter().enumerate() {
                array.set(index, convert(ctx, item, left, freeze)?)?;
            }
            array.into_value()
        }
        Json::Object(members) => {
            let (object, left) = (Object::new(ctx.clone())?, deeper()?);
            for (name, member) in members {
                // Defined, not assigned: a member may be called `__proto__`.
                let member = convert(ctx, member, left, freeze)?;
                let member = Property::from(member).configurable().enumerable().writable();
                object.prop(name.as_str(), member)?;
            }
            object.into_value()
        }
    };
    match freeze {
        Some(freeze) if made.is_object() => freeze.call((made,)),
        _ => Ok(made),
    }
}

/// The number as a double. An integer that does not fit is an error: it would be rounded.
fn double(ctx: &Ctx<'_>, number: &Number) -> Result<f64> {
    let double = number.as_f64().unwrap_or(f64::NAN);
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match whole {
        Some(whole) if double as i128 != whole => {
            let message = format!("the number {number} cannot be held exactly (beyond 2^53); use a string");
            Err(Exception::throw_range(ctx, &message))
        }
        _ => Ok(double),
    }
}
