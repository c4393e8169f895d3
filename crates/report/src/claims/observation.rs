//! Evidence for claims on an observation of `iolab witness`.

use iolab_analysis::witness::{
    Asked, Bounds, DeviceLoad, Direction, OtherCommand, OtherUse, Transfer, p99_of,
};
use iolab_record::ServedBy;
use iolab_record::witness::Claimed;
use iolab_workload::witness::{ObservedDevice, OtherProcess, TracedSyncs};
use schemars::JsonSchema;
use serde::Serialize;

/// Evidence for a claim on an observation, by its type.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "evidence", rename_all = "snake_case")]
pub(crate) enum Observed {
    /// An observed program moved too few bytes to matter.
    NothingOfNote,
    /// Source or destination of the bytes of an observed program.
    Served(ServedData),
    /// Flushes of a write cache while an observed program wrote.
    Flushes {
        /// The disks that completed any, by name.
        devices: Vec<String>,
        /// Flushes that they completed, of all processes.
        flushes: u64,
    },
    /// Syncs of an observed program.
    Syncs(SyncsData),
    /// Traffic of other processes on the devices of an observed program.
    OtherUse(OtherUseData),
    /// A program says that it moved more than devices can have carried.
    Overstated(OverstatedData),
    /// Load of a device that was observed without a program.
    DeviceLoad(DeviceLoadData),
    /// The processes of one name that did most I/O meanwhile.
    MostIo(OtherCommandData),
}

/// A number of bytes of which only bounds are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Bounds")]
pub(crate) struct BoundsData {
    /// Lower bound, bytes.
    least: u64,
    /// Upper bound, bytes.
    most: u64,
}

impl From<Bounds> for BoundsData {
    fn from(bounds: Bounds) -> Self {
        let Bounds { least, most } = bounds;
        Self { least, most }
    }
}

/// Evidence on reads, or on writes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Direction")]
pub(crate) struct DirectionData {
    /// Bytes that it asked storage for with calls that are counted; `null` where that is not known.
    asked_bytes: Option<BoundsData>,
    /// Bytes that storage carried, by the program's accounts. For writes, includes bytes left in the page cache
    /// to be sent. `null` where no account could be read.
    moved_bytes: Option<u64>,
    /// Bytes that storage carried for its calls. Page faults, which fetch program files and other mappings, do
    /// not count. `null` where that is not known.
    by_calls_bytes: Option<BoundsData>,
    /// Bytes of these that the devices in question carried; for writes, by the end of the observation. `null`
    /// where that is not known.
    carried_bytes: Option<BoundsData>,
    /// Source or destination of the bytes; `null` where too few were moved.
    #[schemars(extend("enum" = served_by_or_null()))]
    served_by: Option<&'static str>,
    /// Share of the bytes that the device carried, 0 to 1; `null` where it is not known.
    device_fraction: Option<f64>,
    /// Reason for `served_by`, in words.
    reason: Option<String>,
}

fn served_by_or_null() -> Vec<Option<&'static str>> {
    ServedBy::NAMES
        .iter()
        .copied()
        .map(Some)
        .chain([None])
        .collect()
}

impl DirectionData {
    pub(crate) fn of(direction: &Direction) -> Self {
        let verdict = direction.verdict.as_ref();
        Self {
            asked_bytes: match direction.asked {
                Asked::Nothing => Some(Bounds::exact(0).into()),
                Asked::Bytes(bounds) => Some(bounds.into()),
                Asked::Unknown { .. } => None,
            },
            moved_bytes: direction.moved,
            by_calls_bytes: direction.by_calls.map(BoundsData::from),
            carried_bytes: direction.carried.map(BoundsData::from),
            served_by: verdict.map(|verdict| verdict.served_by.name()),
            device_fraction: verdict.and_then(|verdict| verdict.device_fraction),
            reason: verdict.map(|verdict| verdict.reason.clone()),
        }
    }
}

/// Traffic of other processes on the devices in question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OtherUse")]
pub(crate) struct OtherUseData {
    /// Whether others used them for more than 256 KiB or 1 % of their traffic; `null` where that is not known.
    pub(crate) used_devices: Option<bool>,
    /// Bytes that others read there; `null` unless `used_devices` is true.
    pub(crate) read_bytes: Option<BoundsData>,
    /// Bytes that others wrote there; `null` unless `used_devices` is true.
    pub(crate) written_bytes: Option<BoundsData>,
}

impl From<OtherUse> for OtherUseData {
    fn from(other: OtherUse) -> Self {
        let (used_devices, read_bytes, written_bytes) = match other {
            OtherUse::None | OtherUse::Little { .. } => (Some(false), None, None),
            OtherUse::Some { read, written } => {
                let is_certain = read.least.max(written.least) > 0;
                let used = is_certain.then_some(true);
                (used, Some(read.into()), Some(written.into()))
            }
            OtherUse::Unknown => (None, None, None),
        };
        Self {
            used_devices,
            read_bytes,
            written_bytes,
        }
    }
}

/// Result that a program reports of one direction, and the most of it that devices can have carried.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Claimed")]
pub(crate) struct ClaimedData {
    /// Bytes of all jobs or tests that the program reports.
    bytes: u64,
    /// Throughput; `null` where several jobs or tests have one each.
    throughput_mb_s: Option<f64>,
    /// Most of these bytes that devices can have carried; `null` where that is not known.
    carried_bytes_most: Option<u64>,
    /// Most that devices can have carried in the time of the claim, MB/s; `null` where that is not known.
    carried_mb_s_most: Option<f64>,
    /// Whether devices cannot have carried nearly all of these bytes; `null` where that is not known.
    exceeds_devices: Option<bool>,
}

impl ClaimedData {
    pub(crate) fn of(claimed: Claimed, carried: Option<Bounds>) -> Self {
        Self {
            bytes: claimed.bytes,
            throughput_mb_s: claimed.rate.map(|(mb_s, _)| mb_s),
            carried_bytes_most: carried.map(|carried| carried.most_of(claimed)),
            carried_mb_s_most: carried.and_then(|carried| carried.mb_s_most_of(claimed)),
            exceeds_devices: carried.map(|carried| carried.is_exceeded_by(claimed)),
        }
    }
}

/// Bytes that a program read or wrote, with their source or destination.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ServedData {
    /// Direction of the bytes.
    #[schemars(extend("enum" = Transfer::NAMES))]
    pub(crate) transfer: &'static str,
    /// Names of the devices in question that carried bytes in this direction; all of them where none is known.
    pub(crate) devices: Vec<String>,
    /// Evidence on the bytes.
    pub(crate) direction: DirectionData,
}

/// A program that says that it moved more than devices can have carried.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct OverstatedData {
    /// The tool whose report says so.
    pub(crate) tool: String,
    /// Direction of the bytes.
    #[schemars(extend("enum" = Transfer::NAMES))]
    pub(crate) transfer: &'static str,
    /// Result that the program reports, and the most of it that devices can have carried.
    pub(crate) claimed: ClaimedData,
}

/// Load of a device, by all processes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct DeviceLoadData {
    /// Name of the device.
    device: String,
    /// Reads per second; `null` where it does not count.
    reads_per_s: Option<f64>,
    /// Writes per second; `null` where it does not count.
    writes_per_s: Option<f64>,
    /// Read throughput; `null` where it does not count.
    read_mb_s: Option<f64>,
    /// Write throughput; `null` where it does not count.
    write_mb_s: Option<f64>,
    /// Share of the time with requests in flight, 0 to 1; `null` where it does not count.
    busy: Option<f64>,
}

impl DeviceLoadData {
    pub(crate) fn of(device: &ObservedDevice, load: Option<DeviceLoad>) -> Self {
        Self {
            device: device.name.clone(),
            reads_per_s: load.map(|load| load.reads_per_s),
            writes_per_s: load.map(|load| load.writes_per_s),
            read_mb_s: load.map(|load| load.read_mb_s),
            write_mb_s: load.map(|load| load.write_mb_s),
            busy: load.map(|load| load.busy),
        }
    }
}

/// A process outside the observation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OtherProcess")]
pub(crate) struct OtherProcessData {
    /// Process ID.
    pid: u32,
    /// Name of the process.
    name: String,
    /// Whether it is a thread of the kernel.
    is_kernel: bool,
    /// Whether it has ended.
    has_ended: bool,
    /// Bytes that it fetched from storage.
    read_bytes: u64,
    /// Bytes that it sent to storage or left in the page cache to be sent.
    write_bytes: u64,
}

impl From<&OtherProcess> for OtherProcessData {
    fn from(process: &OtherProcess) -> Self {
        let OtherProcess {
            pid,
            name,
            is_kernel,
            has_ended,
            read_bytes,
            write_bytes,
        } = process;
        Self {
            pid: *pid,
            name: name.clone(),
            is_kernel: *is_kernel,
            has_ended: *has_ended,
            read_bytes: *read_bytes,
            write_bytes: *write_bytes,
        }
    }
}

/// Processes of one name outside the observation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OtherCommand")]
pub(crate) struct OtherCommandData {
    /// Number of the process with the most I/O.
    pid: u32,
    /// Name of the processes.
    name: String,
    /// Whether they are threads of the kernel.
    is_kernel: bool,
    /// Whether all of them have ended.
    has_ended: bool,
    /// Number of processes.
    processes: usize,
    /// Bytes that they fetched from storage.
    read_bytes: u64,
    /// Bytes that they sent to storage or left in the page cache to be sent.
    write_bytes: u64,
}

impl From<&OtherCommand<'_>> for OtherCommandData {
    fn from(command: &OtherCommand<'_>) -> Self {
        Self {
            pid: command.first.pid,
            name: command.first.name.clone(),
            is_kernel: command.first.is_kernel,
            has_ended: command.ended() == command.count(),
            processes: command.count(),
            read_bytes: command.read_bytes(),
            write_bytes: command.write_bytes(),
        }
    }
}

/// Syncs that file systems got from the threads of a program.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Syncs")]
pub(crate) struct SyncsData {
    /// Number of syncs.
    syncs: u64,
    /// Syncs whose end is known; the next fields cover these.
    timed: u64,
    /// Syncs within which the disk completed a flush of its cache.
    flushed: u64,
    /// Syncs of files on disks without a volatile cache.
    uncached: u64,
    /// Journal commits that the syncs waited for.
    commits: u64,
    /// Mean time of a sync, ns; `null` where none was timed, as for the times below.
    mean_ns: Option<f64>,
    /// Median time of a sync, ns.
    p50_ns: Option<u64>,
    /// 99th percentile of the time of a sync, ns; `null` also where too few were timed for it.
    p99_ns: Option<u64>,
    /// Mean time in which the disk flushed its cache, ns.
    flush_ns: Option<f64>,
    /// Mean time in which the journal was written, without flushes, ns.
    journal_ns: Option<f64>,
    /// Mean time in which the disk carried out writes, without flushes and the journal, ns.
    write_ns: Option<f64>,
    /// Mean remaining time of a sync, ns.
    host_ns: Option<f64>,
}

impl SyncsData {
    pub(crate) fn of(all: &TracedSyncs) -> Self {
        let TracedSyncs {
            syncs,
            timed,
            flushed,
            uncached,
            commits,
            times,
        } = *all;
        Self {
            syncs,
            timed,
            flushed,
            uncached,
            commits,
            mean_ns: times.map(|times| times.whole.mean_ns),
            p50_ns: times.map(|times| times.whole.p50_ns),
            p99_ns: times.and_then(|times| p99_of(times.whole, timed)),
            flush_ns: times.map(|times| times.flush_ns),
            journal_ns: times.map(|times| times.journal_ns),
            write_ns: times.map(|times| times.write_ns),
            host_ns: times.map(|times| times.host_ns),
        }
    }
}
