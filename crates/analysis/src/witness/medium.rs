//! The medium that serves a program's bytes: storage, memory, another process or another machine.

use iolab_workload::region_state::Medium;
use iolab_workload::witness::{NoStorage, ObservedFile};

use super::{NOTEWORTHY, Reading, Transfer};

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
