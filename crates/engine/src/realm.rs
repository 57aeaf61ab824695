//! A realm: a runtime and a context of its own, made for exactly one call and thrown away after it.
use std::sync::Arc;

use rquickjs::{Context, Runtime, context::intrinsic};

use crate::{
    memory::{Meter, Metered},
    modules::Modules,
    prelude,
    program::Compiled,
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
    intrinsic::Performance,
    intrinsic::WeakRef,
    intrinsic::DOMException,
);

/// A realm lives for one short call; collecting cycles seldom pays.
const COLLECT_AFTER: usize = 4 << 20;

pub(crate) struct Realm {
    pub context: Context,
    runtime: Runtime,
    pub meter: Arc<Meter>,
}

impl Realm {
    pub fn new() -> rquickjs::Result<Self> {
        let meter = Arc::new(Meter::default());
        let runtime = Runtime::new_with_alloc(Metered(meter.clone()))?;
        runtime.set_gc_threshold(COLLECT_AFTER);
        let context = Context::custom::<Intrinsics>(&runtime)?;
        context.with(|ctx| prelude::install(&ctx))?;
        Ok(Self { context, runtime, meter })
    }

    /// Binds the realm to its one call.
    pub fn adopt(&self, side: &Arc<Side>, compiled: Arc<Compiled>) {
        self.meter.set_limit(side.limits.memory_bytes);
        self.runtime.set_max_stack_size(side.stack_bytes);
        self.runtime.set_loader(Modules(compiled.clone()), Modules(compiled));
        let control = side.clone();
        self.runtime.set_interrupt_handler(Some(Box::new(move || control.control.must_stop())));
    }
}
