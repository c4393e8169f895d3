//! `batch = auto`: short probes choose the completion strategy of each cell.
//!
//! How many completions to wait for before submitting again changes IOPS by up to 1.8 times, in either direction:
//! it depends on who completes the requests and on which CPU. No fixed default is right, so short probes decide.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iolab_plan::batch_probes::{PROBE, ROUNDS, STRATEGIES};
use iolab_workload::Result;
use iolab_workload::outcome::Outcome;
use iolab_workload::quantity::counted;
use iolab_workload::trial::{Batch, TrialLimit, TrialSpec};

use super::executor::Executor;
use iolab_workload::settings::CellSpec;

/// A probe that lasts this many times as long as it should, mostly with the requests of its beginning, only waits for these
/// requests. All strategies do the same then, and a thousand threads would be set up for each of the others. After a stall
/// there are many more requests.
const OUTLASTED: u32 = 3;
/// A round whose shortest probe lasts this many times as long as it should is the only one: large requests would spend the
/// time of trials on probes.
const SLOW: u32 = 2;

/// The strategy with the highest median IOPS, and the numbers in words; the first one if a probe shows no difference between them;
/// `None` when the probes were cut off.
pub(super) fn choose(
    executor: &mut dyn Executor,
    cell: &CellSpec,
    stop: &AtomicBool,
) -> Result<Option<(Batch, String)>> {
    let mut rates = [const { Vec::new() }; STRATEGIES.len()];
    let mut rounds = 0;
    let mut shortest = Duration::MAX;
    while rounds < ROUNDS && (rounds == 0 || shortest <= PROBE * SLOW) {
        rounds += 1;
        for (batch, rates) in STRATEGIES.iter().zip(&mut rates) {
            let mut probe = cell.clone();
            probe.trial.batch = *batch;
            probe.trial.verify = false;
            probe.trial.limit = TrialLimit {
                time: Some(PROBE),
                ..TrialLimit::default()
            };
            let outcome = executor.run(&probe, stop)?;
            if !outcome.ended.is_whole() {
                return Ok(None);
            }
            if is_outlasted(&outcome, &probe.trial) {
                let message = format!(
                    "batch={} not chosen by probes: the requests in flight outlast a probe of {} ms more than {OUTLASTED} times",
                    Batch::One,
                    PROBE.as_millis()
                );
                return Ok(Some((Batch::One, message)));
            }
            shortest = shortest.min(Duration::from_nanos(outcome.elapsed_ns));
            rates.push(outcome.requests() as f64 * 1e9 / outcome.elapsed_ns.max(1) as f64);
        }
    }
    let medians = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rounds / 2]
    });
    let best = (0..STRATEGIES.len())
        .max_by(|a, b| medians[*a].total_cmp(&medians[*b]))
        .unwrap_or(0);
    let numbers: Vec<String> = STRATEGIES
        .iter()
        .zip(medians)
        .map(|(batch, iops)| format!("{batch} {iops:.0}"))
        .collect();
    let message = format!(
        "batch={} chosen by {} of {} ms{}IOPS: {}",
        STRATEGIES[best],
        counted(rounds as u64, "probe"),
        PROBE.as_millis(),
        match rounds {
            1 => ", ",
            _ => " each, median ",
        },
        numbers.join(", ")
    );
    Ok(Some((STRATEGIES[best], message)))
}

/// Whether a probe mostly waited for its first requests. However slow the disk is, a few of these complete within the time,
/// and others follow them.
fn is_outlasted(outcome: &Outcome, trial: &TrialSpec) -> bool {
    Duration::from_nanos(outcome.elapsed_ns) > PROBE * OUTLASTED
        && outcome.requests() < trial.in_flight().saturating_mul(2)
}
