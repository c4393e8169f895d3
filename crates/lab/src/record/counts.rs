//! Everything that was counted around a trial, by the names that run files and exports use.

use super::{Counters, DeviceStat, FaultKind, Region, Residency, Sample, Verified};

/// A name with its unit, and a number; `None` where the system does not offer it.
pub type Count = (&'static str, Option<u64>);

impl Sample {
    /// Everything that was counted.
    pub fn counts(&self) -> Vec<Count> {
        let mut counts = Vec::with_capacity(69);
        counts.extend(process(&self.counters));
        counts.extend(named(DEVICE, self.counters.device));
        counts.extend(named(BOTTOM, self.counters.bottom.map(|b| b.stat)));
        let in_file = self.counters.bottom.map(|b| u64::from(b.in_file));
        counts.push(("bottom_in_file", in_file));
        counts.extend(processor(&self.counters));
        counts.extend(machine(&self.counters));
        counts.extend(region(&self.region));
        counts.extend(verified(self.verified.as_ref()));
        counts
    }
}

/// Names of a device's counters, in the order of [`named`].
type DeviceNames = [&'static str; 9];

const DEVICE: DeviceNames = [
    "device_read_ios",
    "device_read_merges",
    "device_read_bytes",
    "device_write_ios",
    "device_write_merges",
    "device_write_bytes",
    "device_flush_ios",
    "device_busy_ms",
    "device_queue_ms",
];

const BOTTOM: DeviceNames = [
    "bottom_read_ios",
    "bottom_read_merges",
    "bottom_read_bytes",
    "bottom_write_ios",
    "bottom_write_merges",
    "bottom_write_bytes",
    "bottom_flush_ios",
    "bottom_busy_ms",
    "bottom_queue_ms",
];

fn named(names: DeviceNames, stat: Option<DeviceStat>) -> impl Iterator<Item = Count> {
    let values = stat.map(|d| {
        [
            Some(d.read_ios),
            Some(d.read_merges),
            Some(d.read_bytes),
            Some(d.write_ios),
            Some(d.write_merges),
            Some(d.write_bytes),
            Some(d.flush_ios),
            Some(d.busy_ms),
            d.queue_ms,
        ]
    });
    let values = values.unwrap_or([None; 9]);
    names.into_iter().zip(values)
}

fn process(counters: &Counters) -> [Count; 12] {
    let (usage, process) = (counters.usage, counters.process_io);
    [
        ("user_ns", Some(usage.user_ns)),
        ("system_ns", Some(usage.system_ns)),
        ("minor_faults", Some(usage.minor_faults)),
        ("major_faults", Some(usage.major_faults)),
        ("voluntary_switches", Some(usage.voluntary_switches)),
        ("involuntary_switches", Some(usage.involuntary_switches)),
        ("process_rchar_bytes", process.map(|p| p.rchar)),
        ("process_wchar_bytes", process.map(|p| p.wchar)),
        ("process_read_calls", process.map(|p| p.syscr)),
        ("process_write_calls", process.map(|p| p.syscw)),
        ("process_read_bytes", process.map(|p| p.read_bytes)),
        ("process_write_bytes", process.map(|p| p.write_bytes)),
    ]
}

fn processor(counters: &Counters) -> [Count; 4] {
    let events = counters.hardware.events();
    [
        ("cycles", events.cycles),
        ("instructions", events.instructions),
        ("llc_misses", events.llc_misses),
        ("dtlb_misses", events.dtlb_misses),
    ]
}

fn machine(counters: &Counters) -> [Count; 6] {
    let pressure = counters.pressure;
    [
        ("cpu_stall_ns", pressure.cpu_stall_ns),
        ("io_stall_ns", pressure.io_stall_ns),
        ("memory_stall_ns", pressure.memory_stall_ns),
        ("steal_ns", pressure.steal_ns),
        ("suspended_ns", pressure.suspended_ns),
        ("cpu_khz", pressure.cpu_khz),
    ]
}

fn region(region: &Region) -> [Count; 13] {
    let (before, after, extents) = (region.before, region.after, region.extents);
    let of = |seen: Option<Residency>, part: fn(&Residency) -> u64| seen.as_ref().map(part);
    let owed =
        |seen: Option<Residency>, part: fn(&Residency) -> Option<u64>| seen.as_ref().and_then(part);
    [
        ("cache_before_looked_bytes", of(before, |r| r.looked_bytes)),
        ("cache_before_bytes", of(before, |r| r.resident_bytes)),
        ("cache_before_dirty_bytes", owed(before, |r| r.dirty_bytes)),
        (
            "cache_before_writeback_bytes",
            owed(before, |r| r.writeback_bytes),
        ),
        ("cache_after_looked_bytes", of(after, |r| r.looked_bytes)),
        ("cache_after_bytes", of(after, |r| r.resident_bytes)),
        ("cache_after_dirty_bytes", owed(after, |r| r.dirty_bytes)),
        (
            "cache_after_writeback_bytes",
            owed(after, |r| r.writeback_bytes),
        ),
        ("extents_looked_bytes", extents.map(|e| e.looked_bytes)),
        ("hole_bytes", extents.map(|e| e.hole_bytes)),
        ("unwritten_bytes", extents.and_then(|e| e.unwritten_bytes)),
        ("owed_sync_ns", region.owed_sync_ns),
        ("evidence_ns", Some(region.evidence_ns)),
    ]
}

/// Names of the number of blocks with a kind of fault, and of the first byte that is wrong with any.
pub(crate) fn fault_names(kind: FaultKind) -> (&'static str, &'static str) {
    match kind {
        FaultKind::Corrupted => ("corrupted_blocks", "corrupted_first_offset"),
        FaultKind::Misplaced => ("misplaced_blocks", "misplaced_first_offset"),
        FaultKind::Stale => ("stale_blocks", "stale_first_offset"),
        FaultKind::Torn => ("torn_blocks", "torn_first_offset"),
        FaultKind::Lost => ("lost_blocks", "lost_first_offset"),
    }
}

fn verified(verified: Option<&Verified>) -> Vec<Count> {
    let mut counts = vec![
        ("verified_blocks", verified.map(|v| v.blocks)),
        ("verified_bytes", verified.map(|v| v.bytes)),
        (
            "verified_cached_bytes",
            verified.and_then(|v| v.cached_bytes),
        ),
    ];
    for kind in FaultKind::ALL {
        let (blocks, first) = fault_names(kind);
        let faults = verified.map(|v| v.of(kind));
        let offset = faults.filter(|faults| faults.blocks > 0);
        counts.push((blocks, faults.map(|faults| faults.blocks)));
        counts.push((first, offset.map(|faults| faults.first_offset)));
    }
    counts
}
