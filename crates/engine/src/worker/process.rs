//! The system calls that need `unsafe`: fork, descriptors, and the signal handlers.
#![allow(unsafe_code)]
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::process::{Pid, Resource, getrlimit};

/// A spawner has fewer descriptors: its control socket, two for exits, the CPU slots, one of the next worker.
const MAX_DESCRIPTORS: i32 = 32;

/// Where the kernel cannot close all descriptors at once, those up to this one are closed.
const MAX_INHERITED: u64 = 65_536;

/// The side on which a fork returns.
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

/// Forks this process, which must have one thread.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the spawner is single-threaded, so that the child may use everything that it finds in memory.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        id => Pid::from_raw(id).filter(|_| id > 0).map(Fork::Parent).ok_or_else(io::Error::last_os_error),
    }
}

/// Reads the time zone, which is in a file that workers cannot open.
pub(crate) fn read_time_zone() {
    unsafe extern "C" {
        fn tzset();
    }
    // SAFETY: the process has one thread.
    unsafe { tzset() };
}

/// A terminal or a service manager signals all processes of a server. Workers finish the calls that the server waits
/// for, and end with it.
pub(crate) fn ignore_signals_of_the_server() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no handler runs.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Closes all descriptors but the standard streams: whoever started the server may have left it some without a flag
/// that closes them.
pub(crate) fn close_inherited() {
    #[cfg(target_os = "linux")]
    // SAFETY: this process has opened nothing yet.
    if unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } == 0 {
        return;
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_INHERITED).min(MAX_INHERITED);
    for descriptor in 3..i32::try_from(limit).unwrap_or(i32::MAX) {
        // SAFETY: as above; closing one that is not open is harmless.
        unsafe { libc::close(descriptor) };
    }
}

/// Closes all descriptors of a spawner but the standard streams and these.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) {
    for descriptor in 3..MAX_DESCRIPTORS {
        if !kept.iter().any(|kept| kept.as_raw_fd() == descriptor) {
            // SAFETY: nothing of this process uses another descriptor from now on; closing one that is not open is
            // harmless.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Where the handler of SIGCHLD writes a byte.
static CHILD_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Writes a byte to `pipe` whenever a child has ended.
pub(crate) fn notify_of_children(pipe: BorrowedFd<'_>) {
    extern "C" fn on_child(_signal: libc::c_int) {
        let byte = 0_u8;
        // SAFETY: `write` may be called in a signal handler; a full pipe is fine, since any byte wakes the reader.
        unsafe { libc::write(CHILD_PIPE.load(Ordering::Relaxed), ptr::from_ref(&byte).cast(), 1) };
    }
    CHILD_PIPE.store(pipe.as_raw_fd(), Ordering::Relaxed);
    handle_signal(libc::SIGCHLD, on_child);
}

/// Installs a handler, and restarts the system calls that it interrupts.
pub(crate) fn handle_signal(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: all zeroes is a valid `sigaction`; the handler makes only calls that are allowed there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}
