//! The server's side of the spawner: a process of its own that forks the workers, reports their exits and kills them.
//! The spawner has none of the server's memory, environment, files or sockets, and neither have its children.
use std::{
    collections::HashMap,
    io::{self, Read, Write},
    mem::MaybeUninit,
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::sync::oneshot;

use crate::{
    call::HostFunction,
    failure::Failure,
    message::{SpawnerConfig, encode},
    program::Program,
};

/// The name (`argv[0]`) under which a program is started as a spawner.
pub(crate) const PROCESS_NAME: &str = "toolwright-worker";
/// The exit code of a worker that exceeded its CPU time.
pub(crate) const EXIT_CPU: i32 = 70;

/// Forks a worker; its socket comes with the message.
pub(crate) const FORK: u8 = b'F';
pub(crate) const KILL: u8 = b'K';
/// A command to the spawner: `FORK` or `KILL`, and the worker's id.
pub(crate) const COMMAND_BYTES: usize = 5;
/// A worker's id, its exit code and its signal; one of the last two is zero.
pub(crate) const EXIT_BYTES: usize = 12;

/// How a worker process ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exit {
    pub code: i32,
    pub signal: i32,
}

impl Exit {
    /// Why the call of this worker has no result.
    pub fn failure(self) -> Failure {
        const SIGABRT: i32 = 6;
        const SIGKILL: i32 = 9;
        const SIGXCPU: i32 = 24;
        match self {
            Self { code: EXIT_CPU, .. } | Self { signal: SIGXCPU, .. } => Failure::CpuTime,
            // Rust aborts when an allocation fails. Others than the engine kill a worker only if the machine is short
            // of memory; the engine kills after it has decided on the failure.
            Self { signal: SIGABRT | SIGKILL, .. } => Failure::Memory,
            _ => Failure::EngineLost,
        }
    }
}

/// A running spawner. Dropping it ends it and all of its workers.
pub(crate) struct Spawner {
    control: Mutex<UnixStream>,
    exits: Mutex<HashMap<u32, oneshot::Sender<Exit>>>,
    next_id: AtomicU32,
    lost: AtomicBool,
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // The spawner and the thread that reads from it both see the end of the stream.
        let _ = self.control().shutdown(Shutdown::Both);
    }
}

impl Spawner {
    /// Starts the program `worker`, which calls [`crate::run_if_worker`] at the start of its `main`.
    pub fn start(worker: &Path, functions: &[HostFunction]) -> io::Result<Arc<Self>> {
        if crate::is_worker() {
            return Err(io::Error::other(
                "this program was started as a worker, but does not call `run_if_worker` at the start of `main`",
            ));
        }
        let (ours, theirs) = UnixStream::pair()?;
        let child = command(worker, theirs).spawn()?;
        let mut config = Vec::new();
        encode(&SpawnerConfig { functions: functions.to_vec() }, &mut config)?;
        (&ours).write_all(&config)?;
        let reader = ours.try_clone()?;
        let spawner = Arc::new(Self {
            control: Mutex::new(ours),
            exits: Mutex::default(),
            next_id: AtomicU32::new(1),
            lost: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&spawner);
        let watch = move || watch_exits(child, reader, &weak);
        thread::Builder::new().name("js-workers".to_owned()).spawn(watch)?;
        Ok(spawner)
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Starts a worker. It is usable at once: what is sent to it waits in its socket.
    pub fn fork(self: &Arc<Self>) -> io::Result<Worker> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (report, exit) = oneshot::channel();
        self.exits().insert(id, report);
        self.send(FORK, id, Some(theirs.into()))?;
        let spawner = Arc::clone(self);
        Ok(Worker { id, socket: Some(ours), exit, spawner, program: None, unsent: Vec::new(), calls: 0 })
    }

    fn send(&self, command: u8, id: u32, socket: Option<OwnedFd>) -> io::Result<()> {
        let mut message = [command; COMMAND_BYTES];
        message[1..].copy_from_slice(&id.to_le_bytes());
        let sockets: Vec<_> = socket.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !sockets.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&sockets));
        }
        let parts = [io::IoSlice::new(&message)];
        sendmsg(&*self.control(), &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn control(&self) -> MutexGuard<'_, UnixStream> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn exits(&self) -> MutexGuard<'_, HashMap<u32, oneshot::Sender<Exit>>> {
        self.exits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "handlers run in processes of their own, in the server's time zone"
)]
fn command(worker: &Path, control: UnixStream) -> Command {
    let mut command = Command::new(worker);
    command.arg0(PROCESS_NAME).env_clear().current_dir("/");
    // The allocator would reserve a gigabyte, which no memory limit could tell from used memory (the unit is 1 KB), and
    // would return the memory of each realm, which the next one needs again.
    command.envs([("MIMALLOC_ARENA_RESERVE", "32768"), ("MIMALLOC_PURGE_DELAY", "-1")]);
    command.envs(std::env::var_os("TZ").map(|zone| ("TZ", zone)));
    command.stdin(Stdio::from(OwnedFd::from(control))).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Passes on how workers ended, until the spawner ends.
fn watch_exits(mut child: Child, mut control: UnixStream, spawner: &Weak<Spawner>) {
    let mut message = [0; EXIT_BYTES];
    while control.read_exact(&mut message).is_ok() {
        let [id, code, signal] = [0, 4, 8].map(|at| message[at..].first_chunk().copied().unwrap_or_default());
        let Some(spawner) = spawner.upgrade() else { break };
        let waiting = spawner.exits().remove(&u32::from_le_bytes(id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(Exit { code: i32::from_le_bytes(code), signal: i32::from_le_bytes(signal) });
        }
    }
    if let Some(spawner) = spawner.upgrade() {
        spawner.lost.store(true, Ordering::Release);
        spawner.exits().clear();
    }
    let _ = child.wait();
}

/// A worker process. It is killed when this is dropped.
pub(crate) struct Worker {
    /// Names the process between server and spawner.
    pub id: u32,
    /// Absent only while a call uses it.
    pub socket: Option<UnixStream>,
    exit: oneshot::Receiver<Exit>,
    spawner: Arc<Spawner>,
    /// The handler that it serves.
    pub program: Option<Arc<Program>>,
    /// Bytes that wait for space in the socket.
    pub unsent: Vec<u8>,
    /// How many calls it has served.
    pub calls: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // An error means that the spawner, and so the worker, has ended.
        let _ = self.spawner.send(KILL, self.id, None);
    }
}

impl Worker {
    /// Sends as much as the socket takes.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(mut socket) = self.socket.as_ref() else { return Ok(()) };
        while !self.unsent.is_empty() {
            match socket.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until the process has ended.
    pub async fn exited(&mut self) -> Exit {
        (&mut self.exit).await.unwrap_or_default()
    }
}
