//! A realm: a QuickJS runtime and context in their own memory. It runs one call at a time. After each call, all of its
//! memory is restored from a snapshot, so that every call starts in the same state.
#![allow(unsafe_code)]
use std::{sync::Arc, thread};

use rquickjs::{Context, Error, Result, Runtime, context::intrinsic};

use crate::{
    arena::State,
    binding::Binding,
    bridge::Bridge,
    call::HostFunction,
    host::CallHost,
    memory::{Memory, Meter, Metered},
    modules::Modules,
    prelude,
    program::Compiled,
    raw,
};

/// The whole language except `eval` and the like: only code that was built and checked runs.
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

/// The sizes of the memory region that a snapshot covers, tried in order. The first is enough unless there are thousands
/// of host functions.
const REGION_SIZES: [usize; 3] = [1 << 20, 4 << 20, 32 << 20];

/// Most calls are short, so collecting cycles seldom pays.
const GC_THRESHOLD: usize = 4 << 20;

pub(crate) struct Realm {
    pub context: Context,
    runtime: Runtime,
    memory: Arc<Memory>,
    binding: Arc<Binding>,
    /// Whether the memory must be restored before the next use.
    used: bool,
    /// The program whose modules are loaded in advance, because it ran twice in a row.
    primed: Option<Arc<Compiled>>,
    latest: Option<Arc<Compiled>>,
}

impl Realm {
    /// Creates everything that is the same for all calls, and takes the snapshot.
    pub fn new(functions: &[HostFunction]) -> Result<Self> {
        let mut made = Err(Error::Allocation);
        for region in REGION_SIZES {
            made = Self::with_region(region, functions);
            if !matches!(made, Err(Error::Allocation)) {
                break;
            }
        }
        made
    }

    fn with_region(region_bytes: usize, functions: &[HostFunction]) -> Result<Self> {
        let memory = Memory::new(region_bytes);
        let binding = Arc::new(Binding::default());
        let runtime = Runtime::new_with_alloc(Metered(memory.clone()))?;
        runtime.set_gc_threshold(GC_THRESHOLD);
        runtime.set_loader(Modules(binding.clone()), Modules(binding.clone()));
        let interrupt = binding.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || interrupt.must_stop())));
        let context = Context::custom::<Intrinsics>(&runtime)?;
        context.with(|ctx| prelude::install(&ctx, functions, &binding))?;
        runtime.run_gc();
        // SAFETY: the realm is not shared yet, and nothing runs in it.
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

    /// How well the realm matches a program: best if it is primed for it, worst if it is primed for another.
    pub fn match_score(&self, compiled: &Arc<Compiled>) -> u8 {
        self.primed.as_ref().map_or(1, |primed| if Arc::ptr_eq(primed, compiled) { 2 } else { 0 })
    }

    /// Binds the realm to a call.
    pub fn bind_call(&mut self, call_host: &Arc<CallHost>, compiled: &Arc<Compiled>) {
        if self.match_score(compiled) == 0 {
            self.unprime();
        }
        #[cfg(debug_assertions)]
        // SAFETY: the realm is owned by this thread, and nothing runs in it.
        debug_assert!(
            unsafe { self.memory.is_restored(self.state()) },
            "a call starts in a realm that was not restored"
        );
        self.used = true;
        self.memory.meter.set_limit(call_host.limits.memory_bytes);
        self.runtime.set_max_stack_size(call_host.stack_bytes);
        self.binding.bind(Some(call_host.clone()), compiled.clone());
    }

    /// Restores the realm after its call. `None` if its state is in doubt.
    pub fn recycle(mut self) -> Option<Self> {
        // After a refused allocation QuickJS runs rarely tested code, so the realm is not used again.
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

    /// Loads the program's modules in advance. They are not evaluated, so no code of the handler runs.
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
        // SAFETY: as in `rewind`; the entry, which the first snapshot does not contain, has been forgotten.
        unsafe {
            self.memory.restore(State::Pristine);
            self.memory.drop_snapshot(State::Primed);
        }
    }

    fn state(&self) -> State {
        if self.primed.is_some() { State::Primed } else { State::Pristine }
    }

    /// Restores all memory of the realm. State outside of that memory does not change during a call, except for the
    /// values of the call, which are forgotten first:
    /// - rquickjs's own state (interrupt handler, loader, class prototypes, the `Bridge`) is written before the snapshot
    ///   and keeps the same values and reference counts;
    /// - the only Rust closure that an object of the realm owns is the native function, which the `Bridge` references, so
    ///   it is never finalised; no other is created during a call;
    /// - the stack base is set whenever the realm is entered.
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
    /// Restores the memory first, so that QuickJS is torn down from its initial state.
    fn drop(&mut self) {
        // After a panic the realm cannot be entered any more.
        if !thread::panicking() {
            self.rewind();
        }
    }
}

#[cfg(test)]
#[path = "realm_tests.rs"]
mod tests;
