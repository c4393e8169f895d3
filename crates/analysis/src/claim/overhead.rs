//! Time of trials apart from their I/O, for the budget of trials that are to explain them.

use std::time::Duration;

use iolab_record::Sample;
use iolab_stats::mean;

use super::phenomenon::Phenomenon;
use crate::analysed_run::AnalysedRun;

/// Time of a trial apart from its I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    /// Time before and after the trial, without idle time and without writing out: the larger mean of both
    /// sides.
    pub around: Duration,
    /// Time of writing out what the trial left in caches: the larger mean of both sides. If neither leaves
    /// anything, the largest mean of all cells of the run.
    pub write_out: Duration,
}

/// Time apart from I/O that the trials of both sides took in a run.
pub fn overhead(run: &AnalysedRun, phenomenon: &Phenomenon) -> Overhead {
    let sides = [phenomenon.base.cell, phenomenon.other.cell];
    let all = || run.analysis().cells.iter().map(|cell| cell.cell.id);
    let samples = &run.record().samples;
    let most = |cells: &mut dyn Iterator<Item = i64>, of: &dyn Fn(&Sample) -> Option<u64>| {
        let mean_of = |cell: i64| {
            let own = samples
                .iter()
                .filter(|sample| sample.cell == cell && sample.ok);
            let values: Vec<f64> = own.filter_map(of).map(|ns| ns as f64).collect();
            mean(&values)
        };
        let most = cells.filter_map(mean_of).max_by(f64::total_cmp);
        most.map(|ns| Duration::from_nanos(ns as u64))
    };
    let written_out = |sample: &Sample| sample.region.owed_sync_ns.filter(|ns| *ns > 0);
    let around = |sample: &Sample| {
        let idle = run.analysis().cell(sample.cell)?.cell.spec.idle.as_nanos() as u64;
        let own = [
            sample.elapsed_ns,
            idle,
            sample.region.owed_sync_ns.unwrap_or(0),
        ];
        Some(own.into_iter().fold(sample.wall_ns, u64::saturating_sub))
    };
    let write_out = most(&mut sides.into_iter(), &written_out);
    Overhead {
        around: most(&mut sides.into_iter(), &around).unwrap_or_default(),
        write_out: write_out
            .or_else(|| most(&mut all(), &written_out))
            .unwrap_or_default(),
    }
}
