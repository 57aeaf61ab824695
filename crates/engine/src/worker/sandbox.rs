//! The confinement of a worker process: its socket, the file of the CPU slots and no other descriptor, no new files or
//! processes, no core dumps. On Linux also only the listed system calls (seccomp), and no path (Landlock).
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{cpu_time, process};

/// The confinement by the kernel, besides limits of resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub seccomp: bool,
    pub landlock: bool,
}

/// The confinement that this kernel supports.
pub fn confinement() -> Confinement {
    linux::confinement()
}

/// The part of the confinement that is prepared before a fork.
pub(crate) struct Sandbox {
    /// `None` where the kernel has no seccomp.
    filter: Option<linux::Filter>,
    /// The data memory of the spawner, of which each worker has a copy.
    pub base_bytes: u64,
    cpu_slots: Option<OwnedFd>,
}

/// Confines this process as far as a spawner can be, and prepares the rest.
pub(crate) fn prepare() -> io::Result<Sandbox> {
    let base_bytes = linux::data_bytes();
    set_limits(&[(Resource::Core, 0), (Resource::Fsize, 0)]);
    linux::apply_landlock();
    let filter = confinement().seccomp.then(linux::filter).transpose()?;
    Ok(Sandbox { filter, base_bytes, cpu_slots: cpu_time::prepare_slots().ok() })
}

impl Sandbox {
    /// Confines this process, a new worker, to its socket.
    pub fn enter(&self, socket: &impl AsFd) -> io::Result<()> {
        linux::end_with_parent()?;
        // Standard input is the spawner's socket; standard output is the null device.
        rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
        let slots = self.cpu_slots.iter().map(AsFd::as_fd);
        process::close_all_but(&slots.chain([socket.as_fd()]).collect::<Vec<_>>());
        // `poll` accepts no more descriptors than this limit; the one that it allows is in use.
        set_limits(&[(Resource::Nofile, 1), (Resource::Nproc, 0)]);
        self.filter.as_ref().map_or(Ok(()), linux::apply_seccomp)
    }
}

/// Open descriptors and running threads are not affected.
fn set_limits(limits: &[(Resource, u64)]) {
    for (resource, limit) in limits {
        let _ = setrlimit(*resource, Rlimit { current: Some(*limit), maximum: Some(*limit) });
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{collections::BTreeMap, fs, io};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope,
    };
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch,
    };

    use super::Confinement;

    pub type Filter = BpfProgram;

    /// In the filter, stands for the id of the worker's process, which is known after the fork only. No process has
    /// this id.
    const ANY_WORKER: u32 = i32::MAX.unsigned_abs();

    /// The system calls with which a worker reads and writes its socket, allocates, tells the time and exits. Those of
    /// which only some arguments are allowed are in `conditions`.
    const SYSTEM_CALLS: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_ppoll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll,
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_getrandom,
        libc::SYS_getcpu,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_sched_yield,
        libc::SYS_setitimer,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_sigaltstack,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub fn confinement() -> Confinement {
        let seccomp = fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap_or(false)
            && TargetArch::try_from(std::env::consts::ARCH).is_ok();
        // Creating a ruleset does not restrict anything yet.
        let landlock = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI::V1))
            .and_then(Ruleset::create)
            .is_ok();
        Confinement { seccomp, landlock }
    }

    /// The writable private memory of this process.
    pub fn data_bytes() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmData:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or_default() * 1024
    }

    /// Refuses every path, TCP, and signals to the server, to this process and its children: as far as the kernel can.
    pub fn apply_landlock() {
        let _ = restrict_paths_and_signals();
    }

    fn restrict_paths_and_signals() -> Result<(), RulesetError> {
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(ABI::V5))?
            .handle_access(AccessNet::from_all(ABI::V4))?
            .scope(Scope::from_all(ABI::V6))?;
        ruleset.create()?.restrict_self().map(|_| ())
    }

    /// The filter of a worker whose process id is [`ANY_WORKER`].
    pub fn filter() -> io::Result<Filter> {
        compile().map_err(io::Error::other)
    }

    /// Restricts this process, a new worker, to its system calls. Any other one kills it.
    pub fn apply_seccomp(filter: &Filter) -> io::Result<()> {
        let mut own = filter.clone();
        let mut places: Vec<_> = own.iter_mut().filter(|instruction| instruction.k == ANY_WORKER).collect();
        let [place] = &mut places[..] else {
            return Err(io::Error::other("the filter must compare one process id"));
        };
        place.k = getpid().as_raw_pid().unsigned_abs();
        seccompiler::apply_filter(&own).map_err(io::Error::other)
    }

    fn compile() -> Result<Filter, BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            SYSTEM_CALLS.iter().map(|call| (*call, Vec::new())).collect();
        for (call, arguments) in conditions() {
            let all = arguments.iter().map(|(number, operator, value)| {
                SeccompCondition::new(*number, SeccompCmpArgLen::Dword, operator.clone(), *value)
            });
            rules.entry(call).or_default().push(SeccompRule::new(all.collect::<Result<_, _>>()?)?);
        }
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch)?.try_into()
    }

    /// The number of an argument, and what it is compared with.
    type Argument = (u8, SeccompCmpOp, u64);

    /// System calls that are allowed only with these arguments. Several entries of one call are alternatives.
    fn conditions() -> Vec<(libc::c_long, Vec<Argument>)> {
        let is = |number: u8, value: u64| (number, SeccompCmpOp::Eq, value);
        let not_executable = vec![(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)];
        vec![
            (libc::SYS_mmap, not_executable.clone()),
            (libc::SYS_mprotect, not_executable),
            // The allocator names its memory.
            (libc::SYS_prctl, vec![is(0, libc::PR_SET_VMA as u64)]),
            (libc::SYS_fcntl, vec![is(1, libc::F_SETLK as u64)]),
            (libc::SYS_fcntl, vec![is(1, libc::F_SETLKW as u64)]),
            // Process 0 is the caller.
            (libc::SYS_prlimit64, vec![is(0, 0)]),
            (libc::SYS_setpriority, vec![is(0, u64::from(libc::PRIO_PROCESS)), is(1, 0)]),
            // `abort` sends a signal to its own thread.
            (libc::SYS_tgkill, vec![is(0, u64::from(ANY_WORKER))]),
        ]
    }

    /// The kernel kills this worker when its spawner ends.
    pub fn end_with_parent() -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The spawner may have ended before that.
        if getppid().is_some_and(|parent| parent.is_init()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    }
}

/// Other systems have limits of resources only.
#[cfg(not(target_os = "linux"))]
mod linux {
    use std::io;

    use super::Confinement;

    pub type Filter = ();

    pub fn confinement() -> Confinement {
        Confinement::default()
    }

    pub fn data_bytes() -> u64 {
        0
    }

    pub fn apply_landlock() {}

    pub fn filter() -> io::Result<Filter> {
        Ok(())
    }

    pub fn apply_seccomp(_filter: &Filter) -> io::Result<()> {
        Ok(())
    }

    pub fn end_with_parent() -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "sandbox_tests.rs"]
mod tests;
