//! A run in lines that can be pasted, one per target.

use std::collections::BTreeSet;

use super::sentences::{
    cause_in_short, done, grouped, in_words_of_standard, of_group, state_in_short,
};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::claim::{groups, simplest};
use iolab_analysis::compare::Comparison;
use iolab_analysis::doubt::{DoubtClass, DoubtKind};
use iolab_analysis::timeline::TrialShift;
use iolab_figure::labels;
use iolab_record::RunStatus;
use iolab_workload::trial_description::levels_in_words;
use iolab_workload::units::{counted, format_bytes, format_ns, format_percent};

use crate::compare::answer;
use crate::ratio::{all_cells, in_cells};

/// The factor whose levels have a line each.
const TARGET: &str = "target";

/// The result of a run on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// The target, as the cells name it.
    pub target: String,
    /// One line: `read-random on /mnt/disk: throughput 58.9 MB/s (4 KiB) to 2351 MB/s (1 MiB), from the device; other traffic in
    /// 1 of 12 cells`.
    pub text: String,
    /// Doubts about its numbers, each in the words of the line: `other traffic in 1 of 12 cells`.
    pub doubts: Vec<(DoubtKind, String)>,
}

impl Conclusion {
    /// The doubts in a clause; empty without any.
    pub(crate) fn doubts(&self) -> String {
        clause(&self.doubts)
    }
}

fn clause(doubts: &[(DoubtKind, String)]) -> String {
    let words = doubts.iter().map(|(_, words)| words.as_str());
    words.collect::<Vec<_>>().join(", ")
}

/// A line per target of a run that has the factor `target`, else one for all cells; with the comparisons of iolab with `peers`, also
/// whether these agree. Of a run that looks for a cause the line has that: its cells are variants, and not to be ranked.
pub fn conclusions(analysis: &Analysis, peers: &[Comparison]) -> Vec<Conclusion> {
    let subjects = Subject::all(analysis);
    let conclusion = |subject: &Subject<'_>| Conclusion {
        target: subject.target.to_owned(),
        text: subject.text(peers),
        doubts: subject.doubts(),
    };
    subjects.iter().map(conclusion).collect()
}

/// Subject of a line: the cells of a target.
struct Subject<'a> {
    analysis: &'a Analysis,
    target: &'a str,
    cells: Vec<&'a CellAnalysis>,
    /// Whether other lines are about other targets.
    is_one_of_several: bool,
}

impl<'a> Subject<'a> {
    /// The targets in the order of their cells.
    fn all(analysis: &'a Analysis) -> Vec<Self> {
        let place = analysis.factors.iter().position(|factor| factor == TARGET);
        let cells = analysis.cells.iter().map(|cell| {
            let level = place.and_then(|place| cell.cell.levels.get(place));
            (level.unwrap_or(&analysis.target).as_str(), cell)
        });
        let of_targets = grouped(cells);
        let is_one_of_several = of_targets.len() > 1;
        let subjects = of_targets.into_iter().map(|(target, cells)| Self {
            analysis,
            target,
            cells,
            is_one_of_several,
        });
        subjects.collect()
    }

    fn text(&self, peers: &[Comparison]) -> String {
        let (analysis, target) = (self.analysis, self.target);
        let has_trials = self.cells.iter().any(|cell| cell.n > 0);
        // All claims of a run are made for its cause: only where it looks for one.
        let inquiry = analysis.inquiry.as_ref();
        let found = inquiry.map(|inquiry| (inquiry, cause_in_short(analysis)));
        let (what, found) = match found {
            Some((inquiry, cause)) => (format!(", {}", inquiry.phenomenon), cause),
            None => {
                let found = self.range().unwrap_or_else(|| self.without_range());
                let of_trials = match has_trials {
                    true => rounds(analysis) + &self.agreement(peers),
                    false => String::new(),
                };
                (String::new(), found + &of_trials)
            }
        };
        let line = format!("{} on {target}{what}: {found}", analysis.experiment);
        match self.doubts().as_slice() {
            [] => line,
            doubts => format!("{line}; {}", clause(doubts)),
        }
    }

    /// `throughput 58.9 MB/s (4 KiB) to 2351 MB/s (1 MiB), from the device`; `None` where no cell has a value.
    fn range(&self) -> Option<String> {
        let analysis = self.analysis;
        let all = || self.cells.iter().filter(|cell| cell.response.is_some());
        let is_own = |cell: &CellAnalysis| !cell.cell.spec.tool.is_peer();
        // Other tools are compared with iolab's cells in a table of their own, and are not levels to rank.
        let has_own = all().any(|cell| is_own(cell));
        let measured = || all().filter(|cell| is_own(cell) || !has_own).copied();
        let median = |cell: &CellAnalysis| cell.response.map_or(0.0, |response| response.median);
        let least = measured().min_by(|a, b| median(a).total_cmp(&median(b)))?;
        let most = measured().max_by(|a, b| median(a).total_cmp(&median(b)))?;
        let more_is_better = analysis.response.more_is_better();
        let (worst, best) = match more_is_better {
            true => (least, most),
            false => (most, least),
        };
        // Where all cells tie, the line has their range.
        let tied = Some(simplest(analysis, best)).filter(|tied| tied.cell.id != worst.cell.id);
        let (least, most) = match more_is_better {
            true => (worst, tied.unwrap_or(best)),
            false => (tied.unwrap_or(best), worst),
        };
        let value = |cell: &CellAnalysis| format!("{}{}", level(analysis, cell), self.place(cell));
        let answer = match least.cell.id == most.cell.id {
            true => {
                let within = least.precision.map_or_else(String::new, |p| {
                    match wide_interval(least, analysis.response) {
                        None => format!(" +/- {}", format_percent(p)),
                        Some(interval) => format!(" ({interval})"),
                    }
                });
                value(least) + &within
            }
            false if level(analysis, least) == level(analysis, most) => {
                let all = level(analysis, least);
                format!("{all} in {}", all_cells(measured().count()))
            }
            false => format!("{} to {}", value(least), value(most)),
        };
        // IOPS are their own unit.
        let quantity = match analysis.response {
            Response::Iops if analysis.response_group.is_none() => String::new(),
            _ => of_group(analysis, analysis.quantity()) + " ",
        };
        Some(format!("{quantity}{answer}{}", source(measured())))
    }

    /// `too few requests for a value in both cells`, or `nothing was measured`: where no cell has a value.
    fn without_range(&self) -> String {
        let is_measured = |cell: &&&CellAnalysis| cell.n > 0 && self.analysis.has_response(cell);
        match self.cells.iter().filter(is_measured).count() {
            0 => match self.cells.iter().map(|cell| cell.warm_ups).sum::<usize>() {
                0 => "nothing was measured".to_owned(),
                n => format!("no measured trial ({} stored)", counted(n, "warm-up trial")),
            },
            n => {
                let lack = match self.analysis.response.is_latency() {
                    true => "too few requests for a value",
                    false => "no value",
                };
                format!("{lack}{}", in_cells(n, self.cells.len()))
            }
        }
    }

    /// Position of a cell among the others: ` (4 KiB)`. Omits the tool, since only iolab's own cells are
    /// ranked, and the target that the line names.
    fn place(&self, cell: &CellAnalysis) -> String {
        let is_known = |factor: &str| match factor {
            "tool" => !cell.cell.spec.tool.is_peer(),
            TARGET => self.is_one_of_several,
            _ => false,
        };
        let levels = self.analysis.factors.iter().zip(&cell.cell.levels);
        let levels = levels.filter(|(factor, _)| !is_known(factor));
        match levels_in_words(&cell.cell.spec, levels) {
            none if none.is_empty() => none,
            levels => format!(" ({levels})"),
        }
    }

    /// Agreement with other tools: `; fio: both cells equivalent within 10 %`.
    fn agreement(&self, peers: &[Comparison]) -> String {
        let parts = peers.iter().map(|comparison| {
            let own = self.compared(comparison);
            match own.cells.is_empty() {
                true => format!("; {}: no cell of both was measured", own.new),
                false => format!("; {}: {}", own.new, answer(&own)),
            }
        });
        parts.collect()
    }

    /// The comparison of the cells of the target.
    fn compared(&self, comparison: &Comparison) -> Comparison {
        let mut factors = comparison.factors.iter();
        let place = factors.position(|factor| factor == TARGET);
        let place = place.filter(|_| self.is_one_of_several);
        let mut own = comparison.clone();
        own.cells.retain(|cell| {
            place.is_none_or(|place| cell.levels.get(place).is_some_and(|one| one == self.target))
        });
        own
    }

    /// Doubts for a reader of the line: how the run ended, and how many cells have which doubt.
    fn doubts(&self) -> Vec<(DoubtKind, String)> {
        let analysis = self.analysis;
        let all = self.cells.len();
        // Of a cause the line has the interval of its part, which no cell has.
        let is_of_cells = analysis.inquiry.is_none();
        let seeks = analysis.seeks_precision && is_of_cells;
        let has = |cell: &CellAnalysis, what: DoubtKind| match what {
            // Where nothing was measured, the line has said so.
            DoubtKind::NoTrial => {
                cell.n == 0 && cell.failed == 0 && self.cells.iter().any(|c| c.n + c.failed > 0)
            }
            DoubtKind::TwoGroups => groups(analysis, cell).is_some(),
            DoubtKind::Imprecise => {
                seeks && cell.precision.is_some_and(|p| p > analysis.precision_goal)
            }
            // Rounds and a soak end by other rules than the precision of a median.
            DoubtKind::FewTrials => seeks && cell.response.is_some() && cell.flags.contains(&what),
            // Where no cell has a value, the line has said so.
            DoubtKind::FewRequests => {
                cell.flags.contains(&what) && self.cells.iter().any(|c| c.response.is_some())
            }
            DoubtKind::Errors | DoubtKind::RateNotHeld | DoubtKind::ExceedsCeiling => {
                cell.flags.contains(&what)
            }
            _ => what.disturbs() && cell.flags.contains(&what),
        };
        let counted = DoubtKind::ALL.iter().filter_map(|what| {
            let n = self.cells.iter().filter(|cell| has(cell, *what)).count();
            // The other kinds are named as the column of flags names them.
            let name = match what.class() {
                DoubtClass::Lack => what.words().to_owned(),
                _ => what.to_string(),
            };
            (n > 0).then(|| (*what, name + &in_cells(n, all)))
        });
        let mut doubts: Vec<(DoubtKind, String)> = counted.collect();
        // A median over both levels describes neither.
        let shifts = &analysis.timeline.over_run;
        let mut changed = shifts.iter().flat_map(|shift| &shift.cells);
        let is_shown = |cell: &i64| self.cells.iter().any(|own| own.cell.id == *cell);
        if is_of_cells && changed.any(is_shown) {
            let changed = "throughput changed its level during the run".to_owned();
            doubts.insert(0, (DoubtKind::LevelChanged, changed));
        }
        if analysis.status != RunStatus::Done {
            let how = match analysis.is_ended_by_user() {
                true => "the user ended the run",
                false => "the run did not finish",
            };
            doubts.insert(0, (DoubtKind::Unfinished, how.to_owned()));
        }
        doubts
    }
}

/// The interval of the median of a cell, `0.0250 MB/s to 14.9 MB/s`, if half of it exceeds the median: a
/// distance of 16853 % to both sides has no meaning.
fn wide_interval(cell: &CellAnalysis, response: Response) -> Option<String> {
    cell.precision.filter(|precision| *precision > 1.0)?;
    let interval = cell.response?.median_interval?;
    let [low, high] = [interval.low, interval.high].map(|end| response.format(end));
    Some(format!("{low} to {high}"))
}

/// The median of a cell: `58.9 MB/s`; of an only trial that is not constant both levels, both ends or the range: `21.0 MB/s to 105
/// MB/s over time`.
fn level(analysis: &Analysis, cell: &CellAnalysis) -> String {
    let response = analysis.response;
    let is_rate = response == Response::Throughput && analysis.response_group.is_none();
    let (timeline, id) = (&analysis.timeline, cell.cell.id);
    let format = |value| response.format(value);
    let over_time = |low, high| format!("{} to {} over time", format(low), format(high));
    if let Some(shift) = timeline.of_only_trial(id).filter(|_| is_rate) {
        let all = shift.levels.iter().map(|level| level.throughput_mb_s);
        return match shift.levels.len() {
            2 => levels(shift),
            _ => over_time(
                all.clone().fold(f64::INFINITY, f64::min),
                all.fold(0.0, f64::max),
            ),
        };
    }
    match timeline.gradual.get(&id).filter(|_| is_rate) {
        None => format(cell.response.map_or(0.0, |response| response.median)),
        Some(found) if found.has_direction => format!(
            "{} in the first tenth of the trial, {} in the last",
            format(found.first_mb_s),
            format(found.last_mb_s)
        ),
        Some(found) => over_time(found.lowest_mb_s, found.highest_mb_s),
    }
}

/// Both levels of an only trial: `1800 MB/s, after 71.0 s (118 GiB written) 100 MB/s`.
fn levels(shift: &TrialShift) -> String {
    let format = |value| Response::Throughput.format(value);
    format!(
        "{}, after {} ({} {}) {}",
        format(shift.before_mb_s),
        format_ns(shift.after_ns as f64),
        format_bytes(shift.moved_bytes),
        done(shift.of),
        format(shift.after_mb_s),
    )
}

/// `, from the device`.
fn source<'a>(cells: impl Iterator<Item = &'a CellAnalysis>) -> String {
    let sources = cells.filter(|cell| !cell.cell.spec.runs_program());
    let sources: BTreeSet<String> = sources
        .filter_map(|cell| cell.served.as_ref().map(labels::served))
        .collect();
    let mut sources = sources.into_iter();
    match (sources.next().as_deref(), sources.next()) {
        (None, _) => String::new(),
        (Some("model"), None) => ", computed by a model".to_owned(),
        (Some("device"), None) => ", from the device".to_owned(),
        (Some(only), None) => format!(", served by: {only}"),
        _ => ", from several sources".to_owned(),
    }
}

/// `; steady after 8 rounds; scaled, not PTS`: of rounds of its cells, which were asked for with the numbers, and of the standard that the run
/// follows; nothing without them.
fn rounds(analysis: &Analysis) -> String {
    let steady = analysis.steady.as_ref();
    let steady = steady.filter(|steady| steady.is_of_cells());
    let parts = [
        steady.map(|steady| state_in_short(analysis, steady)),
        analysis.standard.as_ref().and_then(in_words_of_standard),
    ];
    let parts = parts.into_iter().flatten();
    parts.map(|part| format!("; {part}")).collect()
}
