//! What was counted around a trial, from a row. An account is there as a whole or not at all.

use iolab_engine::Result;

use super::fields::Fields;
use crate::record::{
    Bottom, Counters, DeviceStat, Extents, FaultKind, Faults, Hardware, HardwareEvents, Pressure,
    ProcessIo, Region, Residency, ResourceUse, Verified, fault_names,
};

/// The schema that brought the disks below, the pressure and the state of the region.
const SURROUNDINGS: i64 = 3;
/// The schema that brought the time that requests waited at a device.
const QUEUE: i64 = 4;
/// The schema that brought what reading back has shown.
const VERIFIED: i64 = 4;

/// What the kernel counted over the timed span.
pub(super) fn counters(row: &Fields<'_, '_>) -> Result<Counters> {
    let process_io = match row.optional_int("process_read_bytes")? {
        None => None,
        Some(read_bytes) => Some(ProcessIo {
            rchar: row.int("process_rchar_bytes")?,
            wchar: row.int("process_wchar_bytes")?,
            syscr: row.int("process_read_calls")?,
            syscw: row.int("process_write_calls")?,
            read_bytes,
            write_bytes: row.int("process_write_bytes")?,
        }),
    };
    Ok(Counters {
        process_io,
        device: device(row, 1, "device")?,
        bottom: bottom(row)?,
        hardware: hardware(row)?,
        pressure: pressure(row)?,
        usage: ResourceUse {
            user_ns: row.int("user_ns")?,
            system_ns: row.int("system_ns")?,
            minor_faults: row.int("minor_faults")?,
            major_faults: row.int("major_faults")?,
            voluntary_switches: row.int("voluntary_switches")?,
            involuntary_switches: row.int("involuntary_switches")?,
        },
    })
}

fn hardware(row: &Fields<'_, '_>) -> Result<Hardware> {
    let event = |column: &str| row.added_int(2, column);
    let events = HardwareEvents {
        cycles: event("cycles")?,
        instructions: event("instructions")?,
        llc_misses: event("llc_misses")?,
        dtlb_misses: event("dtlb_misses")?,
    };
    if events != HardwareEvents::default() {
        return Ok(Hardware::Counted(events));
    }
    match row.added::<String>(2, "hardware_missing")? {
        None => Ok(Hardware::default()),
        Some(reason) => reason
            .parse()
            .map(Hardware::Missing)
            .map_err(|_| row.wrong("hardware_missing")),
    }
}

/// A device's counters, whose columns came with schema version `since`.
fn device(row: &Fields<'_, '_>, since: i64, prefix: &str) -> Result<Option<DeviceStat>> {
    let column = |name: &str| format!("{prefix}_{name}");
    let Some(read_ios) = row.added_int(since, &column("read_ios"))? else {
        return Ok(None);
    };
    let count = |name: &str| row.int::<u64>(&column(name));
    Ok(Some(DeviceStat {
        read_ios,
        read_merges: count("read_merges")?,
        read_bytes: count("read_bytes")?,
        write_ios: count("write_ios")?,
        write_merges: count("write_merges")?,
        write_bytes: count("write_bytes")?,
        flush_ios: count("flush_ios")?,
        busy_ms: count("busy_ms")?,
        queue_ms: row.added_int(QUEUE, &column("queue_ms"))?,
    }))
}

fn bottom(row: &Fields<'_, '_>) -> Result<Option<Bottom>> {
    let Some(stat) = device(row, SURROUNDINGS, "bottom")? else {
        return Ok(None);
    };
    Ok(Some(Bottom {
        stat,
        in_file: row.flag("bottom_in_file")?,
    }))
}

fn pressure(row: &Fields<'_, '_>) -> Result<Pressure> {
    let number = |column: &str| row.added_int(SURROUNDINGS, column);
    Ok(Pressure {
        cpu_stall_ns: number("cpu_stall_ns")?,
        io_stall_ns: number("io_stall_ns")?,
        memory_stall_ns: number("memory_stall_ns")?,
        steal_ns: number("steal_ns")?,
        suspended_ns: number("suspended_ns")?,
        cpu_khz: number("cpu_khz")?,
    })
}

/// The page cache and the file around the timed span.
pub(super) fn region(row: &Fields<'_, '_>) -> Result<Region> {
    let number = |column: &str| row.added_int(SURROUNDINGS, column);
    Ok(Region {
        before: residency(row, "cache_before")?,
        after: residency(row, "cache_after")?,
        extents: match number("extents_looked_bytes")? {
            None => None,
            Some(looked_bytes) => Some(Extents {
                looked_bytes,
                hole_bytes: row.int("hole_bytes")?,
                unwritten_bytes: number("unwritten_bytes")?,
            }),
        },
        owed_sync_ns: number("owed_sync_ns")?,
        evidence_ns: number("evidence_ns")?.unwrap_or(0),
    })
}

fn residency(row: &Fields<'_, '_>, prefix: &str) -> Result<Option<Residency>> {
    let column = |name: &str| format!("{prefix}_{name}");
    let Some(looked_bytes) = row.added_int(SURROUNDINGS, &column("looked_bytes"))? else {
        return Ok(None);
    };
    Ok(Some(Residency {
        looked_bytes,
        resident_bytes: row.int(&column("bytes"))?,
        dirty_bytes: row.optional_int(&column("dirty_bytes"))?,
        writeback_bytes: row.optional_int(&column("writeback_bytes"))?,
    }))
}

/// What reading back has shown.
pub(super) fn verified(row: &Fields<'_, '_>) -> Result<Option<Verified>> {
    let Some(blocks) = row.added_int(VERIFIED, "verified_blocks")? else {
        return Ok(None);
    };
    let mut verified = Verified {
        blocks,
        bytes: row.int("verified_bytes")?,
        cached_bytes: row.optional_int("verified_cached_bytes")?,
        ..Verified::default()
    };
    for kind in FaultKind::ALL {
        let (blocks, first) = fault_names(kind);
        let faults = Faults {
            blocks: row.int(blocks)?,
            first_offset: row.optional_int(first)?.unwrap_or(0),
        };
        if faults.blocks > verified.blocks {
            return Err(row.wrong(blocks));
        }
        verified.faults[kind as usize] = faults;
    }
    Ok(Some(verified))
}
