//! The evidence of a program as data for other programs: `iolab schema witness` describes it.

use std::io::{self, Write};

use iolab_analysis::witness::{DeviceLoad, Evidence, p99_of};
use iolab_record::witness::ToolClaim;
use iolab_workload::counters::{DeviceStat, Traffic};
use iolab_workload::witness::{
    Course, DiskTraffic, GroupHolds, GroupLimits, GroupTraffic, Moment, NoStorage, ObservedEnd,
    Subject, Times, TracedDisk, TracedProgram, TracedRequests, UncountedWay,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::claims;
use crate::claims::{
    ClaimData, ClaimedData, DirectionData, Observed, OtherProcessData, OtherUseData, SyncsData,
};
use crate::document::write;
use crate::document_header::{IOLAB_VERSION, SCHEMA};

/// JSON document of `iolab witness`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WitnessDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The program and its arguments; empty if only devices were observed.
    command: &'a [String],
    /// Number of the process that was joined; `null` for a program that iolab started.
    joined_pid: Option<u32>,
    /// The result of the evidence, in one sentence.
    text: String,
    /// Claims in the order in which they are printed: the parts of `text`, each with its numbers.
    claims: Vec<ClaimData<Observed>>,
    /// Exit code of the program; `null` where it did not end by itself, or iolab did not start it.
    exit_code: Option<i32>,
    /// Signal that ended the program; `null` where none did.
    signal: Option<i32>,
    /// Time from the start to the end of the program, ns.
    elapsed_ns: u64,
    /// Time from the start of the program to the end of the observation, ns.
    observed_ns: u64,
    /// CPU time that observing took, ns.
    observer_cpu_ns: u64,
    /// Evidence on reads.
    reads: DirectionData,
    /// Evidence on writes.
    writes: DirectionData,
    /// Flushes of a write cache that the devices completed; `null` where they are not counted.
    flushes: Option<u64>,
    /// Bytes of the program's files that still had to be written at the end; `null` where that is not known.
    owed_bytes: Option<u64>,
    /// The devices in question.
    devices: Vec<DeviceData<'a>>,
    /// All disks with traffic.
    disks: Vec<DeviceData<'a>>,
    /// Bytes that file servers (NFS) sent to the mounts in question, of all processes; to all mounts where no target was named and no
    /// file of one was seen open. `null` without such mounts.
    nfs_read_bytes: Option<u64>,
    /// Bytes that these file servers received; `null` without such mounts.
    nfs_write_bytes: Option<u64>,
    /// Files and devices of storage that were seen open.
    files: Vec<FileData>,
    /// Ways in which the program did I/O, as far as they were seen.
    ways: WaysData,
    /// Processes of the program.
    processes: ProcessesData,
    /// I/O of other processes.
    others: OthersData,
    /// Time in which some task of the machine waited for a CPU, ns; `null` where it is not counted.
    cpu_stall_ns: Option<u64>,
    /// Time in which some task waited for I/O, ns; `null` where it is not counted.
    io_stall_ns: Option<u64>,
    /// CPU time that the hypervisor gave to others, ns; `null` where it is not counted.
    steal_ns: Option<u64>,
    /// Time in which a CPU quota held the group of this process back, ns; `null` where it is not counted.
    throttled_ns: Option<u64>,
    /// Limits of the control groups that a program started by iolab ran in.
    limits: LimitsData,
    /// Result that the program reports itself, if it wrote a report that iolab reads.
    claim: Option<ToolClaimData<'a>>,
    /// Processes in the control group whose traffic `disks` have: `program` (the group was made for it),
    /// `program-and-observer`, or `others` as well; `null` where no group counts.
    #[schemars(extend("enum" = group_or_null()))]
    group_holds: Option<&'static str>,
    /// Trace events of the kernel; `null` without `--trace`.
    trace: Option<TraceData>,
    /// Traffic over time.
    course: CourseData<'a>,
}

fn group_or_null() -> Vec<Option<&'static str>> {
    let names = GroupHolds::NAMES.iter().copied().map(Some);
    names.chain([None]).collect()
}

/// Trace events of the kernel for a program.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Trace")]
struct TraceData {
    /// Syncs that file systems got from its threads.
    syncs: SyncsData,
    /// Events that the kernel lost for lack of room.
    lost: u64,
    /// Time from the start until recording stopped, ns; `null` where it lasted to the end.
    until_ns: Option<u64>,
    /// Disks with traffic.
    disks: Vec<TracedDiskData>,
}

/// Traced requests of a disk.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TracedDisk")]
struct TracedDiskData {
    /// Name of the disk.
    name: String,
    /// Reads that the program's threads sent.
    reads: TracedRequestsData,
    /// Writes that the program's threads sent.
    writes: TracedRequestsData,
    /// Requests that other threads sent, including kernel threads.
    other_requests: u64,
}

/// Requests that the threads of a program sent to a disk.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TracedRequests")]
struct TracedRequestsData {
    /// Number of requests.
    requests: u64,
    /// Bytes of the requests.
    bytes: u64,
    /// Time from the start of a request in the block layer to its issue; `null` without requests.
    queue: Option<TimesData>,
    /// Time from the issue of a request to its completion; `null` without requests.
    device: Option<TimesData>,
}

/// Times of several requests, summarised.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Times")]
struct TimesData {
    /// Mean time, ns.
    mean_ns: f64,
    /// Median time, ns.
    p50_ns: u64,
    /// 99th percentile of the time, ns; `null` with too few requests.
    p99_ns: Option<u64>,
}

/// Limits of control groups, each the tightest on the way up.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Limits")]
struct LimitsData {
    /// CPU seconds per second; `null` without a limit.
    cpus: Option<f64>,
    /// Memory including page cache, bytes; `null` without a limit.
    memory_bytes: Option<u64>,
    /// Limits of the traffic with the devices in question.
    io: Vec<IoLimitData>,
}

/// A limit of the traffic with a device.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IoLimit")]
struct IoLimitData {
    /// The limited traffic, as io.max names it.
    #[schemars(extend("enum" = Traffic::NAMES))]
    what: &'static str,
    /// The limit: bytes or requests per second.
    per_second: u64,
}

/// Result that a program reports itself.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolClaim")]
struct ToolClaimData<'a> {
    /// The tool.
    tool: &'a str,
    /// Reads that it reports; `null` where it made none.
    reads: Option<ClaimedData>,
    /// Writes that it reports; `null` where it made none.
    writes: Option<ClaimedData>,
}

/// Traffic over time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Course")]
struct CourseData<'a> {
    /// The names of the devices.
    devices: &'a [String],
    /// Consecutive parts of the observation.
    moments: Vec<MomentData>,
}

/// Traffic in a part of the observation.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Moment")]
struct MomentData {
    /// Start of the part, from the start of the observation, ns.
    start_ns: u64,
    /// Length of the part, ns.
    length_ns: u64,
    /// Bytes of the program's read calls, from any source; `null` without an account.
    rchar: Option<u64>,
    /// Bytes of the program's write calls; `null` without an account.
    wchar: Option<u64>,
    /// Bytes that the program fetched from storage; `null` without an account.
    read_bytes: Option<u64>,
    /// Bytes that the program sent to storage or left in the page cache to be sent; `null` without an account.
    write_bytes: Option<u64>,
    /// Traffic of each device, of all processes, in the order of the names.
    devices: Vec<MomentDeviceData>,
}

/// Traffic of a device in a part of the time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MomentDevice")]
struct MomentDeviceData {
    /// Bytes read.
    read_bytes: u64,
    /// Read requests.
    read_requests: u64,
    /// Bytes written.
    write_bytes: u64,
    /// Write requests.
    write_requests: u64,
    /// Flushes.
    flushes: u64,
    /// Time with requests in flight, ms.
    busy_ms: u64,
    /// Mean number of requests in flight; `null` where it is not counted.
    in_flight: Option<f64>,
}

/// A device and its traffic, of all processes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Device")]
struct DeviceData<'a> {
    /// Name of the device.
    name: &'a str,
    /// Bytes read; `null` where it does not count.
    read_bytes: Option<u64>,
    /// Read requests; `null` where it does not count.
    read_requests: Option<u64>,
    /// Bytes written; `null` where it does not count.
    write_bytes: Option<u64>,
    /// Write requests; `null` where it does not count.
    write_requests: Option<u64>,
    /// Flushes; `null` where it does not count.
    flushes: Option<u64>,
    /// Time with requests in flight, ms; `null` where it does not count.
    busy_ms: Option<u64>,
    /// Mean time of a read with its queueing, ms; `null` where none completed, or it is not counted.
    read_await_ms: Option<f64>,
    /// Mean time of a write with its queueing, ms; `null` where none completed, or it is not counted.
    write_await_ms: Option<f64>,
    /// Mean number of requests in flight; `null` where it is not counted.
    in_flight: Option<f64>,
    /// Bytes that the control group of the program read; `null` where no group counts, and for devices other
    /// than disks.
    group_read_bytes: Option<u64>,
    /// Bytes that the control group of the program wrote; `null` as for `group_read_bytes`.
    group_write_bytes: Option<u64>,
}

/// A file or device of storage that was seen open.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "File")]
struct FileData {
    /// Path of the file.
    path: String,
    /// Size of the file at the end, bytes.
    bytes: u64,
    /// Whether it was open for writing.
    is_written: bool,
    /// Bytes of it in the page cache at the end; `null` where that cannot be seen.
    cached_bytes: Option<u64>,
}

/// Ways in which a program did I/O, as far as its descriptors and mappings showed them.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ways")]
struct WaysData {
    /// Number of looks at its processes; with 0 nothing below was seen.
    looks: u64,
    /// Whether storage was open for reading with `O_DIRECT`.
    direct_reads: bool,
    /// Whether storage was open for reading without `O_DIRECT`.
    buffered_reads: bool,
    /// Whether storage was open for writing with `O_DIRECT`.
    direct_writes: bool,
    /// Whether storage was open for writing without `O_DIRECT`.
    buffered_writes: bool,
    /// Ways whose bytes the kernel does not count as calls.
    #[schemars(extend("items" = json!({"type": "string", "enum": UncountedWay::NAMES})))]
    uncounted: Vec<&'static str>,
    /// Other sources that it could read from.
    #[schemars(extend("items" = json!({"type": "string", "enum": NoStorage::NAMES})))]
    sources: Vec<&'static str>,
    /// Other destinations that it could write to, except its standard output and standard error.
    #[schemars(extend("items" = json!({"type": "string", "enum": NoStorage::NAMES})))]
    sinks: Vec<&'static str>,
}

/// The processes of a program.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Processes")]
struct ProcessesData {
    /// Processes whose ends iolab collected: one whose parent waited for it is part of its parent's account.
    collected: u64,
    /// Processes that ended without a final account, so that their last I/O is missing.
    cut_short: u64,
    /// Processes that were still running, and whose account could not be read.
    unread: u64,
    /// Processes that were still running.
    running: u64,
    /// Whether I/O of children can be missing, because their parent ignored their ends and only root sees them.
    may_miss_children: bool,
    /// Bytes that read calls returned, from any source; `null` without an account.
    rchar: Option<u64>,
    /// Bytes handed to write calls; `null` without an account.
    wchar: Option<u64>,
    /// Read calls; `null` without an account.
    read_calls: Option<u64>,
    /// Write calls; `null` without an account.
    write_calls: Option<u64>,
    /// Dirtied bytes that were discarded before they were written.
    cancelled_write_bytes: u64,
    /// CPU time in user mode, ns; `null` for a process that iolab did not start.
    user_ns: Option<u64>,
    /// CPU time in the kernel, ns; `null` for a process that iolab did not start.
    system_ns: Option<u64>,
    /// Time in which threads waited for a CPU, ns, up to the last look at each.
    run_delay_ns: u64,
}

/// I/O of other processes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Others")]
struct OthersData {
    /// Traffic of other processes on the devices in question.
    #[serde(flatten)]
    of_devices: OtherUseData,
    /// Processes whose account could not be read.
    unread: u64,
    /// Whether processes that ended meanwhile are among those below: only root sees them.
    sees_ended: bool,
    /// Processes that did I/O, on any disk.
    processes: Vec<OtherProcessData>,
}

/// Writes one object.
///
/// # Errors
/// Errors of `to`.
pub fn json(evidence: &Evidence, to: &mut dyn Write) -> io::Result<()> {
    write(&WitnessDocument::of(evidence), to)
}

impl<'a> WitnessDocument<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let observed = &evidence.observed;
        let (processes, ways) = (&observed.processes, &observed.ways);
        let devices = observed.devices.iter();
        let disks = observed.disks.iter();
        let files = observed.files.iter();
        let (exit_code, signal) = match observed.end {
            ObservedEnd::Code(code) => (Some(code), None),
            ObservedEnd::Signal(signal) => (None, Some(signal)),
            ObservedEnd::Gone | ObservedEnd::Running => (None, None),
        };
        let io = processes.io;
        Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            command: observed.subject.command(),
            joined_pid: match observed.subject {
                Subject::Process { pid, .. } => Some(pid),
                Subject::Program(_) | Subject::Devices => None,
            },
            text: super::headline(evidence),
            claims: claims::of(evidence),
            exit_code,
            signal,
            elapsed_ns: observed.elapsed_ns,
            observed_ns: observed.observed_ns,
            observer_cpu_ns: observed.observer_cpu_ns,
            reads: DirectionData::of(&evidence.reads),
            writes: DirectionData::of(&evidence.writes),
            flushes: evidence.flushes.as_ref().map(|all| all.completed),
            owed_bytes: evidence.owed,
            devices: devices
                .map(|one| {
                    let load = DeviceLoad::of(one, observed.observed_ns);
                    device(&one.name, one.traffic, load, None)
                })
                .collect(),
            disks: disks
                .map(|one| device(&one.name, Some(one.traffic), None, one.of_group))
                .collect(),
            nfs_read_bytes: observed.nfs.map(|nfs| nfs.read_bytes),
            nfs_write_bytes: observed.nfs.map(|nfs| nfs.write_bytes),
            files: files
                .map(|file| FileData {
                    path: file.path.to_string_lossy().into_owned(),
                    bytes: file.bytes,
                    is_written: file.is_written,
                    cached_bytes: file.after.map(|after| after.resident_bytes),
                })
                .collect(),
            ways: WaysData {
                looks: ways.looks,
                direct_reads: ways.reads.direct,
                buffered_reads: ways.reads.buffered,
                direct_writes: ways.writes.direct,
                buffered_writes: ways.writes.buffered,
                uncounted: ways.uncounted.iter().map(|way| way.name()).collect(),
                sources: ways.sources.iter().map(|source| source.name()).collect(),
                sinks: ways.sinks.iter().map(|sink| sink.name()).collect(),
            },
            processes: ProcessesData {
                collected: processes.collected,
                cut_short: processes.cut_short,
                unread: processes.unread,
                running: processes.running,
                may_miss_children: processes.may_miss_children(),
                rchar: io.map(|io| io.rchar),
                wchar: io.map(|io| io.wchar),
                read_calls: io.map(|io| io.syscr),
                write_calls: io.map(|io| io.syscw),
                cancelled_write_bytes: processes.cancelled_write_bytes,
                user_ns: processes.usage.map(|usage| usage.user_ns),
                system_ns: processes.usage.map(|usage| usage.system_ns),
                run_delay_ns: processes.run_delay_ns,
            },
            others: others(evidence),
            cpu_stall_ns: observed.pressure.cpu_stall_ns,
            io_stall_ns: observed.pressure.io_stall_ns,
            steal_ns: observed.pressure.steal_ns,
            throttled_ns: observed.pressure.throttled_ns,
            limits: limits(&observed.limits),
            claim: evidence.claim.as_ref().map(|one| claim(evidence, one)),
            group_holds: observed.group.map(GroupHolds::name),
            trace: observed
                .trace
                .as_ref()
                .map(|one| trace(one, &observed.disks)),
            course: course(&observed.course),
        }
    }
}

fn device(
    name: &str,
    traffic: Option<DeviceStat>,
    load: Option<DeviceLoad>,
    group: Option<GroupTraffic>,
) -> DeviceData<'_> {
    DeviceData {
        name,
        read_bytes: traffic.map(|traffic| traffic.read_bytes),
        read_requests: traffic.map(|traffic| traffic.read_ios),
        write_bytes: traffic.map(|traffic| traffic.write_bytes),
        write_requests: traffic.map(|traffic| traffic.write_ios),
        flushes: traffic.map(|traffic| traffic.flush_ios),
        busy_ms: traffic.map(|traffic| traffic.busy_ms),
        read_await_ms: load.and_then(|load| load.read_await_ms),
        write_await_ms: load.and_then(|load| load.write_await_ms),
        in_flight: load.and_then(|load| load.in_flight),
        group_read_bytes: group.map(|group| group.read_bytes),
        group_write_bytes: group.map(|group| group.write_bytes),
    }
}

fn limits(limits: &GroupLimits) -> LimitsData {
    let GroupLimits {
        cpus,
        memory_bytes,
        io,
    } = limits;
    let io = io.iter().map(|(what, per_second)| IoLimitData {
        what: what.name(),
        per_second: *per_second,
    });
    LimitsData {
        cpus: *cpus,
        memory_bytes: *memory_bytes,
        io: io.collect(),
    }
}

fn claim<'a>(evidence: &'a Evidence, claim: &'a ToolClaim) -> ToolClaimData<'a> {
    let ToolClaim {
        tool,
        reads,
        writes,
    } = claim;
    ToolClaimData {
        tool,
        reads: reads.map(|claimed| ClaimedData::of(claimed, evidence.reads.carried)),
        writes: writes.map(|claimed| ClaimedData::of(claimed, evidence.writes.carried)),
    }
}

fn trace(trace: &TracedProgram, disks: &[DiskTraffic]) -> TraceData {
    let TracedProgram {
        syncs,
        lost,
        until_ns,
    } = trace;
    let disks = disks.iter().filter_map(|disk| {
        let TracedDisk {
            reads,
            writes,
            others,
        } = disk.traced.as_ref()?;
        Some(TracedDiskData {
            name: disk.name.clone(),
            reads: traced_requests(reads),
            writes: traced_requests(writes),
            other_requests: *others,
        })
    });
    TraceData {
        syncs: SyncsData::of(syncs),
        lost: *lost,
        until_ns: *until_ns,
        disks: disks.collect(),
    }
}

fn traced_requests(all: &TracedRequests) -> TracedRequestsData {
    let TracedRequests {
        requests,
        bytes,
        queue,
        device,
    } = *all;
    let times = |times: Times| TimesData {
        mean_ns: times.mean_ns,
        p50_ns: times.p50_ns,
        p99_ns: p99_of(times, requests),
    };
    TracedRequestsData {
        requests,
        bytes,
        queue: queue.map(times),
        device: device.map(times),
    }
}

fn course(course: &Course) -> CourseData<'_> {
    let Course { devices, moments } = course;
    let moments = moments.iter().map(|moment| {
        let Moment {
            start_ns,
            length_ns,
            program,
            devices,
        } = moment;
        let devices = devices.iter().map(|did| MomentDeviceData {
            read_bytes: did.read_bytes,
            read_requests: did.read_ios,
            write_bytes: did.write_bytes,
            write_requests: did.write_ios,
            flushes: did.flush_ios,
            busy_ms: did.busy_ms,
            in_flight: did
                .queue_ms
                .map(|ms| ms as f64 * 1e6 / (*length_ns).max(1) as f64),
        });
        MomentData {
            start_ns: *start_ns,
            length_ns: *length_ns,
            rchar: program.map(|io| io.rchar),
            wchar: program.map(|io| io.wchar),
            read_bytes: program.map(|io| io.read_bytes),
            write_bytes: program.map(|io| io.write_bytes),
            devices: devices.collect(),
        }
    });
    CourseData {
        devices,
        moments: moments.collect(),
    }
}

fn others(evidence: &Evidence) -> OthersData {
    let others = &evidence.observed.others;
    OthersData {
        of_devices: evidence.others.into(),
        unread: others.unread,
        sees_ended: others.sees_ended,
        processes: others.active.iter().map(OtherProcessData::from).collect(),
    }
}
