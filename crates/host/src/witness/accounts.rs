//! I/O accounts of processes: those that descend from this one, and all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{read_dir, read_to_string};

use iolab_workload::counters::ProcessIo;
use iolab_workload::witness::{OtherProcess, OtherProcesses};

use crate::counters::{account_of, parse_run_delay_ns};

/// The flag of a kernel thread in field 9 of proc_pid_stat(5): PF_KTHREAD of linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The processes that descend from this one, as far as their ancestors live: a subreaper has all of them.
pub(super) fn descendants() -> Vec<u32> {
    let own = std::process::id();
    let mut found = vec![own];
    let mut seen = BTreeSet::from([own]);
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(parent).filter(|child| seen.insert(*child)));
        next += 1;
    }
    found.remove(0);
    found
}

/// proc_tid_children(5): each thread has the processes that it started.
fn children(process: u32) -> impl Iterator<Item = u32> {
    let threads = read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| read_to_string(thread.path().join("children")).ok());
    texts.flat_map(|text| {
        let all = text.split_whitespace().map(str::parse);
        all.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

/// Time in which the threads of a process waited for a CPU, ns.
pub(super) fn run_delay_ns(process: u32) -> Option<u64> {
    let threads = read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let delays = threads.filter_map(|thread| {
        let text = read_to_string(thread.path().join("schedstat")).ok()?;
        parse_run_delay_ns(&text)
    });
    delays.reduce(u64::saturating_add)
}

/// Whether a process ignores the ends of its children, whose accounts are then lost: proc_pid_status(5), signal N as bit N - 1.
pub(super) fn ignores_children(process: u32) -> bool {
    let status = read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (libc::SIGCHLD - 1) & 1 == 1)
}

/// What is told of a process apart from its account.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    name: String,
    is_kernel: bool,
    /// When it started: another process may get its number.
    started: u64,
}

/// proc_pid_stat(5); the name stands in parentheses and may contain some itself.
fn identity(stat: &str) -> Option<Identity> {
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    // The state is field 3 and comes first here; the flags are field 9, the start is field 22.
    let mut fields = stat.get(close + 1..)?.split_whitespace().skip(6);
    let flags: u64 = fields.next()?.parse().ok()?;
    Some(Identity {
        name: stat.get(open + 1..close)?.to_owned(),
        is_kernel: flags & KERNEL_THREAD != 0,
        started: fields.nth(12)?.parse().ok()?,
    })
}

/// The accounts of all processes but this one and those that descend from it.
#[derive(Debug, Default)]
pub(super) struct Others {
    accounts: BTreeMap<(u32, u64), (Identity, ProcessIo)>,
    unread: u64,
}

impl Others {
    pub(super) fn read() -> Self {
        let mut own: BTreeSet<u32> = descendants().into_iter().collect();
        own.insert(std::process::id());
        let mut others = Self::default();
        let entries = read_dir("/proc").into_iter().flatten().flatten();
        let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for process in processes.filter(|process| !own.contains(process)) {
            let stat = read_to_string(format!("/proc/{process}/stat")).ok();
            // One that has ended meanwhile is part of its parent's account.
            let Some(identity) = stat.and_then(|stat| identity(&stat)) else {
                continue;
            };
            match account_of(process) {
                Some((io, _)) => {
                    let key = (process, identity.started);
                    others.accounts.insert(key, (identity, io));
                }
                None if identity.is_kernel => {}
                None => others.unread += 1,
            }
        }
        others
    }

    /// What they did since, those that did something first and most.
    pub(super) fn since(self, earlier: &Self) -> OtherProcesses {
        let mut active: Vec<OtherProcess> = Vec::new();
        for (key, (identity, io)) in self.accounts {
            let before = earlier.accounts.get(&key).map(|(_, io)| *io);
            let did = io.since(before.unwrap_or_default());
            if did.read_bytes > 0 || did.write_bytes > 0 {
                active.push(OtherProcess {
                    pid: key.0,
                    name: identity.name,
                    is_kernel: identity.is_kernel,
                    read_bytes: did.read_bytes,
                    write_bytes: did.write_bytes,
                });
            }
        }
        active.sort_by_key(|one| std::cmp::Reverse(one.read_bytes.saturating_add(one.write_bytes)));
        OtherProcesses {
            active,
            unread: self.unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_as_linux_prints_it() {
        let stat = "812 (a) b (c)) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 1";
        let expected = Identity {
            name: "a) b (c)".to_owned(),
            is_kernel: true,
            started: 4711,
        };
        assert_eq!(identity(stat), Some(expected));
        assert_eq!(identity("812 (cut) S 2 0"), None);
    }

    #[test]
    fn a_child_descends_from_this_process() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat is everywhere");
        let found = descendants().contains(&child.id());
        let others = Others::read();
        let is_other = others.accounts.keys().any(|key| key.0 == child.id());
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert!(found && !is_other);
    }
}
