//! The Rust data of a realm: the prelude's functions, the connection to the server, and the promises of its call.
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap},
    io,
    rc::Rc,
    time::Instant,
};

use rquickjs::{
    Array, Ctx, Error, Function, Module, Object, Result, module::Declared, runtime::UserDataGuard,
};

use super::{compile::Compiled, connection::Connection, cpu_clock::CpuClock};
use crate::{
    call::{HostFunction, Level},
    message::{CallInput, FromWorker},
};

const MAX_LINES: usize = 200;
const MAX_LINE_BYTES: usize = 4096;

/// The part of a realm that the worker uses too.
pub(crate) struct RealmParts {
    pub connection: Rc<Connection>,
    pub functions: Rc<[HostFunction]>,
    pub clock: CpuClock,
    /// How many lines were written to the console.
    lines: Cell<usize>,
    /// Set before the call starts.
    pub program: RefCell<Rc<Compiled>>,
    pub input: RefCell<Option<Rc<CallInput>>>,
    /// The handler's listeners run after an abort; its host calls fail.
    pub aborted: Cell<bool>,
    /// How often random numbers were drawn.
    pub draws: Cell<u32>,
    next_id: Cell<u32>,
}

impl RealmParts {
    pub fn new(connection: Rc<Connection>, functions: Rc<[HostFunction]>) -> Self {
        Self {
            connection,
            functions,
            clock: CpuClock::new(),
            lines: Cell::default(),
            program: RefCell::default(),
            input: RefCell::default(),
            aborted: Cell::default(),
            draws: Cell::default(),
            next_id: Cell::default(),
        }
    }

    /// An id of a host call or timer, from 1, so that `if (timer)` is true.
    pub fn next_id(&self) -> u32 {
        self.next_id.set(self.next_id.get() + 1);
        self.next_id.get()
    }

    /// Writes a line to the console, unless there are too many.
    pub fn write_line(&self, level: Level, mut text: String) -> io::Result<()> {
        if self.lines.replace(self.lines.get() + 1) >= MAX_LINES {
            return Ok(());
        }
        text.truncate(text.floor_char_boundary(MAX_LINE_BYTES));
        self.connection.send(&FromWorker::Console(level, text))
    }

    /// The input of the call. An error only while the realm is created.
    pub fn input(&self) -> Result<Rc<CallInput>> {
        self.input.borrow().clone().ok_or(Error::Unknown)
    }
}

pub(crate) struct Bridge<'js> {
    pub settle: Function<'js>,
    pub host_error: Function<'js>,
    pub abort: Function<'js>,
    pub fire: Function<'js>,
    pub well_formed: Function<'js>,
    pub fix_clock: Function<'js>,
    /// `Object.freeze`, as it was before the handler could replace it.
    pub freeze: Function<'js>,
    /// The argument of `execute`, with the functions of `context`.
    pub parameter: Object<'js>,
    pub state: RefCell<State<'js>>,
    pub parts: Rc<RealmParts>,
}

#[derive(Default)]
pub(crate) struct State<'js> {
    /// The handler's module, loaded before its call arrives.
    pub handler: Option<Module<'js, Declared>>,
    pub pending: HashMap<u32, PromiseSettlers<'js>>,
    pub timers: BTreeSet<(Instant, u32)>,
}

/// The functions that settle a promise of a host call.
pub(crate) struct PromiseSettlers<'js> {
    pub resolve: Function<'js>,
    pub reject: Function<'js>,
    /// Where the handler made the call.
    pub stack: String,
}

impl<'js> Bridge<'js> {
    /// From what the prelude's `install` returns, in its order.
    pub fn new(functions: &Array<'js>, parts: Rc<RealmParts>) -> Result<Self> {
        Ok(Self {
            settle: functions.get(0)?,
            host_error: functions.get(1)?,
            abort: functions.get(2)?,
            fire: functions.get(3)?,
            well_formed: functions.get(4)?,
            fix_clock: functions.get(5)?,
            freeze: functions.get(6)?,
            parameter: functions.get(7)?,
            state: RefCell::default(),
            parts,
        })
    }

    pub fn has_open_calls(&self) -> bool {
        let state = self.state.borrow();
        !state.pending.is_empty() || !state.timers.is_empty()
    }
}

/// The bridge of a realm. An error only while the realm is created.
pub(crate) fn bridge_of<'a, 'js>(ctx: &'a Ctx<'js>) -> Result<UserDataGuard<'a, Bridge<'js>>> {
    ctx.userdata::<Bridge<'js>>().ok_or(Error::Unknown)
}
