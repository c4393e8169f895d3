//! Submission of requests if a cell leaves it open (`batch = auto`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iolab_plan::batch_probes;
use iolab_plan::batch_probes::{PROBE, ROUNDS, STRATEGIES};
use iolab_plan::blocks::trial_seed;
use iolab_plan::cells::PlannedCell;
use iolab_record::EventKind;
use iolab_workload::outcome::Outcome;
use iolab_workload::quantity::counted;
use iolab_workload::settings::CellSpec;
use iolab_workload::tool::Tool;
use iolab_workload::trial::{Batch, SyncPolicy, TrialLimit, TrialSpec};
use iolab_workload::{Error, Result};

use super::super::executor::Executor;
use super::Session;

impl Session<'_> {
    /// Resolves `batch = auto` by short probes; cells whose strategy is known are left alone.
    pub(super) fn choose_batches(
        &mut self,
        executor: &mut dyn Executor,
        stop: &AtomicBool,
    ) -> Result<()> {
        let is_probed = |cell: &PlannedCell| batch_probes::are_made(&cell.spec);
        let mut chosen = Vec::new();
        for id in self.cells(is_probed) {
            let mut spec = self.record.plan.cells()[id].spec.clone();
            // Probes have no cap, and completions of reads cost as much as completions of writes.
            if self.record.plan.experiment().design.writes.is_some() {
                spec.trial.read_percent = 100;
                spec.trial.sync = SyncPolicy::None;
            }
            spec.trial.seed = trial_seed(self.record.seed, id, u32::MAX);
            let began = executor.now();
            let choice = choose(executor, &spec, stop)?;
            let took = executor.now().saturating_sub(began);
            self.record.probe(took);
            let Some((batch, numbers)) = choice else {
                // The first trial of the cell fails in the same way, and reports it in full.
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                continue;
            };
            chosen.push((id, batch));
            self.file.set_batch(id as i64, batch)?;
            self.keep(EventKind::Choice, Some(id), &numbers)?;
        }
        self.set_batches(&chosen);
        self.follow_batches()
    }

    /// Gives the cells of peers the strategy of iolab's cell that is like them, or else the one that fio has by itself.
    fn follow_batches(&mut self) -> Result<()> {
        let is_open = |cell: &PlannedCell| cell.spec.batch_auto && cell.spec.tool.is_peer();
        let mut chosen = Vec::new();
        for id in self.cells(is_open) {
            let cells = self.record.plan.cells();
            let cell = &cells[id].spec;
            let like = |other: &&PlannedCell| {
                let trial = TrialSpec {
                    batch: other.spec.trial.batch,
                    ..cell.trial.clone()
                };
                let on_the_same = other.spec.target == cell.target;
                other.spec.tool == Tool::IOLAB && on_the_same && other.spec.trial == trial
            };
            let batch = cells.iter().find(like);
            let batch = batch.map_or(Batch::One, |other| other.spec.trial.batch);
            chosen.push((id, batch));
            self.file.set_batch(id as i64, batch)?;
        }
        self.set_batches(&chosen);
        Ok(())
    }

    /// The numbers of the cells for which `is_such` holds.
    fn cells(&self, is_such: impl Fn(&PlannedCell) -> bool) -> Vec<usize> {
        let cells = self.record.plan.cells().iter().enumerate();
        let such = cells.filter(|(_, cell)| is_such(cell));
        such.map(|(id, _)| id).collect()
    }

    /// Gives these cells their strategies.
    fn set_batches(&mut self, chosen: &[(usize, Batch)]) {
        if !chosen.is_empty() {
            self.record.plan = self.record.plan.clone().with_batches(chosen);
        }
    }
}

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
