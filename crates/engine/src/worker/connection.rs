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
use crate::message::{FromWorker, HEADER_BYTES, HostResult, ToWorker, decode, encode, encoded_length};

/// Most messages arrive with one read.
const READ_BYTES: usize = 4096;
/// A buffer that a large message has grown is made smaller again.
const KEPT_BYTES: usize = 64 << 10;

pub(crate) struct Connection {
    socket: UnixStream,
    /// Bytes that were read and not decoded yet.
    unread: RefCell<Vec<u8>>,
    /// Messages that arrived while a synchronous host call waited for its result.
    received: RefCell<VecDeque<ToWorker>>,
}

impl Connection {
    pub fn new(socket: UnixStream) -> Self {
        Self { socket, unread: RefCell::default(), received: RefCell::default() }
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
        let is_here = !self.received.borrow().is_empty() || message_length(&self.unread.borrow()).is_some();
        if is_here || self.is_readable_until(time)? { self.receive().map(Some) } else { Ok(None) }
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
        let unread = &mut *self.unread.borrow_mut();
        let length = loop {
            if let Some(length) = message_length(unread) {
                break length;
            }
            cpu_time::release_slot();
            let start = unread.len();
            let missing = encoded_length(unread).map_or(0, |length| length - start);
            unread.resize(start + missing.max(READ_BYTES), 0);
            let count = (&self.socket).read(&mut unread[start..]);
            unread.truncate(start + count.as_ref().copied().unwrap_or_default());
            match count {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        };
        let message = decode(&unread[HEADER_BYTES..length]);
        unread.drain(..length);
        unread.shrink_to(KEPT_BYTES);
        message
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

/// The length of the first message in a buffer, header included, if it is complete.
fn message_length(buffer: &[u8]) -> Option<usize> {
    encoded_length(buffer).filter(|length| *length <= buffer.len())
}
