//! The program's share of disk traffic, and the medium that serves its bytes.

use std::collections::BTreeSet;

use super::{Bounds, CLOSE, NOTEWORTHY, OWN_DATA, Reading, Transfer};
use crate::analysis::TAIL_REQUESTS_MIN;
use iolab_workload::region_state::Medium;
use iolab_workload::witness::{
    DiskTraffic, GroupHolds, GroupTraffic, NoStorage, ObservedFile, Times, TracedDisk,
};

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
        let own: Vec<&DiskTraffic> = disks
            .filter(|disk| names.contains(disk.name.as_str()))
            .collect();
        let is_disk = |name: &String| own.iter().any(|disk| disk.name == *name);
        let are_disks = devices.iter().all(is_disk);
        (own, are_disks)
    }

    /// Bytes of the program's reads that the disks in question carried, of the `fetched` bytes that its accounts
    /// have for all disks.
    ///
    /// Traces miss what kernel threads fetched for the program. A control group misses processes that left it,
    /// and counts others that were in it for a while. Its count is used only if its total over all disks agrees
    /// with the accounts.
    pub(super) fn counted_reads(&self, fetched: u64) -> Bounds {
        let (least, group) = self.counted(
            fetched,
            |traced| traced.reads.bytes,
            |group| group.read_bytes,
        );
        Bounds {
            least,
            most: group.unwrap_or(u64::MAX),
        }
    }

    /// Lower bound on bytes of the program's writes that the disks in question carried: those that its threads
    /// sent, if they were traced. A control group counts write-back if it also counts memory. Its count is used
    /// only if it agrees with the accounts.
    pub(super) fn counted_writes(&self, dirtied: u64) -> u64 {
        let counted = self.counted(
            dirtied,
            |traced| traced.writes.bytes,
            |group| group.write_bytes,
        );
        counted.0
    }

    /// The fewest bytes that the disks in question carried for the program, by its traced threads or its control
    /// group. Second, the bytes of the group if it counted the program alone.
    fn counted(
        &self,
        by_accounts: u64,
        by_threads: fn(&TracedDisk) -> u64,
        by_group: fn(&GroupTraffic) -> u64,
    ) -> (u64, Option<u64>) {
        let (own, are_disks) = self.own_disks();
        let traced = own.iter().filter_map(|disk| disk.traced.as_ref());
        let traced = traced.map(by_threads).fold(0, u64::saturating_add);
        let group = self.of_program(&own, by_accounts, by_group);
        // The share of a part in the traffic of its disk is unknown.
        let least = match are_disks {
            true => group.unwrap_or(0).max(traced),
            false => 0,
        };
        (least, group)
    }

    /// Bytes that disks carried for the control group, if its total over all disks agrees with the program's
    /// accounts.
    fn of_program(
        &self,
        own: &[&DiskTraffic],
        by_accounts: u64,
        bytes: fn(&GroupTraffic) -> u64,
    ) -> Option<u64> {
        let everywhere = of_group(&self.observed.disks, bytes);
        let slack = OWN_DATA.max((CLOSE * by_accounts as f64) as u64);
        match self.observed.group? {
            GroupHolds::Program | GroupHolds::ProgramAndObserver => {
                let is_own = everywhere.abs_diff(by_accounts) <= slack;
                is_own.then(|| of_group(own.iter().copied(), bytes))
            }
            GroupHolds::Others => None,
        }
    }
}

/// Bytes that disks carried for the control group of the program.
fn of_group<'a>(
    disks: impl IntoIterator<Item = &'a DiskTraffic>,
    bytes: fn(&GroupTraffic) -> u64,
) -> u64 {
    let counted = disks.into_iter().filter_map(|disk| disk.of_group);
    counted
        .map(|group| bytes(&group))
        .fold(0, u64::saturating_add)
}

impl Reading<'_> {
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
        let is_seen = self
            .files_of(transfer)
            .iter()
            .any(|file| file.bytes >= NOTEWORTHY);
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
}
