//! Counts of a run that point to mechanisms that explain a difference.

use iolab_plan::suspect::{Compared, Sign, Signs};
use iolab_workload::stages::PerStage;

use super::phenomenon::Phenomenon;
use crate::analysis::{Analysis, CellAnalysis, Response};

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
pub fn signs(run: &Analysis, phenomenon: &Phenomenon) -> Signs {
    let response = run.response;
    let sides = || {
        Some((
            run.cell(phenomenon.base.cell)?,
            run.cell(phenomenon.other.cell)?,
        ))
    };
    let Some((base, other)) = sides().filter(|_| phenomenon.compared() == Compared::Cells) else {
        return Signs::default();
    };
    let is_other_worse = (phenomenon.seen < phenomenon.expected) == response.more_is_better();
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
    let time = worse
        .median(Response::Iops)
        .map(|iops| 1e9 * worse.cell.trial().in_flight_of_all() as f64 / iops);
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
    let (throughput, iops) = (
        cell.median(Response::Throughput)?,
        cell.median(Response::Iops)?,
    );
    Some(1e6 * throughput / iops).filter(|bytes| *bytes > 0.0 && bytes.is_finite())
}

/// Page faults for each request.
fn faults_of_request(cell: &CellAnalysis) -> Option<f64> {
    let requests = cell.median(Response::Iops)? * cell.median(Response::Elapsed)? * 1e-9;
    Some(cell.minor_faults? / requests).filter(|faults| faults.is_finite())
}
