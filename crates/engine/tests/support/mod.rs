//! Test fixtures: a host of stubs, and functions that run a source text.
#![allow(dead_code)]
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolwright_engine::{
    Cancel, Engine, Failure, HandlerCall, Host, HostError, HostFunction, HostFuture, Level, Limits, Options,
    Program, Source,
};

pub type Stub = Box<dyn Fn(Vec<Value>) -> HostFuture + Send + Sync>;

/// Returns stubbed results, and records all calls and console lines.
#[derive(Default)]
pub struct Stubs {
    pub functions: HashMap<String, Stub>,
    pub calls: Mutex<Vec<(String, Vec<Value>)>>,
    pub lines: Mutex<Vec<(Level, String)>>,
}

impl Stubs {
    pub fn with(
        mut self,
        path: &str,
        stub: impl Fn(Vec<Value>) -> HostFuture + Send + Sync + 'static,
    ) -> Self {
        self.functions.insert(path.to_owned(), Box::new(stub));
        self
    }
}

impl Host for Stubs {
    fn call(&self, path: &str, args: Vec<Value>) -> HostFuture {
        self.calls.lock().unwrap().push((path.to_owned(), args.clone()));
        match self.functions.get(path) {
            Some(stub) => stub(args),
            None => Box::pin(async { Err(HostError::new("NOT_CONFIGURED", "no back end")) }),
        }
    }

    fn call_sync(&self, path: &str, args: Vec<Value>) -> Result<Value, HostError> {
        self.calls.lock().unwrap().push((path.to_owned(), args));
        match path {
            "voice.isActive" => Ok(json!(true)),
            "fails" => Err(HostError::new("REJECTED", "refused by the host")),
            "panics" => panic!("a host that panics"),
            _ => Ok(Value::Null),
        }
    }

    fn console(&self, level: Level, text: String) {
        self.lines.lock().unwrap().push((level, text));
    }
}

/// The harness owns `main`, so a constructor makes this program its own worker.
#[ctor::ctor(unsafe)]
fn be_worker() {
    toolwright_engine::run_if_worker();
}

/// With the functions that the stubs implement, and this program as the worker.
pub fn options() -> Options {
    let worker = Some(std::env::current_exe().unwrap());
    Options { worker, functions: functions(), ..Options::default() }
}

pub fn engine() -> Engine {
    Engine::new(options())
}

pub fn program(source: &str) -> Arc<Program> {
    modules(&[("handler.js", source)])
}

pub fn modules(sources: &[(&str, &str)]) -> Arc<Program> {
    let sources = sources
        .iter()
        .map(|(path, text)| Source { path: (*path).to_owned(), text: (*text).into() })
        .collect();
    Arc::new(Program::new("test".to_owned(), sources))
}

pub fn functions() -> Vec<HostFunction> {
    let asynchronous = ["messaging.send", "kb.search", "later", "never", "reject", "panic", "echo"];
    let synchronous = ["audit.log", "progress", "voice.isActive", "fails", "panics"];
    let asynchronous = asynchronous.into_iter().map(HostFunction::asynchronous);
    asynchronous.chain(synchronous.into_iter().map(HostFunction::synchronous)).collect()
}

pub fn host() -> Stubs {
    Stubs::default()
        .with("echo", |args| Box::pin(async move { Ok(Value::Array(args)) }))
        .with("messaging.send", |_| Box::pin(async { Ok(Value::Null) }))
        .with("later", |args| {
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(args[0].as_u64().unwrap_or(20))).await;
                Ok(json!("later"))
            })
        })
        .with("never", |_| Box::pin(std::future::pending()))
        .with("reject", |_| Box::pin(async { Err(HostError::new("TIMEOUT", "no answer")) }))
        .with("panic", |_| Box::pin(async { panic!("a capability that panics") }))
}

pub fn call(program: &Arc<Program>, args: Value) -> HandlerCall {
    HandlerCall {
        program: program.clone(),
        args,
        context: json!({
            "clientId": "c1", "mode": "text", "executionId": "e1",
            "tool": { "id": "test", "version": "1.0.0", "idempotent": true },
            "session": { "isActive": true, "toolsVersion": "1", "mode": "text", "state": { "deep": { "list": [1, { "x": 1 }] } } }
        }),
        host: Arc::new(host()),
        limits: Limits::within(Duration::from_secs(20)),
        cancel: Cancel::new(),
        now: None,
        seed: None,
    }
}

/// Runs the body of `execute` once in a new engine.
pub async fn body(body: &str) -> Result<Value, Failure> {
    body_with(&engine(), body).await
}

pub async fn body_with(engine: &Engine, body: &str) -> Result<Value, Failure> {
    let source = format!("export async function execute({{ args, context }}) {{ {body} }}");
    engine.run(call(&program(&source), json!({}))).await
}
