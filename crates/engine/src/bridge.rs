//! What Rust keeps inside a realm: the prelude's functions, the promises in flight, and the call that it serves.
use std::{
    cell::{OnceCell, RefCell},
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rquickjs::{Array, Ctx, Error, Function, Promise, Result, Value};

use crate::side::Side;

pub(crate) struct Bridge<'js> {
    pub prepare: Function<'js>,
    pub settle: Function<'js>,
    pub host_error: Function<'js>,
    pub abort: Function<'js>,
    pub fire: Function<'js>,
    pub well_formed: Function<'js>,
    /// Set once, when the realm gets its one call.
    pub side: OnceCell<Arc<Side>>,
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
        module: Promise<'js>,
        args: Value<'js>,
        context: Value<'js>,
    },
    Running(Promise<'js>),
}

/// The two ends of a promise that waits for the host.
pub(crate) struct Settle<'js> {
    pub resolve: Function<'js>,
    pub reject: Function<'js>,
}

impl<'js> Bridge<'js> {
    /// From what the prelude's `install` returns, in its order.
    pub fn from_functions(functions: &Array<'js>) -> Result<Self> {
        Ok(Self {
            prepare: functions.get(0)?,
            settle: functions.get(1)?,
            host_error: functions.get(2)?,
            abort: functions.get(3)?,
            fire: functions.get(4)?,
            well_formed: functions.get(5)?,
            side: OnceCell::new(),
            state: RefCell::default(),
        })
    }

    pub fn waits(&self) -> bool {
        let state = self.state.borrow();
        !state.pending.is_empty() || !state.timers.is_empty()
    }
}

/// The call that this realm serves; there is none only while the realm is made.
pub(crate) fn side_of(ctx: &Ctx<'_>) -> Result<Arc<Side>> {
    let bridge = ctx.userdata::<Bridge<'_>>().ok_or(Error::Unknown)?;
    bridge.side.get().cloned().ok_or(Error::Unknown)
}
