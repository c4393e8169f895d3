//! From counters to a verdict: where did the bytes of a sample come from, or go to?
//!
//! The rules, in this order:
//!
//! 1. A target that is not storage (`/dev/zero`, a file system in memory) and the `null` backend: `not-storage`. A target
//!    may get its bytes from a process or another machine (FUSE, NFS, a loop device over a file on NFS or SMB). It is
//!    `page-cache` if reads go through the page cache and it held at least 95 % of the region. The process's account only
//!    shows that bytes left the kernel. On NFS the account of the mount (`/proc/self/mountstats`) counts the bytes on the
//!    network: at least 95 % is `network`, whatever the server does with the bytes. For buffered requests, at most 5 % is
//!    `page-cache`, and less than 95 % is `mixed`. Everything else is `unknown`.
//! 2. Reads: the bytes that the process's account (`read_bytes` of `/proc/self/io`) says were fetched from storage, divided
//!    by the bytes read. Without that account, the device's own count.
//! 3. Direct writes: `write_bytes` of the process's account, divided by the bytes written. If the device is known, its
//!    count must agree.
//! 4. Buffered writes: the device's count, since the account counts the dirtying of the page cache. The count is capped at
//!    the bytes dirtied less the bytes still dirty or in write-back at the end. So it includes no bytes of others. Bytes
//!    written back after the timed span did not reach the device in it.
//! 5. Reads and writes mixed: the sum of both divided by the sum of the bytes.
//!
//! A share of at least 95 % is `device`, of at most 5 % `page-cache`, anything between is `mixed`. Direct I/O bypasses the
//! page cache: a low share is `unknown` there, with possible causes. Read-ahead can fetch more than was read; a share is
//! cut at 1. Four rules overrule these:
//!
//! - Reads of a region of which at least 95 % are holes or unwritten extents are `hole`. The exception: the device carried
//!   95 % of the bytes all the same, because the part that was read has data.
//! - Reads through the page cache are `unknown` if more than 5 % were neither in it before, nor fetched by the process, nor
//!   holes: no counter shows their source. If the content of the page cache is not visible, the accounts decide alone, and
//!   the reason says so.
//! - If the disks below a stacked device carried less than 0.9 of the device's traffic, their share counts: `page-cache` or
//!   `mixed` if a loop device's file lies between, otherwise `unknown`.
//! - If they carried as much, a file of a loop device may still have hidden the source. The verdict is `unknown` if the
//!   file is not read and written with direct I/O, and others may have used the disks.

use iolab_analysis::carried_below::{Transfer, own_below};
use iolab_workload::counters::Counters;
use iolab_workload::region_state::Medium;
use iolab_workload::units::{format_percent, format_percent_of_whole};

use iolab_record::{Region, Residency, ServedBy, ServedVerdict};

/// Share from which the device is said to have served a sample.
const DEVICE_FROM: f64 = 0.95;
/// Share up to which the page cache is said to have.
const CACHE_UP_TO: f64 = 0.05;
/// Share of direct writes that the device must have counted itself, and of the device's bytes that the disks below must.
const DEVICE_AGREES_FROM: f64 = 0.9;
/// Share of a region without data from which reading it is called reading a hole.
const HOLE_FROM: f64 = 0.95;
/// Share of a region without data that is mentioned.
const HOLE_TOLD_FROM: f64 = 0.05;

/// Source of the bytes of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The storage below a file or device.
    Medium(Medium),
    /// A disk that is computed.
    Model,
}

/// The verdict on a sample of a disk that is computed: nothing has to be counted to know it.
pub fn computed() -> ServedVerdict {
    verdict(ServedBy::Model, None, "computed in virtual time")
}

/// The evidence for a verdict.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Whether the backend does I/O at all (`null` does not).
    pub does_io: bool,
    /// Medium of the target's bytes.
    pub medium: Medium,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// Whether a program made the requests, whose ways of opening files are seen now and then only.
    pub is_program: bool,
    /// Bytes read, as counted by the engine.
    pub read_bytes: u64,
    /// Bytes written, as counted by the engine.
    pub write_bytes: u64,
    /// The kernel's counters over the timed span.
    pub counters: &'a Counters,
    /// Upper bound of the bytes that may have ended in the page cache of files below loop devices.
    pub kept_in_files: u64,
    /// Length of the region, bytes.
    pub region_bytes: u64,
    /// Whether the page cache could have been examined before, as it is known beforehand which file is used.
    pub is_named: bool,
    /// The page cache and the file around the timed span.
    pub region: &'a Region,
}

/// The verdict on one sample.
pub fn judge(facts: &Facts<'_>) -> ServedVerdict {
    if !facts.does_io {
        return verdict(ServedBy::NotStorage, None, "the null backend does no I/O");
    }
    if facts.medium == Medium::Memory {
        return verdict(
            ServedBy::NotStorage,
            None,
            "the target is memory, not storage",
        );
    }
    let total = facts.read_bytes + facts.write_bytes;
    if total == 0 {
        return unknown("nothing was transferred (trims move no data)");
    }
    if facts.medium == Medium::Elsewhere {
        return elsewhere(facts);
    }
    let reads = share_of_reads(facts);
    let writes = share_of_writes(facts);
    let known = [(facts.read_bytes, reads), (facts.write_bytes, writes)]
        .into_iter()
        .filter(|(bytes, _)| *bytes > 0)
        .try_fold(0.0, |sum, (bytes, share)| {
            share.map(|share| sum + share * bytes as f64)
        });
    // Sums of floating-point numbers may exceed their parts by a hair.
    let known = known.map(|bytes| (bytes / total as f64).min(1.0));
    if let Some(hole) = hole(facts, known.ok()) {
        return hole;
    }
    let share = match known {
        Ok(share) => share,
        Err(reason) => {
            return held(facts).unwrap_or_else(|| unknown(reason));
        }
    };
    unexplained(facts, share)
        .or_else(|| below(facts, share))
        .unwrap_or_else(|| classify(facts, share))
}

/// The verdict if a process or another machine answers for the bytes.
fn elsewhere(facts: &Facts<'_>) -> ServedVerdict {
    held(facts)
        .or_else(|| over_nfs(facts))
        .unwrap_or_else(|| unknown(format!("{}{}", absent(facts), ServedVerdict::ELSEWHERE)))
}

/// Says that a client's own page cache did not serve the reads, if that was seen.
fn absent(facts: &Facts<'_>) -> String {
    let reads = facts.write_bytes == 0 && !facts.direct;
    let held = facts.region.before.filter(|_| reads);
    let held = held.map(|before| share(before.resident_bytes, facts.region_bytes));
    held.map_or_else(String::new, |held| {
        format!(
            "the page cache held {} of the region; ",
            format_percent(held)
        )
    })
}

/// The verdict by the account of the NFS client, which counts what went over the network, of all processes.
fn over_nfs(facts: &Facts<'_>) -> Option<ServedVerdict> {
    let nfs = facts.counters.nfs?;
    let moved = nfs.read_bytes.min(facts.read_bytes) + nfs.write_bytes.min(facts.write_bytes);
    let moved = share(moved, facts.read_bytes + facts.write_bytes);
    let told = format!(
        "{} of the bytes went over the network (NFS)",
        format_percent(moved)
    );
    Some(match moved {
        _ if moved >= DEVICE_FROM => verdict(
            ServedBy::Network,
            None,
            &format!("{told}; it is unknown whether disks or memory of the server served them"),
        ),
        _ if facts.direct => unknown(format!("only {told}")),
        _ if moved <= CACHE_UP_TO => verdict(ServedBy::PageCache, Some(0.0), &told),
        _ => verdict(
            ServedBy::Mixed,
            None,
            &format!("{told}, the rest stayed in the page cache"),
        ),
    })
}

/// The verdict on buffered reads of bytes that the page cache held; it overrides the I/O accounts.
fn held(facts: &Facts<'_>) -> Option<ServedVerdict> {
    let held = share(facts.region.before?.resident_bytes, facts.region_bytes);
    (held >= DEVICE_FROM && !facts.direct && facts.write_bytes == 0).then(|| {
        let reason = format!("the page cache held {} of the region", format_percent(held));
        verdict(ServedBy::PageCache, Some(0.0), &reason)
    })
}

/// The verdict on buffered reads of bytes that the page cache did not hold and the process did not fetch.
fn unexplained(facts: &Facts<'_>, fetched: f64) -> Option<ServedVerdict> {
    if facts.direct || facts.write_bytes > 0 || fetched >= DEVICE_FROM {
        return None;
    }
    let held = facts.region.before?.resident_bytes;
    let empty = facts.region.extents.map_or(0, |seen| seen.empty_bytes());
    let fetched_bytes = facts.counters.process_io?.read_bytes;
    let known = held.saturating_add(empty).saturating_add(fetched_bytes);
    // Bytes that are read again come from the page cache.
    let at_least_once = facts.read_bytes.min(facts.region_bytes);
    let missing = share(at_least_once.saturating_sub(known), facts.read_bytes);
    (missing > CACHE_UP_TO).then(|| ServedVerdict {
        served_by: ServedBy::Unknown,
        device_fraction: Some(fetched),
        reason: format!(
            "{} of the bytes were neither in the page cache before nor fetched from a device, and their source is unknown",
            format_percent(missing)
        ),
    })
}

/// The verdict on reads of bytes that were never written. It holds for nearly the whole region, or for more than the page
/// cache held of it and most of the bytes that the device did not carry.
fn hole(facts: &Facts<'_>, fetched: Option<f64>) -> Option<ServedVerdict> {
    let empty = facts.region.empty_share(facts.region_bytes)?;
    let held = facts.region.before.map(|before| before.resident_bytes);
    let held = share(held.unwrap_or(0), facts.region_bytes);
    let outweighs =
        |fetched: f64| empty > HOLE_TOLD_FROM && empty > held && empty > (1.0 - fetched) / 2.0;
    let reads_zeros = facts.write_bytes == 0 && fetched.is_none_or(|share| share < DEVICE_FROM);
    let is_hole = empty >= HOLE_FROM || fetched.is_some_and(outweighs);
    let part = fetched.filter(|share| *share > CACHE_UP_TO);
    let part = part.map_or_else(String::new, |share| carried(facts, share) + "; ");
    (reads_zeros && is_hole).then(|| ServedVerdict {
        served_by: ServedBy::Hole,
        device_fraction: fetched,
        reason: format!("{part}{} of the region {HOLES}", format_percent(empty)),
    })
}

const HOLES: &str = "lie in holes or unwritten extents, which read as zeros";

/// The verdict if the disks below the device carried less than the device.
fn below(facts: &Facts<'_>, device: f64) -> Option<ServedVerdict> {
    let bottom = facts.counters.bottom?;
    let total = facts.read_bytes + facts.write_bytes;
    let carried = bottom.stat.read_bytes.min(facts.read_bytes)
        + bottom.stat.write_bytes.min(facts.write_bytes);
    let carried = share(carried, total);
    if device <= CACHE_UP_TO {
        return None;
    }
    let least = share(total.saturating_sub(facts.kept_in_files), total).min(carried);
    if carried >= DEVICE_AGREES_FROM * device {
        // All of that can be of others.
        let is_open = bottom.in_file && least < DEVICE_AGREES_FROM * device;
        return is_open.then(|| unknown(OTHERS_BELOW));
    }
    let served_by = match bottom.in_file && !bottom.passes_on {
        true if carried <= CACHE_UP_TO => ServedBy::PageCache,
        true => ServedBy::Mixed,
        false => ServedBy::Unknown,
    };
    let cause = match (bottom.in_file, bottom.passes_on) {
        (true, false) => "the page cache holds the backing file of the loop device",
        // None of it is in the page cache.
        (true, true) if facts.write_bytes == 0 => {
            "holes or unwritten extents of the backing file of the loop device may have served the rest"
        }
        _ => "something between them served or kept the rest",
    };
    Some(ServedVerdict {
        served_by,
        device_fraction: Some(carried),
        reason: format!(
            "the disks below the device carried only {} of the bytes: {cause}",
            format_percent(carried)
        ),
    })
}

const OTHERS_BELOW: &str = "the page cache can hold the backing file of the loop device, and other processes used the disks below: what these carried can be theirs";

/// Upper bound of a trial's bytes in the page cache of files below loop devices, if others used the disks below.
pub(crate) fn kept_in_files(counters: &Counters) -> u64 {
    let Some((through, bottom)) = counters.device.zip(counters.bottom) else {
        return 0;
    };
    if !bottom.in_file || bottom.passes_on {
        return 0;
    }
    let kept = |transfer, bytes: u64| match own_below(through, bottom.stat, transfer) {
        Some(_) => 0,
        None => bytes,
    };
    let reads = kept(Transfer::Read, through.read_bytes);
    reads.saturating_add(kept(Transfer::Write, through.write_bytes))
}

fn share_of_reads(facts: &Facts<'_>) -> Result<f64, &'static str> {
    let account = facts.counters.process_io.map(|io| io.read_bytes);
    let fetched = account
        .or(facts.counters.device.map(|device| device.read_bytes))
        .ok_or("neither the process's I/O account nor the device's counters can be read")?;
    Ok(share(fetched, facts.read_bytes))
}

fn share_of_writes(facts: &Facts<'_>) -> Result<f64, &'static str> {
    let account = facts.counters.process_io.map(|io| io.write_bytes);
    let device = facts.counters.device.map(|device| device.write_bytes);
    let written_back = written_back(facts);
    match (facts.direct, account, device) {
        (true, Some(sent), None) => Ok(share(sent, facts.write_bytes)),
        (true, Some(sent), Some(counted)) => {
            let (sent, counted) = (
                share(sent, facts.write_bytes),
                share(counted, facts.write_bytes),
            );
            Ok(if counted >= DEVICE_AGREES_FROM {
                sent
            } else {
                sent.min(counted)
            })
        }
        (_, _, Some(counted)) => Ok(share(
            counted.min(written_back.unwrap_or(u64::MAX)),
            facts.write_bytes,
        )),
        (true, None, None) => {
            Err("neither the process's I/O account nor the device's counters can be read")
        }
        (false, _, None) => Err(
            "buffered writes show on the device only, and no device is known here whose counters can be read",
        ),
    }
}

/// Upper bound of own bytes that were written back from the page cache within the span: bytes dirtied in it or dirty
/// before, less the bytes still dirty. `None` if an account is missing, or does not count this file system.
pub(crate) fn written_back(facts: &Facts<'_>) -> Option<u64> {
    let owed = |seen: &Option<Residency>| seen.as_ref().and_then(Residency::owed_bytes);
    let dirtied = facts.counters.process_io?.write_bytes;
    let (before, after) = (owed(&facts.region.before)?, owed(&facts.region.after)?);
    let had = dirtied.saturating_add(before);
    (had > 0).then(|| had.saturating_sub(after))
}

fn classify(facts: &Facts<'_>, share: f64) -> ServedVerdict {
    let carried = carried(facts, share);
    let (served_by, reason) = match (facts.direct, facts.read_bytes > 0) {
        _ if share >= DEVICE_FROM => (ServedBy::Device, carried),
        (true, reads) if share <= CACHE_UP_TO => {
            let (what, never) = match (reads, facts.region.extents) {
                (true, None) => ("reads", "blocks that were never written, or "),
                (true, Some(_)) => ("reads", ""),
                (false, _) => ("writes", ""),
            };
            (
                ServedBy::Unknown,
                format!(
                    "direct {what} did not reach the device; possible cause: {never}a file system that ignores O_DIRECT"
                ),
            )
        }
        (false, _) if share <= CACHE_UP_TO => (ServedBy::PageCache, carried + within(facts)),
        (true, _) => (
            ServedBy::Mixed,
            format!(
                "only {carried}{}; possible cause: {}a file system that ignores O_DIRECT in part",
                within(facts),
                match facts.is_program {
                    true => "a file that was opened without O_DIRECT between two looks, or ",
                    false => "",
                }
            ),
        ),
        _ => (ServedBy::Mixed, carried + within(facts)),
    };
    ServedVerdict {
        served_by,
        device_fraction: Some(share),
        reason: with_holes(facts, served_by, reason) + unseen(facts),
    }
}

/// The share of the bytes that the device carried, in words.
fn carried(facts: &Facts<'_>, share: f64) -> String {
    let verb = match facts.write_bytes {
        0 => "came from",
        _ => "reached",
    };
    format!(
        "{} of the bytes {verb} the device",
        format_percent_of_whole(share)
    )
}

/// A restriction in time: written bytes can reach the device later.
fn within(facts: &Facts<'_>) -> &'static str {
    match facts.write_bytes {
        0 => "",
        _ => " within the timed span",
    }
}

/// Adds the share of the region without data, if reads may have met it.
fn with_holes(facts: &Facts<'_>, served_by: ServedBy, reason: String) -> String {
    let empty = facts
        .region
        .empty_share(facts.region_bytes)
        .filter(|empty| *empty > HOLE_TOLD_FROM && facts.read_bytes > 0);
    match empty {
        Some(empty) if served_by != ServedBy::Device => {
            format!("{reason}; {} of the region {HOLES}", format_percent(empty))
        }
        _ => reason,
    }
}

/// The invisible part of the page cache, and the doubt that it leaves.
fn unseen(facts: &Facts<'_>) -> &'static str {
    if facts.direct || !facts.is_named {
        ""
    } else if facts.region.before.is_none() {
        "; the content of the page cache is not visible here"
    } else if facts.write_bytes > 0 && written_back(facts).is_none() {
        "; writes of other processes to the device cannot be distinguished here"
    } else {
        ""
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64).min(1.0)
    }
}

/// The verdict that leaves it open, for this reason.
pub fn unknown(reason: impl Into<String>) -> ServedVerdict {
    verdict(ServedBy::Unknown, None, &reason.into())
}

fn verdict(served_by: ServedBy, device_fraction: Option<f64>, reason: &str) -> ServedVerdict {
    ServedVerdict {
        served_by,
        device_fraction,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
