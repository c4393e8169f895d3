//! From counters to a verdict: where did the bytes of a sample come from, or go to?
//!
//! The rules, in this order:
//!
//! 1. A target that is no storage (`/dev/zero`, a file system in memory) and the `null` backend: `not-storage`.
//! 2. Reads: the bytes that the process's account (`read_bytes` of `/proc/self/io`) says were fetched from
//!    storage, over the bytes read. Without that account, the device's own count.
//! 3. Direct writes: `write_bytes` of the process's account, over the bytes written; when the device is known, what
//!    it counted must agree.
//! 4. Buffered writes: only the device's count tells, since the account counts the dirtying of the page cache. What
//!    is written back after the timed span did not reach the device in it.
//! 5. Reads and writes mixed: the sum of both over the sum of the bytes.
//!
//! A share of at least 95 % is `device`, of at most 5 % `page-cache`, anything between is `mixed`. Direct I/O knows
//! no page cache: a low share is `unknown` there, with what may be behind it. Read-ahead can fetch more than was
//! read; a share is cut at 1.

use iolab_engine::counters::Counters;

use crate::record::{ServedBy, Verdict};

/// Share from which the device is said to have served a sample.
const DEVICE_FROM: f64 = 0.95;
/// Share up to which the page cache is said to have.
const CACHE_UP_TO: f64 = 0.05;
/// Share of direct writes that the device must have counted itself.
const DEVICE_AGREES_FROM: f64 = 0.9;

/// What the verdict rests on.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Whether the backend does I/O at all (`null` does not).
    pub does_io: bool,
    /// Whether the target is memory rather than storage.
    pub is_memory: bool,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// Bytes read, as counted by the engine.
    pub read_bytes: u64,
    /// Bytes written, as counted by the engine.
    pub write_bytes: u64,
    /// The kernel's counters over the timed span.
    pub counters: &'a Counters,
}

/// The verdict on one sample.
pub fn judge(facts: &Facts<'_>) -> Verdict {
    if !facts.does_io {
        return verdict(ServedBy::NotStorage, None, "the null backend does no I/O");
    }
    if facts.is_memory {
        return verdict(
            ServedBy::NotStorage,
            None,
            "the target is memory, not storage",
        );
    }
    let total = facts.read_bytes + facts.write_bytes;
    if total == 0 {
        return verdict(ServedBy::Unknown, None, "nothing was transferred");
    }
    let reads = share_of_reads(facts);
    let writes = share_of_writes(facts);
    let known = [(facts.read_bytes, reads), (facts.write_bytes, writes)]
        .into_iter()
        .filter(|(bytes, _)| *bytes > 0)
        .try_fold(0.0, |sum, (bytes, share)| {
            share.map(|share| sum + share * bytes as f64)
        });
    match known {
        // Sums of floating-point numbers may exceed their parts by a hair.
        Ok(bytes) => classify(facts, (bytes / total as f64).min(1.0)),
        Err(reason) => verdict(ServedBy::Unknown, None, reason),
    }
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
        (_, _, Some(counted)) => Ok(share(counted, facts.write_bytes)),
        (true, None, None) => {
            Err("neither the process's I/O account nor the device's counters can be read")
        }
        (false, _, None) => {
            Err("buffered writes show on the device only, and its counters cannot be read")
        }
    }
}

fn classify(facts: &Facts<'_>, share: f64) -> Verdict {
    let percent = (share * 100.0).floor();
    let (served_by, reason) = match (facts.direct, facts.read_bytes > 0) {
        _ if share >= DEVICE_FROM => (
            ServedBy::Device,
            format!("{percent} % of the bytes reached the device"),
        ),
        (true, reads) if share <= CACHE_UP_TO && reads => (
            ServedBy::Unknown,
            "direct reads did not reach the device: a hole, unwritten extents, or a file system that ignores O_DIRECT"
                .to_owned(),
        ),
        (true, _) if share <= CACHE_UP_TO => (
            ServedBy::Unknown,
            "direct writes did not reach the device: a file system that ignores O_DIRECT, or delays them"
                .to_owned(),
        ),
        (_, true) if share <= CACHE_UP_TO => (
            ServedBy::PageCache,
            format!("{percent} % of the bytes came from the device"),
        ),
        (_, false) if share <= CACHE_UP_TO => (
            ServedBy::PageCache,
            format!("{percent} % of the bytes reached the device within the timed span"),
        ),
        _ => (
            ServedBy::Mixed,
            format!("{percent} % of the bytes reached the device within the timed span"),
        ),
    };
    Verdict {
        served_by,
        device_fraction: Some(share),
        reason,
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64).min(1.0)
    }
}

fn verdict(served_by: ServedBy, device_fraction: Option<f64>, reason: &str) -> Verdict {
    Verdict {
        served_by,
        device_fraction,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use iolab_engine::counters::{DeviceStat, ProcessIo};
    use proptest::prelude::*;

    use super::*;

    const MB: u64 = 1_000_000;

    /// Account and device counts in bytes: (process read, process write), (device read, device write).
    fn counters(process: Option<(u64, u64)>, device: Option<(u64, u64)>) -> Counters {
        Counters {
            process_io: process.map(|(read_bytes, write_bytes)| ProcessIo {
                read_bytes,
                write_bytes,
                ..ProcessIo::default()
            }),
            device: device.map(|(read_bytes, write_bytes)| DeviceStat {
                read_bytes,
                write_bytes,
                ..DeviceStat::default()
            }),
            ..Counters::default()
        }
    }

    fn of(direct: bool, read_bytes: u64, write_bytes: u64, counters: &Counters) -> Verdict {
        judge(&Facts {
            does_io: true,
            is_memory: false,
            direct,
            read_bytes,
            write_bytes,
            counters,
        })
    }

    #[test]
    fn memory_and_null_are_never_the_device() {
        let busy = counters(Some((MB, MB)), Some((MB, MB)));
        for (does_io, is_memory) in [(false, false), (true, true), (false, true)] {
            let facts = Facts {
                does_io,
                is_memory,
                direct: true,
                read_bytes: MB,
                write_bytes: 0,
                counters: &busy,
            };
            assert_eq!(judge(&facts).served_by, ServedBy::NotStorage);
        }
    }

    #[test]
    fn reads_follow_the_process_account() {
        let device = Some((MB, 0));
        for (fetched, direct, expected) in [
            (MB, true, ServedBy::Device),
            (3 * MB, false, ServedBy::Device),
            (960_000, false, ServedBy::Device),
            (500_000, false, ServedBy::Mixed),
            (50_000, false, ServedBy::PageCache),
            (0, false, ServedBy::PageCache),
            (0, true, ServedBy::Unknown),
            (500_000, true, ServedBy::Mixed),
        ] {
            let verdict = of(direct, MB, 0, &counters(Some((fetched, 0)), device));
            assert_eq!(
                verdict.served_by, expected,
                "{fetched} {direct}: {}",
                verdict.reason
            );
            assert!(
                verdict
                    .device_fraction
                    .is_some_and(|f| (0.0..=1.0).contains(&f))
            );
        }
    }

    #[test]
    fn reads_fall_back_to_the_device() {
        assert_eq!(
            of(false, MB, 0, &counters(None, Some((MB, 0)))).served_by,
            ServedBy::Device
        );
        assert_eq!(
            of(false, MB, 0, &counters(None, None)).served_by,
            ServedBy::Unknown
        );
    }

    #[test]
    fn buffered_writes_follow_the_device_alone() {
        let dirtied = Some((0, MB));
        assert_eq!(
            of(false, 0, MB, &counters(dirtied, Some((0, 0)))).served_by,
            ServedBy::PageCache
        );
        assert_eq!(
            of(false, 0, MB, &counters(dirtied, Some((0, MB)))).served_by,
            ServedBy::Device
        );
        assert_eq!(
            of(false, 0, MB, &counters(dirtied, Some((0, MB / 2)))).served_by,
            ServedBy::Mixed
        );
        let blind = of(false, 0, MB, &counters(dirtied, None));
        assert_eq!(blind.served_by, ServedBy::Unknown);
        assert!(blind.reason.contains("device"));
    }

    #[test]
    fn direct_writes_need_both_accounts_to_agree() {
        let sent = Some((0, MB));
        assert_eq!(
            of(true, 0, MB, &counters(sent, None)).served_by,
            ServedBy::Device
        );
        assert_eq!(
            of(true, 0, MB, &counters(sent, Some((0, MB)))).served_by,
            ServedBy::Device
        );
        assert_eq!(
            of(true, 0, MB, &counters(sent, Some((0, MB / 2)))).served_by,
            ServedBy::Mixed
        );
        assert_eq!(
            of(true, 0, MB, &counters(sent, Some((0, 0)))).served_by,
            ServedBy::Unknown
        );
        assert_eq!(
            of(true, 0, MB, &counters(None, None)).served_by,
            ServedBy::Unknown
        );
    }

    #[test]
    fn mixed_trials_are_weighted_by_bytes() {
        // Reads from the cache, writes to the device, three to one.
        let verdict = of(false, 3 * MB, MB, &counters(Some((0, MB)), Some((0, MB))));
        assert_eq!(verdict.served_by, ServedBy::Mixed);
        assert!(
            verdict
                .device_fraction
                .is_some_and(|f| (f - 0.25).abs() < 1e-9)
        );
    }

    #[test]
    fn nothing_transferred_is_unknown() {
        assert_eq!(
            of(true, 0, 0, &counters(Some((0, 0)), None)).served_by,
            ServedBy::Unknown
        );
    }

    proptest! {
        #[test]
        fn any_counters_give_a_verdict_with_a_reason(
            direct: bool, is_memory: bool, read_bytes in 0..1u64 << 60, write_bytes in 0..1u64 << 60,
            process: Option<(u64, u64)>, device: Option<(u64, u64)>,
        ) {
            let counters = counters(process, device);
            let facts = Facts { does_io: true, is_memory, direct, read_bytes, write_bytes, counters: &counters };
            let verdict = judge(&facts);
            prop_assert!(!verdict.reason.is_empty());
            prop_assert!(verdict.device_fraction.is_none_or(|f| (0.0..=1.0).contains(&f)));
            prop_assert!(!is_memory || verdict.served_by == ServedBy::NotStorage);
        }
    }
}
