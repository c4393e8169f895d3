//! The peak rates of a device, found by short probes before a run (`--peak measure`).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_storage::Target;
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};
use iolab_workload::{Error, Result};

use iolab_record::peaks::Peaks;

/// Length of one probe.
const PROBE: Duration = Duration::from_millis(300);

/// A higher concurrency counts as faster from this factor up.
const GAIN: f64 = 1.05;

/// Steps in a row without a gain after which no other is tried: one alone may be a neighbour's doing.
const STEPS_WITHOUT_GAIN: u32 = 2;

/// Most requests at once that are tried.
const AT_ONCE_MAX: u32 = 128;

/// Finds the ceilings of a target by short probes: large sequential and small random requests, with twice as many threads
/// until that has twice gained nothing. Writes only if `writes` says that the run will write too.
///
/// # Errors
/// When a probe cannot be made, or `stop` is raised meanwhile.
pub fn measure(target: &Target, clock: &Clock, stop: &AtomicBool, writes: bool) -> Result<Peaks> {
    let best = |read_percent: u8, pattern: Pattern, bs: u64| -> Result<Option<f64>> {
        let mut best: f64 = 0.0;
        let mut threads = 1;
        let mut without_gain = 0;
        while without_gain < STEPS_WITHOUT_GAIN
            && threads <= AT_ONCE_MAX
            && u64::from(threads) * bs <= target.size()
        {
            let spec = TrialSpec {
                pattern,
                bs,
                region: target.size() / bs * bs,
                threads,
                read_percent,
                limit: TrialLimit {
                    time: Some(PROBE),
                    ..TrialLimit::default()
                },
                cache: match target.direct_alignment() {
                    Ok(_) => CacheState::Direct,
                    Err(_) => CacheState::Cold,
                },
                ..TrialSpec::default()
            };
            let outcome = trial::run(&spec, target, clock, stop)?;
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::interrupted());
            }
            let rate = outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64;
            without_gain = if rate < best * GAIN {
                without_gain + 1
            } else {
                0
            };
            best = rate.max(best);
            threads *= 2;
        }
        Ok((best > 0.0).then_some(best))
    };
    const LARGE: u64 = 1 << 20;
    const SMALL: u64 = 4096;
    let mb_s = |rate: Option<f64>| rate.map(|rate| rate * LARGE as f64 / 1e6);
    let write = |pattern, bs| {
        if writes {
            best(0, pattern, bs)
        } else {
            Ok(None)
        }
    };
    Ok(Peaks {
        read_mb_s: mb_s(best(100, Pattern::Seq, LARGE)?),
        read_iops: best(100, Pattern::Rand, SMALL)?,
        write_mb_s: mb_s(write(Pattern::Seq, LARGE)?),
        write_iops: write(Pattern::Rand, SMALL)?,
    })
}
