//! Evidence for the causes of a difference: counts of a run, effects on later trials, and time of trials apart
//! from their I/O.

use std::time::Duration;

use crate::phenomenon::{Phenomenon, PhenomenonKind};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::claim::{CellId, fell};
use iolab_analysis::timeline::{Access, TrialShift};
use iolab_plan::suspect::{Compared, Leftover, Sign, Signs};
use iolab_record::Sample;
use iolab_stats::mean;
use iolab_workload::stages::PerStage;

/// Page faults per request on the worse side from which there are more: one in ten requests has one.
const FAULTS: f64 = 0.1;

/// Least excess of device I/Os per request over the better side: every tenth request is split.
const DEVICE_IOS: f64 = 0.1;

/// Share of the time of threads in which they wait for others on any machine.
const CPU_WAIT: f64 = 0.05;

/// Least share of the time of a traced request on the worse side.
const STAGE: f64 = 0.05;

/// The sign of each mechanism that a run counts. Only for two cells: the sides of loads and quantiles are one
/// cell, and show no signs.
pub(crate) fn signs(run: &Analysis, phenomenon: &Phenomenon) -> Signs {
    let response = run.response;
    let is_of_cells = phenomenon.compared() == Compared::Cells;
    let side = |id: CellId| run.cell(id.cell).filter(|_| is_of_cells);
    let Some((base, other)) = side(phenomenon.base).zip(side(phenomenon.other)) else {
        return Signs::default();
    };
    let is_other_worse = (phenomenon.seen.ratio < phenomenon.expected) == response.more_is_better();
    let (better, worse) = match is_other_worse {
        true => (base, other),
        false => (other, base),
    };
    // Scales counts of the better side to the bytes of a request of the worse side.
    let bytes = |cell| Some(bytes_of_request(worse)? / bytes_of_request(cell)?);
    let of_bytes = |of: &dyn Fn(&CellAnalysis) -> Option<f64>| {
        let scaled = |cell| Some(of(cell)? * bytes(cell)?);
        scaled(better).zip(scaled(worse))
    };
    let of = |of: &dyn Fn(&CellAnalysis) -> Option<f64>| of(better).zip(of(worse));
    let in_flight = worse.cell.trial().in_flight_of_all() as f64;
    let time = worse.median(Response::Iops);
    let time = time.map(|iops| 1e9 * in_flight / iops);
    Signs {
        page_faults: sign(of_bytes(&faults_of_request), Some(FAULTS)),
        device_ios: sign(
            of(&|cell| cell.disturbance.ios_per_request),
            Some(DEVICE_IOS),
        ),
        cpu_wait: sign(of(&|cell| cell.disturbance.wait_for_others), Some(CPU_WAIT)),
        stages: PerStage::from_fn(|stage| {
            let mean =
                |cell: &CellAnalysis| Some(cell.stages.as_ref()?.stages[stage].as_ref()?.mean_ns);
            sign(of_bytes(&mean), time.map(|ns| STAGE * ns))
        }),
    }
}

/// Sign from the counts of the better and the worse side; `least` is the excess that counts.
fn sign(counted: Option<(f64, f64)>, least: Option<f64>) -> Sign {
    match counted.zip(least) {
        None => Sign::Unknown,
        Some(((better, worse), least)) if worse - better > least => Sign::OnWorseSide,
        Some(_) => Sign::NotThere,
    }
}

/// Bytes of a request, on average.
fn bytes_of_request(cell: &CellAnalysis) -> Option<f64> {
    let bytes = 1e6 * cell.median(Response::Throughput)? / cell.median(Response::Iops)?;
    Some(bytes).filter(|bytes| *bytes > 0.0 && bytes.is_finite())
}

/// Page faults for each request.
fn faults_of_request(cell: &CellAnalysis) -> Option<f64> {
    let requests = cell.median(Response::Iops)? * cell.median(Response::Elapsed)? * 1e-9;
    Some(cell.minor_faults? / requests).filter(|faults| faults.is_finite())
}

/// Whether throughput of a side changes its level within its trials.
pub fn changes_inside(run: &Analysis, phenomenon: &Phenomenon) -> bool {
    let own = [phenomenon.base.cell, phenomenon.other.cell];
    let mut shifts = run.timeline.within.iter();
    shifts.any(|shift| own.contains(&shift.cell))
}

/// Effect that trials of both sides have on later ones.
pub fn leftover(run: &Analysis, phenomenon: &Phenomenon) -> Leftover {
    // If the fall is reproduced, idle time restores the level.
    if let PhenomenonKind::Loads(fall) = phenomenon.kind {
        return Leftover::Drained(1.0 / fall.factor);
    }
    let own = [phenomenon.base.cell, phenomenon.other.cell];
    let writes = |id: i64| run.cell(id).is_some_and(|cell| cell.cell.trial().writes());
    let timeline = &run.timeline;
    // The first trial used up the credit or cache, and it never recovered.
    let is_own = |shift: &&TrialShift| own.contains(&shift.cell);
    if timeline.in_warm_ups.iter().any(|shift| is_own(&shift)) {
        return Leftover::Lasting;
    }
    let concerns = |of: Access| own.iter().any(|id| writes(*id) == (of == Access::Writes));
    let over_run = timeline.over_run.iter().filter(|shift| concerns(shift.of));
    if over_run.clone().any(|shift| shift.factor > 1.0) {
        return Leftover::Lasting;
    }
    // The factor covers all cells, some of which may never reach the limit.
    let over_run = over_run.map(|shift| match own.contains(&shift.cell) {
        true => shift.factor.min(shift.after_mb_s / shift.before_mb_s),
        false => shift.factor,
    });
    let by_itself = fell(run, &own);
    // A trial that begins slow starts from a new state, and is not a fall.
    let within = timeline.within.iter().filter(is_own);
    let within = within.map(TrialShift::factor);
    let falls = over_run.chain(within.filter(|factor| *factor < 1.0));
    let fell = falls.map(|factor| 1.0 / factor).chain(by_itself);
    let most = fell.max_by(f64::total_cmp);
    most.map_or(Leftover::Nothing, Leftover::Drained)
}

/// Time apart from I/O that the trials of both sides took in a run. First the time before and after a trial, without idle time,
/// then the time for writing out what it left in caches. Each is the larger mean of both sides; if neither leaves anything,
/// the second is the largest mean of all cells.
pub fn overhead(run: &AnalysedRun, phenomenon: &Phenomenon) -> [Duration; 2] {
    let sides = [phenomenon.base.cell, phenomenon.other.cell];
    let all = || run.analysis().cells.iter().map(|cell| cell.cell.id);
    let samples = &run.record().samples;
    let most = |cells: &mut dyn Iterator<Item = i64>, of: &dyn Fn(&Sample) -> Option<u64>| {
        let mean_of = |cell: i64| {
            let own = samples.iter();
            let own = own.filter(|sample| sample.cell == cell && sample.ok);
            let values: Vec<f64> = own.filter_map(of).map(|ns| ns as f64).collect();
            mean(&values)
        };
        let most = cells.filter_map(mean_of).max_by(f64::total_cmp);
        most.map(|ns| Duration::from_nanos(ns as u64))
    };
    let written_out = |sample: &Sample| sample.region.owed_sync_ns.filter(|ns| *ns > 0);
    let around = |sample: &Sample| {
        let idle = run.analysis().cell(sample.cell)?.cell.spec.idle.as_nanos() as u64;
        let owed = sample.region.owed_sync_ns.unwrap_or(0);
        let own = [sample.elapsed_ns, idle, owed].into_iter();
        Some(own.fold(sample.wall_ns, u64::saturating_sub))
    };
    let write_out = most(&mut sides.into_iter(), &written_out);
    let write_out = write_out.or_else(|| most(&mut all(), &written_out));
    let around = most(&mut sides.into_iter(), &around);
    [around, write_out].map(Option::unwrap_or_default)
}
