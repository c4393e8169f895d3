//! Probes of the strategies that `batch = auto` tries before the first trial, and their least time.

use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Batch;

use crate::cells::PlannedCell;

/// The completion strategies to choose from.
pub const STRATEGIES: [Batch; 4] = [
    Batch::One,
    Batch::Percent(25),
    Batch::Percent(50),
    Batch::All,
];
/// Most rounds over all strategies, alternating so that drift hits all alike; odd, so that the median is one of them.
pub const ROUNDS: usize = 3;
/// Time for which a probe begins requests.
pub const PROBE: Duration = Duration::from_millis(40);

/// Requests of this size take a millisecond at 16 GB/s. A strategy saves microseconds, and buffers for many such requests
/// take longer to prepare than a trial.
const LARGE: f64 = (16 << 20) as f64;

/// Whether a cell leaves its strategy open, and it matters. One request in flight leaves nothing to choose, and at a given rate
/// completions are taken as they come.
pub fn is_open(cell: &CellSpec) -> bool {
    let trial = &cell.trial;
    let is_deep = trial.depth > 1 && trial.backend.is_asynchronous();
    cell.batch_auto && is_deep && trial.rate.is_none() && trial.mean_request() < LARGE
}

/// Whether probes choose the strategy of a cell. That of another tool follows from the cell that is like it.
pub fn are_made(cell: &CellSpec) -> bool {
    is_open(cell) && !cell.tool.is_peer() && !cell.runs_program() && !cell.has_groups()
}

/// Time for which the probes of these cells begin requests.
pub fn time(cells: &[PlannedCell]) -> Duration {
    let probed = cells.iter().filter(|cell| are_made(&cell.spec)).count();
    PROBE.saturating_mul((probed * ROUNDS * STRATEGIES.len()) as u32)
}
