//! The spawner process: prepared once, forks a worker for each command of the server, kills workers and reports how
//! they ended. It ends with the server.
use std::{
    collections::HashMap,
    convert::Infallible,
    io::{self, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    rc::Rc,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
    process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait},
};

use super::{
    connection::Connection,
    prelude, process,
    process::Fork,
    sandbox::{self, Sandbox},
    worker_loop,
};
use crate::{
    message::{HEADER_BYTES, SpawnerConfig, decode},
    spawner::{COMMAND_BYTES, EXIT_BYTES, FORK, KILL},
};

/// Runs the spawner on the socket that is its standard input, until the server closes it.
pub(crate) fn run() -> io::Result<()> {
    process::close_inherited();
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let config: SpawnerConfig = read_message(&mut control)?;
    prelude::prepare(&config.functions);
    process::read_time_zone();
    process::ignore_signals_of_the_server();
    let (exits, notifier) = UnixStream::pair()?;
    exits.set_nonblocking(true)?;
    notifier.set_nonblocking(true)?;
    process::notify_of_children(notifier.as_fd());
    let sandbox = sandbox::prepare()?;
    let mut spawner = Spawner { control, exits, children: HashMap::new(), config: Rc::new(config), sandbox };
    let ended = spawner.serve();
    for child in spawner.children.keys() {
        let _ = kill_process(*child, Signal::KILL);
    }
    ended
}

fn read_message<T: serde::de::DeserializeOwned>(socket: &mut UnixStream) -> io::Result<T> {
    let mut header = [0; HEADER_BYTES];
    socket.read_exact(&mut header)?;
    let mut text = vec![0; u32::from_le_bytes(header) as usize];
    socket.read_exact(&mut text)?;
    decode(&text)
}

struct Spawner {
    control: UnixStream,
    /// Receives a byte when a child has ended.
    exits: UnixStream,
    /// The server's ids of the workers.
    children: HashMap<Pid, u32>,
    config: Rc<SpawnerConfig>,
    sandbox: Sandbox,
}

impl Spawner {
    fn serve(&mut self) -> io::Result<()> {
        loop {
            let mut ready =
                [PollFd::new(&self.control, PollFlags::IN), PollFd::new(&self.exits, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let [commands, exits] = ready.map(|one| !one.revents().is_empty());
            if exits {
                self.report_exits()?;
            }
            if commands && !self.command()? {
                return Ok(());
            }
        }
    }

    fn report_exits(&mut self) -> io::Result<()> {
        let mut bytes = [0; 64];
        while matches!((&self.exits).read(&mut bytes), Ok(count) if count > 0) {}
        while let Ok(Some((child, status))) = wait(WaitOptions::NOHANG) {
            let Some(id) = self.children.remove(&child) else { continue };
            self.report(id, status)?;
        }
        Ok(())
    }

    fn report(&self, id: u32, status: WaitStatus) -> io::Result<()> {
        let mut message = Vec::with_capacity(EXIT_BYTES);
        message.extend(id.to_le_bytes());
        message.extend(status.exit_status().unwrap_or_default().to_le_bytes());
        message.extend(status.terminating_signal().unwrap_or_default().to_le_bytes());
        (&self.control).write_all(&message)
    }

    /// False at the end of the server.
    fn command(&mut self) -> io::Result<bool> {
        let mut message = [0; COMMAND_BYTES];
        let (count, socket) = receive(&self.control, &mut message)?;
        if count == 0 {
            return Ok(false);
        }
        (&self.control).read_exact(&mut message[count..])?;
        let id = u32::from_le_bytes(message[1..].first_chunk().copied().unwrap_or_default());
        match (message[0], socket) {
            (FORK, Some(socket)) => self.fork(id, socket.into())?,
            (KILL, _) => {
                let child = self.children.iter().find(|(_, worker)| **worker == id);
                if let Some((child, _)) = child {
                    let _ = kill_process(*child, Signal::KILL);
                }
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        Ok(true)
    }

    fn fork(&mut self, id: u32, socket: UnixStream) -> io::Result<()> {
        match process::fork() {
            Ok(Fork::Parent(child)) => {
                self.children.insert(child, id);
                Ok(())
            }
            // The server sees that the socket is closed.
            Err(_) => Ok(()),
            Ok(Fork::Child) => {
                let served = self.become_worker(socket);
                std::process::exit(i32::from(served.is_err()))
            }
        }
    }

    fn become_worker(&self, socket: UnixStream) -> io::Result<Infallible> {
        self.sandbox.enter(&socket)?;
        worker_loop::run(Connection::new(socket), &self.config.functions, self.sandbox.base_bytes)
    }
}

/// Receives a message and the socket that may come with it.
fn receive(control: &UnixStream, message: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [io::IoSliceMut::new(message)];
    let received = recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    Ok((received.bytes, sockets.last()))
}
