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
pub(crate) fn prepare() -> Sandbox {
    let base_bytes = linux::data_bytes();
    set_limits(&[(Resource::Core, 0), (Resource::Fsize, 0)]);
    linux::deny_paths();
    Sandbox { filter: linux::filter(), base_bytes, cpu_slots: cpu_time::prepare_slots().ok() }
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
        self.filter.as_ref().map_or(Ok(()), linux::apply)
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

    use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    use super::Confinement;

    pub type Filter = BpfProgram;

    /// The system calls with which a worker reads and writes its socket, allocates, tells the time and exits.
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
        libc::SYS_setpriority,
        libc::SYS_prlimit64,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_restart_syscall,
        libc::SYS_sigaltstack,
        // `abort` sends a signal to its own thread.
        libc::SYS_tgkill,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];

    pub fn confinement() -> Confinement {
        let seccomp = fs::exists("/proc/sys/kernel/seccomp/actions_avail").unwrap_or(false);
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

    /// Refuses every path to this process and its children. On kernels without Landlock only seccomp does.
    pub fn deny_paths() {
        let ruleset = Ruleset::default().handle_access(AccessFs::from_all(ABI::V5));
        let _ = ruleset.and_then(Ruleset::create).and_then(|created| created.restrict_self());
    }

    pub fn filter() -> Option<Filter> {
        if !confinement().seccomp {
            return None;
        }
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            SYSTEM_CALLS.iter().map(|call| (*call, Vec::new())).collect();
        let not_executable = (2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0);
        // The allocator names its memory.
        let names_memory = (0, SeccompCmpOp::Eq, libc::PR_SET_VMA as u64);
        let command = |command: libc::c_int| (1, SeccompCmpOp::Eq, command as u64);
        let conditions = [
            (libc::SYS_mmap, not_executable.clone()),
            (libc::SYS_mprotect, not_executable),
            (libc::SYS_prctl, names_memory),
            (libc::SYS_fcntl, command(libc::F_SETLK)),
            (libc::SYS_fcntl, command(libc::F_SETLKW)),
        ];
        for (call, (argument, operator, value)) in conditions {
            let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value);
            let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
            rules.entry(call).or_default().push(rule.ok()?);
        }
        let arch = TargetArch::try_from(std::env::consts::ARCH).ok()?;
        let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch);
        filter.and_then(Filter::try_from).ok()
    }

    pub fn apply(filter: &Filter) -> io::Result<()> {
        seccompiler::apply_filter(filter).map_err(io::Error::other)
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

    pub fn deny_paths() {}

    pub fn filter() -> Option<Filter> {
        None
    }

    pub fn apply(_filter: &Filter) -> io::Result<()> {
        Ok(())
    }

    pub fn end_with_parent() -> io::Result<()> {
        Ok(())
    }
}
