//! A process that was already running, with all its descendants, joined for a while. It is not stopped, traced
//! or signalled. None of its open files stays open here; files are opened briefly to look at them
//! ([`Descriptors`]).
//!
//! Each task has its own account, without its children; the growth of these accounts is counted. Root receives
//! the account of each ending task. Other users know it as of the last look, and know what the running
//! processes have collected.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use crate::observed::{ObservedEnd, ProcessTotals, Subject};
use iolab_workload::{Error, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::accounts::{
    ignores_children, major_faults, run_delay_ns, start_and_parent, started, tasks,
    with_descendants,
};
use super::descriptors::Descriptors;
use super::exits::{Exit, Exits, family};
use super::over_time::Recorder;
use super::{Followed, Watch, nanoseconds, wait};
use iolab_host::counters::{Account, OpenAccount, account_of, plus, since_account as since};
use iolab_host::lossy_text_of;

/// A value at the beginning and as of the last look.
#[derive(Debug, Clone, Copy, Default)]
struct Seen<T> {
    before: T,
    last: T,
}

/// A task believed to be alive.
#[derive(Debug)]
struct Task {
    process: u32,
    started: u64,
    account: Seen<Account>,
}

/// A process believed to be alive.
#[derive(Debug)]
struct Member {
    started: u64,
    /// Process that collects its end, as of the last look.
    parent: u32,
    /// Time waited for CPUs, ns.
    delay: Seen<u64>,
}

/// Ended processes and tasks. A shell has any number of children, so only sums and the places of their accounts
/// are kept.
#[derive(Debug, Default)]
struct Gone {
    processes: u64,
    /// Processes that no observed process has collected, so that their accounts are nowhere else.
    orphans: u64,
    /// I/O of all ended tasks, as of the last look at each.
    io: Account,
    run_delay_ns: u64,
    /// Tasks that existed at the beginning.
    early: BTreeMap<u32, Seen<Account>>,
    /// Numbers of all ended tasks and processes, kept while the accounts of ended tasks are complete; each
    /// number has an account there.
    numbers: BTreeSet<u32>,
}

/// A process that was joined.
pub(super) struct RunningProcess {
    pub(super) process: u32,
    subject: Subject,
    /// Readable once the process has ended.
    end: OwnedFd,
    /// Account of the process and all that it has collected, opened at the start so that it can still be read
    /// just after the end.
    account: Option<OpenAccount>,
    tasks: BTreeMap<u32, Task>,
    members: BTreeMap<u32, Member>,
    gone: Gone,
    /// Accounts of the processes that existed at the beginning, with all that they had collected.
    before: Account,
    /// Whether the account of any task was read.
    is_read: bool,
    unread: u64,
    /// Page faults with I/O of the live processes, and of the children that they waited for.
    faults: Seen<u64>,
    ignores_children: bool,
    descriptors: Descriptors,
}

impl RunningProcess {
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
        let Some((started, parent)) = start_and_parent(process, process) else {
            return Err(Error::usage(format!("there is no process {process}")).hint(hint));
        };
        let member = Member {
            started,
            parent,
            delay: Seen::default(),
        };
        let mut joined = Self {
            process,
            subject: Subject::Process {
                pid: process,
                command: command_of(process),
            },
            end,
            account: OpenAccount::of(process),
            tasks: BTreeMap::new(),
            members: BTreeMap::from([(process, member)]),
            gone: Gone::default(),
            before: Account::default(),
            is_read: false,
            unread: 0,
            faults: Seen::default(),
            ignores_children: false,
            descriptors: Descriptors::new(),
        };
        joined.read_accounts(true);
        Ok(joined)
    }

    /// Follows the process until its end, or the end of the observation.
    pub(super) fn follow(mut self, watch: &mut Watch) -> Result<Followed> {
        let mut ended_ns = None;
        while ended_ns.is_none() && !watch.is_over() {
            let (pace, recorder) = (&mut watch.pace, &mut watch.recorder);
            pace.look(|| self.look(recorder));
            if wait(&watch.signals, Some(&self.end), watch.until())? {
                ended_ns = Some(nanoseconds(watch.began));
            }
            watch.take();
            if !watch.exits.as_ref().is_some_and(Exits::is_complete) {
                self.gone.numbers.clear();
            }
        }
        let observed_ns = nanoseconds(watch.began);
        self.read_accounts(false);
        let exits = watch.exits.as_mut().and_then(|exits| exits.all());
        let totals = self.totals(exits);
        let ancestors = self.numbers();
        let living: BTreeSet<u32> = self.members.keys().copied().collect();
        Ok(Followed {
            subject: self.subject,
            end: match ended_ns {
                Some(_) => ObservedEnd::Gone,
                None => ObservedEnd::Running,
            },
            ended_ns,
            observed_ns,
            totals,
            faults: Some(self.faults.last.saturating_sub(self.faults.before)),
            ancestors,
            living,
            descriptors: self.descriptors,
        })
    }

    /// Numbers of all tasks and processes, ended ones included while these are kept.
    fn numbers(&self) -> BTreeSet<u32> {
        let living = self.members.keys().chain(self.tasks.keys());
        living.chain(&self.gone.numbers).copied().collect()
    }

    /// Live processes, with their starts and parents.
    fn living(&self) -> Vec<(u32, (u64, u32))> {
        let own = std::process::id();
        let known = self.members.iter();
        let known = known.filter(|(number, member)| is_there(**number, **number, member.started));
        let found = with_descendants(known.map(|(number, _)| *number));
        let found = found.into_iter().filter(|process| *process != own);
        found
            .filter_map(|process| Some((process, start_and_parent(process, process)?)))
            .collect()
    }

    fn look(&mut self, recorder: &mut Recorder) {
        let processes = self.read_accounts(false);
        // The process may have executed another program: the last one is reported.
        if processes.contains(&self.process)
            && let Some(words) = words_of(self.process)
            && let Subject::Process { command, .. } = &mut self.subject
        {
            *command = words;
        }
        self.descriptors.look(&processes);
        for process in processes {
            self.ignores_children |= ignores_children(process);
        }
        if recorder.is_due() {
            let sum = self.of_tasks(None);
            recorder.record(self.is_read.then_some(sum.0));
        }
    }

    /// Reads the accounts of all live tasks, and returns the processes. At first, all I/O of a task counts as
    /// earlier; a task seen later has begun meanwhile.
    fn read_accounts(&mut self, is_first: bool) -> Vec<u32> {
        self.bury();
        let living = self.living();
        for (process, (started_at, parent)) in &living {
            let (process, started_at, parent) = (*process, *started_at, *parent);
            if is_first && let Some(account) = account_of(process) {
                self.before = plus(self.before, account);
            }
            let member = self.members.entry(process).or_insert(Member {
                started: started_at,
                parent,
                delay: Seen::default(),
            });
            member.parent = parent;
            if let Some(delay) = run_delay_ns(process) {
                member.delay.last = delay;
                if is_first {
                    member.delay.before = delay;
                }
            }
            let mut is_read = false;
            for task in tasks(process) {
                let account = OpenAccount::of_task(process, task);
                let account = account.and_then(|account| account.read());
                let Some((account, started)) = account.zip(started(process, task)) else {
                    continue;
                };
                is_read = true;
                let before = if is_first {
                    account
                } else {
                    Account::default()
                };
                let new = Task {
                    process,
                    started,
                    account: Seen {
                        before,
                        last: before,
                    },
                };
                self.tasks.entry(task).or_insert(new).account.last = account;
            }
            self.is_read |= is_read;
            // Ordinary users may not read the account of a process that has just ended.
            self.unread += u64::from(!is_read && is_first);
        }
        let living: Vec<u32> = living.into_iter().map(|(process, _)| process).collect();
        let faults = living.iter().copied().filter_map(major_faults).sum();
        if is_first {
            self.faults.before = faults;
        }
        self.faults.last = self.faults.last.max(faults);
        living
    }

    /// Adds up those that have ended since the last look; their numbers may have been reused.
    fn bury(&mut self) {
        let gone = &mut self.gone;
        let ended = |number: &u32, task: &mut Task| !is_there(task.process, *number, task.started);
        for (number, task) in self.tasks.extract_if(.., ended) {
            let Seen { before, last } = task.account;
            gone.io = plus(gone.io, since(last, before));
            gone.numbers.insert(number);
            if before != Account::default() {
                gone.early.insert(number, task.account);
            }
        }
        let ended = |number: &u32, one: &mut Member| !is_there(*number, *number, one.started);
        let ended: BTreeMap<u32, Member> = self.members.extract_if(.., ended).collect();
        for (number, member) in &ended {
            let delay = member.delay;
            let waited = delay.last.saturating_sub(delay.before);
            gone.run_delay_ns = gone.run_delay_ns.saturating_add(waited);
            gone.processes += 1;
            gone.numbers.insert(*number);
            // A process whose parent ended since the last look too was collected by it, as far as that look
            // shows.
            let mut ancestors =
                std::iter::successors(Some(*number), |one| ended.get(one).map(|one| one.parent));
            let is_collected =
                ancestors.any(|one| one == self.process || self.members.contains_key(&one));
            gone.orphans += u64::from(!is_collected);
        }
    }

    /// I/O of all tasks, by the accounts of ended ones where these are known.
    fn of_tasks(&self, ended: Option<&[Exit]>) -> Account {
        let living = |task: &Task| since(task.account.last, task.account.before);
        let Some(ended) = ended else {
            let living = self.tasks.values().map(living);
            return living.fold(self.gone.io, plus);
        };
        // Of several tasks that had a number, the first ended first.
        let mut early = self.gone.early.clone();
        let mut late: BTreeMap<u32, Account> = BTreeMap::new();
        let mut sum = Account::default();
        for exit in family(ended, &self.numbers()) {
            let account = (exit.io, exit.cancelled_write_bytes);
            if let Some(seen) = early.remove(&exit.task) {
                sum = plus(sum, since(account, seen.before));
            } else if self.tasks.contains_key(&exit.task) {
                late.insert(exit.task, account);
            } else {
                sum = plus(sum, account);
            }
        }
        let early = early.values().map(|seen| since(seen.last, seen.before));
        let rest = self
            .tasks
            .iter()
            .map(|(number, task)| match late.get(number) {
                Some(account) => since(*account, task.account.before),
                None => living(task),
            });
        early.chain(rest).fold(sum, plus)
    }

    /// I/O of the live processes and their collected children, less what was there at the beginning.
    fn of_processes(&self, last: Option<Account>, living: &[(u32, (u64, u32))]) -> Account {
        let others = living.iter().map(|(process, _)| *process);
        let others = others.filter(|process| *process != self.process);
        let now = others.filter_map(account_of).chain(last);
        since(now.fold(Account::default(), plus), self.before)
    }

    fn totals(&self, ended: Option<&[Exit]>) -> ProcessTotals {
        let living = self.living();
        let of_tasks = self.of_tasks(ended);
        // Unreadable once its own parent has collected the process.
        let own = self.account.as_ref().and_then(OpenAccount::read);
        let of_processes = self.of_processes(own, &living);
        let io = of_tasks.0.with(of_processes.0, |a, b| a.max(b));
        let is_living = |number: &u32| living.iter().any(|(process, _)| process == number);
        let unburied = self.members.keys().filter(|one| !is_living(one)).count() as u64;
        // Children collected by a readable process are whole. Equal sums alone prove nothing: both may date
        // from the last look.
        let cut_short = match (ended, own) {
            (Some(_), _) => 0,
            (None, Some(_)) if of_processes.0 == io => self.gone.orphans + unburied,
            (None, _) => self.gone.processes + unburied,
        };
        let delays = self.members.values();
        ProcessTotals {
            collected: 0,
            cut_short,
            unread: self.unread,
            running: living.len() as u64,
            ignores_children: self.ignores_children,
            is_complete: ended.is_some(),
            io: self.is_read.then_some(io),
            cancelled_write_bytes: of_tasks.1.max(of_processes.1),
            fault_bytes: None,
            usage: None,
            run_delay_ns: delays
                .map(|one| one.delay.last.saturating_sub(one.delay.before))
                .fold(self.gone.run_delay_ns, u64::saturating_add),
        }
    }
}

/// Whether a task is still the one that started then.
fn is_there(process: u32, task: u32, since: u64) -> bool {
    started(process, task) == Some(since)
}

/// Name and arguments of a process.
fn command_of(process: u32) -> Vec<String> {
    words_of(process).unwrap_or_else(|| {
        let name = lossy_text_of(format!("/proc/{process}/comm")).unwrap_or_default();
        vec![name.trim().to_owned()]
    })
}

/// Arguments of a process, its name first; `None` for a process without any, such as an ended one.
fn words_of(process: u32) -> Option<Vec<String>> {
    let line = lossy_text_of(format!("/proc/{process}/cmdline")).ok()?;
    let words: Vec<String> = line.split_terminator('\0').map(str::to_owned).collect();
    (!words.is_empty()).then_some(words)
}
