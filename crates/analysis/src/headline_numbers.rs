//! The most commonly compared numbers: sequential access in large blocks and random access in small ones, reads and writes, from
//! all given runs.

use iolab_workload::named;
use iolab_workload::trial::{Backend, Pattern, SyncPolicy, TrialSpec};

use iolab_record::Operation;

use crate::analysis::{Analysis, CellAnalysis, LatencySummary, OperationNumbers, Response};
use crate::claim::{CellId, id};
use crate::timeline::{Gradual, TrialShift};
use crate::trial_values::distinct;

named! {
    /// The order of the accesses.
    #[derive(PartialOrd, Ord)]
    pub enum AccessOrder: "order" {
        /// One block after the other.
        Sequential = "Sequential",
        /// In random order.
        Random = "Random",
    }
}
named! {
    /// The operation of the accesses.
    #[derive(PartialOrd, Ord)]
    pub enum AccessOperation: "operation" {
        /// Reads.
        Read = "read",
        /// Writes that complete when the device has accepted them.
        Write = "write",
        /// Writes that complete when they are durable.
        DurableWrite = "durable write",
    }
}

/// A cell that represents one kind of access.
#[derive(Debug, Clone, Copy)]
pub struct HeadlineCell<'a> {
    /// The order of its accesses.
    pub order: AccessOrder,
    /// Operation of the cell.
    pub operation: AccessOperation,
    /// Analysis of the cell.
    pub cell: &'a CellAnalysis,
    /// The change of the level of throughput within its only trial; `None` for most cells.
    pub shift: Option<&'a TrialShift>,
    /// The change of its throughput without a step; `None` for most cells.
    pub gradual: Option<&'a Gradual>,
    /// Target of the cell.
    pub target: &'a str,
    /// Index of its run.
    pub run: usize,
}

/// The rows by target, sequential before random, highest concurrency first, reads before writes.
#[derive(Debug, Clone)]
pub struct HeadlineNumbers<'a> {
    /// Rows of numbers, at most one for each target, kind of access and concurrency.
    pub rows: Vec<HeadlineCell<'a>>,
}

/// A rate with its unit and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeadlineRate {
    /// Median; for an only trial with several levels, its rate at first.
    pub value: f64,
    /// Rate at the end of the only trial; `None` if the trial has one level.
    pub last: Option<f64>,
    /// `MB/s` or `IOPS`.
    pub unit: &'static str,
    /// Distance to the farther end of its 95 % interval, over the median; `None` below 6 trials.
    pub precision: Option<f64>,
    /// Ends of the median's 95 % interval.
    pub interval: Option<(f64, f64)>,
}

/// Block sizes above this are rated in MB/s, others in IOPS; bytes.
const IOPS_UP_TO: u64 = 64 << 10;

impl AccessOrder {
    /// The I/O size commonly compared, bytes. The nearest measured size represents it.
    fn size(self) -> u64 {
        match self {
            Self::Sequential => 1 << 20,
            Self::Random => 4 << 10,
        }
    }
}

impl HeadlineCell<'_> {
    /// Identifies its cell among the runs.
    pub fn id(&self) -> CellId {
        id(self.run, self.cell)
    }

    /// Throughput for large blocks, IOPS for small ones.
    pub fn rate(&self) -> Option<HeadlineRate> {
        let large = self.cell.cell.trial().bs > IOPS_UP_TO;
        let (summary, unit) = match large {
            true => (self.cell.of[Response::Throughput]?, "MB/s"),
            false => (self.cell.of[Response::Iops]?, "IOPS"),
        };
        // Levels are known in MB/s.
        let per_mb_s = summary.median / self.cell.median(Response::Throughput)?;
        let ends = self.ends_mb_s().filter(|_| per_mb_s.is_finite());
        Some(HeadlineRate {
            value: ends.map_or(summary.median, |(first, _)| first * per_mb_s),
            last: ends.map(|(_, last)| last * per_mb_s),
            unit,
            precision: summary.precision(),
            interval: summary.median_interval.map(|i| (i.low, i.high)),
        })
    }

    /// Throughput of the only trial at its beginning and at its end, MB/s; `None` if it has one level.
    fn ends_mb_s(&self) -> Option<(f64, f64)> {
        let gradual = self.gradual;
        let gradual = gradual.map(|found| (found.first_mb_s, found.last_mb_s));
        let ends = |shift: &TrialShift| {
            let (first, last) = (shift.levels.first()?, shift.levels.last()?);
            Some((first.throughput_mb_s, last.throughput_mb_s))
        };
        self.shift.and_then(ends).or(gradual)
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.cell.cell.trial().in_flight_of_all()
    }

    /// Whether trials have enough requests for a 99th percentile that differs from the maximum.
    pub fn has_tail(&self) -> bool {
        let of_operation = self.of_operation().map(|numbers| numbers.has_tail);
        of_operation.unwrap_or(self.cell.tail.is_some())
    }

    /// Latency of its operation. A run that mixes operations elsewhere shows the latency of one of them for all of its cells.
    pub fn latency(&self) -> Option<LatencySummary> {
        match self.of_operation() {
            Some(numbers) => Some(numbers.medians),
            None => self.cell.latency,
        }
    }

    /// Numbers of its operation alone, in a run that mixes operations.
    fn of_operation(&self) -> Option<&OperationNumbers> {
        let operation = match self.operation {
            AccessOperation::Read => Operation::Read,
            AccessOperation::Write | AccessOperation::DurableWrite => Operation::Write,
        };
        self.cell.mix.as_ref()?[operation].as_ref()
    }
}

impl<'a> HeadlineNumbers<'a> {
    /// Selects the rows from these runs. Prefers cells served by the device, then the latest run. For more than
    /// two levels of concurrency, keeps the lowest and the fastest. Runs that look for a cause measure variants
    /// of other runs, and have rows only if there are no others.
    pub fn of(runs: &[&'a Analysis]) -> Self {
        let explains = |run: &&Analysis| run.inquiry.is_some();
        let only_causes = runs.iter().all(explains);
        let all: Vec<HeadlineCell<'a>> = runs
            .iter()
            .enumerate()
            .filter(|(_, run)| only_causes || !explains(run))
            .flat_map(|(run, analysis)| {
                let rows = analysis.cells.iter();
                rows.filter_map(move |cell| candidate(run, analysis, cell))
            })
            .collect();
        let mut rows = Vec::new();
        for target in distinct(all.iter().map(|row| row.target)) {
            for order in AccessOrder::ALL {
                let of_operation = |operation: &AccessOperation| {
                    let own = all.iter().copied().filter(|row| {
                        (row.target, &row.order, &row.operation) == (target, order, operation)
                    });
                    chosen(&own.collect::<Vec<_>>())
                };
                let mut of_order: Vec<_> =
                    AccessOperation::ALL.iter().flat_map(of_operation).collect();
                of_order.sort_by_key(|row| std::cmp::Reverse(row.in_flight()));
                rows.extend(of_order);
            }
        }
        Self { rows }
    }

    /// Whether the rows have several targets.
    pub fn varies_in_target(&self) -> bool {
        let first = self.rows.first().map(|row| row.target);
        self.rows.iter().any(|row| Some(row.target) != first)
    }
}

fn candidate<'a>(
    run: usize,
    analysis: &'a Analysis,
    cell: &'a CellAnalysis,
) -> Option<HeadlineCell<'a>> {
    let spec = &cell.cell.spec;
    // All groups of the cell must have one access.
    let access = |trial: &TrialSpec| {
        let is_paced = trial.rate.is_some() || trial.thinktime.is_some();
        let is_plain = trial.backend != Backend::Null && !is_paced;
        let access = (order(&trial.pattern)?, operation(trial)?);
        let size = trial.request_size().filter(|_| is_plain)?;
        Some((access, size, trial.depth))
    };
    let ((order, operation), ..) = spec.shared(access)??;
    let plain = cell.n > 0 && !spec.runs_program() && !spec.tool.is_peer();
    plain.then_some(HeadlineCell {
        order,
        operation,
        cell,
        shift: analysis.timeline.of_only_trial(cell.cell.id),
        gradual: analysis.timeline.gradual.get(&cell.cell.id),
        target: analysis.target_of(spec.target.as_ref()),
        run,
    })
}

fn order(pattern: &Pattern) -> Option<AccessOrder> {
    match pattern {
        Pattern::Seq => Some(AccessOrder::Sequential),
        Pattern::Rand | Pattern::RandReplace => Some(AccessOrder::Random),
        _ => None,
    }
}

fn operation(trial: &TrialSpec) -> Option<AccessOperation> {
    match (trial.read_percent, trial.sync) {
        (100, _) => Some(AccessOperation::Read),
        (0, SyncPolicy::None) => Some(AccessOperation::Write),
        (0, _) => Some(AccessOperation::DurableWrite),
        _ => None,
    }
}

/// The cells of one kind with the size nearest to the common one, one for each level of concurrency.
fn chosen<'a>(candidates: &[HeadlineCell<'a>]) -> Vec<HeadlineCell<'a>> {
    let distance = |row: &HeadlineCell<'_>| {
        let ratio = row.cell.cell.trial().bs as f64 / row.order.size() as f64;
        ratio.log2().abs()
    };
    let bs = |row: &HeadlineCell<'_>| row.cell.cell.trial().bs;
    let all = candidates.iter();
    let nearest = all.clone();
    let nearest = nearest.min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let mut rows: Vec<HeadlineCell<'a>> = Vec::new();
    for row in all.filter(|row| Some(bs(row)) == nearest.map(bs)) {
        let rank = |row: &HeadlineCell<'_>| (row.cell.is_device(), row.run);
        let mut known = rows.iter_mut();
        match known.find(|other| other.in_flight() == row.in_flight()) {
            Some(other) if rank(row) > rank(other) => *other = *row,
            Some(_) => {}
            None => rows.push(*row),
        }
    }
    if rows.len() > 2 {
        let value = |row: &&HeadlineCell<'_>| row.rate().map_or(0.0, |rate| rate.value);
        let least = rows.iter().map(HeadlineCell::in_flight).min();
        let fastest = rows.iter().max_by(|a, b| value(a).total_cmp(&value(b)));
        let kept = [least, fastest.map(HeadlineCell::in_flight)];
        rows.retain(|row| kept.contains(&Some(row.in_flight())));
    }
    rows
}
