//! The evidence of a program as data for other programs: docs/schema/witness.json describes it.

use std::io::{self, Write};

use iolab_analysis::witness::{Asked, Bounds, DeviceLoad, Direction, Evidence, OtherUse};
use iolab_record::ServedBy;
use iolab_record::witness::{Claimed, ToolClaim};
use iolab_workload::counters::{DeviceStat, Traffic};
use iolab_workload::witness::{
    Course, GroupLimits, Moment, NoStorage, ObservedEnd, Subject, UncountedWay,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::document::{IOLAB_VERSION, SCHEMA, write};

/// What `iolab witness` writes as JSON.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WitnessDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The program and its arguments; empty where devices alone were watched.
    command: &'a [String],
    /// Number of the process that was joined; `null` for a program that iolab started.
    joined_pid: Option<u32>,
    /// What the evidence comes to, in one sentence.
    text: String,
    /// Its exit code; `null` where it did not end by itself, or iolab did not start it.
    exit_code: Option<i32>,
    /// The signal that ended it; `null` where none did.
    signal: Option<i32>,
    /// From its start to its end, ns.
    elapsed_ns: u64,
    /// From its start to the end of the observation, ns.
    observed_ns: u64,
    /// CPU time that observing took, ns.
    observer_cpu_ns: u64,
    /// What was read.
    reads: DirectionData<'a>,
    /// What was written.
    writes: DirectionData<'a>,
    /// Flushes of a write cache that the devices completed; `null` where they are not counted.
    flushes: Option<u64>,
    /// Bytes of its files that still had to be written at the end; `null` where that is not known.
    owed_bytes: Option<u64>,
    /// The devices in question.
    devices: Vec<DeviceData<'a>>,
    /// All disks that carried something.
    disks: Vec<DeviceData<'a>>,
    /// Files and devices of storage that were seen open.
    files: Vec<FileData>,
    /// How it did I/O, as far as it was seen.
    ways: WaysData,
    /// Its processes.
    processes: ProcessesData,
    /// What others did.
    others: OthersData<'a>,
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
    /// What the program says itself, where it wrote a report that iolab reads.
    claim: Option<ClaimData<'a>>,
    /// What was carried over time.
    course: CourseData<'a>,
}

/// Limits of control groups, each the tightest on the way up.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Limits")]
struct LimitsData {
    /// CPU time per time; `null` for none.
    cpus: Option<f64>,
    /// Memory with page cache, bytes; `null` for none.
    memory_bytes: Option<u64>,
    /// Traffic with the devices in question.
    io: Vec<IoLimitData>,
}

/// A limit of the traffic with a device.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "IoLimit")]
struct IoLimitData {
    /// What is limited, as io.max names it.
    #[schemars(extend("enum" = Traffic::NAMES))]
    what: &'static str,
    /// The limit: bytes or requests per second.
    per_second: u64,
}

/// What a program says of itself.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Claim")]
struct ClaimData<'a> {
    /// The tool.
    tool: &'a str,
    /// What it says of reads; `null` where it made none.
    reads: Option<ClaimedData>,
    /// What it says of writes; `null` where it made none.
    writes: Option<ClaimedData>,
}

/// What a program says of one direction, and what devices can have carried of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Claimed")]
struct ClaimedData {
    /// Bytes over all its jobs or tests.
    bytes: u64,
    /// Throughput; `null` where several jobs or tests have one each.
    throughput_mb_s: Option<f64>,
    /// Bytes of it that devices can have carried at most; `null` where that is not known.
    carried_bytes_most: Option<u64>,
    /// The same in the time of the claim; `null` where that is not known.
    carried_mb_s_most: Option<f64>,
    /// Whether devices cannot have carried nearly all of it; `null` where that is not known.
    exceeds_devices: Option<bool>,
}

/// What was carried over time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Course")]
struct CourseData<'a> {
    /// The names of the devices.
    devices: &'a [String],
    /// Moments that follow each other.
    moments: Vec<MomentData>,
}

/// A part of the time.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Moment")]
struct MomentData {
    /// From the start of the observation, ns.
    start_ns: u64,
    /// Its length, ns.
    length_ns: u64,
    /// Bytes of the program's read calls, from wherever; `null` without an account.
    rchar: Option<u64>,
    /// Bytes of its write calls; `null` without an account.
    wchar: Option<u64>,
    /// Bytes that it fetched from storage; `null` without an account.
    read_bytes: Option<u64>,
    /// Bytes that it sent to storage or left in the page cache to be sent; `null` without an account.
    write_bytes: Option<u64>,
    /// What each device carried, of all processes, in the order of the names.
    devices: Vec<MomentDeviceData>,
}

/// What a device carried in a part of the time.
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

/// A number of bytes that lies between two.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Bounds")]
struct BoundsData {
    /// It is no less.
    least: u64,
    /// It is no more.
    most: u64,
}

impl From<Bounds> for BoundsData {
    fn from(bounds: Bounds) -> Self {
        let Bounds { least, most } = bounds;
        Self { least, most }
    }
}

/// What the evidence says of reads, or of writes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Direction")]
struct DirectionData<'a> {
    /// Bytes that it asked storage for with calls that are counted; `null` where that is not known.
    asked_bytes: Option<BoundsData>,
    /// Bytes that its accounts say storage carried; of writes, what was sent or left in the page cache to be sent. `null` where no account
    /// could be read.
    moved_bytes: Option<u64>,
    /// What the devices in question carried of that; of writes, by the end of the observation. `null` where that is not known.
    carried_bytes: Option<BoundsData>,
    /// Where the bytes came from or went to; `null` where there were none of note.
    #[schemars(extend("enum" = served_by_or_null()))]
    served_by: Option<&'a str>,
    /// Share of the bytes that the device carried, 0 to 1; `null` where it is not known.
    device_fraction: Option<f64>,
    /// Why, in words.
    reason: Option<&'a str>,
}

fn served_by_or_null() -> Vec<Option<&'static str>> {
    ServedBy::NAMES
        .iter()
        .copied()
        .map(Some)
        .chain([None])
        .collect()
}

/// A device, and what it carried of all processes.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Device")]
struct DeviceData<'a> {
    /// Its name.
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
}

/// A file or device of storage that was seen open.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "File")]
struct FileData {
    /// Its path.
    path: String,
    /// Its size at the end, bytes.
    bytes: u64,
    /// Whether it was open for writing.
    is_written: bool,
    /// Bytes of it in the page cache at the end; `null` where that cannot be seen.
    cached_bytes: Option<u64>,
}

/// How a program did I/O, as far as its descriptors and mappings showed it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ways")]
struct WaysData {
    /// Looks at its processes; with 0 nothing below was seen.
    looks: u64,
    /// Storage was open for reading with O_DIRECT.
    direct_reads: bool,
    /// Storage was open for reading without.
    buffered_reads: bool,
    /// Storage was open for writing with O_DIRECT.
    direct_writes: bool,
    /// Storage was open for writing without.
    buffered_writes: bool,
    /// Ways whose bytes the kernel does not count as calls.
    #[schemars(extend("items" = json!({"type": "string", "enum": UncountedWay::NAMES})))]
    uncounted: Vec<&'static str>,
    /// What else it could read from.
    #[schemars(extend("items" = json!({"type": "string", "enum": NoStorage::NAMES})))]
    sources: Vec<&'static str>,
    /// What else it could write to, its standard output and standard error left out.
    #[schemars(extend("items" = json!({"type": "string", "enum": NoStorage::NAMES})))]
    sinks: Vec<&'static str>,
}

/// The processes of a program.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Processes")]
struct ProcessesData {
    /// Processes whose ends iolab collected: one whose parent waited for it is part of its parent's account.
    collected: u64,
    /// Processes that ended without an account of their end, so that what they did just before is missing.
    cut_short: u64,
    /// Processes that had not ended, and whose account could not be read.
    unread: u64,
    /// Processes that had not ended.
    running: u64,
    /// Whether I/O of children can be missing, because their parent ignored their ends and only root sees them.
    may_miss_children: bool,
    /// Bytes that read calls returned, from wherever; `null` without an account.
    rchar: Option<u64>,
    /// Bytes handed to write calls; `null` without an account.
    wchar: Option<u64>,
    /// Read calls; `null` without an account.
    read_calls: Option<u64>,
    /// Write calls; `null` without an account.
    write_calls: Option<u64>,
    /// Bytes among those to be written that never will be.
    cancelled_write_bytes: u64,
    /// CPU time in user mode, ns; `null` for a process that iolab did not start.
    user_ns: Option<u64>,
    /// CPU time in the kernel, ns; `null` for a process that iolab did not start.
    system_ns: Option<u64>,
    /// Time in which threads waited for a CPU, ns, up to the last look at each.
    run_delay_ns: u64,
}

/// What others did.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Others")]
struct OthersData<'a> {
    /// Whether others used the devices in question; `null` where that is not known.
    used_devices: Option<bool>,
    /// Bytes that others read there; `null` where that is not known.
    read_bytes: Option<BoundsData>,
    /// Bytes that others wrote there; `null` where that is not known.
    written_bytes: Option<BoundsData>,
    /// Processes whose account could not be read.
    unread: u64,
    /// Whether processes that ended meanwhile are among those below: only root sees them.
    sees_ended: bool,
    /// Processes that did I/O, on any disk.
    processes: Vec<OtherData<'a>>,
}

/// A process of others.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "OtherProcess")]
struct OtherData<'a> {
    /// Its number.
    pid: u32,
    /// Its name.
    name: &'a str,
    /// Whether it is a thread of the kernel.
    is_kernel: bool,
    /// Whether it has ended.
    has_ended: bool,
    /// Bytes that it fetched from storage.
    read_bytes: u64,
    /// Bytes that it sent to storage or left in the page cache to be sent.
    write_bytes: u64,
}

/// Writes one object.
///
/// # Errors
/// Those of `to`.
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
            exit_code,
            signal,
            elapsed_ns: observed.elapsed_ns,
            observed_ns: observed.observed_ns,
            observer_cpu_ns: observed.observer_cpu_ns,
            reads: direction(&evidence.reads),
            writes: direction(&evidence.writes),
            flushes: evidence.flushes,
            owed_bytes: evidence.owed,
            devices: devices
                .map(|one| {
                    let load = DeviceLoad::of(one, observed.observed_ns);
                    device(&one.name, one.traffic, load)
                })
                .collect(),
            disks: disks
                .map(|one| device(&one.name, Some(one.traffic), None))
                .collect(),
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
                may_miss_children: processes.ignores_children && !processes.is_complete,
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
            course: course(&observed.course),
        }
    }
}

fn direction(direction: &Direction) -> DirectionData<'_> {
    let verdict = direction.verdict.as_ref();
    DirectionData {
        asked_bytes: match direction.asked {
            Asked::Nothing => Some(Bounds::exact(0).into()),
            Asked::Bytes(bounds) => Some(bounds.into()),
            Asked::Unknown { .. } => None,
        },
        moved_bytes: direction.moved,
        carried_bytes: direction.carried.map(BoundsData::from),
        served_by: verdict.map(|verdict| verdict.served_by.name()),
        device_fraction: verdict.and_then(|verdict| verdict.device_fraction),
        reason: verdict.map(|verdict| verdict.reason.as_str()),
    }
}

fn device(name: &str, traffic: Option<DeviceStat>, load: Option<DeviceLoad>) -> DeviceData<'_> {
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

fn claim<'a>(evidence: &'a Evidence, claim: &'a ToolClaim) -> ClaimData<'a> {
    let ToolClaim {
        tool,
        reads,
        writes,
    } = claim;
    let of = |claimed: Claimed, direction: &Direction| ClaimedData {
        bytes: claimed.bytes,
        throughput_mb_s: claimed.rate.map(|(mb_s, _)| mb_s),
        carried_bytes_most: direction.carried.map(|carried| carried.most_of(claimed)),
        carried_mb_s_most: direction
            .carried
            .and_then(|carried| carried.mb_s_most_of(claimed)),
        exceeds_devices: direction
            .carried
            .map(|carried| carried.is_exceeded_by(claimed)),
    };
    ClaimData {
        tool,
        reads: reads.map(|claimed| of(claimed, &evidence.reads)),
        writes: writes.map(|claimed| of(claimed, &evidence.writes)),
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

fn others(evidence: &Evidence) -> OthersData<'_> {
    let others = &evidence.observed.others;
    let (used_devices, read_bytes, written_bytes) = match evidence.others {
        OtherUse::None => (Some(false), None, None),
        OtherUse::Some { read, written } => (Some(true), Some(read.into()), Some(written.into())),
        OtherUse::Unknown => (None, None, None),
    };
    OthersData {
        used_devices,
        read_bytes,
        written_bytes,
        unread: others.unread,
        sees_ended: others.sees_ended,
        processes: others
            .active
            .iter()
            .map(|one| OtherData {
                pid: one.pid,
                name: &one.name,
                is_kernel: one.is_kernel,
                has_ended: one.has_ended,
                read_bytes: one.read_bytes,
                write_bytes: one.write_bytes,
            })
            .collect(),
    }
}
