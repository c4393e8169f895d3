//! Comparisons within one run: of two levels of a factor, and of iolab with its peers.

use std::collections::BTreeSet;

use super::{Comparison, Criteria, RunSide, SideName};
use crate::analysed_run::AnalysedRun;
use crate::refusal;
use crate::trial_values::distinct;
use iolab_record::RunRecord;
use iolab_workload::Result;
use iolab_workload::settings::{Setting, Tool, level_label};

impl Comparison {
    /// Compares two levels of a factor of one run. `by` is `FACTOR=LEVEL,LEVEL`, or `FACTOR` if it has two
    /// levels. The sides are named after the levels, and `of` is [`SideName::of`].
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such factor or level, not two of them, or no cell in
    /// common.
    pub fn of_levels(run: &AnalysedRun, by: &str, of: &str, terms: Criteria) -> Result<Self> {
        let (factor, levels) = two_levels(run.record(), by)?;
        let source = |level| RunSide {
            run,
            held: Some((factor, level)),
        };
        let names = levels.each_ref().map(|level| SideName {
            name: level_label(factor, level),
            of: of.to_owned(),
            ..SideName::default()
        });
        let [base, new] = &levels;
        Self::of_runs(names, source(base), source(new), terms)
    }
}

/// A factor of a run with the two levels that `FACTOR[=LEVEL,LEVEL]` names.
fn two_levels<'a>(record: &RunRecord, by: &'a str) -> Result<(&'a str, [String; 2])> {
    let (factor, named) = match by.split_once('=') {
        Some((factor, levels)) => (factor.trim(), Some(levels)),
        None => (by.trim(), None),
    };
    let factors = &record.experiment.factors;
    let Some(index) = factors.iter().position(|f| f == factor) else {
        return Err(refusal::no_such_factor(factor, factors));
    };
    let cells = record.cells.iter();
    let levels = cells.filter_map(|cell| cell.levels.get(index).cloned());
    let levels: Vec<String> = distinct(levels);
    let named = named.map(|named| named.split(',').map(|level| canonical(factor, level)));
    let wanted = named.map_or_else(|| levels.clone(), Iterator::collect);
    if let Some(strange) = wanted.iter().find(|level| !levels.contains(level)) {
        return Err(refusal::no_such_level(factor, strange, &levels));
    }
    match <[String; 2]>::try_from(wanted) {
        Ok([base, new]) if base != new => Ok((factor, [base, new])),
        _ => Err(refusal::not_two_levels(factor, &levels)),
    }
}

/// A level in canonical form: `4k` is `4KiB`.
fn canonical(factor: &str, level: &str) -> String {
    let known = Setting::find(factor).and_then(|setting| setting.canonical(level).ok());
    known.unwrap_or_else(|| level.trim().to_owned())
}

/// The smallest difference between tools that matters; unavoidable differences between tools are smaller.
pub const PEER_MARGIN: f64 = 0.10;

/// A comparison of each peer of a run with iolab as the base; empty where `tool` is not a factor of the run.
pub fn with_peers(run: &AnalysedRun) -> Vec<Comparison> {
    if !run.analysis().factors.iter().any(|name| name == "tool") {
        return Vec::new();
    }
    let cells = run.analysis().cells.iter();
    let tools = cells.map(|cell| cell.cell.spec.tool);
    let peers: BTreeSet<Tool> = tools.filter(|tool| tool.is_peer()).collect();
    let compared = peers.iter().filter_map(|peer| {
        let tools = [&Tool::IOLAB, peer];
        let [base, new] = tools.map(|tool| RunSide {
            run,
            held: Some(("tool", tool.name())),
        });
        let terms = Criteria {
            margin: PEER_MARGIN,
            ..Criteria::default()
        };
        // A peer without a cell in common was not requested, or could not carry out any.
        Comparison::of_runs(tools.map(|tool| tool.to_string().into()), base, new, terms).ok()
    });
    compared.collect()
}
