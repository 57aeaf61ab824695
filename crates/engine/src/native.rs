//! The one native function of a realm. The prelude reaches everything through it, by number, so that making a realm
//! makes one function instead of a dozen.
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rquickjs::{
    Array, Coerced, Ctx, Error, Exception, FromJs, Function, Result, String as JsString, TypedArray, Value,
    function::Rest,
};

use crate::{
    address,
    binding::Binding,
    bridge::{Bridge, side_of},
    call::Level,
    host_call, raw, text,
};

const MAX_TIMERS: usize = 1000;
const MAX_RANDOM: usize = 65536;

pub(crate) fn function<'js>(ctx: &Ctx<'js>, binding: &Arc<Binding>) -> Result<Function<'js>> {
    let binding = binding.clone();
    Function::new(ctx.clone(), move |ctx: Ctx<'js>, operation: u32, given: Rest<Value<'js>>| {
        catch_unwind(AssertUnwindSafe(|| dispatch(&ctx, operation, &given))).unwrap_or_else(|panic| {
            binding.set_panicked();
            resume_unwind(panic)
        })
    })
}

fn dispatch<'js>(ctx: &Ctx<'js>, operation: u32, given: &Rest<Value<'js>>) -> Result<Value<'js>> {
    let side = side_of(ctx)?;
    if side.control.is_too_deep(side.stack_bytes) {
        return Err(Exception::throw_range(ctx, "Maximum call stack size exceeded"));
    }
    let given = Given { ctx, values: &given.0 };
    match operation {
        0 => host_call::start(ctx, given.index(0)?, &given.array(1)?),
        1 => console(&given),
        2 => set_timer(&given),
        3 => clear_timer(&given),
        4 => random(&given),
        5 => Ok(TypedArray::<u8>::new_copy(ctx.clone(), given.text(0)?.as_bytes())?.into_value()),
        6 => decode(&given),
        7 => address::parse(ctx, &given.text(0)?, given.optional_text(1)?.as_deref()),
        8 => address::change(ctx, &given.text(0)?, &given.text(1)?, &given.text(2)?),
        9 => Ok(Value::new_float(ctx.clone(), side.control.elapsed().as_secs_f64() * 1e3)),
        10 => address::parse_form(ctx, &given.text(0)?),
        11 => address::write_form(ctx, &given.array(0)?),
        12 => Ok(Value::new_float(ctx.clone(), side.control.origin())),
        _ => Err(Error::Unknown),
    }
}

/// The arguments after the operation's number.
struct Given<'a, 'js> {
    ctx: &'a Ctx<'js>,
    values: &'a [Value<'js>],
}

impl<'js> Given<'_, 'js> {
    fn value(&self, at: usize) -> Value<'js> {
        self.values.get(at).cloned().unwrap_or_else(|| Value::new_undefined(self.ctx.clone()))
    }

    fn index(&self, at: usize) -> Result<usize> {
        Ok(Coerced::<f64>::from_js(self.ctx, self.value(at))?.0 as usize)
    }

    fn array(&self, at: usize) -> Result<Array<'js>> {
        Array::from_js(self.ctx, self.value(at))
    }

    fn truth(&self, at: usize) -> bool {
        self.value(at).as_bool().unwrap_or(false)
    }

    fn text(&self, at: usize) -> Result<String> {
        text::of(self.ctx, &JsString::from_js(self.ctx, self.value(at))?)
    }

    fn optional_text(&self, at: usize) -> Result<Option<String>> {
        if self.value(at).is_string() { self.text(at).map(Some) } else { Ok(None) }
    }

    fn nothing(&self) -> Value<'js> {
        Value::new_undefined(self.ctx.clone())
    }
}

fn console<'js>(given: &Given<'_, 'js>) -> Result<Value<'js>> {
    let level = match given.text(0)?.as_str() {
        "debug" => Level::Debug,
        "warn" => Level::Warn,
        "error" => Level::Error,
        _ => Level::Info,
    };
    side_of(given.ctx)?.write_line(level, given.text(1)?);
    Ok(given.nothing())
}

fn set_timer<'js>(given: &Given<'_, 'js>) -> Result<Value<'js>> {
    let side = side_of(given.ctx)?;
    let delay = Coerced::<f64>::from_js(given.ctx, given.value(0))?.0;
    let delay = Duration::try_from_secs_f64(delay / 1000.0).unwrap_or_default();
    let bridge = given.ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    if bridge.state.borrow().timers.len() >= MAX_TIMERS {
        return Err(Exception::throw_range(given.ctx, "too many timers"));
    }
    // Numbered from 1, as timers are elsewhere, so that `if (timer)` holds.
    let id = side.next_id() + 1;
    bridge.state.borrow_mut().timers.insert(id);
    side.start_timer(id, delay);
    Ok(Value::new_number(given.ctx.clone(), f64::from(id)))
}

fn clear_timer<'js>(given: &Given<'_, 'js>) -> Result<Value<'js>> {
    let id = given.index(0)? as u32;
    let bridge = given.ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)?;
    bridge.state.borrow_mut().timers.remove(&id);
    side_of(given.ctx)?.forget(id);
    Ok(given.nothing())
}

fn random<'js>(given: &Given<'_, 'js>) -> Result<Value<'js>> {
    let mut bytes = vec![0_u8; given.index(0)?.min(MAX_RANDOM)];
    let side = side_of(given.ctx)?;
    match side.seed {
        Some(seed) => {
            let draw = side.draws.fetch_add(1, Ordering::Relaxed);
            fill_from(seed ^ (u64::from(draw) << 32), &mut bytes);
        }
        None => getrandom::fill(&mut bytes)
            .map_err(|_| Exception::throw_message(given.ctx, "there is no source of randomness"))?,
    }
    Ok(TypedArray::<u8>::new_copy(given.ctx.clone(), bytes)?.into_value())
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

fn decode<'js>(given: &Given<'_, 'js>) -> Result<Value<'js>> {
    let array = TypedArray::<u8>::from_js(given.ctx, given.value(0))?;
    let bytes = raw::bytes_of(&array).unwrap_or_default();
    let fatal = given.truth(1);
    let keeps_mark = given.truth(2);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) if fatal => return Err(Exception::throw_type(given.ctx, "the bytes are not valid utf-8")),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let text = text.strip_prefix('\u{feff}').filter(|_| !keeps_mark).unwrap_or(&text);
    Ok(JsString::from_str(given.ctx.clone(), text)?.into_value())
}
