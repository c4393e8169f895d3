//! Judges a new run by the last ones of the same experiment on the same machine and target, and writes the verdict as blocks,
//! JSON and gauges.

use std::io::{self, Write};

use iolab_analysis::compare::{CellComparison, Comparison, Conclusion, Criteria};
use iolab_analysis::consent::command_to_finish;
use iolab_analysis::runs::comparable_runs::{Comparability, ExcludedRun, ExclusionReason};
use iolab_analysis::runs::{FiledRun, GATE_POWER};
use iolab_record::{RunRecord, RunStatus};
use iolab_report::block::{Block, Item, Look};
use iolab_report::compare::{self, CompareDocument, DETECTABLE_MAX, change, conclusion};
use iolab_report::prometheus::{head, written};
use iolab_report::ratio::cells;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_percent};
use iolab_workload::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;

/// Fewest earlier runs for a comparison with a new one.
pub const HISTORY_MIN: usize = 5;

/// The parameters of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateTerms {
    /// Criteria for comparable runs.
    pub kinship: Comparability,
    /// Most earlier runs used, the latest ones.
    pub last: usize,
    /// The change, as a share, that the gate must be able to detect in each cell; `None` for any.
    pub must_find: Option<f64>,
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// The file of the new run.
    pub file: String,
    /// The new run compared with the earlier ones; `null` if there are too few.
    pub compared: Option<Comparison>,
    /// Number of earlier runs.
    pub history: usize,
    /// Other runs, each with the reason for its exclusion.
    pub unused: Vec<ExcludedRun>,
    /// The change that it must be able to detect, a share; `null` for any.
    pub must_find: Option<f64>,
}

/// The changes detectable with probability [`GATE_POWER`], as factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectableChanges {
    /// The change, as a factor, that the most sensitive cell can detect.
    pub best: f64,
    /// The change, as a factor, that the least sensitive cell can detect; infinite if a cell cannot detect any.
    pub worst: f64,
}

impl Gate {
    /// Compares a new run with earlier runs in `all` of the same experiment, machine and target.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): the new run is not finished, has no cell in common with the earlier ones, or
    /// a definition cannot be read.
    pub fn of(new: FiledRun<'_>, all: &[FiledRun<'_>], terms: &GateTerms) -> Result<Self> {
        let record = new.run.record();
        if record.run.status != RunStatus::Done {
            let command = command_to_finish([(record, new.file)]);
            return Err(unfinished(new.file, command));
        }
        let (history, unused) = terms.kinship.history(&new, all, terms.last)?;
        let compared = if history.len() < HISTORY_MIN {
            None
        } else {
            let any = Criteria {
                gate: Some(HISTORY_MIN),
                ..Criteria::default()
            };
            Some(Comparison::of_several(&history, &[new], any)?)
        };
        Ok(Self {
            file: new.file.to_owned(),
            compared,
            history: history.len(),
            unused,
            must_find: terms.must_find,
        })
    }

    /// The detectable changes; `None` without a comparison.
    pub fn detectable_changes(&self) -> Option<DetectableChanges> {
        let cells = &self.compared.as_ref()?.cells;
        let found = cells.iter().map(|cell| {
            let detectable = cell.detectable;
            detectable.map_or(f64::INFINITY, |share| 1.0 + share)
        });
        let found: Vec<f64> = found.collect();
        Some(DetectableChanges {
            best: found.iter().copied().reduce(f64::min)?,
            worst: found.iter().copied().reduce(f64::max)?,
        })
    }

    /// Number of cells that could not have detected the required change.
    pub fn blind(&self) -> usize {
        let Some((compared, must_find)) = self.compared.as_ref().zip(self.must_find) else {
            return 0;
        };
        let sees = |cell: &&CellComparison| {
            let detectable = cell.detectable;
            detectable.is_some_and(|share| share <= must_find)
        };
        compared.cells.len() - compared.cells.iter().filter(sees).count()
    }

    /// The conclusion for scripts. A regression takes precedence; otherwise undecided where earlier runs are missing, one of
    /// their cells was not measured, a disturbance may explain a change, or the required change was not detectable.
    pub fn conclusion(&self) -> Conclusion {
        let Some(compared) = &self.compared else {
            return Conclusion::CannotTell;
        };
        match compared.conclusion() {
            Conclusion::Settled if self.blind() > 0 || !compared.only_base.is_empty() => {
                Conclusion::CannotTell
            }
            conclusion => conclusion,
        }
    }
}

/// The error for an unfinished run, with the command that finishes it; `None` for runs on a model.
fn unfinished(file: &str, command: Option<String>) -> Error {
    Error::usage(format!("the run of {file} is not finished")).hint(match command {
        Some(command) => format!("finish it: {command}"),
        None => "run it again: the state of a model is not kept".to_owned(),
    })
}

/// The result of a gate, with the sides and their cells if it was compared.
pub(crate) fn blocks(gate: &Gate) -> Vec<Block> {
    match &gate.compared {
        Some(compared) => compare::blocks_of(compared, summary(gate), remarks(gate)),
        None => {
            let remarks = remarks(gate).into_iter().map(Item::of);
            vec![
                Block::Paragraph(Look::Result, summary(gate)),
                Block::list(remarks.collect()),
            ]
        }
    }
}

/// The answer in one line, with the change that would have been found: `new.iolab against 5 runs: no change shown; a
/// change of 5 % would have been found (chance 90 %).`
pub(crate) fn summary(gate: &Gate) -> String {
    let Some(compared) = &gate.compared else {
        return format!(
            "{}: cannot tell: {}.",
            escape_control(&gate.file),
            history(gate)
        );
    };
    let missing = compared.only_base.len();
    let missing = (missing > 0).then(|| {
        format!(
            "cannot tell in {} of the earlier runs, which the new one did not measure",
            cells(missing)
        )
    });
    let blind = gate.must_find.filter(|_| gate.blind() > 0);
    let blind = blind.map(|change| {
        format!(
            "cannot tell{}: the earlier runs differ too much from each other to find a change of {}",
            in_cells(gate.blind(), compared),
            format_percent(change)
        )
    });
    let parts = [Some(conclusion(compared)), missing, blind, sight(gate)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}.", parts.join("; "))
}

/// `no earlier run with this definition, machine and target, and 5 are needed`, if there are too few.
fn history(gate: &Gate) -> String {
    let found = match gate.history {
        0 => "no earlier run".to_owned(),
        n => counted(n as u64, "earlier run"),
    };
    format!("{found} with this definition, machine and target, and {HISTORY_MIN} are needed")
}

/// ` in 2 of 3 cells`; empty if there is one cell.
fn in_cells(n: usize, compared: &Comparison) -> String {
    match compared.cells.len() {
        1 => String::new(),
        all => format!(" in {n} of {}", cells(all)),
    }
}

/// The change that a gate would have found, as a clause; `None` without an estimate of it.
fn sight(gate: &Gate) -> Option<String> {
    let compared = gate.compared.as_ref()?;
    let sight = gate.detectable_changes()?;
    let (best, worst) = (change(sight.best), change(sight.worst));
    let everywhere = match (compared.cells.len(), compared.only_base.is_empty()) {
        (1, true) => "",
        (1, false) => " in the compared cell",
        (_, true) => " in each cell",
        (_, false) => " in each compared cell",
    };
    let what = if sight.worst > DETECTABLE_MAX {
        let is_beyond = |cell: &&CellComparison| {
            let detectable = cell.detectable;
            detectable.is_none_or(|share| 1.0 + share > DETECTABLE_MAX)
        };
        let beyond = compared.cells.iter().filter(is_beyond).count();
        format!(
            "not even a change by a factor of {DETECTABLE_MAX} would have been found{}",
            in_cells(beyond, compared)
        )
    } else if best == worst {
        format!("a change {worst} would have been found{everywhere}")
    } else {
        format!(
            "a change {worst} would have been found{everywhere}, one {best} in the most precise cell"
        )
    };
    Some(format!("{what} (chance {})", format_percent(GATE_POWER)))
}

/// Conclusions for a gate, in sentences.
pub(crate) fn remarks(gate: &Gate) -> Vec<String> {
    let mut all = gate
        .compared
        .as_ref()
        .map_or_else(Vec::new, compare::remarks);
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (_, why) in &gate.unused {
        let why = excluded(why);
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, n)) => *n += 1,
            None => reasons.push((why, 1)),
        }
    }
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(why, n)| format!("{why} ({n})"))
            .collect();
        all.push(format!("Run files left out: {}.", reasons.join("; ")));
    }
    all
}

/// Writes the result of a gate as one JSON object; `iolab schema gate` describes it.
///
/// # Errors
///
/// When the output cannot be written.
pub(crate) fn json(gate: &Gate, to: &mut dyn Write) -> io::Result<()> {
    let summary = (summary(gate), gate.conclusion().name());
    CompareDocument::write(gate, summary, remarks(gate), to)
}

/// Writes the conclusion of the gate about a run.
///
/// # Errors
///
/// When the output cannot be written.
pub(crate) fn gauges(gate: &Gate, record: &RunRecord, to: &mut dyn Write) -> io::Result<()> {
    const NAME: &str = "iolab_gate";
    head(
        NAME,
        "1 for what the gate concluded of the run, 0 for the others.",
        to,
    )?;
    let mut labels = vec![
        ("experiment".to_owned(), record.experiment.name.clone()),
        ("target".to_owned(), record.target_text()),
    ];
    let earlier = written(&labels);
    for conclusion in Conclusion::ALL {
        labels.truncate(2);
        labels.push(("conclusion".to_owned(), conclusion.name().to_owned()));
        let is_it = u8::from(*conclusion == gate.conclusion());
        writeln!(to, "{NAME}{{{}}} {is_it}", written(&labels))?;
    }
    const EARLIER: &str = "iolab_gate_earlier_runs";
    head(EARLIER, "Earlier runs that the gate judges by.", to)?;
    writeln!(to, "{EARLIER}{{{earlier}}} {}", gate.history)
}

/// The reason in words: `another setting (budget)`.
pub(crate) fn excluded(why: &ExclusionReason) -> String {
    match why {
        ExclusionReason::Itself => "the new run itself".to_owned(),
        ExclusionReason::Later => "began after the new run".to_owned(),
        ExclusionReason::Unfinished => "not finished".to_owned(),
        ExclusionReason::Experiment => "another experiment or other settings".to_owned(),
        ExclusionReason::NoCellInCommon => "no cell in common".to_owned(),
        ExclusionReason::Settings(what) => format!("another setting ({what})"),
        ExclusionReason::Machine(what) => format!("another machine ({what})"),
        ExclusionReason::Target(what) => format!("another target ({what})"),
        ExclusionReason::Older => "older than the runs that are used (--last)".to_owned(),
    }
}
