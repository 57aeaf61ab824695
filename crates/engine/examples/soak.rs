//! Runs one handler repeatedly and prints the resident memory, which must level off.
//! usage: soak [CALLS]

#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::print_stdout)]
use std::{fs, sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolwright_engine::{
    Cancel, Engine, HandlerCall, Host, HostError, HostFunction, HostFuture, Level, Limits, Options, Program,
    Source,
};

struct Echo;

impl Host for Echo {
    fn call(&self, _path: &str, args: Vec<Value>) -> HostFuture {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Value::Array(args))
        })
    }

    fn call_sync(&self, _path: &str, _args: Vec<Value>) -> Result<Value, HostError> {
        Ok(Value::Null)
    }

    fn console(&self, _level: Level, _text: String) {}
}

const HANDLER: &str = "import { ToolError } from '../_core/error-types.js';
    export async function execute({ args, context }) {
      const [back] = await context.echo({ n: args.n });
      const cycle = { url: new URL('http://example.com/?a=1') };
      cycle.self = cycle;
      if (args.n % 3 === 0) throw new ToolError('TRANSIENT', 'again');
      if (args.n % 7 === 0) 'x'.repeat(2 ** 28);
      return back;
    }";

fn main() {
    toolwright_engine::run_if_worker();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(soak());
}

async fn soak() {
    let calls: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let engine = Engine::new(Options {
        worker: Some(std::env::current_exe().unwrap()),
        functions: vec![HostFunction::asynchronous("echo")],
        ..Options::default()
    });
    let source = Source { path: "handler.js".to_owned(), text: HANDLER.into() };
    let program = Arc::new(Program::new("soak".to_owned(), vec![source]));
    for n in 0..calls {
        let call = HandlerCall {
            program: program.clone(),
            args: json!({ "n": n }),
            context: json!({ "session": { "state": {} } }),
            host: Arc::new(Echo),
            limits: Limits::within(Duration::from_secs(10)),
            cancel: Cancel::new(),
            now: None,
            seed: None,
        };
        let _ = engine.run(call).await;
        if n % (calls / 10).max(1) == 0 {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap().to_owned();
            println!("{n} calls: {resident}");
        }
    }
}
