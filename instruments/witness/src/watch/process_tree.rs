//! A program that iolab started, with all its descendants.
//!
//! Signals that reach this process while it observes a program, each with its sender.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::accounts::{descendants, ignores_children, major_faults, run_delay_ns};
use super::descriptors::Descriptors;
use super::exits::{Exits, family, total};
use super::over_time::Recorder;
use super::{Followed, Watch, lost, nanoseconds, wait};
use crate::observed::{ObservedEnd, ProcessTotals, Subject};
use iolab_command::output::note;
use iolab_host::counters::{Account, account_of, account_of_collected, plus, reap, since_account};
use iolab_workload::Result;
use iolab_workload::counters::ProcessIo;
use iolab_workload::units::counted;

/// The program with all its descendants.
pub(super) struct Tree {
    program: Pid,
    subject: Subject,
    /// Account of the children collected before.
    before: Option<Account>,
    end: ObservedEnd,
    ended_ns: Option<u64>,
    totals: ProcessTotals,
    /// Time that each process waited for CPUs, as of the last look, ns.
    delays: BTreeMap<u32, u64>,
    /// Page faults with I/O, once all have been added up.
    faults: u64,
    descriptors: Descriptors,
}

impl Tree {
    /// Tree of a child that has just been started.
    pub(super) fn new(program: Pid, words: &[OsString], before: Option<Account>) -> Self {
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        Self {
            program,
            subject: Subject::Program(words.collect()),
            before,
            end: ObservedEnd::Running,
            ended_ns: None,
            totals: ProcessTotals::default(),
            delays: BTreeMap::new(),
            faults: 0,
            descriptors: Descriptors::new(),
        }
    }

    /// Follows the tree until all have ended, or a signal comes after the program's end.
    pub(super) fn follow(mut self, watch: &mut Watch) -> Result<Followed> {
        let mut told = false;
        let mut living = true;
        while living {
            let (pace, recorder) = (&mut watch.pace, &mut watch.recorder);
            pace.look(|| self.look(recorder));
            wait(&watch.signals, None, watch.until())?;
            let came = watch.take();
            living = self.collect(watch.began)?;
            let has_ended = self.ended_ns.is_some();
            if has_ended && living && !told {
                told = true;
                note(format_args!(
                    "note: the program has ended; still running: {} that it started, observed until the end (Ctrl-C ends that)",
                    counted(descendants().len() as u64, "process")
                ));
            }
            for one in came {
                match has_ended {
                    true => living = false,
                    false => self.pass_on(one),
                }
            }
        }
        let observed_ns = nanoseconds(watch.began);
        self.totals.run_delay_ns = self.delays.values().sum();
        self.add_accounts(watch.exits.as_mut());
        Ok(Followed {
            subject: self.subject,
            end: self.end,
            ended_ns: self.ended_ns,
            observed_ns,
            totals: self.totals,
            faults: Some(self.faults),
            ancestors: BTreeSet::from([std::process::id()]),
            living: BTreeSet::from([std::process::id()]),
            descriptors: self.descriptors,
        })
    }

    fn look(&mut self, recorder: &mut Recorder) {
        let processes = descendants();
        self.descriptors.look(&processes);
        for process in &processes {
            self.totals.ignores_children |= ignores_children(*process);
            if let Some(delay) = run_delay_ns(*process) {
                self.delays.insert(*process, delay);
            }
        }
        if recorder.is_due() {
            let collected = self.before.zip(account_of_collected());
            let collected = collected.map(|(before, now)| now.0.since(before.0));
            let running = processes.into_iter().filter_map(account_of);
            let sum = |collected| running.fold(collected, |sum: ProcessIo, (io, _)| sum.plus(io));
            recorder.record(collected.map(sum));
        }
    }

    /// Passes a signal on. Signals from the terminal reach the program directly.
    fn pass_on(&self, came: Came) {
        if let Some(signal) = Signal::from_named_raw(came.signal).filter(|_| !came.by_kernel) {
            // The program may have ended meanwhile.
            let _ = kill_process(self.program, signal);
        }
    }

    /// Collects all children that have ended. True while any child is left.
    fn collect(&mut self, began: Instant) -> Result<bool> {
        loop {
            let Some(process) = ended_child()? else {
                return Ok(true);
            };
            if process == 0 {
                return Ok(false);
            }
            self.totals.collected += 1;
            let (status, usage, _) = reap(process.cast_signed()).map_err(lost)?;
            self.totals.usage = Some(self.totals.usage.unwrap_or_default().plus(usage));
            if process == self.program.as_raw_nonzero().get().unsigned_abs() {
                self.ended_ns = Some(nanoseconds(began));
                self.end = match (status.code(), status.signal()) {
                    (Some(code), _) => ObservedEnd::Code(code),
                    (None, signal) => ObservedEnd::Signal(signal.unwrap_or(0)),
                };
            }
        }
    }

    /// Adds up the accounts of all ended and running processes.
    fn add_accounts(&mut self, exits: Option<&mut Exits>) {
        let Some((before, now)) = self.before.zip(account_of_collected()) else {
            return;
        };
        let mut account = since_account(now, before);
        let running = descendants();
        // The account of a running process includes ended children, so the two are not added.
        let ended = exits.filter(|_| running.is_empty()).and_then(Exits::all);
        if let Some(ended) = ended {
            // Children whose ends their parents ignore are in no other account.
            let all = total(&family(ended, &BTreeSet::from([std::process::id()])));
            account.0 = account.0.with(all.0, |a, b| a.max(b));
            account.1 = account.1.max(all.1);
            self.totals.is_complete = true;
        }
        for process in running {
            self.totals.running += 1;
            self.faults += major_faults(process).unwrap_or(0);
            match account_of(process) {
                Some(own) => account = plus(account, own),
                None => self.totals.unread += 1,
            }
        }
        self.faults += self.totals.usage.map_or(0, |usage| usage.major_faults);
        self.totals.io = Some(account.0);
        self.totals.cancelled_write_bytes = account.1;
    }
}

/// An ended, uncollected child; 0 where there is no child, `None` where all are running.
fn ended_child() -> Result<Option<u32>> {
    // SAFETY: all-zero bytes are a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a writable siginfo, for the time of the call.
    if unsafe { libc::waitid(libc::P_ALL, 0, &mut info, flags) } == 0 {
        // SAFETY: the call has filled it in, or left it zero.
        let process = unsafe { info.si_pid() };
        return Ok(Some(process.unsigned_abs()).filter(|process| *process != 0));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ECHILD) => Ok(Some(0)),
        Some(libc::EINTR) => Ok(None),
        _ => Err(lost(error)),
    }
}

/// Signals that are passed on to the program, and the end of a child.
const WATCHED: [libc::c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCHLD,
];

/// Descriptor that the handler writes to; -1 for none.
static BELL: AtomicI32 = AtomicI32::new(-1);

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) signal: i32,
    /// Whether the kernel sent it, as for signals of the terminal, which reach the program as well.
    pub(super) by_kernel: bool,
}

/// Receiver of signals from its creation on. One for the whole process, and never removed.
pub(super) struct Signals {
    came: PipeReader,
}

impl Signals {
    /// Starts receiving. With a program, which inherits ignored signals, these stay ignored. Without one, only
    /// signals of the terminal do: a shell makes background commands ignore them, and any other signal is meant
    /// for this process.
    pub(super) fn watch(has_program: bool) -> io::Result<Self> {
        let (came, bell) = io::pipe()?;
        rustix::io::ioctl_fionbio(&came, true)?;
        rustix::io::ioctl_fionbio(&bell, true)?;
        BELL.store(bell.as_raw_fd(), Ordering::Relaxed);
        // The handler may write at any time from now on.
        std::mem::forget(bell);
        for signal in WATCHED {
            handle(signal, has_program)?;
        }
        Ok(Self { came })
    }

    /// All signals received since the last call.
    pub(super) fn take(&self) -> Vec<Came> {
        let mut all = Vec::new();
        let mut bytes = [0u8; 2];
        while (&self.came).read_exact(&mut bytes).is_ok() {
            all.push(Came {
                signal: i32::from(bytes[0]),
                by_kernel: bytes[1] != 0,
            });
        }
        all
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.came.as_fd()
    }
}

/// Installs the handler for a signal. A signal that this process was started to ignore stays ignored, for the
/// program too. Exceptions are SIGCHLD and, without a program, SIGINT and SIGQUIT.
fn handle(signal: libc::c_int, has_program: bool) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a writable sigaction; nothing is changed.
    if unsafe { libc::sigaction(signal, std::ptr::null(), &mut before) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_meant = match signal {
        libc::SIGCHLD => true,
        libc::SIGINT | libc::SIGQUIT => !has_program,
        _ => false,
    };
    if before.sa_sigaction == libc::SIG_IGN && !is_meant {
        return Ok(());
    }
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ring as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and makes one system call that signal-safety(7) allows.
    if unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Ends this process by the signal that ended a program, so that a shell sees the same. Returns if the signal
/// ends nothing.
pub(crate) fn end_by(signal: i32) {
    // A second core file would replace the program's.
    let none = rustix::process::Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    // SAFETY: the default action of a signal needs no handler, and the process may end by it.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn ring(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo. SI_KERNEL, and the codes of faults, are above
    // 0.
    let by_kernel = unsafe { (*info).si_code } > 0;
    let bytes = [signal as u8, u8::from(by_kernel)];
    // SAFETY: errno of the interrupted code is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(BELL.load(Ordering::Relaxed), bytes.as_ptr().cast(), 2);
        *libc::__errno_location() = errno;
    }
}
