//! The cost of different ways to isolate calls, in bare rquickjs: the figures of docs/decisions/0002.

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::print_stdout, unsafe_code)]
use std::time::Duration;

use rquickjs::{Context, Ctx, Function, Module, Object, Promise, Runtime, WriteOptions};

const HANDLER: &str = "
    const T = { a: 1 };
    export async function execute({ args, context }) {
      const { duration_seconds: s, farewell_message: m } = args;
      if (!context.session.isActive) return { ok: false };
      await context.send({ type: 'timeout', s, m });
      return { ok: true, data: { until: s * 1000, s }, intents: [{ type: 'END', after: T.a }] };
    }";

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn measure(name: &str, count: u32, mut step: impl FnMut()) {
    for _ in 0..count / 10 {
        step();
    }
    let mut best = f64::MAX;
    for _ in 0..5 {
        let began = cpu();
        for _ in 0..count {
            step();
        }
        best = best.min((cpu() - began).as_secs_f64() * 1e6 / f64::from(count));
    }
    println!("{name}: {best:.1} µs");
}

fn bytecode() -> Vec<u8> {
    let context = Context::full(&Runtime::new().unwrap()).unwrap();
    context.with(|ctx| {
        Module::declare(ctx, "handler.js", HANDLER)
            .unwrap()
            .write(WriteOptions { strip_source: true, ..WriteOptions::default() })
            .unwrap()
    })
}

fn load<'js>(ctx: &Ctx<'js>, bytecode: &[u8]) -> Function<'js> {
    // SAFETY: written by this process a moment ago.
    let (module, _) = unsafe { Module::load(ctx.clone(), bytecode) }.unwrap().eval().unwrap();
    module.get("execute").unwrap()
}

fn call<'js>(ctx: &Ctx<'js>, execute: &Function<'js>) {
    let parameter: Object<'js> = ctx.json_parse(r#"{"args":{"duration_seconds":5,"farewell_message":"x"},"context":{"session":{"isActive":true}}}"#).unwrap().get().unwrap();
    let context: Object<'js> = parameter.get("context").unwrap();
    context.set("send", Function::new(ctx.clone(), || 1).unwrap()).unwrap();
    let promise: Promise<'js> = execute.call((parameter,)).unwrap();
    promise.finish::<Object<'js>>().unwrap();
}

fn main() {
    let bytecode = bytecode();
    measure("runtime made and dropped", 2000, || drop(Runtime::new().unwrap()));
    measure("runtime + context made and dropped", 1000, || {
        drop(Context::full(&Runtime::new().unwrap()).unwrap())
    });
    let runtime = Runtime::new().unwrap();
    measure("context in a kept runtime, made and dropped", 1000, || drop(Context::full(&runtime).unwrap()));
    measure("fresh runtime + context, load, call, drop", 1000, || {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| call(&ctx, &load(&ctx, &bytecode)));
    });
    measure("fresh context in a kept runtime, load, call, drop", 1000, || {
        let context = Context::full(&runtime).unwrap();
        context.with(|ctx| call(&ctx, &load(&ctx, &bytecode)));
    });
    let shared = Context::full(&runtime).unwrap();
    measure("fresh module instance in a shared realm, call", 1000, || {
        shared.with(|ctx| call(&ctx, &load(&ctx, &bytecode)));
    });
    shared.with(|ctx| {
        let execute = load(&ctx, &bytecode);
        measure("call only, everything shared (no isolation)", 5000, || call(&ctx, &execute));
    });
}
