//! A realm: a runtime and a context in memory of their own. It serves one call at a time, and between two calls all of
//! its memory is put back to how it was before the first, so that every call finds the same untouched realm.
#![allow(unsafe_code)]
use std::{sync::Arc, thread};

use rquickjs::{Context, Error, Result, Runtime, context::intrinsic};

use crate::{
    arena::State,
    binding::Binding,
    bridge::Bridge,
    call::Function,
    memory::{Memory, Meter, Metered},
    modules::Modules,
    prelude,
    program::Compiled,
    raw,
    side::Side,
};

/// All of the language except `eval` and its like: the code that was built and checked is the code that runs.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
    intrinsic::DOMException,
);

/// Of the memory that a snapshot covers. The first is enough but for an engine with thousands of host functions; most
/// handlers never leave it.
const REGIONS: [usize; 3] = [1 << 20, 4 << 20, 32 << 20];

/// A realm lives for one short call; collecting cycles seldom pays.
const COLLECT_AFTER: usize = 4 << 20;

pub(crate) struct Realm {
    pub context: Context,
    runtime: Runtime,
    memory: Arc<Memory>,
    binding: Arc<Binding>,
    /// Whether memory has to be put back before anything else happens.
    used: bool,
    /// The program whose modules are read already, if there is one: it has called twice in a row.
    primed: Option<Arc<Compiled>>,
    latest: Option<Arc<Compiled>>,
}

impl Realm {
    /// Everything that is the same for every call is made here, and then remembered.
    pub fn new(functions: &[Function]) -> Result<Self> {
        let mut made = Err(Error::Allocation);
        for region in REGIONS {
            made = Self::within(region, functions);
            if !matches!(made, Err(Error::Allocation)) {
                break;
            }
        }
        made
    }

    fn within(region_bytes: usize, functions: &[Function]) -> Result<Self> {
        let memory = Memory::new(region_bytes);
        let binding = Arc::new(Binding::default());
        let runtime = Runtime::new_with_alloc(Metered(memory.clone()))?;
        runtime.set_gc_threshold(COLLECT_AFTER);
        runtime.set_loader(Modules(binding.clone()), Modules(binding.clone()));
        let asked = binding.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || asked.must_stop())));
        let context = Context::custom::<Intrinsics>(&runtime)?;
        context.with(|ctx| prelude::install(&ctx, functions, &binding))?;
        runtime.run_gc();
        // SAFETY: the realm is nobody else's yet, and nothing runs in it.
        if !unsafe { memory.take_snapshot(State::Pristine) } {
            return Err(Error::Allocation);
        }
        Ok(Self { context, runtime, memory, binding, used: false, primed: None, latest: None })
    }

    pub fn meter(&self) -> &Arc<Meter> {
        &self.memory.meter
    }

    pub fn has_panicked(&self) -> bool {
        self.binding.has_panicked()
    }

    /// How well the realm suits a program: best if it has been made ready for it, worst if for another.
    pub fn suits(&self, compiled: &Arc<Compiled>) -> u8 {
        self.primed.as_ref().map_or(1, |primed| if Arc::ptr_eq(primed, compiled) { 2 } else { 0 })
    }

    /// Binds the realm to a call.
    pub fn adopt(&mut self, side: &Arc<Side>, compiled: &Arc<Compiled>) {
        if self.suits(compiled) == 0 {
            self.unprime();
        }
        #[cfg(debug_assertions)]
        // SAFETY: the realm is this thread's alone, and nothing runs in it.
        debug_assert!(unsafe { self.memory.is_restored(self.state()) }, "a call begins in a used realm");
        self.used = true;
        self.memory.meter.set_limit(side.limits.memory_bytes);
        self.runtime.set_max_stack_size(side.stack_bytes);
        self.binding.bind(Some(side.clone()), compiled.clone());
    }

    /// After its call: as good as new, or nothing if there is any doubt about it.
    pub fn recycled(mut self) -> Option<Self> {
        // Out of memory, or shut by the watcher, the engine goes ways that are seldom gone.
        if self.meter().has_refused() || self.meter().is_shut() || self.has_panicked() {
            return None;
        }
        let served = self.binding.compiled().ok();
        self.rewind();
        if let (None, Some(latest), Some(served)) = (&self.primed, &self.latest, &served)
            && Arc::ptr_eq(latest, served)
        {
            self.prime(served);
        }
        self.latest = served;
        Some(self)
    }

    /// Reads the program's modules ahead. Nothing of them is evaluated, so no code of the handler has run.
    fn prime(&mut self, compiled: &Arc<Compiled>) {
        self.binding.bind(None, compiled.clone());
        let read = self.context.with(|ctx| {
            let bridge = ctx.userdata::<Bridge<'_>>().ok_or(Error::Unknown)?;
            let entry = raw::load(&ctx, compiled.entry()).inspect_err(|_| drop(ctx.catch()))?;
            bridge.entry.replace(Some(entry));
            Ok::<_, Error>(())
        });
        self.binding.release();
        // SAFETY: the realm is owned here, and nothing runs in it.
        if read.is_ok() && unsafe { self.memory.take_snapshot(State::Primed) } {
            self.primed = Some(compiled.clone());
        } else {
            self.unprime();
        }
    }

    fn unprime(&mut self) {
        self.context.with(|ctx| {
            if let Some(bridge) = ctx.userdata::<Bridge<'_>>() {
                bridge.forget_entry();
            }
        });
        self.primed = None;
        // SAFETY: as in `rewind`; the entry, of which the first snapshot does not know, has been forgotten.
        unsafe {
            self.memory.restore(State::Pristine);
            self.memory.drop_snapshot(State::Primed);
        }
    }

    fn state(&self) -> State {
        if self.primed.is_some() { State::Primed } else { State::Pristine }
    }

    /// Puts back all memory of the realm. What lies outside of that memory does not change during a call, except for
    /// the call's own values, which are forgotten first:
    /// - the binding's books (interrupt handler, loader, class prototypes, the `Bridge`) are written before the
    ///   snapshot is taken and hold the same values ever after, with the reference counts that the snapshot has;
    /// - the one box of Rust that belongs to an object of the realm is the native function, which the `Bridge` holds,
    ///   so it is never finalised; no other is made during a call;
    /// - stack marks are set anew whenever the realm is entered.
    fn rewind(&mut self) {
        if !self.used {
            return;
        }
        self.used = false;
        self.context.with(|ctx| {
            if let Some(bridge) = ctx.userdata::<Bridge<'_>>() {
                bridge.forget_call();
            }
        });
        // SAFETY: the realm is owned here, so nothing runs in it; all of the call's values have been forgotten.
        unsafe { self.memory.restore(self.state()) };
        self.memory.meter.next_call();
    }
}

impl Drop for Realm {
    /// The engine is taken down from its first state, not from whatever a handler has left.
    fn drop(&mut self) {
        // After a panic the realm cannot be entered any more; then it goes as it is.
        if !thread::panicking() {
            self.rewind();
        }
    }
}

#[cfg(test)]
mod tests;
