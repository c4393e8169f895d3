//! Untouched compared with zeroed buffers: the cost of page faults on first touch.

use iolab_stats::{CONFIDENCE, welch};
use iolab_workload::trial::BufferInit;

use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::claim::effect::{Difference, Estimate, MARGIN_UP, confidence, difference, within_run};
use crate::curve;
use crate::equivalence::FIRST_TRIALS;

/// The factor whose levels are compared.
const FACTOR: &str = "buffer_init";

/// The comparison of both preparations in one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparationPoint {
    /// Size of the buffer, bytes.
    pub bs: u64,
    /// The factors other than the preparation, with their levels.
    pub held: Vec<(String, String)>,
    /// Median response with untouched, then with zeroed buffers.
    pub medians: (f64, f64),
    /// Throughput with untouched buffers over throughput with zeroed ones, within the blocks that both share.
    /// The 95 % intervals of all preparation claims are simultaneous.
    pub ratio: Estimate,
    /// Conclusion from the ratio, after doubts about the evidence of both cells.
    pub difference: Difference,
    /// p of Welch's test with the first 10 and the first 20 trials of each; `None` with fewer trials.
    pub p: [Option<f64>; FIRST_TRIALS.len()],
    /// Page faults per trial with untouched, then with zeroed buffers.
    pub faults: (f64, f64),
    /// Time of a page fault, ns: the difference of the median times of a trial divided by the difference of
    /// their faults. `None` if untouched buffers do not have more faults, or are not slower.
    pub ns_per_fault: Option<f64>,
}

/// The settings with both preparations, in the order of the definition; empty for none, and where the response is a time.
pub fn preparation(analysis: &Analysis) -> Vec<PreparationPoint> {
    let is_compared = |factor: &str| factor == FACTOR;
    let is_varied = analysis.factors.iter().any(|factor| is_compared(factor));
    if !is_varied || analysis.response != Response::Throughput {
        return Vec::new();
    }
    let with = |init: BufferInit| {
        let cells = analysis.cells.iter();
        cells.filter(move |c| init_of(c) == Some(init) && c.n > 0)
    };
    // Uses the family of the comparisons of all preparations, so that both give the same intervals.
    let first = analysis.cells.first().and_then(init_of);
    let others = analysis
        .cells
        .iter()
        .filter(|cell| !cell.values.is_empty() && init_of(cell) != first);
    let confidence = confidence(others.count());
    let point = |untouched: &CellAnalysis| {
        let held = curve::held(analysis, untouched, is_compared);
        let mut zeroed = with(BufferInit::Zeroed);
        let zeroed = zeroed.find(|cell| curve::held(analysis, cell, is_compared) == held)?;
        point((untouched, zeroed), held, confidence)
    };
    with(BufferInit::Untouched).filter_map(point).collect()
}

/// The preparation of all buffers of a cell; `None` if groups differ.
fn init_of(cell: &CellAnalysis) -> Option<BufferInit> {
    cell.cell.spec.shared(|trial| trial.buffer_init)
}

impl PreparationPoint {
    /// Whether untouched buffers are shown to be slower.
    pub fn is_slower(&self) -> bool {
        self.difference == Difference::Lower
    }

    /// Whether trials with untouched buffers have at least one more page fault.
    pub(crate) fn has_more_faults(&self) -> bool {
        self.faults.0 - self.faults.1 >= 1.0
    }
}

fn point(
    (untouched, zeroed): (&CellAnalysis, &CellAnalysis),
    held: Vec<(String, String)>,
    confidence: f64,
) -> Option<PreparationPoint> {
    let p = |n: usize| {
        let (a, b) = (untouched.values.get(..n)?, zeroed.values.get(..n)?);
        welch(a, b, CONFIDENCE).map(|test| test.p)
    };
    let faults = (untouched.minor_faults?, zeroed.minor_faults?);
    let elapsed = |cell: &CellAnalysis| cell.median(Response::Elapsed);
    let slower = elapsed(untouched)? - elapsed(zeroed)?;
    let more = faults.0 - faults.1;
    let ratio = within_run(zeroed, untouched, confidence)?;
    Some(PreparationPoint {
        bs: untouched.cell.trial().bs,
        held,
        medians: (untouched.response?.median, zeroed.response?.median),
        difference: difference(&ratio, MARGIN_UP, (zeroed, untouched), Response::Throughput).0,
        ratio,
        p: FIRST_TRIALS.map(p),
        faults,
        ns_per_fault: (more >= 1.0 && slower > 0.0).then(|| slower / more),
    })
}
