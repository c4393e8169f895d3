//! The program's share of disk traffic, and the medium that serves its bytes.

use std::collections::BTreeSet;

use super::{Asked, Bounds, CLOSE, NOTEWORTHY, OtherUse, Reading};
use crate::observed::{
    DiskTraffic, GroupHolds, NoStorage, ObservedFile, OtherProcess, OtherProcesses, Times,
};
use iolab_analysis::analysis::TAIL_REQUESTS_MIN;
use iolab_analysis::carried_below::{OWN_DATA, Transfer};
use iolab_analysis::disturbance::JOURNAL_PER_SYNC;
use iolab_workload::region_state::Medium;

/// The 99th percentile of times, ns; `None` if fewer than `TAIL_REQUESTS_MIN` requests or syncs were timed.
pub fn p99_of(times: Times, of: u64) -> Option<u64> {
    (of >= TAIL_REQUESTS_MIN).then_some(times.p99_ns)
}

impl Reading<'_> {
    /// The disks in question, and whether the devices in question are whole disks rather than parts of them.
    fn own_disks(&self) -> (Vec<&DiskTraffic>, bool) {
        let devices = self.devices();
        let below = self.observed.devices.iter().flat_map(|one| &one.disks);
        let names: BTreeSet<&str> = below.chain(&devices).map(String::as_str).collect();
        let disks = self.observed.disks.iter();
        let own = disks.filter(|disk| names.contains(disk.name.as_str()));
        let own: Vec<&DiskTraffic> = own.collect();
        let is_disk = |name: &String| own.iter().any(|disk| disk.name == *name);
        let are_disks = devices.iter().all(is_disk);
        (own, are_disks)
    }

    /// The fewest bytes that the disks in question carried for the program in this direction, by its traced threads or
    /// its control group. Second, the bytes of the group if it counted the program alone.
    ///
    /// Traces miss what kernel threads fetched for the program. A control group counts write-back if it also counts
    /// memory. It misses processes that left it, and counts others that were in it for a while: its count is used only
    /// if its total over all disks agrees with the program's accounts.
    pub(super) fn counted(&self, transfer: Transfer, by_accounts: u64) -> (u64, Option<u64>) {
        let (own, are_disks) = self.own_disks();
        let traced = own.iter().filter_map(|disk| disk.traced.as_ref());
        let traced = traced.map(|traced| match transfer {
            Transfer::Read => traced.reads.bytes,
            Transfer::Write => traced.writes.bytes,
        });
        let traced = traced.fold(0, u64::saturating_add);
        let of_group = |disks: &mut dyn Iterator<Item = &DiskTraffic>| {
            let bytes = disks
                .filter_map(|disk| disk.of_group)
                .map(|group| match transfer {
                    Transfer::Read => group.read_bytes,
                    Transfer::Write => group.write_bytes,
                });
            bytes.fold(0, u64::saturating_add)
        };
        let everywhere = of_group(&mut self.observed.disks.iter());
        let is_own = match self.observed.group {
            Some(GroupHolds::Program | GroupHolds::ProgramAndObserver) => {
                everywhere.abs_diff(by_accounts) <= slack(by_accounts)
            }
            Some(GroupHolds::Others) | None => false,
        };
        let group = is_own.then(|| of_group(&mut own.iter().copied()));
        // The share of a part in the traffic of its disk is unknown.
        let least = match are_disks {
            true => group.unwrap_or(0).max(traced),
            false => 0,
        };
        (least, group)
    }

    /// The medium of the target, if one was named, else of the files that were seen. Storage if these disagree.
    pub fn medium(&self, transfer: Transfer) -> Medium {
        if let Some(target) = &self.observed.target {
            return target.medium;
        }
        let ways = &self.observed.ways;
        let (open, others) = match transfer {
            Transfer::Read => (ways.reads, &ways.sources),
            Transfer::Write => (ways.writes, &ways.sinks),
        };
        let files = self.files_of(transfer);
        let mut files = files.iter();
        match files.next() {
            Some(first) if files.all(|file| file.medium == first.medium) => first.medium,
            None if others.contains(&NoStorage::Memory) && !open.any() => Medium::Memory,
            _ => Medium::Storage,
        }
    }

    /// Whether the files that it was seen to read, or write, lie on media that one account cannot distinguish.
    pub(super) fn has_several_media(&self, transfer: Transfer) -> bool {
        let target = self.observed.target.as_ref().map(|target| target.medium);
        let files = self.files_of(transfer).into_iter();
        let large = files.filter(|file| file.bytes >= NOTEWORTHY);
        let mut all = target.into_iter().chain(large.map(|file| file.medium));
        let first = all.next();
        all.any(|medium| Some(medium) != first)
    }

    /// Whether no noteworthy file was seen that it reads, or writes, and its account exceeds what disks can have
    /// carried. An account also counts file servers.
    pub(super) fn may_be_network(&self, transfer: Transfer) -> bool {
        let observed = self.observed;
        let (Some(io), None) = (observed.processes.io, &observed.target) else {
            return false;
        };
        let files = self.files_of(transfer);
        let is_seen = files.iter().any(|file| file.bytes >= NOTEWORTHY);
        let disks = observed.disks.iter().map(|disk| disk.traffic);
        let network = observed.nfs.unwrap_or_default();
        let (moved, sent, carried) = match transfer {
            Transfer::Read => {
                let carried: u64 = disks.map(|disk| disk.read_bytes).sum();
                (io.read_bytes, network.read_bytes, carried)
            }
            // Written bytes may still be in the page cache.
            Transfer::Write => (0, network.write_bytes, 0),
        };
        !is_seen && (sent >= NOTEWORTHY || moved > carried.saturating_add(NOTEWORTHY))
    }

    /// Whether it was seen to read, or write, a file on this medium.
    pub(super) fn uses(&self, medium: Medium, transfer: Transfer) -> bool {
        let target = self.observed.target.as_ref();
        let mut files = self.files_of(transfer).into_iter();
        target.is_some_and(|target| target.medium == medium)
            || files.any(|file| file.medium == medium)
    }

    /// Upper bound on bytes of file servers in its account.
    pub(super) fn network_reads(&self) -> u64 {
        match self.observed.nfs {
            Some(nfs) => nfs.read_bytes,
            None if self.uses(Medium::Elsewhere, Transfer::Read) => u64::MAX,
            None => 0,
        }
    }

    /// The files that the program was seen to read or write. Small files are left out if any is larger than
    /// [`NOTEWORTHY`].
    fn files_of(&self, transfer: Transfer) -> Vec<&ObservedFile> {
        let is_of = |file: &&ObservedFile| match transfer {
            Transfer::Read => file.is_read,
            Transfer::Write => file.is_written,
        };
        let all: Vec<&ObservedFile> = self.observed.files.iter().filter(is_of).collect();
        let is_large = |file: &&ObservedFile| file.bytes >= NOTEWORTHY;
        match all.iter().any(is_large) {
            true => all.into_iter().filter(is_large).collect(),
            false => all,
        }
    }

    /// Whether another process is known to have written, or to have dirtied pages.
    fn sees_other_writers(&self) -> bool {
        let mut others = self.observed.others.active.iter();
        others.any(|one| !one.is_kernel && one.write_bytes > 0)
    }

    /// Upper bound on bytes that file systems wrote to their journals for its syncs. A sync ends with a flush.
    fn journal_most(&self) -> u64 {
        let flushes = self.flushes().map_or(0, |flushes| flushes.completed);
        let traced = self.observed.trace.as_ref();
        let syncs = flushes.max(traced.map_or(0, |trace| trace.syncs.syncs));
        match self.asked_writes() {
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
        let rest = |transfer: Transfer, own: Bounds| {
            let (all, twice) = (transfer.of(&traffic), self.counted_twice(transfer));
            Bounds {
                least: all.saturating_sub(twice).saturating_sub(own.most),
                most: all.saturating_sub(own.least),
            }
        };
        let read = rest(Transfer::Read, read);
        // Kernel threads may write pages that were dirty before it started, together with its own bytes in these
        // pages.
        let before = self.observed.dirty_before_bytes.unwrap_or(u64::MAX);
        let before = before.min(self.overwritten_most());
        let written = rest(Transfer::Write, written);
        // No process's account includes the file system's own data.
        let early = before.saturating_add(self.journal_most());
        let least = match self.sees_other_writers() {
            true => written.least.saturating_sub(early),
            false => 0,
        };
        let written = Bounds { least, ..written };
        let is_little =
            read.most <= slack(traffic.read_bytes) && written.most <= slack(traffic.write_bytes);
        match read.most.saturating_add(written.most) {
            0 => OtherUse::None,
            most if is_little => OtherUse::Little { most },
            _ => OtherUse::Some { read, written },
        }
    }
}

/// Difference of two numbers of bytes that file systems may make, or up to which they count as one.
fn slack(whole: u64) -> u64 {
    OWN_DATA.max((CLOSE * whole as f64) as u64)
}

/// I/O of unobserved processes that share one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherCommand<'a> {
    /// The processes, at least one, by descending I/O.
    pub processes: Vec<&'a OtherProcess>,
}

impl<'a> OtherCommand<'a> {
    /// All names, by descending I/O. A kernel thread and a process with its name are separate.
    pub fn all(others: &'a OtherProcesses) -> Vec<Self> {
        let mut processes: Vec<&OtherProcess> = others.active.iter().collect();
        processes.sort_by_key(|one| std::cmp::Reverse(total(one)));
        let mut all: Vec<Self> = Vec::new();
        for process in processes {
            match all.iter_mut().find(|one| one.is_of(process)) {
                Some(known) => known.processes.push(process),
                None => all.push(Self {
                    processes: vec![process],
                }),
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.sum(total)));
        all
    }

    fn is_of(&self, process: &OtherProcess) -> bool {
        let first = self.processes[0];
        (&first.name, first.is_kernel) == (&process.name, process.is_kernel)
    }

    /// Number of processes that have ended.
    pub fn ended(&self) -> usize {
        self.processes.iter().filter(|one| one.has_ended).count()
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
        let own = self.processes.iter().map(|one| of(one));
        own.fold(0, u64::saturating_add)
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
            .map(|one| one.processes.iter().map(|process| process.pid).collect());
        assert_eq!(
            pids.collect::<Vec<Vec<u32>>>(),
            [vec![3, 2], vec![1], vec![4]]
        );
        assert_eq!((all[0].read_bytes(), all[0].write_bytes()), (60, 2));
        assert_eq!(all[0].ended(), 1);
    }
}
