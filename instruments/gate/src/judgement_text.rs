//! The verdict of a gate as blocks, as a JSON object and as gauges.

use std::io::{self, Write};

use iolab_analysis::compare::{CellComparison, Comparison, Conclusion};
use iolab_analysis::runs::GATE_POWER;
use iolab_analysis::runs::comparable_runs::ExclusionReason;
use iolab_record::RunRecord;
use iolab_report::block::{Block, Item, Look};
use iolab_report::compare::{self, CompareDocument, DETECTABLE_MAX, change, conclusion};
use iolab_report::prometheus::{head, written};
use iolab_report::ratio::cells;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_percent};

use crate::judgement::{Gate, HISTORY_MIN};

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
