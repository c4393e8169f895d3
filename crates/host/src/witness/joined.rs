//! A process that ran before, with all that descends from it: joined for a while. It is not stopped, traced or signalled, and nothing of
//! what it has open stays open here; its files are opened for a moment to look at them ([`Owner::Foreign`]).
//!
//! Each task has an account of its own, without its children: what is counted is what these grew by since. Root receives that of each
//! task that ends; other users know it as of the last look, and what the processes that still run have collected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::read_to_string;
use std::os::fd::OwnedFd;

use iolab_workload::counters::ProcessIo;
use iolab_workload::witness::{ObservedEnd, ProcessTotals, Subject};
use iolab_workload::{Error, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::accounts::{ignores_children, run_delay_ns, tasks, with_descendants};
use super::course::Recorder;
use super::descriptors::{Descriptors, Owner};
use super::exits::{Exit, family};
use super::{Followed, Watch, nanoseconds, wait};
use crate::counters::{OpenAccount, account_of};

/// An account, with the bytes that never will be written.
type Account = (ProcessIo, u64);

fn since(now: Account, before: Account) -> Account {
    (now.0.since(before.0), now.1.saturating_sub(before.1))
}

fn plus(a: Account, b: Account) -> Account {
    (a.0.plus(b.0), a.1.saturating_add(b.1))
}

/// A number at the beginning and as of the last look.
#[derive(Debug, Clone, Copy, Default)]
struct Seen<T> {
    before: T,
    last: T,
}

/// A process that was joined.
pub(super) struct Joined {
    process: u32,
    subject: Subject,
    /// Can be read from once the process has ended.
    end: OwnedFd,
    /// Its account with those of all that it has collected: open from the start, so that it can still be read just after its end.
    account: Option<OpenAccount>,
    tasks: BTreeMap<u32, Seen<Account>>,
    /// The accounts at the beginning of the processes that were there, with all that these had collected.
    processes: BTreeMap<u32, Account>,
    members: BTreeSet<u32>,
    unread: BTreeSet<u32>,
    delays: BTreeMap<u32, Seen<u64>>,
    ignores_children: bool,
    descriptors: Descriptors,
}

impl Joined {
    /// Joins a process by its number.
    pub(super) fn new(process: u32) -> Result<Self> {
        let hint = "ps -e lists the processes; give the number of one, not of a thread";
        let number = i32::try_from(process).ok().and_then(Pid::from_raw);
        let number = number.filter(|_| process != std::process::id());
        let Some(number) = number else {
            return Err(Error::usage(format!("process {process} cannot be observed")).hint(hint));
        };
        let end = pidfd_open(number, PidfdFlags::empty()).map_err(|errno| match errno {
            rustix::io::Errno::NOSYS => Error::failed(
                "cannot wait for the end of another process: that needs Linux 5.3 or newer",
            )
            .hint("watch the device instead: iolab witness --device NAME"),
            _ => Error::usage(format!("there is no process {process}")).hint(hint),
        })?;
        let mut joined = Self {
            process,
            subject: Subject::Process {
                pid: process,
                command: command_of(process),
            },
            end,
            account: OpenAccount::of(process),
            tasks: BTreeMap::new(),
            processes: BTreeMap::new(),
            members: BTreeSet::from([process]),
            unread: BTreeSet::new(),
            delays: BTreeMap::new(),
            ignores_children: false,
            descriptors: Descriptors::new(Owner::Foreign),
        };
        joined.read_accounts();
        Ok(joined)
    }

    /// Follows it until it has ended, or the observation is to end.
    pub(super) fn follow(mut self, watch: &mut Watch) -> Result<Followed> {
        let mut ended_ns = None;
        while ended_ns.is_none() && !watch.is_over() {
            let (pace, recorder) = (&mut watch.pace, &mut watch.recorder);
            pace.look(|| self.look(recorder));
            if wait(&watch.signals, Some(&self.end), watch.until())? {
                ended_ns = Some(nanoseconds(watch.began));
            }
            watch.take();
        }
        let observed_ns = nanoseconds(watch.began);
        self.read_accounts();
        let exits = watch.exits.as_mut().and_then(|exits| exits.all());
        let totals = self.totals(exits);
        let ancestors = self.members.iter().chain(self.tasks.keys());
        Ok(Followed {
            subject: self.subject,
            end: match ended_ns {
                Some(_) => ObservedEnd::Gone,
                None => ObservedEnd::Running,
            },
            ended_ns,
            observed_ns,
            totals,
            ancestors: ancestors.copied().collect(),
            descriptors: self.descriptors,
        })
    }

    fn living(&self) -> Vec<u32> {
        let own = std::process::id();
        let mut found = with_descendants(self.members.iter().copied());
        found.retain(|process| *process != own && !tasks(*process).is_empty());
        found
    }

    fn look(&mut self, recorder: &mut Recorder) {
        let processes = self.read_accounts();
        self.descriptors.look(&processes);
        for process in processes {
            self.ignores_children |= ignores_children(process);
        }
        if recorder.is_due() {
            let sum = self.of_tasks(None);
            recorder.record((!self.tasks.is_empty()).then_some(sum.0));
        }
    }

    /// Reads the accounts of all that live; gives these.
    fn read_accounts(&mut self) -> Vec<u32> {
        // At first all that a task did lies before; one that is seen later has begun meanwhile.
        let is_first = self.tasks.is_empty() && self.unread.is_empty();
        let processes = self.living();
        for process in &processes {
            self.members.insert(*process);
            if is_first && let Some(account) = account_of(*process) {
                self.processes.insert(*process, account);
            }
            if let Some(delay) = run_delay_ns(*process) {
                let before = if is_first { delay } else { 0 };
                let seen = self
                    .delays
                    .entry(*process)
                    .or_insert(Seen { before, last: 0 });
                seen.last = delay;
            }
            let mut is_read = false;
            for task in tasks(*process) {
                let account = OpenAccount::of_task(*process, task);
                let Some(account) = account.and_then(|account| account.read()) else {
                    continue;
                };
                is_read = true;
                let before = if is_first {
                    account
                } else {
                    Account::default()
                };
                let new = Seen {
                    before,
                    last: before,
                };
                self.tasks.entry(task).or_insert(new).last = account;
            }
            // One that has just ended has no account that ordinary users may read.
            if !is_read && is_first {
                self.unread.insert(*process);
            }
        }
        processes
    }

    /// What all tasks did, by the accounts of those that have ended where these are known.
    fn of_tasks(&self, ended: Option<&[Exit]>) -> Account {
        let own = self.members.iter().chain(self.tasks.keys()).copied();
        let ended = family(ended.unwrap_or_default(), own.collect());
        let ended: BTreeMap<u32, Account> = ended
            .iter()
            .map(|exit| (exit.task, (exit.io, exit.cancelled_write_bytes)))
            .collect();
        let unseen = ended
            .iter()
            .filter(|(task, _)| !self.tasks.contains_key(task));
        let unseen = unseen.map(|(_, account)| *account);
        let seen = self
            .tasks
            .iter()
            .map(|(task, seen)| since(ended.get(task).copied().unwrap_or(seen.last), seen.before));
        seen.chain(unseen).fold(Account::default(), plus)
    }

    /// What the processes that live have done and collected, less all that was there at the beginning.
    fn of_processes(&self, living: &[u32]) -> Account {
        let last = self.account.as_ref().and_then(OpenAccount::read);
        let others = living.iter().filter(|process| **process != self.process);
        let now = others
            .filter_map(|process| account_of(*process))
            .chain(last);
        let before = self
            .processes
            .values()
            .copied()
            .fold(Account::default(), plus);
        since(now.fold(Account::default(), plus), before)
    }

    fn totals(&self, ended: Option<&[Exit]>) -> ProcessTotals {
        let living = self.living();
        let of_tasks = self.of_tasks(ended);
        let of_processes = self.of_processes(&living);
        let io = of_tasks.0.with(of_processes.0, |a, b| a.max(b));
        let gone = self
            .members
            .iter()
            .filter(|one| !living.contains(one))
            .count() as u64;
        // What was collected by one whose account can be read is whole.
        let is_whole = ended.is_some() || of_processes.0 == io;
        let delays = self.delays.values();
        ProcessTotals {
            collected: 0,
            cut_short: if is_whole { 0 } else { gone },
            unread: self.unread.len() as u64,
            running: living.len() as u64,
            ignores_children: self.ignores_children,
            is_complete: ended.is_some(),
            io: (!self.tasks.is_empty()).then_some(io),
            cancelled_write_bytes: of_tasks.1.max(of_processes.1),
            usage: None,
            run_delay_ns: delays
                .map(|seen| seen.last.saturating_sub(seen.before))
                .sum(),
        }
    }
}

/// The name and the arguments of a process.
fn command_of(process: u32) -> Vec<String> {
    let line = read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
    if !words.is_empty() {
        return words;
    }
    let name = read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    vec![name.trim().to_owned()]
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// A shell that has read a megabyte, and reads another one in a child when it is told to.
    #[test]
    fn what_was_done_before_does_not_count() {
        let script = "dd if=/dev/zero of=/dev/null bs=1M count=1 2>&1; echo ready
            read go; dd if=/dev/zero of=/dev/null bs=2M count=1 2>&1; echo ready; read end";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is everywhere");
        let mut input = shell.stdin.take().expect("piped");
        let mut output = std::io::BufReader::new(shell.stdout.take().expect("piped"));
        let mut until_ready = || {
            use std::io::BufRead;
            let mut line = String::new();
            while line != "ready\n" {
                line.clear();
                assert!(output.read_line(&mut line).expect("read") > 0);
            }
        };
        until_ready();
        let mut joined = Joined::new(shell.id()).expect("it runs");
        input.write_all(b"\n").expect("it waits");
        until_ready();
        joined.read_accounts();
        let totals = joined.totals(None);
        let first = joined.tasks.is_empty();
        drop(input);
        shell.wait().expect("it ends with its input");
        if first {
            needs::skip(needs::Need::IoAccount, "that of a child cannot be read");
            return;
        }
        let read = totals.io.expect("read").rchar;
        assert!(((2 << 20)..(5 << 19)).contains(&read), "{totals:?}");
        assert_eq!((totals.running, totals.unread, totals.cut_short), (1, 0, 0));
    }

    #[test]
    fn what_does_not_run_cannot_be_joined() {
        for number in [0, u32::MAX, std::process::id()] {
            assert!(Joined::new(number).is_err(), "{number}");
        }
    }
}
