//! Evidence of an observation of a program: the bytes that it asked for, the bytes that devices carried for it,
//! and the I/O of others.
//!
//! A process's I/O account does not name devices, and a device's counters do not name processes. The bytes that
//! a device carried for the program are therefore bounded. Lower bounds are the program's bytes less those on
//! other disks, and the device's bytes less those for other processes. Both totals are upper bounds.

mod claims;
mod counted;
pub mod kinds;
mod stacked;
mod written;

pub use claims::{device_load, io_of};
pub use counted::{OtherCommand, p99_of};

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::observed::{Course, DiskTraffic, NoStorage, Observed, Subject, UncountedWay};
use iolab_analysis::carried_below::Transfer;
use iolab_record::{ServedBy, ServedVerdict};
use iolab_workload::counters::ProcessIo;
use iolab_workload::region_state::Medium;
use iolab_workload::response::mb_s;

/// An observation with its verdicts, as a file keeps it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Witnessed {
    /// The observation.
    #[serde(flatten)]
    pub observed: Observed,
    /// Source of the bytes that were read; `None` if there were next to none.
    pub reads: Option<ServedVerdict>,
    /// Destination of the bytes that were written; `None` if there were next to none.
    pub writes: Option<ServedVerdict>,
    /// The program's own claim, if it wrote a report that iolab reads.
    pub claim: Option<ToolClaim>,
}

impl Witnessed {
    /// The observation that a file keeps; `None` where it cannot be one.
    pub fn of(content: &str) -> Option<Self> {
        let read: Option<Self> = serde_json::from_str(content).ok();
        read.filter(Self::is_possible)
    }

    fn is_possible(&self) -> bool {
        let Course { devices, moments } = &self.observed.course;
        let has_all = moments.iter().all(|one| one.devices.len() == devices.len());
        let verdicts = [&self.reads, &self.writes].into_iter().flatten();
        let mut shares = verdicts.filter_map(|verdict| verdict.device_fraction);
        let claims = self
            .claim
            .iter()
            .flat_map(|claim| [claim.reads, claim.writes]);
        let mut rates = claims.flatten().filter_map(|claimed| claimed.mb_s);
        has_all
            && moments.len() <= Course::MOMENTS_MAX
            && shares.all(|share| (0.0..=1.0).contains(&share))
            && rates.all(|mb_s| mb_s >= 0.0)
    }
}

/// A program's claim about itself in a report that iolab reads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolClaim {
    /// The tool.
    pub tool: String,
    /// The claim about reads; `None` if it made none.
    pub reads: Option<Claimed>,
    /// The claim about writes; `None` if it made none.
    pub writes: Option<Claimed>,
}

/// A program's claim about its own transfers in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Claimed {
    /// Bytes over all its jobs or tests.
    pub bytes: u64,
    /// Throughput, MB/s; `None` if several jobs or tests have one each.
    #[serde(rename = "throughput_mb_s")]
    pub mb_s: Option<f64>,
    /// Time that the throughput is based on, ns.
    pub elapsed_ns: Option<u64>,
}

/// Bytes below which a program counts as having read or written nothing: loaders and messages move this much.
pub const NOTEWORTHY: u64 = 256 << 10;
/// Share of a whole that two numbers may differ by and still count as one.
const CLOSE: f64 = 0.01;

/// A number of bytes of which only bounds are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Bounds {
    /// Lower bound, bytes.
    pub least: u64,
    /// Upper bound, bytes.
    pub most: u64,
}

impl Bounds {
    /// Bounds that are both `bytes`.
    pub fn exact(bytes: u64) -> Self {
        Self {
            least: bytes,
            most: bytes,
        }
    }

    /// Bounds from `least`, capped at `most`, to `most`.
    fn between(least: u64, most: u64) -> Self {
        Self {
            least: least.min(most),
            most,
        }
    }

    /// Both bounds, capped at `bytes`.
    #[must_use]
    pub fn within(self, bytes: u64) -> Self {
        Self {
            least: self.least.min(bytes),
            most: self.most.min(bytes),
        }
    }

    /// Whether the two differ by no more than 1 % of a whole.
    pub fn is_known_within(self, whole: u64) -> bool {
        (self.most - self.least) as f64 <= CLOSE * whole as f64
    }

    /// Whether it is at least 99 % of a whole.
    pub fn is_all_of(self, whole: u64) -> bool {
        self.least as f64 >= (1.0 - CLOSE) * whole as f64
    }

    /// The most that devices can have carried in the time of a claim, MB/s: no more than over all of the
    /// program's time.
    pub fn mb_s_most_of(self, claimed: Claimed) -> Option<f64> {
        let elapsed_ns = claimed.elapsed_ns.filter(|elapsed_ns| *elapsed_ns > 0)?;
        Some(mb_s(self.within(claimed.bytes).most, elapsed_ns))
    }

    /// Whether devices cannot have carried nearly all of what is claimed.
    pub fn is_exceeded_by(self, claimed: Claimed) -> bool {
        (self.most as f64) < CLAIM_CARRIED_FROM * claimed.bytes as f64
    }
}

/// Share of claimed bytes from which devices count as having carried them, as for the verdict `device`.
const CLAIM_CARRIED_FROM: f64 = 0.95;

/// Reason why the bytes that a program asked for are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unknown {
    /// No account could be read.
    NoAccount,
    /// The account may miss the I/O of some of its processes.
    Missing,
    /// The program read from something that was open too briefly to be seen.
    NotSeen,
    /// The program used ways of I/O whose bytes no account counts.
    Uncounted(BTreeSet<UncountedWay>),
    /// Storage carried far more than its calls asked for.
    MoreThanAsked,
    /// Page faults, and not calls, may have fetched part of the bytes. Holds the bytes that storage carried for
    /// calls.
    Faults(Bounds),
    /// The program may also have read from these sources, which are not storage.
    Sources(BTreeSet<NoStorage>),
    /// Only some of the program's files lie on storage, and one account counts all of them.
    Media,
}

/// Bytes that a program asked storage for, by calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// Less than [`NOTEWORTHY`].
    Nothing,
    /// A known number of bytes.
    Bytes(Bounds),
    /// Unknown; at most `most`, if that is known.
    Unknown {
        /// Reason.
        why: Unknown,
        /// Bytes of all its calls.
        most: Option<u64>,
    },
}

impl Asked {
    /// The bytes, if they are known.
    fn bytes(&self) -> Option<Bounds> {
        match self {
            Self::Bytes(bytes) => Some(*bytes),
            Self::Nothing | Self::Unknown { .. } => None,
        }
    }
}

/// Evidence on one direction of the program's I/O.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Direction {
    /// Bytes that it asked storage for with counted calls.
    #[serde(rename = "asked_bytes")]
    pub asked: Asked,
    /// Bytes that storage carried by the program's accounts. For writes, includes bytes left in the page cache
    /// to be written back.
    #[serde(rename = "moved_bytes")]
    pub moved: Option<u64>,
    /// The part of `moved` that served calls rather than page faults in program files and other mappings; all of
    /// it for writes.
    #[serde(rename = "by_calls_bytes")]
    pub by_calls: Option<Bounds>,
    /// The part of `moved` that the devices in question carried.
    #[serde(rename = "carried_bytes")]
    pub carried: Option<Bounds>,
    /// Source or destination of the bytes; `None` below [`NOTEWORTHY`].
    #[serde(flatten)]
    pub verdict: Option<ServedVerdict>,
}

/// Traffic of other processes on the devices in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherUse {
    /// Nothing.
    None,
    /// No more than file systems move of their own, or 1 % of what the devices carried.
    Little {
        /// Bytes read and written, at most.
        most: u64,
    },
    /// Other processes moved these bytes.
    Some {
        /// Bytes read.
        read: Bounds,
        /// Bytes written.
        written: Bounds,
    },
    /// Traffic of other processes cannot be determined.
    Unknown,
}

/// Flushes of a write cache that disks completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Flushes {
    /// The disks that completed any.
    pub disks: Vec<String>,
    /// Number of flushes of all processes.
    pub completed: u64,
}

/// Results of an observation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// The raw observation.
    #[serde(flatten)]
    pub observed: Observed,
    /// The devices in question, by name.
    #[serde(rename = "in_question")]
    pub devices: Vec<String>,
    /// Evidence on reads.
    pub reads: Direction,
    /// Evidence on writes.
    pub writes: Direction,
    /// Flushes of a write cache that the devices completed; `None` where no device counts.
    pub flushes: Option<Flushes>,
    /// Bytes of its files that still had to be written at the end; `None` where that is not known.
    #[serde(rename = "owed_bytes")]
    pub owed: Option<u64>,
    /// Traffic of other processes on the devices.
    #[serde(rename = "other_use")]
    pub others: OtherUse,
    /// Result that the program reports itself, if it wrote a report that can be read.
    pub claim: Option<ToolClaim>,
}

impl Evidence {
    /// Evaluates an observation.
    pub fn of(witnessed: Witnessed) -> Self {
        let Witnessed {
            observed,
            reads,
            writes,
            claim,
        } = witnessed;
        let reading = Reading::of(&observed);
        let (asked, reads) = match reading.reads_by_report(claim.as_ref()) {
            Some((bytes, verdict)) => (Asked::Bytes(Bounds::exact(bytes)), Some(verdict)),
            None => (reading.asked_reads(), reads),
        };
        let reads = Direction {
            asked,
            moved: observed.processes.io.map(|io| io.read_bytes),
            by_calls: reading.fetched_by_calls(),
            carried: reading.carried_reads(),
            verdict: reads,
        };
        let writes = Direction {
            asked: reading.asked_writes(),
            moved: reading.dirtied(),
            by_calls: reading.dirtied().map(Bounds::exact),
            carried: reading.carried_writes(),
            verdict: writes,
        };
        Self {
            devices: reading.devices(),
            flushes: reading.flushes(),
            owed: reading.owed(),
            others: reading.others(),
            claim,
            reads,
            writes,
            observed,
        }
    }
}

/// Derives everything but verdicts from an observation.
pub struct Reading<'a> {
    observed: &'a Observed,
}

impl<'a> Reading<'a> {
    /// A reading of `observed`.
    pub fn of(observed: &'a Observed) -> Self {
        Self { observed }
    }

    /// Bytes that the program asked for with read calls.
    pub fn asked_reads(&self) -> Asked {
        if self.observed.subject == Subject::Devices {
            return Asked::Nothing;
        }
        let ways = &self.observed.ways;
        let io = match self.account(Transfer::Read) {
            Ok(io) => io,
            Err(why) => return unknown(why, None),
        };
        if self.may_be_network(Transfer::Read) {
            return unknown(Unknown::NotSeen, None);
        }
        // If storage carried nothing, mappings were read from the page cache, like the reads of calls.
        let only_mapped = ways.uncounted.iter().eq([&UncountedWay::Mmap]);
        let is_cached = only_mapped
            && io.rchar >= NOTEWORTHY
            && io.read_bytes as f64 <= CLOSE * io.rchar as f64;
        if !ways.uncounted.is_empty() && !is_cached {
            return unknown(Unknown::Uncounted(ways.uncounted.clone()), None);
        }
        let by_calls = self.fetched_by_calls().unwrap_or_default();
        let exceeds = |bytes: u64| bytes >= NOTEWORTHY && bytes / 2 > io.rchar;
        if exceeds(by_calls.least) {
            return unknown(Unknown::MoreThanAsked, None);
        }
        // An unseen ring can have fetched the rest, as page faults can.
        if exceeds(by_calls.most) && by_calls.least < io.rchar.max(NOTEWORTHY) {
            return unknown(Unknown::Faults(by_calls), None);
        }
        if io.rchar < NOTEWORTHY && io.read_bytes < NOTEWORTHY {
            return Asked::Nothing;
        }
        let target = self.observed.target.as_ref();
        let is_named = target.is_some_and(|target| target.bytes.is_some());
        let medium = self.medium(Transfer::Read);
        if medium == Medium::Storage && !self.sees_source() {
            // It is chance whether a look saw the source (such as /dev/zero), but it is known that storage
            // carried none of it.
            let may_be_other = !is_named || !ways.sources.is_empty();
            if may_be_other && io.read_bytes < NOTEWORTHY {
                return Asked::Nothing;
            }
            if !is_named {
                return unknown(Unknown::NotSeen, Some(io.rchar));
            }
        }
        let mut sources = ways.sources.clone();
        if medium == Medium::Memory {
            sources.remove(&NoStorage::Memory);
            sources.remove(&NoStorage::CharDevice);
        }
        if !sources.is_empty() {
            return unknown(Unknown::Sources(sources), Some(io.rchar));
        }
        let of_pipes = if ways.inner_pipes { io.wchar } else { 0 };
        Asked::Bytes(Bounds::between(io.rchar.saturating_sub(of_pipes), io.rchar))
    }

    /// The account of the program, if it is whole and of one medium.
    fn account(&self, transfer: Transfer) -> Result<ProcessIo, Unknown> {
        let processes = &self.observed.processes;
        match processes.io {
            None => Err(Unknown::NoAccount),
            Some(_) if processes.lack_some() => Err(Unknown::Missing),
            Some(_) if self.has_several_media(transfer) => Err(Unknown::Media),
            Some(io) => Ok(io),
        }
    }

    /// The bytes that the program's report says it read past the page cache, and the verdict on them: if no account counts
    /// its requests, and devices carried as much.
    fn reads_by_report(&self, claim: Option<&ToolClaim>) -> Option<(u64, ServedVerdict)> {
        let claimed = claim?.reads?.bytes;
        let is_uncounted = matches!(
            self.asked_reads(),
            Asked::Unknown {
                why: Unknown::Uncounted(_),
                ..
            }
        );
        let is_direct = self.observed.ways.uncounted_reads.is_direct();
        let is_all = self.carried_reads()?.is_all_of(claimed);
        (is_uncounted && is_direct && is_all).then(|| {
            let verdict = ServedVerdict {
                served_by: ServedBy::Device,
                device_fraction: Some(1.0),
                reason: "devices carried all that its own report says it read, past the page cache"
                    .to_owned(),
            };
            (claimed, verdict)
        })
    }

    /// Whether a file of storage was seen that can be the source of its reads: larger than messages or settings
    /// that any program opens. A deleted file has left only the fact that it was open.
    fn sees_source(&self) -> bool {
        let read = self.observed.files.iter().filter(|file| file.is_read);
        let held = read.map(|file| file.bytes).reduce(u64::saturating_add);
        self.observed.ways.reads.any() && held.is_none_or(|bytes| bytes >= NOTEWORTHY)
    }

    /// Bytes that storage carried for its read calls, without those that page faults fetched for program files
    /// and other mappings. A single fault can fetch all of a mapped data file: reads in order trigger read-ahead
    /// before they fault.
    pub fn fetched_by_calls(&self) -> Option<Bounds> {
        let io = self.observed.processes.io?;
        let fetched = io.read_bytes;
        let faults = match self.observed.ways.uncounted.contains(&UncountedWay::Mmap) {
            true => u64::MAX,
            false => self.beside_direct(io, self.faults()),
        };
        Some(Bounds::between(fetched.saturating_sub(faults), fetched))
    }

    /// Bytes that page faults in its program files and libraries are assumed to have fetched.
    fn faults(&self) -> u64 {
        self.observed.processes.fault_bytes.unwrap_or(0)
    }

    /// Bytes of page faults, capped at what storage carried in addition to `O_DIRECT` reads. The cap applies if
    /// all files seen were open with `O_DIRECT` and storage carried as much as the calls read, less what loaders
    /// and messages read. If storage carried less, some reads came from holes, or from the page cache after all.
    fn beside_direct(&self, io: ProcessIo, bytes: u64) -> u64 {
        let ways = &self.observed.ways;
        let is_counted = ways.uncounted.is_empty() && ways.sources.is_empty() && !ways.inner_pipes;
        let direct = io.rchar.saturating_sub(NOTEWORTHY);
        match io.read_bytes.checked_sub(direct) {
            Some(rest) if ways.reads.is_direct() && is_counted => bytes.min(rest),
            _ => bytes,
        }
    }

    /// Names of the devices in question: the target's, else the devices of the files that were seen, or the only disk
    /// that was used.
    pub fn devices(&self) -> Vec<String> {
        let known = self.observed.devices.iter().map(|one| &one.name);
        let only = self.only_disk().map(|only| &only.name);
        known.chain(only).cloned().collect()
    }

    /// The only disk that was used, if the program's files lie on storage and no device of them is known.
    fn only_disk(&self) -> Option<&DiskTraffic> {
        let [only] = self.observed.disks.as_slice() else {
            return None;
        };
        let is_storage = |transfer| {
            self.medium(transfer) == Medium::Storage && !self.has_several_media(transfer)
        };
        let is_there =
            self.observed.devices.is_empty() && Transfer::ALL.iter().copied().all(is_storage);
        is_there.then_some(only)
    }

    /// Upper bound on bytes read from devices other than those in question: from disks that these do not use,
    /// and from their own disks past them. A loop device may give bytes from the page cache of its file, while
    /// all that the disk carried was for others.
    fn read_elsewhere(&self) -> u64 {
        let devices = self.devices_for(Transfer::Read);
        let only = self.only_disk().map(|only| &only.name);
        let names = devices.iter().map(|one| &one.name).chain(only);
        let own = devices.iter().flat_map(|one| &one.disks).chain(names);
        let own: BTreeSet<&String> = own.collect();
        let others = self.observed.disks.iter();
        let others = others.filter(|disk| !own.contains(&disk.name));
        let others = others.map(|disk| disk.traffic.read_bytes);
        let past = devices.iter().filter_map(|device| {
            let below = device.below?.read_bytes;
            let through = device.traffic.filter(|_| !device.in_file);
            Some(below.saturating_sub(through.map_or(0, |through| through.read_bytes)))
        });
        others.chain(past).fold(0, u64::saturating_add)
    }

    /// Bytes that other processes read and wrote; `None` if some cannot be seen. Writes of kernel threads are
    /// left out.
    fn by_others(&self) -> Option<(u64, u64)> {
        let others = &self.observed.others;
        let read = others.active.iter().map(|one| one.read_bytes);
        let written = others.active.iter().filter(|one| !one.is_kernel);
        let written = written.map(|one| one.write_bytes);
        let both = (
            read.fold(0, u64::saturating_add),
            written.fold(0, u64::saturating_add),
        );
        (others.unread == 0).then_some(both)
    }

    /// Bytes of the program's reads that the devices in question carried.
    pub fn carried_reads(&self) -> Option<Bounds> {
        let io = self.observed.processes.io?;
        let fetched = io.read_bytes;
        let device = self.traffic_for(Transfer::Read)?.read_bytes;
        let elsewhere = match self.reads_only_there(fetched) {
            // Its program and libraries may lie elsewhere. Loaders read these too, which fetches a window of
            // read-ahead.
            true => {
                let code = self.faults().saturating_add(NOTEWORTHY);
                self.read_elsewhere().min(self.beside_direct(io, code))
            }
            false => self.read_elsewhere(),
        };
        let by_disks = fetched.saturating_sub(elsewhere);
        let by_disks = by_disks.saturating_sub(self.network_reads());
        let others = self.by_others().filter(|_| !self.in_flight().reads);
        let by_processes = others.map_or(0, |(read, _)| device.saturating_sub(read));
        let (counted, group) = self.counted(Transfer::Read, fetched);
        let most = match self.observed.processes.lack_some() {
            true => device,
            false => fetched.min(device).min(group.unwrap_or(u64::MAX)),
        };
        let least = by_disks.max(by_processes).max(counted);
        Some(Bounds::between(least, most))
    }

    /// Whether all files that it was seen to read lie on the devices in question, and are large enough for
    /// `fetched`. The page cache fetches each byte at least once, and direct I/O any number of times.
    fn reads_only_there(&self, fetched: u64) -> bool {
        let read = self.observed.files.iter().filter(|file| file.is_read);
        let read: Vec<_> = read.collect();
        let held = read.iter().map(|file| file.bytes);
        let held = held.fold(NOTEWORTHY, u64::saturating_add);
        let can_be = self.observed.ways.reads.is_direct() || fetched <= held;
        // Bytes beyond these came from a device of an unseen file.
        let carried = self.traffic_for(Transfer::Read);
        let carried = carried.map_or(0, |stat| stat.read_bytes.saturating_add(NOTEWORTHY));
        !read.is_empty() && read.iter().all(|file| file.has_device) && can_be && fetched <= carried
    }
}

fn unknown(why: Unknown, most: Option<u64>) -> Asked {
    Asked::Unknown { why, most }
}

#[cfg(test)]
pub(crate) mod tests;
