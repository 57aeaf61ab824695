//! What Rust stores in a realm: the prelude's functions, and the promises of the current call.
use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    mem::forget,
    sync::Arc,
};

use rquickjs::{Array, Ctx, Error, Function, Module, Object, Promise, Result, module::Declared};

use crate::{binding::Binding, host::CallHost};

pub(crate) struct Bridge<'js> {
    pub settle: Function<'js>,
    pub host_error: Function<'js>,
    pub abort: Function<'js>,
    pub fire: Function<'js>,
    pub well_formed: Function<'js>,
    pub fix_clock: Function<'js>,
    /// The argument of `execute`, as far as it is the same for all calls.
    pub parameter: Object<'js>,
    /// Its `context`, with the functions of the host and the signal.
    pub context: Object<'js>,
    /// The program's entry module, loaded but not evaluated, if the realm is primed.
    pub entry: RefCell<Option<Module<'js, Declared>>>,
    /// Owns a Rust closure. Referenced here, so that it is never finalised: see `Realm::rewind`.
    _native: Function<'js>,
    pub binding: Arc<Binding>,
    pub state: RefCell<State<'js>>,
}

#[derive(Default)]
pub(crate) struct State<'js> {
    pub phase: Phase<'js>,
    pub pending: HashMap<u32, Settle<'js>>,
    pub timers: HashSet<u32>,
}

#[derive(Clone, Default)]
pub(crate) enum Phase<'js> {
    #[default]
    Idle,
    Loading {
        namespace: Object<'js>,
        evaluated: Promise<'js>,
    },
    Running(Promise<'js>),
}

/// The functions that settle a promise of a host call.
pub(crate) struct Settle<'js> {
    pub resolve: Function<'js>,
    pub reject: Function<'js>,
}

impl<'js> Bridge<'js> {
    /// From what the prelude's `install` returns, in its order.
    pub fn new(functions: &Array<'js>, native: Function<'js>, binding: Arc<Binding>) -> Result<Self> {
        let parameter: Object<'js> = functions.get(6)?;
        Ok(Self {
            settle: functions.get(0)?,
            host_error: functions.get(1)?,
            abort: functions.get(2)?,
            fire: functions.get(3)?,
            well_formed: functions.get(4)?,
            fix_clock: functions.get(5)?,
            context: parameter.get("context")?,
            parameter,
            entry: RefCell::default(),
            _native: native,
            binding,
            state: RefCell::default(),
        })
    }

    pub fn waits(&self) -> bool {
        let state = self.state.borrow();
        !state.pending.is_empty() || !state.timers.is_empty()
    }

    /// Forgets the values of the call without releasing them: restoring the memory removes them and their reference
    /// counts.
    pub fn forget_call(&self) {
        let state = self.state.take();
        forget(state.phase);
        state.pending.into_values().for_each(forget);
        self.binding.release();
    }

    /// Like `forget_call`, before the snapshot without a primed program is restored.
    pub fn forget_entry(&self) {
        forget(self.entry.take());
    }
}

/// The host of the current call. An error only while the realm is created.
pub(crate) fn call_host_of(ctx: &Ctx<'_>) -> Result<Arc<CallHost>> {
    ctx.userdata::<Bridge<'_>>().ok_or(Error::Unknown)?.binding.call_host()
}
