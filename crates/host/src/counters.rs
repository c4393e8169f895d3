//! Kernel counters: the I/O account and resource use of this process, block devices, the processor, and
//! pressure on the machine. The difference of two snapshots is the evidence of a trial.
//!
//! Account of a process or thread: its I/O and its resource use.
//!
//! State of the machine as a whole: waiting tasks, CPU time stolen by a hypervisor, sleep, and the time for
//! which this process was stopped.
//!
//! Time for which Ctrl-Z had stopped this process: the clocks of a trial go on during it.

mod device;
mod extents;
mod memory;
mod nfs;
#[cfg(test)]
mod pressure_tests;
#[cfg(test)]
mod tests;

use std::fs::{File, read_dir, read_to_string};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use rustix::time::{ClockId, clock_getres, clock_gettime};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::register;

use device::Counted;
use iolab_storage::procfs::{ControlGroup, CpuTicks, Hierarchy};
use iolab_storage::{Stack, sysfs};
use iolab_workload::counters::{Counters, DeviceStat, Pressure, ProcessIo, ResourceUse};

pub(crate) use device::thermometer;
pub use device::{read_device, read_waits};
pub use extents::{FileRange, compressed_bytes, extents};
pub use memory::residency;
pub use nfs::NfsMounts;

/// Reads all counters now, summed over the devices of these stacks. Slow, machine-wide sources are read first.
pub fn snapshot(stacks: &[Stack]) -> Counters {
    let pressure = read();
    let disks = device::read_disks(stacks);
    let device = device::read_devices(stacks);
    Counters {
        nfs: nfs::read(stacks),
        device: device.map(|counted| counted.stat),
        bottom: disks.map(|counted| device::bottom(stacks, counted.stat)),
        pressure,
        ..of_this_process()
    }
}

/// Kernel counters of this thread alone.
pub fn of_this_thread() -> Counters {
    Counters {
        process_io: io_of("/proc/thread-self/io"),
        usage: usage_of(libc::RUSAGE_THREAD),
        ..Counters::default()
    }
}

/// Time for which this thread was ready to run but waited for a CPU since its start, ns; `None` where the
/// kernel does not count it.
pub fn run_delay_of_this_thread_ns() -> Option<u64> {
    parse_run_delay_ns(&read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Kernel counters of this process now.
pub fn of_this_process() -> Counters {
    Counters {
        usage: usage_of(libc::RUSAGE_SELF),
        process_io: io_of("/proc/self/io"),
        ..Counters::default()
    }
}

/// Differences from an earlier snapshot, taken `ago` before now.
#[must_use]
pub fn since(earlier: &Counters, ago: Duration, stacks: &[Stack]) -> Counters {
    since_with(earlier, of_this_process(), ago, stacks)
}

/// Differences from an earlier snapshot, with the counters of this process at its end given as `process`.
/// Sources are read in reverse order, so that the cost of reading stays outside the most precise counts.
#[must_use]
pub fn since_with(
    earlier: &Counters,
    process: Counters,
    ago: Duration,
    stacks: &[Stack],
) -> Counters {
    let device = device::read_devices(stacks);
    let disks = device::read_disks(stacks);
    // A device that does not count has unknown traffic, not zero traffic. Without an account, a trial is
    // assumed to have done I/O.
    let spent = process
        .process_io
        .zip(earlier.process_io)
        .map(|(now, then)| now.since(then));
    let did_io = spent.is_none_or(|io| io.read_bytes > 0 || io.write_bytes > 0);
    let known = |counted: Option<Counted>, earlier: Option<DeviceStat>| {
        let can_be = |counted: &Counted| earlier.is_some_and(|e| counted.can_follow(&e, did_io));
        counted.filter(can_be).map(|counted| counted.stat)
    };
    let below = known(disks, earlier.bottom.map(|bottom| bottom.stat));
    let now = Counters {
        nfs: nfs::read(stacks),
        device: known(device, earlier.device),
        bottom: below.map(|stat| device::bottom(stacks, stat)),
        pressure: Pressure {
            cpu_khz: frequency_khz(),
            ..known_after(ago, read())
        },
        drive_millidegrees: thermometer(Path::new("/sys"), stacks).read(),
        ..process
    };
    now.since(earlier)
}

fn io_of(path: &str) -> Option<ProcessIo> {
    parse_process_io(&read_to_string(path).ok()?)
}

/// An I/O account, and the part of `write_bytes` that will never be written because the file was truncated or
/// removed.
pub type Account = (ProcessIo, u64);

/// The difference of two accounts.
pub fn since_account(now: Account, before: Account) -> Account {
    (now.0.since(before.0), now.1.saturating_sub(before.1))
}

/// The sum of two accounts.
pub fn plus(a: Account, b: Account) -> Account {
    (a.0.plus(b.0), a.1.saturating_add(b.1))
}

/// I/O account of another process, opened while it runs. After the end of the process only root may open it,
/// but any user can read an open one until the end is collected.
#[derive(Debug)]
pub struct OpenAccount(File);

impl OpenAccount {
    /// I/O account of all threads of a process.
    pub fn of(process: u32) -> Option<Self> {
        File::open(format!("/proc/{process}/io")).ok().map(Self)
    }

    /// I/O account of one thread of a process.
    pub fn of_task(process: u32, task: u32) -> Option<Self> {
        File::open(format!("/proc/{process}/task/{task}/io"))
            .ok()
            .map(Self)
    }

    /// The account now.
    pub fn read(&self) -> Option<Account> {
        let mut text = [0; 512];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse_account(std::str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// I/O account of another process now.
pub fn account_of(process: u32) -> Option<Account> {
    OpenAccount::of(process)?.read()
}

/// I/O accounts of all collected children of this process, their collected children included: the process's
/// account less its threads. No thread may have ended.
pub fn account_of_collected() -> Option<Account> {
    let mut threads = read_dir("/proc/self/task").ok()?;
    let threads = threads.try_fold(Account::default(), |sum, thread| {
        Some(plus(sum, account(&thread.ok()?.path().join("io"))?))
    })?;
    Some(since_account(account(Path::new("/proc/self/io"))?, threads))
}

/// Bytes counted as written that never will be, because a thread of this process released their file last.
pub fn cancelled_by_this_process() -> u64 {
    let threads = sysfs::paths_in("/proc/self/task").into_iter();
    let accounts = threads.filter_map(|thread| account(&thread.join("io")));
    accounts.map(|(_, cancelled)| cancelled).sum()
}

fn account(path: &Path) -> Option<Account> {
    parse_account(&read_to_string(path).ok()?)
}

fn parse_account(text: &str) -> Option<Account> {
    let cancelled = field(text, "cancelled_write_bytes").unwrap_or(0);
    Some((parse_process_io(text)?, cancelled))
}

/// Parses proc(5), `/proc/pid/io`.
fn parse_process_io(text: &str) -> Option<ProcessIo> {
    let field = |name: &str| field(text, name);
    Some(ProcessIo {
        rchar: field("rchar")?,
        wchar: field("wchar")?,
        syscr: field("syscr")?,
        syscw: field("syscw")?,
        read_bytes: field("read_bytes")?,
        write_bytes: field("write_bytes")?,
    })
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(':')?
            .trim()
            .parse()
            .ok()
    })
}

/// Time for which a thread waited for a CPU, ns: the second number of its `schedstat`
/// (Documentation/scheduler/sched-stats.rst of Linux). A kernel without such statistics prints only zeros. The
/// third number counts the runs, so it is not 0 for a thread that has run. The first number, its CPU time,
/// stays 0 until a new thread's first tick.
pub fn parse_run_delay_ns(text: &str) -> Option<u64> {
    let mut fields = text.split_whitespace().map(|field| field.parse().ok());
    let (_, waited, runs): (u64, u64, u64) = (fields.next()??, fields.next()??, fields.next()??);
    (runs > 0).then_some(waited)
}

fn usage_of(whose: libc::c_int) -> ResourceUse {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a writable rusage, and all-zero bytes are a valid one even if the call failed.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    resource_use(&usage)
}

/// Collects the end of a child: its status, its resource use with the children that it waited for, and the most memory that
/// one of them had resident, bytes.
pub fn reap(process: libc::pid_t) -> std::io::Result<(ExitStatus, ResourceUse, u64)> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to writable memory of the right types, for the time of the call.
        let waited = unsafe { libc::wait4(process, &mut status, 0, usage.as_mut_ptr()) };
        if waited == process {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: all-zero bytes are a valid rusage, and the call has filled it in.
    let usage = unsafe { usage.assume_init() };
    let resident = usage.ru_maxrss as u64 * 1024;
    Ok((ExitStatus::from_raw(status), resource_use(&usage), resident))
}

/// Resource use in iolab's terms.
fn resource_use(usage: &libc::rusage) -> ResourceUse {
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ResourceUse {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

/// Most CPU groups whose frequency is read, so that the cost stays the same on a large machine.
const POLICIES_MAX: usize = 8;

/// Fewest kernel ticks between two readings that show for how long tasks waited. CPU time counts in whole ticks
/// that were not idle, and less than one tick is lost (`collect_percpu_times` in kernel/sched/psi.c of Linux).
/// Tasks that wait for a quarter of the time keep a CPU busy for one tick in four.
const TICKS_MIN: u32 = 4;

/// Reads all but the frequency, which takes longest on machines with many CPUs.
fn read() -> Pressure {
    let stall = |what: &str| parse_stall(&read_to_string(format!("/proc/pressure/{what}")).ok()?);
    let stat = read_to_string("/proc/stat").ok();
    Pressure {
        cpu_stall_ns: stall("cpu"),
        io_stall_ns: stall("io"),
        memory_stall_ns: stall("memory"),
        steal_ns: stat.as_deref().and_then(parse_steal),
        interrupts: stat.as_deref().and_then(parse_interrupts),
        suspended_ns: Some(suspended_ns().saturating_add(stopped_ns())),
        throttled_ns: throttled_ns(),
        cpu_khz: None,
    }
}

/// The reading `now`, made `ago` after an earlier one. Waiting times are left out if the kernel loses them in
/// so short a span.
fn known_after(ago: Duration, now: Pressure) -> Pressure {
    match ago < tick() * TICKS_MIN {
        false => now,
        true => Pressure {
            cpu_stall_ns: None,
            io_stall_ns: None,
            memory_stall_ns: None,
            ..now
        },
    }
}

/// Time between two kernel ticks: the step of its coarse clock.
fn tick() -> Duration {
    let step = clock_getres(ClockId::MonotonicCoarse);
    Duration::try_from(step).unwrap_or_default()
}

/// Microseconds of stall in a line of Documentation/accounting/psi.rst: `some avg10=0.00 avg60=0.00 avg300=0.00
/// total=MICROSECONDS`.
fn parse_stall(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line
        .split_whitespace()
        .find_map(|field| field.strip_prefix("total="))?;
    total.parse::<u64>().ok()?.checked_mul(1_000)
}

/// CPU time that the hypervisor gave to other machines so far, ns.
fn parse_steal(stat: &str) -> Option<u64> {
    let ticks = CpuTicks::parse(stat)?.steal?;
    ticks
        .checked_mul(1_000_000_000)?
        .checked_div(iolab_storage::procfs::clock_ticks_per_second())
}

/// Interrupts so far, by proc_stat(5): `intr TOTAL NUMBER...`, the total first, then a number for each source.
fn parse_interrupts(stat: &str) -> Option<u64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("intr "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Time that the machine slept since boot, ns: CLOCK_BOOTTIME counts it and CLOCK_MONOTONIC does not.
fn suspended_ns() -> u64 {
    let ns = |id| {
        let time = clock_gettime(id);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let monotonic = ns(ClockId::Monotonic);
    u64::try_from(ns(ClockId::Boottime) - monotonic).unwrap_or(0)
}

/// Time for which CPU quotas of this process's control groups and their ancestors throttled it so far, ns;
/// `None` where none of them counts it.
fn throttled_ns() -> Option<u64> {
    /// Mounts read once: a mount made during a run does not matter here.
    static HIERARCHIES: LazyLock<Vec<Hierarchy>> = LazyLock::new(|| {
        let mounts = std::fs::read("/proc/self/mountinfo");
        mounts.map_or(Vec::new(), |mounts| Hierarchy::parse(&mounts))
    });
    let own = read_to_string("/proc/self/cgroup").ok()?;
    throttled_of(&HIERARCHIES, &own)
}

fn throttled_of(hierarchies: &[Hierarchy], own: &str) -> Option<u64> {
    let has_quota = |group: &ControlGroup<'_>| {
        group.controllers.is_empty() || group.controllers.contains(&"cpu")
    };
    let groups = ControlGroup::parse(own).filter(has_quota);
    let folders = groups.flat_map(|group| group.folders(hierarchies));
    let counted = folders.filter_map(|folder| {
        let stat = read_to_string(folder.join("cpu.stat")).ok()?;
        parse_throttled(&stat)
    });
    counted.reduce(u64::saturating_add)
}

/// Throttled time, ns. Version 2 (Documentation/admin-guide/cgroup-v2.rst of Linux) has `throttled_usec
/// MICROSECONDS` where there is a quota, version 1 (scheduler/sched-bwc.rst) `throttled_time NANOSECONDS`.
fn parse_throttled(text: &str) -> Option<u64> {
    let value = |name: &str| {
        let fields = text.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = fields.into_iter().find(|(key, _)| *key == name)?;
        value.parse::<u64>().ok()
    };
    match value("throttled_usec") {
        Some(microseconds) => microseconds.checked_mul(1_000),
        None => value("throttled_time"),
    }
}

/// Highest frequency that cpufreq reports, over CPU groups taken evenly from all. The CPUs of a group share one
/// frequency, each kind of core has its own groups, and the fast cores may come last
/// (Documentation/admin-guide/pm/cpufreq.rst of Linux: `policyX`).
fn frequency_khz() -> Option<u64> {
    static POLICIES: LazyLock<Vec<PathBuf>> =
        LazyLock::new(|| policies(Path::new("/sys/devices/system/cpu/cpufreq")));
    let khz = |policy: &PathBuf| sysfs::value(policy.join("scaling_cur_freq"));
    POLICIES.iter().filter_map(khz).max()
}

/// The frequency policies in a folder, at most [`POLICIES_MAX`]; the last one is always among them.
fn policies(folder: &Path) -> Vec<PathBuf> {
    let mut numbers: Vec<u32> = sysfs::paths_in(folder)
        .iter()
        .filter_map(|path| sysfs::name_of(path).strip_prefix("policy")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let step = numbers.len().div_ceil(POLICIES_MAX).max(1);
    let chosen = numbers.iter().rev().step_by(step);
    chosen
        .map(|number| folder.join(format!("policy{number}")))
        .collect()
}

static STOPPED_NS: AtomicU64 = AtomicU64::new(0);

/// Handlers that have begun and not yet added their time.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);

/// Time for which SIGTSTP stopped this process since the first call, ns. A stop by SIGSTOP leaves no trace.
fn stopped_ns() -> u64 {
    static WATCHES: OnceLock<()> = OnceLock::new();
    WATCHES.get_or_init(|| {
        // A shell without job control ignores the signal, which must stay so.
        if !is_ignored() {
            watch();
        }
    });
    // The stopped thread may get a CPU later than the thread that asks.
    while UNDER_WAY.load(Ordering::Acquire) > 0 {
        std::thread::yield_now();
    }
    STOPPED_NS.load(Ordering::Relaxed)
}

/// Installs a handler that stops at SIGTSTP as any program does, and measures for how long.
fn watch() {
    /// Action that the handler was installed with, to install it again.
    static WATCHING: OnceLock<libc::sigaction> = OnceLock::new();
    let stop = || {
        let Some(watching) = WATCHING.get() else {
            return;
        };
        UNDER_WAY.fetch_add(1, Ordering::Relaxed);
        let began = now();
        stop_by_default(watching);
        let stopped = now().saturating_sub(began).as_nanos() as u64;
        STOPPED_NS.fetch_add(stopped, Ordering::Relaxed);
        UNDER_WAY.fetch_sub(1, Ordering::Release);
    };
    // SAFETY: the handler reads a clock and an initialised cell, calls functions that signal-safety(7) lists, and adds to atomic
    // numbers, all of which a handler may do.
    if unsafe { register(SIGTSTP, stop) }.is_ok() {
        let _ = WATCHING.set(action());
    }
}

/// Lets the kernel do its default action for SIGTSTP, then installs the handler again. A SIGSTOP would also
/// stop a process in an orphaned process group (`setsid`, `ssh -t host iolab`), and no shell would continue it.
/// The kernel ignores SIGTSTP there.
fn stop_by_default(watching: &libc::sigaction) {
    let mut default = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    let mut this = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: all pointers are to values of this function or of the caller; zeros initialise an action, whose handler is then
    // SIG_DFL, and sigemptyset a set. None of the functions can fail with these arguments.
    unsafe {
        (*default.as_mut_ptr()).sa_sigaction = libc::SIG_DFL;
        libc::sigemptyset(this.as_mut_ptr());
        libc::sigaddset(this.as_mut_ptr(), SIGTSTP);
        libc::sigaction(SIGTSTP, default.as_ptr(), std::ptr::null_mut());
        // The signal stays pending while it is blocked, as in its handler. This thread receives it before the
        // call that unblocks it returns.
        libc::raise(SIGTSTP);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, this.as_ptr(), std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, this.as_ptr(), std::ptr::null_mut());
        libc::sigaction(SIGTSTP, watching, std::ptr::null_mut());
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn is_ignored() -> bool {
    action().sa_sigaction == libc::SIG_IGN
}

/// Present action for SIGTSTP.
fn action() -> libc::sigaction {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action sigaction only writes the present one, which zeros initialise.
    unsafe {
        libc::sigaction(SIGTSTP, std::ptr::null(), now.as_mut_ptr());
        now.assume_init()
    }
}
