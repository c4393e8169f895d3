//! I/O accounts of processes: the descendants of this process, and all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;

use crate::observed::{OtherProcess, OtherProcesses};
use iolab_storage::procfs::{ProcessStat, numbers_in};
use iolab_storage::sysfs::paths_in;
use iolab_workload::counters::ProcessIo;

use super::exits::Exit;
use iolab_host::counters::{account_of, parse_run_delay_ns};
use iolab_host::lossy_text_of;

/// Flag of a kernel thread in field 9 of proc_pid_stat(5): PF_KTHREAD of linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Descendants of this process with live ancestors: a subreaper has all of them.
pub(super) fn descendants() -> Vec<u32> {
    let own = std::process::id();
    let mut found = with_descendants([own]);
    found.retain(|process| *process != own);
    found
}

/// The processes given and their descendants with live ancestors, each once.
pub(super) fn with_descendants(processes: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut seen = BTreeSet::new();
    let mut found: Vec<u32> = processes
        .into_iter()
        .filter(|one| seen.insert(*one))
        .collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(parent).filter(|child| seen.insert(*child)));
        next += 1;
    }
    found
}

/// Whether a process exists, its end not yet collected.
fn exists(process: u32) -> bool {
    std::fs::exists(format!("/proc/{process}")).unwrap_or(true)
}

/// Start of a task, in ticks since boot; `None` where the task is gone. Numbers are reused, so number and start
/// together identify a task. The main task has the number of the process.
pub(super) fn started(process: u32, task: u32) -> Option<u64> {
    start_and_parent(process, task).map(|(started, _)| started)
}

/// Start of a task, and the parent of its process.
pub(super) fn start_and_parent(process: u32, task: u32) -> Option<(u64, u32)> {
    let stat = lossy_text_of(format!("/proc/{process}/task/{task}/stat")).ok()?;
    identity(&stat).map(|identity| (identity.started, identity.parent))
}

/// Threads of a process.
pub(super) fn tasks(process: u32) -> Vec<u32> {
    numbers_in(format!("/proc/{process}/task"))
}

/// Texts of a file of each thread of a process.
fn texts(process: u32, file: &str) -> impl Iterator<Item = String> {
    let folders = paths_in(format!("/proc/{process}/task")).into_iter();
    folders.filter_map(move |folder| read_to_string(folder.join(file)).ok())
}

/// Processes that a process's threads have started: proc_tid_children(5).
fn children(process: u32) -> impl Iterator<Item = u32> {
    texts(process, "children").flat_map(|text| {
        let all = text.split_whitespace().map(str::parse);
        all.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

/// Time for which the threads of a process waited for a CPU, ns.
pub(super) fn run_delay_ns(process: u32) -> Option<u64> {
    let delays = texts(process, "schedstat").filter_map(|text| parse_run_delay_ns(&text));
    delays.reduce(u64::saturating_add)
}

/// Page faults with I/O of a process and the children that it waited for.
pub(super) fn major_faults(process: u32) -> Option<u64> {
    let stat = lossy_text_of(format!("/proc/{process}/stat")).ok()?;
    let stat = ProcessStat::parse(&stat)?;
    Some(stat.number(12)?.saturating_add(stat.number(13)?))
}

/// Whether a process ignores the ends of its children, whose accounts are then lost: proc_pid_status(5), signal
/// N as bit N - 1.
pub(super) fn ignores_children(process: u32) -> bool {
    let status = lossy_text_of(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (libc::SIGCHLD - 1) & 1 == 1)
}

/// Properties of a process other than its account.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    name: String,
    is_kernel: bool,
    parent: u32,
    /// Start of the process: another one may get its number.
    started: u64,
}

impl Identity {
    /// Start of the process, ns since boot.
    fn started_ns(&self) -> u64 {
        let tick_ns = 1_000_000_000 / iolab_storage::procfs::clock_ticks_per_second().max(1);
        self.started.saturating_mul(tick_ns)
    }
}

fn identity(stat: &str) -> Option<Identity> {
    let stat = ProcessStat::parse(stat)?;
    Some(Identity {
        name: stat.name.to_owned(),
        is_kernel: stat.number(9)? & KERNEL_THREAD != 0,
        parent: u32::try_from(stat.number(4)?).ok()?,
        started: stat.number(22)?,
    })
}

/// Accounts of all processes but this one and the observed ones.
#[derive(Debug, Default)]
pub(super) struct Others {
    accounts: BTreeMap<u32, (Identity, ProcessIo)>,
    unread: u64,
}

impl Others {
    /// Reads the accounts of all processes but these and this one.
    pub(super) fn read(observed: &BTreeSet<u32>) -> Self {
        let mut others = Self::default();
        let own = std::process::id();
        let processes = numbers_in("/proc").into_iter();
        for process in processes.filter(|one| *one != own && !observed.contains(one)) {
            let stat = lossy_text_of(format!("/proc/{process}/stat")).ok();
            // A process that has ended meanwhile is in its parent's account.
            let Some(identity) = stat.and_then(|stat| identity(&stat)) else {
                continue;
            };
            match account_of(process) {
                Some((io, _)) => {
                    others.accounts.insert(process, (identity, io));
                }
                None if identity.is_kernel => {}
                None => others.unread += 1,
            }
        }
        others
    }

    /// I/O of the processes since an earlier reading, the most active first. `ended` are the accounts of
    /// unobserved tasks that have ended, where known: they count for the ended process, not for the parent that
    /// waited for it. `joined` is the observed process with its I/O, where its parent is another process.
    pub(super) fn since(
        self,
        earlier: &Self,
        ended: Option<&[Exit]>,
        joined: Option<(u32, ProcessIo)>,
    ) -> OtherProcesses {
        let of_same = |process: &u32, identity: &Identity| {
            let before = earlier.accounts.get(process);
            before.filter(|(known, _)| known.started == identity.started)
        };
        let mut did: BTreeMap<u32, ProcessIo> = BTreeMap::new();
        for (process, (identity, io)) in &self.accounts {
            let before = of_same(process, identity).map(|(_, io)| *io);
            did.insert(*process, io.since(before.unwrap_or_default()));
        }
        // The others are threads of running processes.
        let ended_tasks = ended.unwrap_or_default().iter().filter(|exit| {
            let running = exit.process.and_then(|process| self.accounts.get(&process));
            running.is_none_or(|(now, _)| exit.had_ended_by(now.started_ns()))
        });
        let ended_processes = by_process(ended_tasks);
        // The process that waited for an ended one: its nearest live ancestor.
        let waited = |of: u32| {
            let mut next = of;
            for _ in 0..ANCESTORS_MAX {
                let gone = ended_processes.get(&next).map(|gone| gone.parent);
                let known = || Some(earlier.accounts.get(&next)?.0.parent);
                next = gone.or_else(known)?;
                if self.accounts.contains_key(&next) {
                    return Some(next);
                }
            }
            None
        };
        if let Some((process, own)) = joined
            && !exists(process)
            && let Some(account) = waited(process).and_then(|parent| did.get_mut(&parent))
        {
            *account = account.since(own);
        }
        let mut active: Vec<OtherProcess> = Vec::new();
        for (process, (identity, before)) in &earlier.accounts {
            let now = self.accounts.get(process);
            let is_gone = now.is_none_or(|(now, _)| now.started != identity.started);
            // After the end of a process, its earlier I/O is in its parent's account.
            if is_gone
                && !identity.is_kernel
                && let Some(account) = waited(*process).and_then(|parent| did.get_mut(&parent))
            {
                *account = account.since(*before);
            }
        }
        for (process, gone) in &ended_processes {
            let before = earlier.accounts.get(process).map(|(_, io)| *io);
            let own = gone.io.since(before.unwrap_or_default());
            if let Some(account) = waited(*process).and_then(|parent| did.get_mut(&parent)) {
                *account = account.since(own);
            }
            active.push(other(*process, &gone.name, own));
        }
        for (process, did) in did {
            if let Some((identity, _)) = self.accounts.get(&process) {
                active.push(OtherProcess {
                    is_kernel: identity.is_kernel,
                    has_ended: false,
                    ..other(process, &identity.name, did)
                });
            }
        }
        active.retain(|one| one.read_bytes > 0 || one.write_bytes > 0);
        active.sort_by_key(|one| std::cmp::Reverse(one.read_bytes.saturating_add(one.write_bytes)));
        OtherProcesses {
            active,
            unread: self.unread,
            sees_ended: ended.is_some(),
        }
    }
}

/// Most generations between an ended process and the one that waited for it.
const ANCESTORS_MAX: usize = 64;

/// An ended process, by its tasks.
struct Ended {
    name: String,
    parent: u32,
    io: ProcessIo,
}

/// Ended tasks by process; tasks of an unknown process are left out.
fn by_process<'a>(exits: impl Iterator<Item = &'a Exit>) -> BTreeMap<u32, Ended> {
    let mut all: BTreeMap<u32, Ended> = BTreeMap::new();
    for exit in exits {
        let Some(process) = exit.process else {
            continue;
        };
        let ended = all.entry(process).or_insert_with(|| Ended {
            name: exit.name(),
            parent: exit.parent,
            io: ProcessIo::default(),
        });
        if exit.task == process {
            ended.name = exit.name();
        }
        ended.io = ended.io.plus(exit.io);
    }
    all
}

fn other(pid: u32, name: &str, did: ProcessIo) -> OtherProcess {
    OtherProcess {
        pid,
        name: name.to_owned(),
        is_kernel: false,
        has_ended: true,
        read_bytes: did.read_bytes,
        write_bytes: did.write_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::exits::tests::{ended_at, of};
    use super::*;

    #[test]
    fn a_process_is_read_as_linux_prints_it() {
        let stat = "812 (a) b (c)) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 1";
        let expected = Identity {
            name: "a) b (c)".to_owned(),
            is_kernel: true,
            parent: 2,
            started: 4711,
        };
        assert_eq!(identity(stat), Some(expected));
        assert_eq!(identity("812 (cut) S 2 0"), None);
    }

    /// An ended process keeps its I/O although its number is reused; an ended thread counts for its process.
    #[test]
    fn a_number_that_was_given_again_hides_nobody() {
        let started = |seconds: u64| Identity {
            name: "new".to_owned(),
            is_kernel: false,
            parent: 1,
            started: seconds * iolab_storage::procfs::clock_ticks_per_second(),
        };
        let io = |read_bytes| ProcessIo {
            read_bytes,
            ..ProcessIo::default()
        };
        let exit = |ended_s: u64, read_bytes| {
            let mut exit = ended_at(of(7, 1, 0), ended_s * 1_000_000_000);
            (exit.process, exit.io) = (Some(7), io(read_bytes));
            exit
        };
        let seen = |ended: &[Exit]| {
            let mut now = Others::default();
            now.accounts.insert(7, (started(100), io(5)));
            let found = now.since(&Others::default(), Some(ended), None).active;
            let all = found.iter().map(|one| (one.has_ended, one.read_bytes));
            all.collect::<Vec<_>>()
        };
        assert_eq!(seen(&[exit(99, 900)]), [(true, 900), (false, 5)]);
        assert_eq!(seen(&[exit(101, 3)]), [(false, 5)]);
    }

    #[test]
    fn a_child_descends_from_this_process() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat is everywhere");
        // The kernel's list of children can miss one while another one ends, as children of other tests here
        // do.
        let is_seen = (0..100).any(|_| {
            let own: BTreeSet<u32> = descendants().into_iter().collect();
            let others = Others::read(&own);
            own.contains(&child.id()) && !others.accounts.contains_key(&child.id())
        });
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert!(is_seen);
    }
}
