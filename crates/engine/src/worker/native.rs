//! The single native function of a realm. The prelude selects an operation by number, so that creating a realm creates
//! one function instead of a dozen.
use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{
    Array, Coerced, Ctx, Error, Exception, FromJs, Function, Result, String as JsString, TypedArray, Value,
    function::Rest,
};

use super::{bridge::bridge_of, host_call, prelude, rquickjs_unsafe, text, url_functions};
use crate::call::Level;

const MAX_TIMERS: usize = 1000;
const MAX_RANDOM: usize = 65536;
const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn function<'js>(ctx: &Ctx<'js>) -> Result<Function<'js>> {
    Function::new(ctx.clone(), |ctx: Ctx<'js>, operation: u32, args: Rest<Value<'js>>| {
        dispatch(&ctx, operation, &args)
    })
}

fn dispatch<'js>(ctx: &Ctx<'js>, operation: u32, args: &Rest<Value<'js>>) -> Result<Value<'js>> {
    let parts = Rc::clone(&bridge_of(ctx)?.parts);
    if parts.clock.is_too_deep(parts.input()?.stack_bytes) {
        return Err(Exception::throw_range(ctx, "Maximum call stack size exceeded"));
    }
    let args = NativeArgs { ctx, values: &args.0 };
    match operation {
        0 => host_call::start(ctx, args.index(0)?, &args.array(1)?),
        1 => console(&args),
        2 => set_timer(&args),
        3 => clear_timer(&args),
        4 => random(&args),
        5 => Ok(TypedArray::<u8>::new_copy(ctx.clone(), args.text(0)?.as_bytes())?.into_value()),
        6 => decode(&args),
        7 => url_functions::parse(ctx, &args.text(0)?, args.optional_text(1)?.as_deref()),
        8 => url_functions::change(ctx, &args.text(0)?, &args.text(1)?, &args.text(2)?),
        9 => Ok(Value::new_float(ctx.clone(), parts.clock.elapsed().as_secs_f64() * 1e3)),
        10 => url_functions::parse_form(ctx, &args.text(0)?),
        11 => url_functions::write_form(ctx, &args.array(0)?),
        12 => Ok(Value::new_float(ctx.clone(), parts.clock.origin())),
        13 => prelude::web_globals(ctx),
        _ => Err(Error::Unknown),
    }
}

/// The arguments after the operation's number.
struct NativeArgs<'a, 'js> {
    ctx: &'a Ctx<'js>,
    values: &'a [Value<'js>],
}

impl<'js> NativeArgs<'_, 'js> {
    fn value(&self, at: usize) -> Value<'js> {
        self.values.get(at).cloned().unwrap_or_else(|| Value::new_undefined(self.ctx.clone()))
    }

    fn index(&self, at: usize) -> Result<usize> {
        Ok(Coerced::<f64>::from_js(self.ctx, self.value(at))?.0 as usize)
    }

    fn array(&self, at: usize) -> Result<Array<'js>> {
        Array::from_js(self.ctx, self.value(at))
    }

    fn bool_argument(&self, at: usize) -> bool {
        self.value(at).as_bool().unwrap_or(false)
    }

    fn text(&self, at: usize) -> Result<String> {
        text::to_rust_string(self.ctx, &JsString::from_js(self.ctx, self.value(at))?)
    }

    fn optional_text(&self, at: usize) -> Result<Option<String>> {
        if self.value(at).is_string() { self.text(at).map(Some) } else { Ok(None) }
    }

    fn undefined(&self) -> Value<'js> {
        Value::new_undefined(self.ctx.clone())
    }
}

fn console<'js>(args: &NativeArgs<'_, 'js>) -> Result<Value<'js>> {
    let level = match args.text(0)?.as_str() {
        "debug" => Level::Debug,
        "warn" => Level::Warn,
        "error" => Level::Error,
        _ => Level::Info,
    };
    let text = args.text(1)?;
    bridge_of(args.ctx)?.parts.write_line(level, text).map_err(|_| Error::Unknown)?;
    Ok(args.undefined())
}

fn set_timer<'js>(args: &NativeArgs<'_, 'js>) -> Result<Value<'js>> {
    let delay = Coerced::<f64>::from_js(args.ctx, args.value(0))?.0;
    let delay = Duration::try_from_secs_f64(delay / 1000.0).unwrap_or_default();
    let bridge = bridge_of(args.ctx)?;
    if bridge.state.borrow().timers.len() >= MAX_TIMERS {
        return Err(Exception::throw_range(args.ctx, "too many timers"));
    }
    let id = bridge.parts.next_id();
    // A timer beyond the end of the call never fires.
    let time = Instant::now() + delay.min(MAX_DELAY);
    bridge.state.borrow_mut().timers.insert((time, id));
    Ok(Value::new_number(args.ctx.clone(), f64::from(id)))
}

fn clear_timer<'js>(args: &NativeArgs<'_, 'js>) -> Result<Value<'js>> {
    let id = args.index(0)? as u32;
    bridge_of(args.ctx)?.state.borrow_mut().timers.retain(|(_, timer)| *timer != id);
    Ok(args.undefined())
}

fn random<'js>(args: &NativeArgs<'_, 'js>) -> Result<Value<'js>> {
    let mut bytes = vec![0_u8; args.index(0)?.min(MAX_RANDOM)];
    let parts = Rc::clone(&bridge_of(args.ctx)?.parts);
    match parts.input()?.seed {
        Some(seed) => {
            let draw = parts.draws.replace(parts.draws.get() + 1);
            fill_from(seed ^ (u64::from(draw) << 32), &mut bytes);
        }
        None => getrandom::fill(&mut bytes)
            .map_err(|_| Exception::throw_message(args.ctx, "no random numbers are available"))?,
    }
    Ok(TypedArray::<u8>::new_copy(args.ctx.clone(), bytes)?.into_value())
}

/// splitmix64: repeatable bytes for tests.
fn fill_from(mut seed: u64, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        for (byte, random) in chunk.iter_mut().zip(mixed.to_le_bytes()) {
            *byte = random;
        }
    }
}

fn decode<'js>(args: &NativeArgs<'_, 'js>) -> Result<Value<'js>> {
    let array = TypedArray::<u8>::from_js(args.ctx, args.value(0))?;
    let bytes = rquickjs_unsafe::bytes_of(&array).unwrap_or_default();
    let fatal = args.bool_argument(1);
    let keeps_mark = args.bool_argument(2);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) if fatal => return Err(Exception::throw_type(args.ctx, "the bytes are not valid utf-8")),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let text = text.strip_prefix('\u{feff}').filter(|_| !keeps_mark).unwrap_or(&text);
    Ok(JsString::from_str(args.ctx.clone(), text)?.into_value())
}
