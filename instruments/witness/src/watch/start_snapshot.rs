//! Values before an observation, and the result of their comparison with those at its end.
//!
//! Trace events of a program: its disk requests and its syncs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use super::accounts::{Others, tasks, with_descendants};
use super::descriptors::{MAPPED_LEAST, Mapped};
use super::exits::{Exit, Exits, family};
use super::over_time::{AllDevices, Recorder};
use super::running_process::RunningProcess;
use super::seen_file::{Target, file_at_end};
use super::traced_program::{TracedFileSystem, of_program};
use super::{Followed, Number, Watch, WitnessOf};
use crate::observed::{GroupLimits, Observed, ProcessTotals, Subject, TracedDisk, TracedProgram};
use iolab_command::output::note;
use iolab_host::cgroup::CgroupLimits;
use iolab_host::clock::Clock;
use iolab_host::counters::{self, NfsMounts, cancelled_by_this_process};
use iolab_host::device::Device;
use iolab_host::tracing::{TracedPlaces, TracedThreads, Tracer, check_programs, kernel_number};
use iolab_storage::sectors::{SyncedFileSystem, synced_file_systems};
use iolab_storage::sysfs::text_of;
use iolab_storage::{Stack, procfs};
use iolab_workload::Result;
use iolab_workload::counters::Counters;

/// Counters and accounts before the observation.
pub(super) struct Before {
    target: Option<Target>,
    others: Others,
    dirty_bytes: Option<u64>,
    /// Stacks below the target and the observed devices.
    stacks: Vec<Stack>,
    counters: Counters,
    counted_at: Instant,
    /// Counts of all NFS mounts: the program's own are known only afterwards.
    nfs: NfsMounts,
    devices: AllDevices,
    cancelled_bytes: u64,
}

impl Before {
    /// Reads the values, and joins the process to observe, if any. `watched` are the stacks of observed
    /// devices.
    ///
    /// # Errors
    /// There is no such process.
    pub(super) fn read(
        of: WitnessOf<'_>,
        target: Option<&Path>,
        watched: Vec<Stack>,
    ) -> Result<(Self, Option<RunningProcess>)> {
        let target = target.map(Target::before);
        let others = Others::read(&BTreeSet::new());
        let dirty_bytes = procfs::dirty_bytes();
        let of_target = target.iter().filter_map(|target| target.stack.as_ref());
        let of_target = of_target.flat_map(Stack::each).cloned();
        let stacks: Vec<Stack> = of_target.chain(watched).collect();
        let counted_at = Instant::now();
        let counters = counters::snapshot(&stacks);
        let nfs = NfsMounts::read();
        // Process accounts come before device counters: I/O in between is not mistaken for another process's.
        let joined = match of {
            WitnessOf::Process(process) => Some(RunningProcess::new(process)?),
            WitnessOf::Program { .. } | WitnessOf::Devices(_) => None,
        };
        let before = Self {
            target,
            others,
            dirty_bytes,
            stacks,
            counters,
            counted_at,
            nfs,
            devices: AllDevices::read(),
            cancelled_bytes: cancelled_by_this_process(),
        };
        Ok((before, joined))
    }

    /// Recorder of a course from now on: first of the devices below the target, or the observed devices.
    pub(super) fn recorder(&self, began: Instant) -> Recorder {
        let first = self.stacks.iter().filter_map(|stack| stack.device);
        Recorder::new(began, first, &self.devices)
    }

    /// Reads everything again, and returns the differences.
    pub(super) fn finish(self, mut watch: Watch, followed: Followed) -> Observed {
        let now = AllDevices::read();
        let nfs_now = NfsMounts::read();
        let traced = watch.tracer.map(ProgramTracer::finish).transpose();
        // The other findings are valid without the trace.
        let traced = traced.unwrap_or_else(|_| {
            note("note: the kernel's trace events cannot be read; the evidence has none");
            None
        });
        let (trace, traced) = traced.unzip();
        let counted = counters::since(&self.counters, self.counted_at.elapsed(), &self.stacks);
        let exits = watch.exits.as_mut().and_then(Exits::all);
        let ended = exits.map(|exits| not_of(exits, &followed.ancestors));
        let observed = with_descendants(followed.living);
        let observed: BTreeSet<u32> = observed.into_iter().collect();
        let group = watch.group.and_then(|group| group.finish(&observed));
        let (group, of_group) = group.unzip();
        let joined = match &followed.subject {
            Subject::Process { pid, .. } => followed.totals.io.map(|io| (*pid, io)),
            Subject::Program(_) | Subject::Devices => None,
        };
        let others = Others::read(&observed).since(&self.others, ended.as_deref(), joined);
        let mut descriptors = followed.descriptors;
        let ways = descriptors.finish();
        // A file that the program deletes while it is open here loses its pages when it is closed here.
        let cancelled = cancelled_by_this_process().saturating_sub(self.cancelled_bytes);
        let has_target = self.target.is_some();
        let target = self.target.map(Target::after);
        let mut used = descriptors.used();
        for device in self.stacks.iter().filter_map(|stack| stack.device) {
            used.insert(device, (true, true));
        }
        let mut lie_on = self.stacks;
        for stack in std::mem::take(&mut descriptors.stacks) {
            if !lie_on.contains(&stack) {
                lie_on.push(stack);
            }
        }
        let is_started = matches!(followed.subject, Subject::Program(_));
        let devices = now.lie_on(&self.devices, &lie_on, &used);
        let names: Vec<String> = devices.iter().map(|one| one.name.clone()).collect();
        let totals = followed.totals;
        let nfs = nfs_now.since(&self.nfs, &lie_on);
        Observed {
            subject: followed.subject,
            end: followed.end,
            elapsed_ns: followed.ended_ns.unwrap_or(followed.observed_ns),
            observed_ns: followed.observed_ns,
            observer_cpu_ns: counted.usage.user_ns + counted.usage.system_ns,
            processes: ProcessTotals {
                cancelled_write_bytes: totals.cancelled_write_bytes.saturating_add(cancelled),
                fault_bytes: followed
                    .faults
                    .map(|faults| fault_bytes(faults, &descriptors.mapped, now.fault_bytes())),
                ..totals
            },
            ways,
            files: descriptors.files.values().map(file_at_end).collect(),
            target,
            devices,
            disks: now.disks_since(&self.devices, of_group.as_ref(), traced.as_ref()),
            others,
            dirty_before_bytes: self.dirty_bytes,
            // A file may have been open too briefly to be seen.
            nfs: nfs.or_else(|| nfs_now.all_since(&self.nfs).filter(|_| !has_target)),
            pressure: counted.pressure,
            course: watch.recorder.finish(totals.io, &names),
            limits: match is_started {
                true => limits(&lie_on),
                false => GroupLimits::default(),
            },
            group,
            trace,
        }
    }
}

/// Bytes of mapped files fetched by this number of page faults with I/O, an estimate; `window_bytes` is the
/// read-ahead of one fault.
fn fault_bytes(faults: u64, mapped: &Mapped, window_bytes: u64) -> u64 {
    let largest = mapped.largest.unwrap_or(u64::MAX);
    let window = window_bytes.max(MAPPED_LEAST);
    let estimate = faults.saturating_mul(window.min(largest));
    // Data used in order is fetched without further faults.
    estimate.max(mapped.gained())
}

/// Accounts of tasks that neither are nor descend from `ancestors`.
fn not_of(exits: &[Exit], ancestors: &BTreeSet<u32>) -> Vec<Exit> {
    // In the same order, so that each task of the family is met in its turn: its number may be another task's
    // too.
    let mut own = family(exits, ancestors).into_iter().peekable();
    let others = exits
        .iter()
        .filter(|exit| own.next_if(|own| own == *exit).is_none());
    others.copied().collect()
}

/// Limits by the control groups of this process, and so of a program that it starts.
fn limits(stacks: &[Stack]) -> GroupLimits {
    let proc = Path::new("/proc");
    let devices = stacks.iter().filter_map(|stack| stack.device);
    let devices = devices.filter_map(|number| Device::read(Path::new("/sys"), number));
    let io = devices.flat_map(|device| CgroupLimits::of_device(proc, Some(&device)).io);
    let io = io.map(|limit| (limit.what, limit.per_second));
    let CgroupLimits {
        cpus,
        memory_bytes,
        memory_left_bytes: _,
        io: _,
    } = CgroupLimits::read(proc, &[]);
    GroupLimits {
        cpus,
        memory_bytes,
        io: io.collect(),
    }
}

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
        let of_syncs = file_systems
            .iter()
            .map(|one| (one.disk.number, one.disk.has_requests));
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
    let (major, minor) = one.disk.number;
    let cache =
        text_of(Path::new("/sys/dev/block").join(format!("{major}:{minor}/queue/write_cache")));
    TracedFileSystem {
        number: kernel_number(one.number),
        disk: kernel_number(one.disk.number),
        journal: one.journal,
        // Where the cache mode is unknown, flushes are looked for.
        has_cache: cache.is_none_or(|cache| cache.trim() != "write through"),
    }
}
