//! Evidence on writes: a program dirties pages in the page cache, and kernel threads write them back later.

use crate::observed::{NoStorage, Subject};
use iolab_workload::counters::ProcessIo;
use iolab_workload::region_state::Medium;
use iolab_workload::region_state::Residency;

use super::{Asked, Bounds, NOTEWORTHY, Reading, Unknown, unknown};
use iolab_analysis::carried_below::{OWN_DATA, Transfer};
use iolab_analysis::disturbance::PAGE;

/// Most pages of a folio of the page cache.
const FOLIO_PAGES: u64 = 512;

impl Reading<'_> {
    /// Bytes that the program wrote to storage, whether or not they have reached it. If a file system does not
    /// count them, the bytes of its write calls.
    pub fn asked_writes(&self) -> Asked {
        if self.observed.subject == Subject::Devices {
            return Asked::Nothing;
        }
        let io = match self.account(Transfer::Write) {
            Ok(io) => io,
            Err(why) => return unknown(why, None),
        };
        let is_of_note = self.dirtied().is_some_and(|bytes| bytes >= NOTEWORTHY);
        if is_of_note && self.may_be_network(Transfer::Write) {
            return unknown(Unknown::NotSeen, None);
        }
        let ways = &self.observed.ways;
        let medium = self.medium(Transfer::Write);
        // It is unknown where each call wrote: calls count if every file open for writing lies on the medium.
        // Otherwise its account counts, which includes pages for file servers, but not pipes and sockets.
        let mut sinks = ways.sinks.iter();
        let is_there = match medium {
            Medium::Storage => false,
            Medium::Memory => sinks.len() > 0 && sinks.all(|sink| *sink == NoStorage::Memory),
            Medium::Elsewhere => ways.writes.any() && sinks.len() == 0,
        };
        let written = match medium {
            Medium::Storage => self.written().unwrap_or_default(),
            Medium::Memory | Medium::Elsewhere if is_there => Bounds::exact(io.wchar),
            Medium::Elsewhere => Bounds::exact(self.dirtied().unwrap_or(0)),
            Medium::Memory => Bounds::default(),
        };
        if medium == Medium::Storage && self.is_written_elsewhere(written) {
            return unknown(Unknown::NotSeen, None);
        }
        let (found, in_pages) = match medium {
            Medium::Storage => (self.found_dirty(), self.pages_of(written)),
            Medium::Memory | Medium::Elsewhere => (0, written.most),
        };
        match in_pages.saturating_add(found) < NOTEWORTHY {
            true => Asked::Nothing,
            false => Asked::Bytes(Bounds {
                least: written.least,
                most: written.most.saturating_add(found),
            }),
        }
    }

    /// Bytes that it wrote to storage, without additions of file systems. Its account counts a folio of the page
    /// cache as a whole once a byte of it is dirty. If that exceeds the bytes of its calls, the calls count.
    fn written(&self) -> Option<Bounds> {
        let by_calls = self.observed.processes.io?.wchar;
        let dirtied = self.dirtied()?;
        let Some(added) = dirtied.checked_sub(by_calls).filter(|added| *added > 0) else {
            return Some(Bounds::exact(dirtied));
        };
        let ways = &self.observed.ways;
        let is_own_data = added <= OWN_DATA && added <= by_calls / 20;
        let by_folios = self.dirties_folios(dirtied);
        let is_seen = ways.writes.any() && ways.sinks.is_empty() && !ways.inner_pipes;
        Some(match (is_own_data, by_folios, is_seen) {
            (true, ..) | (_, true, true) => Bounds::exact(by_calls),
            // An unknown part of the calls wrote to storage.
            (_, true, false) if ways.writes.any() => {
                Bounds::between(dirtied / FOLIO_PAGES, by_calls)
            }
            // An unseen way of I/O may have dirtied all of this, and so may a few bytes in folios.
            (_, true, false) => Bounds::between(dirtied / FOLIO_PAGES, dirtied),
            (_, false, _) if self.is_more_than_carried(dirtied) => {
                Bounds::between(dirtied / FOLIO_PAGES, dirtied)
            }
            (_, false, _) => Bounds::exact(dirtied),
        })
    }

    /// Whether calls through the page cache alone can have dirtied `dirtied` bytes in whole folios, with no
    /// other way of I/O seen.
    fn dirties_folios(&self, dirtied: u64) -> bool {
        let io = self.observed.processes.io.unwrap_or_default();
        let ways = &self.observed.ways;
        let of_folios = pages_of_calls(io).saturating_mul(FOLIO_PAGES);
        ways.uncounted.is_empty() && !ways.writes.is_direct() && dirtied <= of_folios
    }

    /// Whether all disks together wrote far less than left the page cache, if `dirtied` bytes were dirtied.
    fn is_more_than_carried(&self, dirtied: u64) -> bool {
        let disks = self.observed.disks.iter();
        let carried = disks.map(|disk| disk.traffic.write_bytes);
        let carried = carried.fold(OWN_DATA, u64::saturating_add);
        let left = self.owed().map(|owed| dirtied.saturating_sub(owed));
        let is_direct = self.observed.ways.writes.is_direct();
        !is_direct && left.is_some_and(|left| left / 2 > carried)
    }

    /// Upper bound on bytes of the pages that it dirtied by writing `written`.
    fn pages_of(&self, written: Bounds) -> u64 {
        let io = self.observed.processes.io.unwrap_or_default();
        let dirtied = self.dirtied().unwrap_or(0);
        dirtied.min(pages_of_calls(io)).max(written.most)
    }

    /// Whether the files that it was seen to write cannot hold what it wrote, and their devices did not carry
    /// what left the page cache.
    fn is_written_elsewhere(&self, written: Bounds) -> bool {
        let files = self.observed.files.iter().filter(|file| file.is_written);
        let held = files.map(|file| file.bytes).reduce(u64::saturating_add);
        let carried = self.traffic_for(Transfer::Write);
        let left = written.least.saturating_sub(self.owed().unwrap_or(0));
        self.observed.target.is_none()
            && held.is_some_and(|held| held.saturating_add(OWN_DATA) < written.least)
            && carried.is_some_and(|stat| stat.write_bytes.saturating_add(OWN_DATA) < left)
    }

    /// Whether its account exceeds what it wrote, because the page cache counts large folios as a whole.
    pub fn counts_folios(&self) -> bool {
        let written = self.written().zip(self.dirtied());
        written.is_some_and(|(written, dirtied)| dirtied.saturating_sub(written.least) > OWN_DATA)
    }

    /// Whether everything that it wrote has left the page cache: the files that can hold it have no dirty page.
    pub fn has_left_page_cache(&self) -> bool {
        self.owed() == Some(0) && self.written_back() > 0
    }

    /// Upper bound on bytes that it discarded before they were written, but had not dirtied itself. Others or an
    /// earlier run may have left them in the same file; its account counts them as its own.
    fn found_dirty(&self) -> u64 {
        let cancelled = self.observed.processes.cancelled_write_bytes;
        let found = self.observed.dirty_before_bytes.unwrap_or(u64::MAX);
        match cancelled < NOTEWORTHY {
            true => 0,
            false => cancelled.min(found),
        }
    }

    /// Upper bound on bytes that it wrote over pages that were dirty before, which its account does not count. A
    /// program that iolab started has dirtied nothing before.
    pub(super) fn overwritten_most(&self) -> u64 {
        let observed = self.observed;
        let is_counted = !observed.processes.lack_some() && observed.ways.uncounted.is_empty();
        match (&observed.subject, observed.processes.io) {
            // Its destination was seen, and is not on storage.
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

    /// Lower bound on bytes that it sent to storage, or left in the page cache to be sent, without those that
    /// were discarded.
    pub fn dirtied(&self) -> Option<u64> {
        let processes = &self.observed.processes;
        let written = processes.io?.write_bytes;
        Some(written.saturating_sub(processes.cancelled_write_bytes))
    }

    /// Bytes of the program's writes that the devices in question had carried by the end of the observation.
    pub fn carried_writes(&self) -> Option<Bounds> {
        let dirtied = self.dirtied()?;
        let device = self.traffic_for(Transfer::Write)?.write_bytes;
        let most = dirtied.saturating_add(self.found_dirty());
        let most = match self.observed.processes.lack_some() {
            true => device,
            false => most.saturating_sub(self.owed().unwrap_or(0)).min(device),
        };
        let by_others = self.by_others().filter(|_| !self.in_flight().writes);
        let by_others = by_others.zip(self.observed.dirty_before_bytes);
        let once = device.saturating_sub(self.counted_twice(Transfer::Write));
        let by_others = by_others.map_or(0, |((_, written), before)| {
            once.saturating_sub(written).saturating_sub(before)
        });
        let least = by_others.max(self.written_back());
        let least = least.max(self.counted(Transfer::Write, dirtied).0);
        Some(Bounds::between(least, most))
    }

    /// Lower bound on bytes that have left the page cache for a device: all dirtied bytes less those that are
    /// still dirty. Applies if the target or the files that were seen can hold all of it. If folios count as a
    /// whole, the written bytes are known.
    fn written_back(&self) -> u64 {
        let files = self.observed.files.iter().filter(|file| file.is_written);
        let of_files = files.map(|file| file.bytes).fold(0, u64::saturating_add);
        let target = self.observed.target.as_ref();
        let target = target.and_then(|target| target.bytes).unwrap_or(0);
        let held = of_files.max(target).saturating_add(OWN_DATA);
        let dirtied = match self.counts_folios() {
            true => self.written().map(|written| written.least),
            false => self.dirtied(),
        };
        match (dirtied, self.owed()) {
            _ if self.uses(Medium::Elsewhere, Transfer::Write) => 0,
            (Some(dirtied), Some(owed)) if dirtied <= held => dirtied.saturating_sub(owed),
            _ => 0,
        }
    }

    /// Bytes of the files that it wrote, or of the target, that still had to be written at the end. `None` if
    /// that is unknown for one of these files, and no target is named.
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
}

/// Upper bound on bytes of the pages that write calls touched: a call that writes two bytes can touch two pages.
fn pages_of_calls(io: ProcessIo) -> u64 {
    let partial = io.syscw.saturating_mul(2 * (PAGE - 1));
    io.wchar.saturating_add(partial)
}
