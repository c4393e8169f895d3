//! Observations of a running program: its processes, its open files, the disks, and the I/O of other programs meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use iolab_workload::counters::{
    DeviceStat, DeviceWaits, NfsIo, Pressure, ProcessIo, ResourceUse, Traffic,
};
use iolab_workload::json;
use iolab_workload::named;
use iolab_workload::region_state::{Medium, Region, Residency};

/// The subject of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A program that the observer started: its name and arguments.
    Program(Vec<String>),
    /// A process that ran before.
    Process {
        /// Number of the process.
        pid: u32,
        /// Name and arguments of the program.
        command: Vec<String>,
    },
    /// Devices, whichever process uses them.
    #[default]
    Devices,
}

impl Subject {
    /// The name and arguments of the program; empty for devices.
    pub fn command(&self) -> &[String] {
        match self {
            Self::Program(command) | Self::Process { command, .. } => command,
            Self::Devices => &[],
        }
    }
}

/// Observation from the start of a program, or of the observation, until all processes that it started have ended, or the
/// observation has.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// The subject.
    pub subject: Subject,
    /// How the program ended.
    pub end: ObservedEnd,
    /// From its start to its end, ns.
    pub elapsed_ns: u64,
    /// From its start to the end of the observation, ns.
    pub observed_ns: u64,
    /// CPU time that observing took, ns.
    pub observer_cpu_ns: u64,
    /// Totals over the processes of the observation.
    pub processes: ProcessTotals,
    /// Their ways of I/O, as far as they were seen.
    pub ways: IoWays,
    /// Files and devices of storage that they had open, as far as they were seen.
    pub files: Vec<ObservedFile>,
    /// The file, device or directory that the user named.
    pub target: Option<ObservedTarget>,
    /// The devices that `files` and `target` lie on.
    pub devices: Vec<ObservedDevice>,
    /// All disks of the machine that nothing else lies below, loop devices included.
    pub disks: Vec<DiskTraffic>,
    /// Processes of others that did I/O meanwhile.
    pub others: OtherProcesses,
    /// Bytes of the machine's page cache that had to be written at the start, of whatever process.
    pub dirty_before_bytes: Option<u64>,
    /// Traffic of the NFS mount of the target.
    pub nfs: Option<NfsIo>,
    /// Waits and interruptions of the whole machine.
    pub pressure: Pressure,
    /// Traffic over time.
    pub course: Course,
    /// Limits of the control groups that the observer, and with it the program, runs in.
    pub limits: GroupLimits,
    /// Processes whose traffic the control group of the program counted, as in `disks`; `None` without such a group.
    #[serde(rename = "group_holds")]
    pub group: Option<GroupHolds>,
    /// Result of tracing; `None` if the program was not traced.
    pub trace: Option<TracedProgram>,
}

named! {
    /// Content of a program's control group, whose traffic the kernel counts by disk.
    pub enum GroupHolds: "content of a control group" {
        /// The program with all its descendants: the group was made for it.
        Program = "program",
        /// The program with its descendants, and iolab at most: nothing else was found in it.
        ProgramAndObserver = "program-and-observer",
        /// Other processes as well.
        Others = "others",
    }
}

/// Traffic with a disk that the kernel counted for a control group (`io.stat` of version 2). It includes requests of the
/// group's processes, and write-back of pages that they dirtied if the group counts memory too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupTraffic {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

/// Traffic over time, in consecutive moments of 100 ms. The moments are doubled as often as needed to keep them few, or
/// longer from the start if a look costs much.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// The names of the devices.
    pub devices: Vec<String>,
    /// The moments in order of time.
    pub moments: Vec<Moment>,
}

impl Course {
    /// Most moments that are kept.
    pub const MOMENTS_MAX: usize = 1024;

    /// Makes one moment of each two neighbours.
    pub fn halve(&mut self) {
        let pairs = self.moments.chunks(2);
        let joined = pairs.filter_map(|pair| pair.iter().cloned().reduce(|a, b| a.plus(&b)));
        self.moments = joined.collect();
    }
}

/// A part of the time of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// From the start of the observation, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Growth of the processes' accounts; `None` if none could be read, or if only devices are observed.
    pub program: Option<ProcessIo>,
    /// Traffic of each device of the course, by all processes.
    pub devices: Vec<DeviceStat>,
}

impl Moment {
    fn plus(&self, next: &Self) -> Self {
        let devices = self.devices.iter().zip(&next.devices);
        Self {
            start_ns: self.start_ns,
            length_ns: self.length_ns.saturating_add(next.length_ns),
            program: self.program.zip(next.program).map(|(a, b)| a.plus(b)),
            devices: devices.map(|(a, b)| a.plus(*b)).collect(),
        }
    }
}

/// Limits of control groups, each the tightest on the way up to the root.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupLimits {
    /// CPU time per time; 1.5 is one and a half CPUs.
    pub cpus: Option<f64>,
    /// Memory with page cache, bytes.
    pub memory_bytes: Option<u64>,
    /// Traffic per second with the observed devices.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub io: BTreeMap<Traffic, u64>,
}

/// How an observed program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservedEnd {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Ended; only its parent learns how.
    Gone,
    /// Still running at the end of the observation.
    #[default]
    Running,
}

/// The processes of a program together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessTotals {
    /// Processes whose ends the observer collected: one whose parent waited for it is part of its parent's account.
    pub collected: u64,
    /// Processes that ended without a final account, so that their last I/O is missing.
    pub cut_short: u64,
    /// Processes that had not ended, and whose account could not be read.
    pub unread: u64,
    /// Processes that had not ended at the end of the observation.
    pub running: u64,
    /// Whether a process ignored the ends of its children, whose accounts are in no other one.
    pub ignores_children: bool,
    /// Whether the accounts of all ended tasks were received, including children whose parents ignored their ends.
    pub is_complete: bool,
    /// I/O of all of them; `None` if no account could be read.
    #[serde(flatten)]
    pub io: Option<ProcessIo>,
    /// Bytes that were to be written and never will be, because their file was cut or removed.
    pub cancelled_write_bytes: u64,
    /// Bytes carried by storage that page faults fetched rather than read calls: program files and libraries, two windows
    /// of read-ahead each. Not a bound for mapped data files. `None` if faults are not counted.
    pub fault_bytes: Option<u64>,
    /// Resource use; `None` for a process that the observer did not start.
    #[serde(flatten)]
    pub usage: Option<ResourceUse>,
    /// Time in which their threads could run and waited for a CPU, ns; up to the last look at each.
    pub run_delay_ns: u64,
}

impl ProcessTotals {
    /// Whether children can be missing whose ends their parent ignored.
    pub fn may_miss_children(&self) -> bool {
        self.ignores_children && !self.is_complete
    }

    /// Whether the account may lack all I/O of some processes.
    pub fn lack_some(&self) -> bool {
        self.may_miss_children() || self.unread > 0
    }
}

/// How processes did I/O, as far as their descriptors and mappings showed it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct IoWays {
    /// Looks that saw a process.
    pub looks: u64,
    /// Files and devices of storage that were open for reading.
    pub reads: OpenWays,
    /// Files and devices of storage that were open for writing.
    pub writes: OpenWays,
    /// Ways to read or write that the kernel does not count as calls.
    pub uncounted: BTreeSet<UncountedWay>,
    /// Ways in which storage was open for reading in the processes with an uncounted way; all others read by counted calls.
    pub uncounted_reads: OpenWays,
    /// Sources other than storage that were open for reading.
    pub sources: BTreeSet<NoStorage>,
    /// Sinks other than storage that were open for writing, without its own standard output and standard error.
    pub sinks: BTreeSet<NoStorage>,
    /// Whether there were pipes among the processes, whose readers get only what the others wrote.
    pub inner_pipes: bool,
}

/// How files and devices of storage were open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OpenWays {
    /// One with O_DIRECT.
    pub direct: bool,
    /// One without.
    pub buffered: bool,
}

impl OpenWays {
    /// Ways of opening in either of two sets.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            direct: self.direct || other.direct,
            buffered: self.buffered || other.buffered,
        }
    }

    /// Whether any was open.
    pub fn any(self) -> bool {
        self.direct || self.buffered
    }

    /// Whether all were open with O_DIRECT.
    pub fn is_direct(self) -> bool {
        self.direct && !self.buffered
    }
}

named! {
    /// A way to read or write whose bytes `rchar` and `wchar` of an I/O account leave out.
    #[derive(PartialOrd, Ord)]
    pub enum UncountedWay: "way of I/O" {
        /// Rings of io_uring(7).
        IoUring = "io_uring",
        /// A context of io_setup(2).
        Libaio = "libaio",
        /// A file that is mapped.
        Mmap = "mmap",
    }
}

named! {
    /// Something without storage that a process can read from or write to.
    #[derive(PartialOrd, Ord)]
    pub enum NoStorage: "source" {
        /// A character device other than a terminal, such as `/dev/zero`.
        CharDevice = "character device",
        /// A pipe whose other end lies outside.
        Pipe = "pipe",
        /// A socket.
        Socket = "socket",
        /// A file in memory.
        Memory = "file in memory",
    }
}

/// A file or device of storage that was seen open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ObservedFile {
    /// Its path, as the kernel reports it.
    #[serde(serialize_with = "json::path")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// The storage medium of its bytes.
    pub medium: Medium,
    /// Its size at the end, bytes.
    pub bytes: u64,
    /// Bytes that have space of their own at the end; the rest are holes, or compressed. `None` if that is not known.
    pub allocated_bytes: Option<u64>,
    /// Whether it was open for reading.
    pub is_read: bool,
    /// Whether it was open for writing.
    pub is_written: bool,
    /// Whether the device that it lies on is known, and so one of the observed ones.
    pub has_device: bool,
    /// State of its pages in the page cache at the end.
    pub after: Option<Residency>,
}

/// The target that the user named.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ObservedTarget {
    /// Path of the target.
    #[serde(serialize_with = "json::path")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// The storage medium of its bytes.
    pub medium: Medium,
    /// Its size at the start, bytes; at the end for a file that was created meanwhile. `None` for a directory.
    pub bytes: Option<u64>,
    /// Whether it is a block device, which has no holes of its own.
    pub is_device: bool,
    /// The page cache and the file, before and after.
    pub region: Region,
}

/// A device that something lies on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ObservedDevice {
    /// Its name: `vda1`.
    pub name: String,
    /// The disks below it; itself if it is one.
    pub disks: Vec<String>,
    /// Its traffic; `None` if it does not count.
    #[serde(flatten)]
    pub traffic: Option<DeviceStat>,
    /// Time of its requests; `None` if it does not count.
    pub waits: Option<DeviceWaits>,
    /// Traffic of the disks below it, if it is not a disk itself.
    pub below: Option<DeviceStat>,
    /// Whether a loop device lies on the way, whose file the page cache may hold.
    pub in_file: bool,
    /// Whether the layers below it pass on each byte once and add none of their own. A loop device among them has to bypass
    /// the page cache.
    pub passes_on: bool,
    /// Whether an observed file on it was open for reading, or the target lies there; `false` for all devices if that is
    /// unknown.
    pub is_read: bool,
    /// Whether an observed file on it was open for writing, or the target lies there; `false` for all devices if that is
    /// unknown.
    pub is_written: bool,
    /// Requests of the device in flight when the observation began.
    pub in_flight: InFlight,
}

/// Whether requests were in flight when an observation began. Their bytes are in the counters of the device from then on,
/// and in the accounts of their processes from before. If this is unknown, both may have been in flight: the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// Reads were.
    pub reads: bool,
    /// Writes were.
    pub writes: bool,
}

impl Default for InFlight {
    fn default() -> Self {
        Self {
            reads: true,
            writes: true,
        }
    }
}

impl InFlight {
    /// No requests in flight.
    pub const NONE: Self = Self {
        reads: false,
        writes: false,
    };

    /// Requests in flight here or in `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            reads: self.reads || other.reads,
            writes: self.writes || other.writes,
        }
    }
}

/// Traffic of a disk.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiskTraffic {
    /// Name of the disk.
    pub name: String,
    /// MAJOR and MINOR.
    pub number: (u32, u32),
    /// Its traffic, by all processes.
    #[serde(flatten)]
    pub traffic: DeviceStat,
    /// The share that the control group of the program counted; `None` without a counting group.
    pub of_group: Option<GroupTraffic>,
    /// The traced share; `None` without a trace.
    pub traced: Option<TracedDisk>,
    /// Requests of the disk in flight when the observation began.
    pub in_flight: InFlight,
}

/// I/O of processes that do not belong to the program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcesses {
    /// Processes that read or wrote storage.
    pub active: Vec<OtherProcess>,
    /// Processes whose account could not be read.
    pub unread: u64,
    /// Whether the list includes processes that began and ended meanwhile: only root sees them.
    pub sees_ended: bool,
}

/// A process that does not belong to the program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OtherProcess {
    /// Number of the process.
    pub pid: u32,
    /// Name of the process.
    pub name: String,
    /// Whether it is a thread of the kernel, whose writes may be data that others have left in the page cache.
    pub is_kernel: bool,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Bytes that it fetched from any storage.
    pub read_bytes: u64,
    /// Bytes that it sent to storage, or dirtied in the page cache.
    pub write_bytes: u64,
}

/// The times of many, in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// Their mean, ns.
    pub mean_ns: f64,
    /// Their median, ns.
    pub p50_ns: u64,
    /// Their 99th percentile, ns; of few, little more than their longest.
    pub p99_ns: u64,
}

/// Requests of a disk that the threads of a program sent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedRequests {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// From their start in the block layer to their issue to the disk; `None` without any.
    pub queue: Option<Times>,
    /// From their issue to the disk to their completion; `None` without any.
    pub device: Option<Times>,
}

/// Traced requests of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedDisk {
    /// Reads of the program.
    pub reads: TracedRequests,
    /// Writes of the program.
    pub writes: TracedRequests,
    /// Requests that other threads sent, including threads of the kernel that write back data dirtied by programs.
    pub others: u64,
}

/// The times of syncs, and their parts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SyncTimes {
    /// From the call into the file system to its return.
    #[serde(flatten)]
    pub whole: Times,
    /// Mean time in which the disk flushed its cache, ns.
    pub flush_ns: f64,
    /// Mean time in which else the journal was written, ns.
    pub journal_ns: f64,
    /// Mean time in which else the disk carried out writes, ns.
    pub write_ns: f64,
    /// Mean rest, ns.
    pub host_ns: f64,
}

/// Syncs of files that file systems with trace events got from the threads of a program.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedSyncs {
    /// Number of syncs.
    pub syncs: u64,
    /// Syncs whose end is known.
    pub timed: u64,
    /// Timed syncs within which the disk completed a flush of its cache.
    pub flushed: u64,
    /// Timed syncs of files on disks without a volatile cache.
    pub uncached: u64,
    /// Journal commits that timed syncs waited for.
    pub commits: u64,
    /// Times of the timed syncs; `None` without any.
    #[serde(flatten)]
    pub times: Option<SyncTimes>,
}

/// Traced syncs of a program with all its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedProgram {
    /// Syncs of the program.
    pub syncs: TracedSyncs,
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// From the start of the observation to the moment when recording stopped, ns; `None` if everything was recorded.
    pub until_ns: Option<u64>,
}
