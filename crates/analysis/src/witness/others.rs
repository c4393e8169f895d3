//! Traffic of other processes on the devices of an observation, one row for each name.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Asked, Bounds, CLOSE, OWN_DATA, OtherUse, Reading};
use crate::disturbance::JOURNAL_PER_SYNC;
use iolab_workload::witness::{OtherProcess, OtherProcesses};

impl Reading<'_> {
    /// Whether another process is known to have written, or to have dirtied pages.
    fn sees_other_writers(&self) -> bool {
        let mut others = self.observed.others.active.iter();
        others.any(|one| !one.is_kernel && one.write_bytes > 0)
    }

    /// Upper bound on bytes that file systems wrote to their journals for its syncs. A sync ends with a flush.
    fn journal_most(&self) -> u64 {
        let asked = self.asked_writes();
        let flushes = self.flushes().map_or(0, |flushes| flushes.completed);
        let traced = self.observed.trace.as_ref();
        let syncs = flushes.max(traced.map_or(0, |trace| trace.syncs.syncs));
        match asked {
            Asked::Nothing => 0,
            Asked::Bytes(_) | Asked::Unknown { .. } => syncs.saturating_mul(JOURNAL_PER_SYNC),
        }
    }

    /// Traffic of other processes on the devices in question.
    pub fn others(&self) -> OtherUse {
        let (Some(traffic), Some(read), Some(written)) =
            (self.traffic(), self.carried_reads(), self.carried_writes())
        else {
            return OtherUse::Unknown;
        };
        let rest = |all: u64, twice: u64, own: Bounds| Bounds {
            least: all.saturating_sub(twice).saturating_sub(own.most),
            most: all.saturating_sub(own.least),
        };
        let read = rest(
            traffic.read_bytes,
            self.counted_twice(|stat| stat.read_bytes),
            read,
        );
        // Kernel threads may write pages that were dirty before it started, together with its own bytes in these
        // pages.
        let before = self.observed.dirty_before_bytes.unwrap_or(u64::MAX);
        let before = before.min(self.overwritten_most());
        let written = rest(
            traffic.write_bytes,
            self.counted_twice(|stat| stat.write_bytes),
            written,
        );
        // No process's account includes the file system's own data.
        let early = before.saturating_add(self.journal_most());
        let least = match self.sees_other_writers() {
            true => written.least.saturating_sub(early),
            false => 0,
        };
        let written = Bounds { least, ..written };
        let slack = |whole: u64| OWN_DATA.max((CLOSE * whole as f64) as u64);
        let is_little =
            read.most <= slack(traffic.read_bytes) && written.most <= slack(traffic.write_bytes);
        match read.most.saturating_add(written.most) {
            0 => OtherUse::None,
            most if is_little => OtherUse::Little { most },
            _ => OtherUse::Some { read, written },
        }
    }
}

/// I/O of unobserved processes that share one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherCommand<'a> {
    /// The process with the most I/O.
    pub first: &'a OtherProcess,
    /// All other processes, by descending I/O.
    pub further: Vec<&'a OtherProcess>,
}

impl<'a> OtherCommand<'a> {
    /// All names, by descending I/O. A kernel thread and a process with its name are separate.
    pub fn all(others: &'a OtherProcesses) -> Vec<Self> {
        let mut processes: Vec<&OtherProcess> = others.active.iter().collect();
        processes.sort_by_key(|one| std::cmp::Reverse(total(one)));
        let mut all: Vec<Self> = Vec::new();
        for process in processes {
            match all.iter_mut().find(|one| one.is_of(process)) {
                Some(known) => known.further.push(process),
                None => all.push(Self {
                    first: process,
                    further: Vec::new(),
                }),
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.sum(total)));
        all
    }

    fn is_of(&self, process: &OtherProcess) -> bool {
        (&self.first.name, self.first.is_kernel) == (&process.name, process.is_kernel)
    }

    /// Processes of the command, by descending I/O.
    pub fn processes(&self) -> impl Iterator<Item = &'a OtherProcess> {
        [self.first].into_iter().chain(self.further.iter().copied())
    }

    /// Number of processes.
    pub fn count(&self) -> usize {
        1 + self.further.len()
    }

    /// Number of processes that have ended.
    pub fn ended(&self) -> usize {
        self.processes().filter(|one| one.has_ended).count()
    }

    /// Bytes that the processes fetched from storage.
    pub fn read_bytes(&self) -> u64 {
        self.sum(|one| one.read_bytes)
    }

    /// Bytes that the processes sent to storage, or dirtied in the page cache.
    pub fn write_bytes(&self) -> u64 {
        self.sum(|one| one.write_bytes)
    }

    fn sum(&self, of: fn(&OtherProcess) -> u64) -> u64 {
        self.processes().map(of).fold(0, u64::saturating_add)
    }
}

fn total(process: &OtherProcess) -> u64 {
    process.read_bytes.saturating_add(process.write_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_name_count_together() {
        let process = |pid, name: &str, read_bytes, is_kernel| OtherProcess {
            pid,
            name: name.to_owned(),
            is_kernel,
            has_ended: pid == 3,
            read_bytes,
            write_bytes: 1,
        };
        let others = OtherProcesses {
            active: vec![
                process(1, "dd", 50, false),
                process(2, "python3", 20, false),
                process(3, "python3", 40, false),
                process(4, "python3", 1, true),
            ],
            ..OtherProcesses::default()
        };
        let all = OtherCommand::all(&others);
        let pids = all
            .iter()
            .map(|one| one.processes().map(|process| process.pid).collect());
        assert_eq!(
            pids.collect::<Vec<Vec<u32>>>(),
            [vec![3, 2], vec![1], vec![4]]
        );
        assert_eq!((all[0].read_bytes(), all[0].write_bytes()), (60, 2));
        assert_eq!((all[0].count(), all[0].ended()), (2, 1));
    }
}
