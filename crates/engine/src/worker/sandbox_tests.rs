//! What a confined worker can do to other processes: this test program starts itself as one that tries.
#![allow(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "test code starts processes and reads the environment")]
#![allow(clippy::unwrap_used, clippy::panic)]
use std::{
    os::unix::{
        net::UnixStream,
        process::{CommandExt, ExitStatusExt},
    },
    process::{Child, Command, Stdio, exit},
};

use rustix::process::{WaitOptions, waitpid};

use super::{confinement, prepare};
use crate::worker::process::{self, Fork};

/// The name under which this program is started to try a system call as a worker.
const PROBE: &str = "sandbox-probe";

/// The harness has threads of its own, so that a process which forks must be a new one.
#[ctor::ctor(unsafe)]
fn be_probe() {
    let mut args = std::env::args();
    if args.next().as_deref() != Some(PROBE) {
        return;
    }
    let (attempt, victim) = (args.next().unwrap(), args.next().unwrap().parse().unwrap());
    let sandbox = prepare().unwrap();
    if attempt.starts_with("spawner") {
        exit(try_call(&attempt, victim));
    }
    let (socket, _other) = UnixStream::pair().unwrap();
    let Fork::Parent(worker) = process::fork().unwrap() else {
        sandbox.enter(&socket).unwrap();
        exit(try_call(&attempt, victim));
    };
    let (_, status) = waitpid(Some(worker), WaitOptions::empty()).unwrap().unwrap();
    exit(status.exit_status().unwrap_or_else(|| 100 + status.terminating_signal().unwrap()));
}

/// The result of a system call: 0, or the number of its error.
fn try_call(attempt: &str, victim: i32) -> i32 {
    let limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
    let no_old = std::ptr::null_mut();
    // SAFETY: the calls read values of this frame only.
    let result = unsafe {
        let own = libc::getpid();
        let tgkill = |group: i32, thread: i32, signal: i32| {
            libc::syscall(libc::SYS_tgkill, group, thread, signal) as libc::c_int
        };
        match attempt {
            "signal another process" => tgkill(victim, victim, libc::SIGKILL),
            "signal any process of that thread id" => tgkill(-1, victim, libc::SIGKILL),
            "signal itself" => tgkill(own, libc::gettid(), 0),
            "abort" => libc::abort(),
            "kill" | "spawner kills" => libc::kill(victim, libc::SIGTERM),
            "limit another process" => libc::prlimit(victim, libc::RLIMIT_NOFILE, &raw const limit, no_old),
            "limit itself" => libc::setrlimit(libc::RLIMIT_CPU, &raw const limit),
            "renice another process" => libc::setpriority(libc::PRIO_PROCESS, victim as u32, 19),
            "renice the user" => libc::setpriority(libc::PRIO_USER, 0, 19),
            "renice itself" => libc::setpriority(libc::PRIO_PROCESS, 0, 10),
            "open a file" | "spawner opens a file" => libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY),
            "open a socket" => libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0),
            "fork" => libc::fork(),
            other => panic!("no such attempt: {other}"),
        }
    };
    if result < 0 { std::io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

/// A process that waits until its standard input ends.
fn victim() -> Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

/// How the process that tried this has ended: its exit code, or 100 and its signal.
fn outcome(attempt: &str, victim: &Child) -> i32 {
    let program = std::env::current_exe().unwrap();
    let tried = Command::new(program).arg0(PROBE).args([attempt, &victim.id().to_string()]).output();
    tried.unwrap().status.code().unwrap()
}

const KILLED_BY_SECCOMP: i32 = 100 + libc::SIGSYS;

#[test]
fn a_worker_cannot_change_another_process() {
    assert!(confinement().seccomp, "this test needs seccomp");
    let mut victim = victim();
    for attempt in [
        "signal another process",
        "signal any process of that thread id",
        "kill",
        "limit another process",
        "renice another process",
        "renice the user",
        "open a file",
        "open a socket",
        "fork",
    ] {
        assert_eq!(outcome(attempt, &victim), KILLED_BY_SECCOMP, "{attempt}");
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", victim.id())).unwrap();
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    assert_eq!(limits, own);
    drop(victim.stdin.take());
    assert_eq!(victim.wait().unwrap().signal(), None);
}

#[test]
fn a_worker_can_abort_and_change_its_own_limits() {
    let mut victim = victim();
    assert_eq!(outcome("abort", &victim), 100 + libc::SIGABRT);
    for attempt in ["signal itself", "limit itself", "renice itself"] {
        assert_eq!(outcome(attempt, &victim), 0, "{attempt}");
    }
    drop(victim.stdin.take());
    victim.wait().unwrap();
}

/// The spawner has no system call filter. Its Landlock domain reaches neither files nor the server.
#[test]
fn landlock_keeps_the_spawner_from_files_and_from_signals_to_the_server() {
    let mut victim = victim();
    let [opened, killed] = ["spawner opens a file", "spawner kills"].map(|attempt| outcome(attempt, &victim));
    // Signals are scoped since the sixth version of Landlock.
    let (opens, kills) = (landlock_version() < 1, landlock_version() < 6);
    assert_eq!(opened == 0, opens, "error {opened}");
    assert_eq!(killed == 0, kills, "error {killed}");
    drop(victim.stdin.take());
    victim.wait().unwrap();
}

fn landlock_version() -> libc::c_long {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no memory.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) }
}
