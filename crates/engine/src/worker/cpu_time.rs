//! The CPU time of a call. A worker that has computed for longer than most handlers do gets a lower priority, and from
//! then on computes only while it holds a slot. There are as many slots as processors, so other processes never wait
//! behind a crowd of workers, however many calls compute. After the whole limit the worker exits, which also ends
//! native code that no interrupt of the interpreter reaches.
//!
//! A slot is a lock on a byte of an empty file that the spawner made: the kernel frees it when its holder ends.
#![allow(unsafe_code)]
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering},
    thread,
    time::Duration,
};

use super::process::handle_signal;
use crate::spawner::EXIT_CPU;

/// A worker computes for this long without a slot.
const WITHOUT_SLOT: Duration = Duration::from_millis(5);
/// How long a worker computes before it offers its slot to others.
const SLICE: Duration = Duration::from_millis(20);
/// Long enough for another worker to take the slot.
const PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// About a tenth of the processor time of a process with the usual priority.
const REDUCED_PRIORITY: i32 = 10;

static SLOTS_FILE: AtomicI32 = AtomicI32::new(-1);
static SLOTS: AtomicI64 = AtomicI64::new(0);
/// The slot that this worker holds, or -1.
static HELD: AtomicI64 = AtomicI64::new(-1);
static SLICES_LEFT: AtomicI64 = AtomicI64::new(0);
static REDUCED: AtomicBool = AtomicBool::new(false);

/// Makes the slots, before the first fork. Without them a worker has only its lower priority.
pub(crate) fn prepare_slots() -> io::Result<OwnedFd> {
    let file = empty_file()?;
    SLOTS_FILE.store(file.as_raw_fd(), Ordering::Relaxed);
    SLOTS.store(thread::available_parallelism().map_or(1, |count| count.get() as i64), Ordering::Relaxed);
    Ok(file)
}

/// A file in memory that cannot be written to.
#[cfg(target_os = "linux")]
fn empty_file() -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    let file = memfd_create("cpu-slots", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fcntl_add_seals(&file, SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(not(target_os = "linux"))]
fn empty_file() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process has lost its priority for good.
pub(crate) fn has_reduced_priority() -> bool {
    REDUCED.load(Ordering::Relaxed)
}

/// Installs the handler of the timer that `limit` starts.
pub(crate) fn handle_timer() {
    extern "C" fn on_timer(_signal: libc::c_int) {
        // SAFETY: these functions are system calls that may be made in a signal handler.
        unsafe {
            if SLICES_LEFT.fetch_sub(1, Ordering::Relaxed) <= 0 {
                libc::_exit(EXIT_CPU);
            }
            let interrupted = errno();
            if REDUCED.swap(true, Ordering::Relaxed) {
                release_slot();
                libc::nanosleep(&PAUSE, ptr::null_mut());
            } else {
                libc::setpriority(libc::PRIO_PROCESS, 0, REDUCED_PRIORITY);
            }
            take_slot();
            set_errno(interrupted);
        }
    }
    handle_signal(libc::SIGPROF, on_timer);
}

/// Lets this process use that much CPU time from now on, rounded up to a slice; then it exits with [`EXIT_CPU`].
pub(crate) fn limit(limit: Duration) {
    let first = WITHOUT_SLOT.min(limit);
    let slices = limit.saturating_sub(first).as_micros().div_ceil(SLICE.as_micros());
    SLICES_LEFT.store(i64::try_from(slices).unwrap_or(i64::MAX), Ordering::Relaxed);
    set_timer(first, SLICE);
}

/// Ends the limit.
pub(crate) fn end_limit() {
    set_timer(Duration::ZERO, Duration::ZERO);
}

/// Gives the slot back, if this worker holds one: before it waits for something else than a processor.
pub(crate) fn release_slot() {
    let slot = HELD.swap(-1, Ordering::Relaxed);
    if slot >= 0 {
        lock(libc::F_SETLK, libc::F_UNLCK, slot);
    }
}

/// Takes a slot, and waits until one is free.
fn take_slot() {
    let slots = SLOTS.load(Ordering::Relaxed);
    let free = (0..slots).find(|slot| lock(libc::F_SETLK, libc::F_WRLCK, *slot));
    let slot = free.or_else(|| {
        // SAFETY: always succeeds.
        let waited = i64::from(unsafe { libc::getpid() }).checked_rem(slots)?;
        lock(libc::F_SETLKW, libc::F_WRLCK, waited).then_some(waited)
    });
    HELD.store(slot.unwrap_or(-1), Ordering::Relaxed);
}

/// Sets or removes the lock of a slot. False if another worker has it.
fn lock(command: libc::c_int, kind: libc::c_int, slot: i64) -> bool {
    // SAFETY: all zeroes is a valid `flock`; it is read and written before the call returns.
    unsafe {
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = kind as _;
        lock.l_whence = libc::SEEK_SET as _;
        lock.l_start = slot as _;
        lock.l_len = 1;
        libc::fcntl(SLOTS_FILE.load(Ordering::Relaxed), command, &raw mut lock) == 0
    }
}

fn set_timer(first: Duration, interval: Duration) {
    let timer = libc::itimerval { it_value: timeval(first), it_interval: timeval(interval) };
    // SAFETY: the timer is read before the call returns.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
}

fn timeval(time: Duration) -> libc::timeval {
    libc::timeval { tv_sec: time.as_secs() as _, tv_usec: time.subsec_micros() as _ }
}

/// The error number of the code that a signal has interrupted.
fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

#[cfg(target_os = "linux")]
unsafe fn set_errno(number: i32) {
    // SAFETY: the address of this thread's error number.
    unsafe { *libc::__errno_location() = number };
}

#[cfg(not(target_os = "linux"))]
unsafe fn set_errno(_number: i32) {}
