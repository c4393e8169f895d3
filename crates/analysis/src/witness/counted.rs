//! Bounds on the program's share of disk traffic from control groups and traces, which hold even if other
//! processes use the disks.

use std::collections::BTreeSet;

use iolab_workload::witness::{DiskTraffic, GroupHolds, GroupTraffic, Times, TracedDisk};

use super::{Bounds, CLOSE, OWN_DATA, Reading};
use crate::analysis::TAIL_REQUESTS_MIN;

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
