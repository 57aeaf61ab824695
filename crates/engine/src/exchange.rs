//! One call on one worker: sends the input, answers host calls, and enforces the limits that a worker could ignore.
use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, BytesMut};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use crate::{
    call::{FunctionKind, HandlerCall, Host, HostError, HostFunction, Limits},
    failure::Failure,
    message::{CallInput, FromWorker, HEADER_BYTES, HostResult, ToWorker, decode, encode, encoded_length},
    spawner::Worker,
};

/// How long the abort listeners of a stopped call may take, host calls included.
const ABORT_TIME: Duration = Duration::from_millis(80);
/// How long the spawner may take to report why a worker has ended.
const EXIT_TIME: Duration = Duration::from_millis(500);

/// Space for at least this much is there before each read: most calls send less in all.
const READ_BYTES: usize = 4096;

/// The result of an exchange.
pub(crate) struct ExchangeEnd {
    pub result: Result<Value, Failure>,
    /// Whether the worker may serve another call.
    pub reusable: bool,
}

impl ExchangeEnd {
    fn failed(failure: Failure) -> Self {
        Self { result: Err(failure), reusable: false }
    }
}

pub(crate) struct Exchange {
    stream: UnixStream,
    worker: Worker,
    functions: Arc<[HostFunction]>,
    host: Arc<dyn Host>,
    limits: Limits,
    input: BytesMut,
    output: Vec<u8>,
    pending: FuturesUnordered<BoxFuture<'static, (u32, HostResult)>>,
    /// After an abort, host functions that return a promise are refused.
    aborted: bool,
    received_bytes: usize,
    host_calls: usize,
}

impl Exchange {
    pub fn new(
        mut worker: Worker,
        functions: Arc<[HostFunction]>,
        call: &HandlerCall,
        args: Value,
        context: Value,
    ) -> io::Result<Self> {
        let limits = call.limits.clone();
        let input = CallInput {
            args,
            context,
            now: call.now,
            seed: call.seed,
            cpu_micros: u64::try_from(limits.cpu.as_micros()).unwrap_or(u64::MAX),
            memory_bytes: limits.memory_bytes,
            stack_bytes: limits.stack_bytes,
            output_bytes: limits.output_bytes,
        };
        encode(&ToWorker::Call(input), &mut worker.unsent)?;
        // Before the runtime knows the socket: it would wait for its own event loop first. If the worker has ended,
        // what it has sent is still to be read.
        if worker.flush().is_err() {
            worker.unsent.clear();
        }
        worker.calls += 1;
        let output = std::mem::take(&mut worker.unsent);
        let socket = worker.socket.take().ok_or_else(|| io::Error::other("the worker has no socket"))?;
        Ok(Self {
            stream: UnixStream::from_std(socket)?,
            worker,
            functions,
            host: Arc::clone(&call.host),
            limits,
            input: BytesMut::new(),
            output,
            pending: FuturesUnordered::new(),
            aborted: false,
            received_bytes: 0,
            host_calls: 0,
        })
    }

    /// Runs until the handler has a result, passes a limit, or the worker is lost.
    pub async fn run(&mut self) -> ExchangeEnd {
        match self.messages().await {
            Ok(ended) => ended,
            // The socket is closed, or the worker sent something that is not a message.
            Err(_) => match timeout(EXIT_TIME, self.worker.exited()).await {
                Ok(exit) => ExchangeEnd::failed(exit.failure()),
                Err(_) => ExchangeEnd::failed(Failure::EngineLost),
            },
        }
    }

    /// Lets the abort listeners run, and ends the worker.
    pub async fn abort(mut self, reason: &str) {
        self.pending.clear();
        self.aborted = true;
        if encode(&ToWorker::Abort(reason.to_owned()), &mut self.output).is_ok() {
            let _ = timeout(ABORT_TIME, self.messages()).await;
        }
    }

    /// The worker, for the next call.
    pub fn into_worker(mut self) -> io::Result<Worker> {
        self.worker.socket = Some(self.stream.into_std()?);
        self.worker.unsent = self.output;
        Ok(self.worker)
    }

    async fn messages(&mut self) -> io::Result<ExchangeEnd> {
        loop {
            // Before the next message is read: a host call is started even if the handler does not await it.
            while let Some(Some((id, result))) = self.pending.next().now_or_never() {
                encode(&ToWorker::HostResult { id, result }, &mut self.output)?;
            }
            match self.next_message()? {
                Some(message) => {
                    if let Some(ended) = self.handle(message)? {
                        return Ok(ended);
                    }
                }
                None if self.expects_too_much() => return Ok(ExchangeEnd::failed(Failure::OutputTooLarge)),
                None => self.wait().await?,
            }
        }
    }

    /// Waits until bytes were received or sent, or a host call has a result.
    async fn wait(&mut self) -> io::Result<()> {
        let (mut reader, mut writer) = self.stream.split();
        self.input.reserve(READ_BYTES);
        tokio::select! {
            biased;
            written = writer.write(&self.output), if !self.output.is_empty() => match written {
                Ok(count) => drop(self.output.drain(..count)),
                // The worker has ended. It may have sent its result before, which is still to be read.
                Err(_) => self.output.clear(),
            },
            received = reader.read_buf(&mut self.input) => match received? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.received_bytes += count,
            },
            Some((id, result)) = self.pending.next(), if !self.pending.is_empty() => {
                encode(&ToWorker::HostResult { id, result }, &mut self.output)?;
            }
        }
        Ok(())
    }

    /// Whether all messages together, including the one that is being received, exceed the limit.
    fn expects_too_much(&self) -> bool {
        let missing = encoded_length(&self.input).map_or(0, |length| length - self.input.len());
        self.received_bytes.saturating_add(missing) > self.limits.total_bytes
    }

    fn next_message(&mut self) -> io::Result<Option<FromWorker>> {
        let Some(length) = encoded_length(&self.input).filter(|length| *length <= self.input.len()) else {
            return Ok(None);
        };
        let message = decode(&self.input[HEADER_BYTES..length])?;
        self.input.advance(length);
        Ok(Some(message))
    }

    fn handle(&mut self, message: FromWorker) -> io::Result<Option<ExchangeEnd>> {
        match message {
            FromWorker::Ready => {}
            FromWorker::Console(level, text) => self.host.console(level, text),
            FromWorker::HostCall { id, function, args } => {
                self.host_calls += 1;
                let too_many = self.host_calls > self.limits.total_host_calls
                    || self.pending.len() >= self.limits.pending_host_calls;
                if too_many {
                    return Ok(Some(ExchangeEnd::failed(Failure::TooManyHostCalls)));
                }
                self.host_call(id, function, args)?;
            }
            FromWorker::Done { result, reusable } => return Ok(Some(ExchangeEnd { result, reusable })),
        }
        Ok(None)
    }

    fn host_call(&mut self, id: u32, function: usize, args: Vec<Value>) -> io::Result<()> {
        let function = self.functions.get(function).ok_or(io::ErrorKind::InvalidData)?;
        let (host, path) = (&self.host, &function.path);
        let failed = || Err(HostError::new("INTERNAL", "the capability failed"));
        let result = match function.kind {
            FunctionKind::Sync => {
                catch_unwind(AssertUnwindSafe(|| host.call_sync(path, args))).unwrap_or_else(|_| failed())
            }
            FunctionKind::Async if self.aborted => Err(HostError::new("CANCELLED", "the call was cancelled")),
            FunctionKind::Async => match catch_unwind(AssertUnwindSafe(|| host.call(path, args))) {
                Ok(future) => {
                    let guarded = AssertUnwindSafe(future).catch_unwind();
                    self.pending
                        .push(guarded.map(move |result| (id, result.unwrap_or_else(|_| failed()))).boxed());
                    return Ok(());
                }
                Err(_) => failed(),
            },
        };
        encode(&ToWorker::HostResult { id, result }, &mut self.output)
    }
}
