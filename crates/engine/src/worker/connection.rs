//! The worker's side of its socket: blocking, with a time limit where timers need one.
use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    time::Instant,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cpu_time;
use crate::message::{FromWorker, HEADER_BYTES, HostResult, ToWorker, decode, encode};

pub(crate) struct Connection {
    socket: UnixStream,
    /// Messages that arrived while a synchronous host call waited for its result.
    received: RefCell<VecDeque<ToWorker>>,
}

impl Connection {
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, received: RefCell::default() }
    }

    pub fn send(&self, message: &FromWorker) -> io::Result<()> {
        let mut buffer = Vec::new();
        encode(message, &mut buffer)?;
        (&self.socket).write_all(&buffer)
    }

    /// The next message; an error at the end of the server.
    pub fn receive(&self) -> io::Result<ToWorker> {
        let waiting = self.received.borrow_mut().pop_front();
        waiting.map_or_else(|| self.read(), Ok)
    }

    /// The next message, or `None` at that time.
    pub fn receive_until(&self, time: Option<Instant>) -> io::Result<Option<ToWorker>> {
        let is_waiting = !self.received.borrow().is_empty();
        if is_waiting || self.is_readable_until(time)? { self.receive().map(Some) } else { Ok(None) }
    }

    /// The result of one host call. Other messages are kept.
    pub fn receive_result(&self, of: u32) -> io::Result<HostResult> {
        loop {
            match self.read()? {
                ToWorker::HostResult { id, result } if id == of => return Ok(result),
                other => self.received.borrow_mut().push_back(other),
            }
        }
    }

    fn read(&self) -> io::Result<ToWorker> {
        cpu_time::release_slot();
        let mut header = [0; HEADER_BYTES];
        (&self.socket).read_exact(&mut header)?;
        let mut text = vec![0; u32::from_le_bytes(header) as usize];
        (&self.socket).read_exact(&mut text)?;
        decode(&text)
    }

    fn is_readable_until(&self, time: Option<Instant>) -> io::Result<bool> {
        let Some(time) = time else { return Ok(true) };
        cpu_time::release_slot();
        loop {
            let left = Timespec::try_from(time.saturating_duration_since(Instant::now()));
            let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
            match poll(&mut ready, left.ok().as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                count => return Ok(count? > 0),
            }
        }
    }
}
