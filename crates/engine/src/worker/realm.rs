//! A realm: a QuickJS runtime and context. It runs one call, and is made before that call arrives.
use std::rc::Rc;

use rquickjs::{Context, Result, Runtime, context::intrinsic};

use super::{
    bridge::{RealmParts, bridge_of},
    compile::Compiled,
    connection::Connection,
    memory::{Meter, MeteredAllocator},
    modules::{ERROR_TYPES, Modules},
    prelude, rquickjs_unsafe,
};
use crate::call::HostFunction;

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

/// Most calls are short, so collecting cycles seldom pays.
const GC_THRESHOLD: usize = 4 << 20;

pub(crate) struct Realm {
    pub context: Context,
    pub runtime: Runtime,
    pub meter: Rc<Meter>,
    pub parts: Rc<RealmParts>,
}

impl Realm {
    pub fn new(connection: Rc<Connection>, functions: Rc<[HostFunction]>) -> Result<Self> {
        let (meter, parts) = (Rc::default(), Rc::new(RealmParts::new(connection, functions)));
        let runtime = Runtime::new_with_alloc(MeteredAllocator(Rc::clone(&meter)))?;
        runtime.set_gc_threshold(GC_THRESHOLD);
        runtime.set_loader(Modules(Rc::clone(&parts)), Modules(Rc::clone(&parts)));
        let interrupt = Rc::clone(&parts);
        runtime.set_interrupt_handler(Some(Box::new(move || interrupt.clock.must_stop())));
        let context = Context::custom::<Intrinsics>(&runtime)?;
        context.with(|ctx| prelude::install(&ctx, &parts))?;
        Ok(Self { context, runtime, meter, parts })
    }

    /// Loads the handler, so that its call need not. Nothing of it is evaluated yet.
    pub fn load(&self, program: &Rc<Compiled>) {
        self.parts.program.replace(Rc::clone(program));
        self.context.with(|ctx| {
            if program.bytecode.contains_key(ERROR_TYPES) {
                let _ = prelude::evaluate(&ctx, ERROR_TYPES);
            }
            // The call loads what could not be loaded here, and reports the error.
            if let (Ok(bridge), Ok(module)) = (bridge_of(&ctx), rquickjs_unsafe::load(&ctx, program.entry()))
            {
                bridge.state.borrow_mut().handler = Some(module);
            }
        });
    }

    /// Ends the realm. What rquickjs has allocated outside of it, a few kilobytes, is lost until the worker is
    /// replaced.
    pub fn discard(self) {
        self.parts.program.take();
        self.parts.input.take();
        self.context.with(|ctx| {
            if let Ok(bridge) = bridge_of(&ctx) {
                drop(bridge.state.take());
            }
        });
        rquickjs_unsafe::discard(self.context, self.runtime, &self.meter);
    }
}
