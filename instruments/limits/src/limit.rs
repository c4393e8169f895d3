//! Limits from the cells of runs: the point that each is measured at, its number, and what forbids the number.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::{
    CellAnalysis, DoubtClass, DoubtKind, Looks, Response, SteadyAnalysis,
};
use iolab_analysis::claim::{CellId, claims};
use iolab_analysis::trust::{Shown, Trust};
use iolab_record::environment::Environment;
use iolab_workload::trial::{CacheState, SyncPolicy, TrialSpec, WorkloadCode};
use iolab_workload::units::{format_size, significant};
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// A cell, after the place of its run.
pub(crate) type PlacedCell<'a> = (usize, &'a CellAnalysis);

/// A storage that runs measured.
#[derive(Debug)]
pub(crate) struct Storage<'a> {
    /// Name by which its reader knows it.
    pub(crate) name: String,
    /// Facts about it, of its first run.
    pub(crate) environment: Environment,
    /// Cells of all runs on it.
    pub(crate) cells: Vec<PlacedCell<'a>>,
}

/// Every storage of the runs, in the order of the files; `name` is given the target and the facts about it.
///
/// # Errors
/// Those of `name`.
pub(crate) fn storages<'a>(
    runs: &'a [AnalysedRun],
    name: impl Fn(&str, &Environment) -> Result<String>,
) -> Result<Vec<Storage<'a>>> {
    let mut all: Vec<Storage<'a>> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        for cell in &run.analysis().cells {
            let record = run.record();
            let target = record.target_called(cell.cell.spec.target.as_ref());
            let environment = record.environment_of(&cell.cell);
            let name = name(&target, &environment)?;
            match all.iter_mut().find(|known| known.name == name) {
                Some(known) => known.cells.push((place, cell)),
                None => all.push(Storage {
                    name,
                    environment: environment.into_owned(),
                    cells: vec![(place, cell)],
                }),
            }
        }
    }
    Ok(all)
}

/// The point at which a limit is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Name of the limit, as its reader has it.
    pub(crate) name: &'static str,
    /// Whether it is a rate, in bytes per second, instead of requests per second.
    pub(crate) is_rate: bool,
    /// Direction and order of the requests.
    pub(crate) workload: WorkloadCode,
    /// I/O size, bytes.
    pub(crate) bs: u64,
    /// Requests in flight of each thread, at least and at most.
    pub(crate) depth: (u32, u32),
    /// Least number of threads.
    pub(crate) threads: u32,
}

/// Unit of the limits that are rates.
const RATE: &str = "bytes/s";

/// A limit: the median over the trials of a cell, and its 95 % interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Limit {
    /// Name of the limit in that format.
    pub(crate) name: &'static str,
    /// Median over the trials, in `unit`.
    pub(crate) value: u64,
    /// Low end of its 95 % interval.
    pub(crate) low: u64,
    /// High end of its 95 % interval.
    pub(crate) high: u64,
    /// `bytes/s` or `requests/s`.
    pub(crate) unit: &'static str,
    /// Why the storage may reach more; `null` if the storage was the limit.
    pub(crate) lower_bound: Option<&'static str>,
}

/// Limits of one storage, and the reasons that forbid to write them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Measured {
    pub(crate) limits: Vec<Limit>,
    pub(crate) reasons: Vec<Reason>,
}

/// A reason that forbids to write limits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reason {
    /// Names of the limits.
    of: Vec<&'static str>,
    /// The reason, with the remedy.
    what: String,
}

/// The flags that leave a number as a lower bound of what the storage can do.
const SLOWED: [DoubtKind; 3] = [
    DoubtKind::ToolBound,
    DoubtKind::FewInFlight,
    DoubtKind::Serialised,
];

impl Point {
    fn is_of(&self, trial: &TrialSpec) -> bool {
        let (pattern, read_percent) = self.workload.parts();
        let (least, most) = self.depth;
        (trial.pattern, trial.read_percent, trial.bs) == (pattern, read_percent, self.bs)
            && (trial.sync, trial.rate) == (SyncPolicy::None, None)
            && (least..=most).contains(&trial.depth)
            && trial.threads >= self.threads
    }

    /// The only cell of a storage at this point; `None` if there is none.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): several cells are.
    pub(crate) fn cell<'a>(&self, storage: &Storage<'a>) -> Result<Option<PlacedCell<'a>>> {
        let cells = storage.cells.iter();
        let mut own = cells.filter(|(_, cell)| {
            let spec = &cell.cell.spec;
            !spec.tool.is_peer() && spec.only_trial().is_some_and(|trial| self.is_of(trial))
        });
        match (own.next(), own.next()) {
            (_, Some(_)) => Err(Error::usage(format!(
                "two cells of {} can be {}",
                storage.name, self.name
            ))
            .hint("name a run with one number of threads, and each run once")),
            (found, None) => Ok(found.copied()),
        }
    }
}

impl Measured {
    /// Measures the points; `experiment` is the one that has them.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a point without a cell, or with several.
    pub(crate) fn of(
        runs: &[AnalysedRun],
        storage: &Storage<'_>,
        points: &[Point],
        experiment: &str,
    ) -> Result<Self> {
        let mut all = Self::default();
        for point in points {
            let cell = point.cell(storage)?.ok_or_else(|| {
                let bytes = format_size(point.bs);
                Error::usage(format!(
                    "no cell of {} can be {} (workload={} bs={bytes} depth={})",
                    storage.name, point.name, point.workload, point.depth.0
                ))
                .hint(format!(
                    "measure it with: iolab run {experiment}; what it takes: iolab show {experiment}"
                ))
            })?;
            all.add(runs, point, cell);
        }
        Ok(all)
    }

    /// Adds the limit of a point, or the reasons against it.
    pub(crate) fn add(
        &mut self,
        runs: &[AnalysedRun],
        point: &Point,
        (run, cell): PlacedCell<'_>,
    ) -> Option<&Limit> {
        let forbid = forbids(runs, run, cell);
        let number = cell.of[point.response()];
        let interval = number.and_then(|number| number.median_interval);
        let (Some(number), Some(interval), None) = (number, interval, &forbid) else {
            let what = forbid.unwrap_or_else(|| DoubtKind::FewTrials.words().to_owned());
            self.forbid(point, what);
            return None;
        };
        let slowed = SLOWED.into_iter().find(|doubt| cell.flags.contains(doubt));
        self.limits.push(Limit {
            name: point.name,
            value: point.per_second(number.median),
            low: point.per_second(interval.low),
            high: point.per_second(interval.high),
            unit: if point.is_rate { RATE } else { "requests/s" },
            lower_bound: slowed.map(DoubtKind::words),
        });
        self.limits.last()
    }

    /// Adds a reason against the limit of a point.
    pub(crate) fn forbid(&mut self, point: &Point, what: String) {
        match self.reasons.iter_mut().find(|known| known.what == what) {
            Some(known) => known.of.push(point.name),
            None => self.reasons.push(Reason {
                of: vec![point.name],
                what,
            }),
        }
    }

    /// Lines for the user: the reasons, or each limit with its interval.
    pub(crate) fn notes(&self, storage: &str) -> Vec<String> {
        match self.reasons.as_slice() {
            [] => self.limits.iter().map(Limit::line).collect(),
            reasons => {
                let head = format!("{storage}: not written, because limits are in doubt");
                let lines = reasons.iter();
                let lines = lines.map(|Reason { of, what }| format!("  {}: {what}", of.join(", ")));
                std::iter::once(head).chain(lines).collect()
            }
        }
    }
}

impl Point {
    fn response(&self) -> Response {
        match self.is_rate {
            true => Response::Throughput,
            false => Response::Iops,
        }
    }

    /// A value of the response as a whole number, in bytes or requests per second.
    fn per_second(&self, value: f64) -> u64 {
        let unit = if self.is_rate { 1e6 } else { 1.0 };
        (value * unit).round() as u64
    }
}

impl Limit {
    fn line(&self) -> String {
        let (scale, unit) = match self.unit {
            RATE => (1e6, "MB/s"),
            _ => (1.0, "IOPS"),
        };
        let number = |value: u64| significant(value as f64 / scale);
        let bound = self
            .lower_bound
            .map(|why| format!(", a lower bound: {why}"));
        format!(
            "{} {} {unit} ({} to {}){}",
            self.name,
            number(self.value),
            number(self.low),
            number(self.high),
            bound.unwrap_or_default()
        )
    }
}

/// Why the number of a cell is not a limit of the storage; `None` if it is.
fn forbids(runs: &[AnalysedRun], run: usize, cell: &CellAnalysis) -> Option<String> {
    if cell.cell.spec.trial.cache != CacheState::Direct {
        return Some("the page cache had a part, because cache is not direct".to_owned());
    }
    let trust = Trust::of(&Shown {
        runs: &runs.iter().collect::<Vec<_>>(),
        findings: &[],
        numbers: &[CellId {
            run,
            cell: cell.cell.id,
        }],
    });
    let mut flags = cell.flags.iter().copied();
    let flag = flags.find(|flag| is_forbidding(*flag));
    let doubt = trust
        .doubt
        .or(flag)
        .or_else(|| unsettled(&runs[run], cell))?;
    let remedy = doubt.remedy().map(|remedy| format!("; {remedy}"));
    Some(format!("{}{}", doubt.words(), remedy.unwrap_or_default()))
}

/// The doubt of a cell whose last trials are not steady, or of a run whose rounds are not.
fn unsettled(run: &AnalysedRun, cell: &CellAnalysis) -> Option<DoubtKind> {
    let analysis = run.analysis();
    let rounds = analysis.steady.as_ref();
    let claims = claims(&[analysis]).into_iter();
    let mut own = claims.filter(|claim| claim.cells.iter().any(|id| id.cell == cell.cell.id));
    let missed = rounds.is_some_and(SteadyAnalysis::is_missed);
    let missed = missed.then_some(DoubtKind::NotSettled);
    missed.or_else(|| own.find_map(|claim| claim.kind.unsettled))
}

/// Whether a flag that leaves the trust in a number forbids it as a limit: it looks better than the storage is, others
/// disturbed it, or something else than the storage set it.
fn is_forbidding(flag: DoubtKind) -> bool {
    let is_better = flag.class() == DoubtClass::Conditions && flag.looks() == Looks::Better;
    is_better || flag.disturbs() || flag == DoubtKind::IoLimit
}
