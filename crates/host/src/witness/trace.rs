//! Trace events of a program: its disk requests and its syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use iolab_storage::sync_events::{SyncedFileSystem, synced_file_systems};
use iolab_workload::Result;
use iolab_workload::witness::{TracedDisk, TracedProgram};

use super::Number;
use super::accounts::{tasks, with_descendants};
use super::disks::AllDevices;
use crate::clock::Clock;
use crate::pseudo_files::text_of;
use crate::tracing::program::{TracedFileSystem, of_program};
use crate::tracing::{TracedPlaces, TracedThreads, Tracer, check_programs, kernel_number};

/// A trace that is being recorded.
pub(super) struct ProgramTracer {
    tracer: Tracer,
    clock: Clock,
    began: u64,
    disks: Vec<Number>,
    file_systems: Vec<TracedFileSystem>,
    /// Threads of a joined process.
    first: BTreeSet<u32>,
    /// Thread that starts a program.
    parent: u32,
}

impl ProgramTracer {
    /// Starts recording the requests of all disks, and the syncs of file systems with sync events.
    ///
    /// # Errors
    /// Of kind usage: the reason why that is impossible.
    pub(super) fn begin() -> Result<Self> {
        check_programs()?;
        let clock = Clock::calibrate();
        let file_systems = synced_file_systems();
        let disks = AllDevices::read().disks();
        // Flushes of a disk that is made of others show only there.
        let of_syncs = file_systems.iter().map(|one| (one.disk, one.has_requests));
        let all: BTreeMap<Number, bool> = disks.iter().copied().chain(of_syncs).collect();
        let mut tracer = Tracer::new(
            &TracedPlaces {
                disks: all.into_iter().collect(),
                file_systems: file_systems.iter().map(|one| one.number).collect(),
                threads: TracedThreads::All,
                sync_calls: file_systems.iter().any(|one| !one.times_syncs),
            },
            &clock,
        )?;
        tracer.start()?;
        Ok(Self {
            tracer,
            began: clock.now(),
            clock,
            disks: disks.into_iter().map(|(disk, _)| disk).collect(),
            file_systems: file_systems.iter().map(traced).collect(),
            first: BTreeSet::new(),
            parent: rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs(),
        })
    }

    /// Counts the activity of a running process and its descendants from now on.
    pub(super) fn join(&mut self, process: u32) {
        self.began = self.clock.now();
        self.first
            .extend(with_descendants([process]).into_iter().flat_map(tasks));
    }

    /// Result for the program that this thread started, or that was joined.
    ///
    /// # Errors
    /// The recorded events cannot be read.
    pub(super) fn finish(self) -> Result<(TracedProgram, BTreeMap<Number, TracedDisk>)> {
        self.tracer.stop();
        let mut recording = self.tracer.finish(&[])?;
        recording.events.retain(|event| event.at >= self.began);
        let parent = self.first.is_empty().then_some(self.parent);
        let (found, syncs) = of_program(
            &recording.events,
            (&self.first, parent),
            &self.file_systems,
            &self.clock,
        );
        let of = |disk: &Number| found.get(&kernel_number(*disk)).copied();
        let disks = self.disks.iter();
        let disks = disks.map(|disk| (*disk, of(disk).unwrap_or_default()));
        let until = recording.until;
        Ok((
            TracedProgram {
                syncs,
                lost: recording.lost,
                until_ns: until.map(|until| self.clock.ns_between(self.began, until)),
            },
            disks.collect(),
        ))
    }
}

fn traced(one: &SyncedFileSystem) -> TracedFileSystem {
    let (major, minor) = one.disk;
    let cache =
        text_of(Path::new("/sys/dev/block").join(format!("{major}:{minor}/queue/write_cache")));
    TracedFileSystem {
        number: kernel_number(one.number),
        disk: kernel_number(one.disk),
        journal: one.journal,
        // Where the cache mode is unknown, flushes are looked for.
        has_cache: cache.is_none_or(|cache| cache.trim() != "write through"),
    }
}
