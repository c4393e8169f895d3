//! Turns the observation of a program into evidence, by the rules that judge a trial of iolab's own engine.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::evidence::{Asked, Bounds, Claimed, Reading, ToolClaim, Unknown, Witnessed};
use crate::observed::{Observed, ObservedFile, UncountedWay};
use iolab_analysis::carried_below::Transfer;
use iolab_record::{OperationSummary, PerOperation, ServedBy, ServedVerdict};
use iolab_runner::peers::PeerList;
use iolab_workload::counters::{Bottom, Counters, NfsIo, ProcessIo};
use iolab_workload::region_state::{Medium, Region};
use iolab_workload::response::mb_s;
use iolab_workload::units::{format_bytes, format_percent};
use iolab_workload::{Result, usage_errors};

use iolab_runner::evidence::{Facts, judge, unknown};
use iolab_runner::transferred;

/// Least size of a file for which its pages in the page cache matter, bytes.
const FILE_LEAST: u64 = 256 << 10;
/// Lowest share of the reads that is reported if the rest is unknown.
const SHARE_LEAST: f64 = 0.01;
/// Share of a file without data from which on direct reads of it may be reads of nothing.
const HOLES_LEAST: f64 = 0.05;

/// The claim of a program's report that was written since a moment.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): there is no report that can be read, or it is older.
pub(crate) fn claim(report: &Path, peers: PeerList, since: SystemTime) -> Result<ToolClaim> {
    let (tool, samples) = transferred(report, peers)?;
    let written = std::fs::metadata(report).and_then(|metadata| metadata.modified());
    // File systems give times of files in steps of the kernel's clock.
    let is_older = written.is_ok_and(|written| written + CLOCK_STEP < since);
    usage_errors! {
        is_older => format!("{} was written before the program started", report.display()),
            "give the report that this program writes";
    }
    let of = |of: fn(&PerOperation<OperationSummary>) -> u64| {
        let entries: Vec<(u64, u64)> = samples
            .iter()
            .map(|job| (of(&job.operations), job.elapsed_ns))
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        let elapsed_ns = match entries[..] {
            [(_, elapsed_ns)] => Some(elapsed_ns).filter(|elapsed_ns| *elapsed_ns > 0),
            _ => None,
        };
        let bytes = entries
            .iter()
            .fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        (bytes > 0).then_some(Claimed {
            bytes,
            mb_s: elapsed_ns.map(|elapsed_ns| mb_s(bytes, elapsed_ns)),
            elapsed_ns,
        })
    };
    Ok(ToolClaim {
        tool: tool.to_string(),
        reads: of(|done| done.read.bytes),
        writes: of(|done| done.write.bytes),
    })
}

/// Longest step of the clock that stamps files.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// An observation with the verdicts on it.
pub(crate) fn judged(observed: Observed) -> Witnessed {
    let case = Case::of(&observed);
    let (reads, writes) = (case.reads(), case.writes());
    Witnessed {
        reads,
        writes,
        observed,
        ..Witnessed::default()
    }
}

/// An observation with the counters of its devices, as of a trial.
struct Case<'a> {
    observed: &'a Observed,
    reading: Reading<'a>,
    counters: Counters,
    region: Region,
    region_bytes: u64,
}

impl<'a> Case<'a> {
    fn of(observed: &'a Observed) -> Self {
        let reading = Reading::of(observed);
        let io = observed.processes.io;
        let target = observed.target.as_ref();
        Self {
            observed,
            counters: Counters {
                process_io: io.map(|io| ProcessIo {
                    write_bytes: reading.dirtied().unwrap_or(io.write_bytes),
                    ..io
                }),
                // The account of the mount counts all processes.
                nfs: observed.nfs.zip(io).map(|(nfs, io)| NfsIo {
                    read_bytes: nfs.read_bytes.min(io.read_bytes),
                    write_bytes: nfs.write_bytes.min(io.write_bytes),
                }),
                device: reading.traffic(),
                ..Counters::default()
            },
            region: target.map(|target| target.region).unwrap_or_default(),
            region_bytes: target.and_then(|target| target.bytes).unwrap_or(0),
            reading,
        }
    }

    /// Whether the user named the target that was examined before the program started.
    fn is_named(&self) -> bool {
        let target = self.observed.target.as_ref();
        target.is_some_and(|target| target.bytes.is_some())
    }

    /// Traffic of the disks below the devices that the program may have caused this way.
    fn below(&self, transfer: Transfer) -> Option<Bottom> {
        let (stat, in_file) = self.reading.below(transfer)?;
        Some(Bottom {
            stat,
            in_file,
            passes_on: self.observed.devices.iter().all(|one| one.passes_on),
        })
    }

    fn judge(&self, read_bytes: u64, write_bytes: u64, counters: &Counters) -> ServedVerdict {
        let ways = &self.observed.ways;
        let (transfer, open) = match write_bytes > 0 {
            true => (Transfer::Write, ways.writes),
            false => (Transfer::Read, ways.reads),
        };
        let mut counters = *counters;
        counters.bottom = self.below(transfer);
        judge(&Facts {
            does_io: true,
            medium: self.reading.medium(transfer),
            direct: open.is_direct(),
            is_program: true,
            read_bytes,
            write_bytes,
            counters: &counters,
            kept_in_files: self.reading.kept_in_files(transfer),
            region_bytes: self.region_bytes,
            is_named: self.is_named(),
            region: &self.region,
        })
    }

    /// The verdict on this many read bytes, of which storage carried `fetched` for read calls.
    fn judge_fetched(&self, read_bytes: u64, fetched: u64) -> ServedVerdict {
        let mut counters = self.counters;
        if let Some(io) = &mut counters.process_io {
            io.read_bytes = fetched;
        }
        self.judge(read_bytes, 0, &counters)
    }

    /// The verdict on reads; `None` if they were negligible.
    fn reads(&self) -> Option<ServedVerdict> {
        match self.reading.asked_reads() {
            Asked::Nothing => None,
            Asked::Bytes(bytes) => Some(self.of_bounds(bytes)),
            Asked::Unknown { why, most } => Some(self.of_unknown(&why, most)),
        }
    }

    /// The verdict if both bounds lead to the same one; its share refers to all bytes that the calls read.
    fn of_bounds(&self, bounds: Bounds) -> ServedVerdict {
        let fetched = self.reading.fetched_by_calls().unwrap_or_default();
        let by_calls = fetched.within(bounds.most);
        let most = self.judge_fetched(bounds.most, by_calls.most);
        let pipes = bounds.most - bounds.least.max(by_calls.most);
        // Storage may have carried all of it; then the whole range between the bounds is open.
        let piped = match pipes {
            0 => bounds.most - bounds.least,
            pipes => pipes,
        };
        let of_pipes = || {
            unknown(format!(
                "up to {} of what its calls read came from its own pipes",
                format_bytes(piped as f64)
            ))
        };
        if self.judge_fetched(bounds.least, by_calls.most).served_by != most.served_by {
            return of_pipes();
        }
        let is_shared = matches!(
            most.served_by,
            ServedBy::Device | ServedBy::PageCache | ServedBy::Mixed
        );
        if !is_shared {
            return most;
        }
        if self.judge_fetched(bounds.most, by_calls.least).served_by != most.served_by {
            // The larger of two uncertainties.
            return match pipes > by_calls.most - by_calls.least {
                true => of_pipes(),
                false => unknown(faults(fetched)),
            };
        }
        if most.served_by == ServedBy::PageCache && self.is_gone() {
            return unknown(GONE);
        }
        let reason = most.reason.clone() + self.unseen(&most);
        let share = most.device_fraction;
        ServedVerdict {
            reason,
            device_fraction: share.filter(|_| by_calls.is_known_within(bounds.most)),
            ..most
        }
    }

    /// Whether the page cache held nothing, at the end, of the files that the program can have read. It may then not have
    /// served the bytes that storage did not carry. `copy_file_range` counts bytes as read that the file system only
    /// shares.
    fn is_gone(&self) -> bool {
        let files = self.observed.files.iter();
        let mut files = files.filter(|file| file.is_read && file.bytes >= FILE_LEAST);
        let is_empty = |file: &ObservedFile| {
            let held = file.after.filter(|after| after.looked_bytes > 0);
            held.is_some_and(|after| after.resident_bytes < FILE_LEAST.min(file.bytes / 16))
        };
        let is_buffered = !self.is_named() && !self.observed.ways.reads.is_direct();
        is_buffered && files.clone().next().is_some() && files.all(is_empty)
    }

    /// Note about the invisible content of the page cache without `--on`, and the remedy: `--on` can name one file.
    fn unseen(&self, verdict: &ServedVerdict) -> &'static str {
        let is_cached = matches!(verdict.served_by, ServedBy::PageCache | ServedBy::Mixed);
        if self.is_named() || !is_cached || self.observed.ways.reads.is_direct() {
            return "";
        }
        let files = self.observed.files.iter();
        let files = files.filter(|file| file.is_read && file.bytes >= FILE_LEAST);
        match files.count() {
            1 => "; what the page cache held before is unknown: name the file with --on",
            _ => "; what the page cache held before is unknown",
        }
    }

    /// The verdict if it is not known how much was asked for: what came from storage can still be all that was read.
    fn of_unknown(&self, why: &Unknown, most: Option<u64>) -> ServedVerdict {
        let by_calls = self.reading.fetched_by_calls().unwrap_or_default().least;
        if let Some(most) = most {
            let at_most = self.judge_fetched(most, by_calls);
            if matches!(at_most.served_by, ServedBy::Device | ServedBy::NotStorage) {
                return at_most;
            }
        }
        let fetched = self.observed.processes.io.map_or(0, |io| io.read_bytes);
        if self.reads_device_only(why) && fetched > 0 {
            return ServedVerdict {
                reason:
                    "every descriptor of storage that it used so bypasses the page cache, and there are no holes"
                        .to_owned(),
                ..self.judge(fetched, 0, &self.counters)
            };
        }
        let of = most.filter(|most| *most > 0);
        let share = of.map(|most| (by_calls as f64 / most as f64).min(1.0));
        let share = share.filter(|share| *share >= SHARE_LEAST).map(|share| {
            format!(
                "; at least {} of all that it read came from storage",
                format_percent(share)
            )
        });
        unknown(reason(why) + &share.unwrap_or_default())
    }

    /// Whether only a device can have served the uncounted requests: no page cache, no hole, no mapping.
    fn reads_device_only(&self, why: &Unknown) -> bool {
        let ways = &self.observed.ways;
        let is_ring = |ways: &BTreeSet<UncountedWay>| !ways.contains(&UncountedWay::Mmap);
        let empty = self.region.empty_share(self.region_bytes);
        let is_device = self
            .observed
            .target
            .as_ref()
            .is_some_and(|one| one.is_device);
        let io = self.observed.processes.io.unwrap_or_default();
        matches!(why, Unknown::Uncounted(ways) if is_ring(ways))
            && ways.uncounted_reads.is_direct()
            && (ways.reads.is_direct() || io.rchar < FILE_LEAST)
            && self.reading.medium(Transfer::Read) == Medium::Storage
            && (is_device || empty.is_some_and(|empty| empty < HOLES_LEAST))
    }

    /// The verdict on writes.
    fn writes(&self) -> Option<ServedVerdict> {
        match self.reading.asked_writes() {
            Asked::Nothing => None,
            Asked::Bytes(bytes) => Some(self.of_written(bytes, self.reading.carried_writes())),
            Asked::Unknown { why, .. } => Some(unknown(reason(&why))),
        }
    }

    /// The verdict on writes if all that can have been written leads to the same.
    fn of_written(&self, written: Bounds, carried: Option<Bounds>) -> ServedVerdict {
        let of_writes = |written: u64| {
            let within = carried.map(|carried| carried.within(written));
            self.of_writes(written, within)
        };
        let most = of_writes(written.most);
        if written.is_known_within(written.most) {
            return most;
        }
        let least = of_writes(written.least);
        // However much that was, it is on the device.
        if self.reading.counts_folios() && self.reading.has_left_page_cache() {
            return ServedVerdict {
                device_fraction: None,
                ..least
            };
        }
        match least.served_by == most.served_by && most.served_by != ServedBy::Unknown {
            true => ServedVerdict {
                device_fraction: None,
                ..most
            },
            false if self.reading.counts_folios() => unknown(self.folios()),
            false => unknown(format!(
                "it discarded {} of dirty data, of which up to {} may be from before its start (run 'sync' first)",
                format_bytes(self.observed.processes.cancelled_write_bytes as f64),
                format_bytes((written.most - written.least) as f64)
            )),
        }
    }

    /// Why it is not known how much of its writes left the page cache, if folios count as a whole.
    fn folios(&self) -> String {
        let Some(owed) = self.reading.owed() else {
            return reason(&Unknown::NotSeen);
        };
        format!(
            "the kernel counts a large page of the page cache (folio) as a whole, however few of its bytes were written; {} of these were dirty at the end",
            format_bytes(owed as f64)
        )
    }

    /// The verdict on writes, of which the devices carried a number of bytes that others' traffic can leave open.
    fn of_writes(&self, written: u64, carried: Option<Bounds>) -> ServedVerdict {
        let Some(carried) = carried else {
            return self.judge(0, written, &self.counters);
        };
        let with = |bytes: u64| {
            let mut counters = self.counters;
            if let Some(device) = &mut counters.device {
                device.write_bytes = bytes;
            }
            self.judge(0, written, &counters)
        };
        let (least, most) = (with(carried.least), with(carried.most));
        if least.served_by == most.served_by && carried.is_known_within(written) {
            return most;
        }
        let why = match self.reading.counts_folios() {
            true => self.folios(),
            false if self.reading.owed().is_none() => "its files could not be examined at its end (deleted, or open too briefly), and the disk may have written for others".to_owned(),
            false => "other processes had the disk write as well".to_owned(),
        };
        let reason = format!(
            "{why}: between {} and {} of it can be the program's",
            format_bytes(carried.least as f64),
            format_bytes(carried.most as f64)
        );
        match least.served_by == most.served_by {
            true => ServedVerdict {
                device_fraction: None,
                reason,
                ..most
            },
            false => unknown(reason),
        }
    }
}

/// Why it is unknown where reads came from that neither storage nor, at the end, the page cache had.
const GONE: &str = "storage carried next to none of it, and the page cache held none of its files at the end: copied without being read (copy_file_range), or dropped from the page cache meanwhile";

/// Why it is not known how much a program asked for, in words.
fn reason(why: &Unknown) -> String {
    match why {
        Unknown::NoAccount => "the I/O accounts of its processes cannot be read".to_owned(),
        Unknown::Missing => {
            "its account may lack some of its processes: those that cannot be read, or whose parent ignored their ends".to_owned()
        }
        Unknown::NotSeen => {
            "its files were not seen: open too briefly, or in processes that this user may not look into; --on FILE names it".to_owned()
        }
        Unknown::Uncounted(ways) => {
            let ways: Vec<String> = ways.iter().map(ToString::to_string).collect();
            format!(
                "it used {}, whose requests the kernel does not count, so the share of the page cache is not known",
                ways.join(" and ")
            )
        }
        Unknown::MoreThanAsked => {
            "storage carried far more than its read calls asked for, as with files that are mapped"
                .to_owned()
        }
        Unknown::Faults(by_calls) => faults(*by_calls),
        Unknown::Media => {
            "its files lie on storage and elsewhere (memory, a file server, a process), and its account does not tell these apart"
                .to_owned()
        }
        Unknown::Sources(sources) => {
            let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
            format!(
                "it could also read from a {}, and its account does not tell these reads apart",
                sources.join(" and a ")
            )
        }
    }
}

/// Share of storage traffic that page faults may have fetched, besides calls.
fn faults(by_calls: Bounds) -> String {
    format!(
        "page faults in program files and other mappings can have fetched {} of the {} that storage carried",
        format_bytes((by_calls.most - by_calls.least) as f64),
        format_bytes(by_calls.most as f64)
    )
}

#[cfg(test)]
mod tests;
