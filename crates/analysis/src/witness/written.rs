//! What an observation shows of writes: what a program dirtied in the page cache, threads of the kernel write later.

use iolab_workload::medium::Medium;
use iolab_workload::region_state::Residency;
use iolab_workload::witness::{NoStorage, Subject};

use super::{Asked, Bounds, NOTEWORTHY, OWN_DATA, Reading, Transfer, Unknown, unknown};

impl Reading<'_> {
    /// Bytes that the program wrote to storage, whether they have reached it or not. Where a file system does not count them, what it
    /// asked for with write calls.
    pub fn asked_writes(&self) -> Asked {
        if self.observed.subject == Subject::Devices {
            return Asked::Nothing;
        }
        let Some(io) = self.observed.processes.io else {
            return unknown(Unknown::NoAccount, None);
        };
        if self.observed.processes.lack_some() {
            return unknown(Unknown::Missing, None);
        }
        if self.has_several_media(Transfer::Write) {
            return unknown(Unknown::Media, None);
        }
        let is_of_note = self.dirtied().is_some_and(|bytes| bytes >= NOTEWORTHY);
        if is_of_note && self.may_be_network(Transfer::Write) {
            return unknown(Unknown::NotSeen, None);
        }
        let ways = &self.observed.ways;
        let medium = self.medium(Transfer::Write);
        // Of calls it is not known where each went: they count where all that was open for writing lies there. Else what its account has
        // counts, which knows of pages for file servers, and not of pipes and sockets.
        let mut sinks = ways.sinks.iter();
        let is_there = match medium {
            Medium::Storage => false,
            Medium::Memory => sinks.len() > 0 && sinks.all(|sink| *sink == NoStorage::Memory),
            Medium::Elsewhere => ways.writes.any() && sinks.len() == 0,
        };
        let written = match medium {
            Medium::Storage => self.without_own_data(self.dirtied().unwrap_or(0)),
            Medium::Memory | Medium::Elsewhere if is_there => io.wchar,
            Medium::Elsewhere => self.dirtied().unwrap_or(0),
            Medium::Memory => 0,
        };
        let most = match medium {
            Medium::Storage => written.saturating_add(self.found_dirty()),
            Medium::Memory | Medium::Elsewhere => written,
        };
        match most < NOTEWORTHY {
            true => Asked::Nothing,
            false => Asked::Bytes(Bounds {
                least: written,
                most,
            }),
        }
    }

    /// Bytes that it discarded before they were written, at most, which others had left to be written, or an earlier run of it in
    /// the same file. Its account counts these as if it had written them itself.
    fn found_dirty(&self) -> u64 {
        let cancelled = self.observed.processes.cancelled_write_bytes;
        let found = self.observed.dirty_before_bytes.unwrap_or(u64::MAX);
        match cancelled < NOTEWORTHY {
            true => 0,
            false => cancelled.min(found),
        }
    }

    /// Bytes that it can have written over what was dirty before, which its account does not count, at most. A program that was started
    /// here has dirtied nothing before.
    pub(super) fn overwritten_most(&self) -> u64 {
        let observed = self.observed;
        let is_counted = !observed.processes.lack_some() && observed.ways.uncounted.is_empty();
        match (&observed.subject, observed.processes.io) {
            // What it wrote to was seen, and is none of storage.
            (Subject::Program(_), Some(io))
                if is_counted
                    && io.write_bytes == 0
                    && !observed.ways.writes.any()
                    && !observed.ways.sinks.is_empty() =>
            {
                0
            }
            (Subject::Program(_), Some(io)) if is_counted => io.wchar,
            _ => u64::MAX,
        }
    }

    /// Bytes that it sent to storage or left in the page cache to be sent, but for those that never will be; at least.
    pub fn dirtied(&self) -> Option<u64> {
        let processes = &self.observed.processes;
        let io = processes.io?;
        Some(
            io.write_bytes
                .saturating_sub(processes.cancelled_write_bytes),
        )
    }

    /// What of the program's writes the devices in question carried by the end of the observation.
    pub fn carried_writes(&self) -> Option<Bounds> {
        let dirtied = self.dirtied()?;
        let device = self.traffic()?.write_bytes;
        let most = dirtied.saturating_add(self.found_dirty());
        let most = match self.observed.processes.lack_some() {
            true => device,
            false => most.saturating_sub(self.owed().unwrap_or(0)).min(device),
        };
        let by_others = self.by_others().filter(|_| !self.in_flight().writes);
        let by_others = by_others.zip(self.observed.dirty_before_bytes);
        let once = device.saturating_sub(self.counted_twice(|stat| stat.write_bytes));
        let by_others = by_others.map_or(0, |((_, written), before)| {
            once.saturating_sub(written).saturating_sub(before)
        });
        let least = by_others
            .max(self.written_back())
            .max(self.counted_writes(dirtied));
        Some(Bounds::between(least, most))
    }

    /// Bytes that have left the page cache for a device, at least: all that was dirtied, where the target or the files that were seen
    /// can hold all of it, less what still is dirty.
    fn written_back(&self) -> u64 {
        let files = self.observed.files.iter().filter(|file| file.is_written);
        let of_files = files.map(|file| file.bytes).fold(0, u64::saturating_add);
        let target = self
            .observed
            .target
            .as_ref()
            .and_then(|target| target.bytes);
        let held = of_files.max(target.unwrap_or(0)).saturating_add(OWN_DATA);
        match (self.dirtied(), self.owed()) {
            _ if self.uses(Medium::Elsewhere, Transfer::Write) => 0,
            (Some(dirtied), Some(owed)) if dirtied <= held => dirtied.saturating_sub(owed),
            _ => 0,
        }
    }

    /// Bytes of the files that it wrote, or of the target, that still had to be written at the end. `None` where that is not known of
    /// one of these files, and no target is named.
    pub fn owed(&self) -> Option<u64> {
        let target = self.observed.target.as_ref();
        let of_target = target.and_then(|target| target.region.after);
        let written = self.observed.files.iter().filter(|file| file.is_written);
        // An empty file has no state.
        let mut of_files = written.filter(|file| file.bytes > 0).peekable();
        let owed = of_files.peek().is_some().then_some(0);
        let owed = of_files.try_fold(owed, |sum, file| {
            let owed = file.after?.owed_bytes()?;
            Some(sum.map(|sum: u64| sum.saturating_add(owed)))
        });
        owed.flatten()
            .max(of_target.as_ref().and_then(Residency::owed_bytes))
    }

    /// Bytes that storage got for its writes, without what file systems add to these: those of its calls, where the rest is small.
    fn without_own_data(&self, written: u64) -> u64 {
        let by_calls = self.observed.processes.io.map_or(0, |io| io.wchar);
        let added = written.checked_sub(by_calls);
        match added.is_some_and(|added| added <= OWN_DATA && added <= by_calls / 20) {
            true => by_calls,
            false => written,
        }
    }
}
