//! One comparison in many settings: a row for each, where sentences would repeat themselves.

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_stats::{Interval, Ratio};

use crate::{DirectionPair, SyncPair, growths, skip_costs, sync_pairs, write_read_pairs};

/// Settings that sentences can describe; more make a table.
pub const SENTENCES_MAX: usize = 3;

/// A comparison of two levels of a factor, in several settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Across {
    /// What was measured.
    pub response: Response,
    /// The factor whose levels are compared.
    pub factor: &'static str,
    /// The other factors that vary.
    pub others: Vec<String>,
    /// One per setting, in the order of the definition.
    pub rows: Vec<Setting>,
}

/// Two levels in one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The levels of the other factors.
    pub held: Vec<String>,
    /// The levels that are compared: the base, and the other one.
    pub levels: (String, String),
    /// Their median responses.
    pub medians: (f64, f64),
    /// The second median over the first.
    pub ratio: Ratio,
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The second level is better: the whole interval is on that side of 1.
    Better,
    /// It is worse.
    Worse,
    /// Neither.
    Nothing,
}

impl Setting {
    /// What is shown of the second level.
    pub fn shown(&self, response: Response) -> Shown {
        let above = |i: Interval| i.low > 1.0;
        let below = |i: Interval| i.high < 1.0;
        match self.ratio.interval {
            Some(i) if above(i) && response.is_time() || below(i) && !response.is_time() => {
                Shown::Worse
            }
            Some(i) if above(i) || below(i) => Shown::Better,
            _ => Shown::Nothing,
        }
    }
}

/// The comparisons of a run that have more settings than sentences can describe.
pub fn across(analysis: &Analysis) -> Vec<Across> {
    let mut all: Vec<Across> = Vec::new();
    for (factor, base, other, ratio) in compared(analysis) {
        let Some(row) = setting(analysis, factor, base, other, ratio) else {
            continue;
        };
        match all.iter_mut().find(|table| table.factor == factor) {
            Some(table) => table.rows.push(row),
            None => all.push(Across {
                response: analysis.response,
                factor,
                others: others(analysis, factor),
                rows: vec![row],
            }),
        }
    }
    let is_shown = |table: &Across| table.rows.iter().any(|row| row.ratio.interval.is_some());
    all.retain(|table| table.rows.len() > SENTENCES_MAX && is_shown(table));
    all
}

/// Factor, base, other and ratio of each comparison that the findings make.
fn compared(analysis: &Analysis) -> Vec<(&'static str, &CellAnalysis, &CellAnalysis, Ratio)> {
    let sync = sync_pairs(analysis).into_iter();
    let sync = sync.map(
        |SyncPair {
             base,
             strict,
             ratio,
             ..
         }| ("sync", base, strict, ratio),
    );
    let direction = write_read_pairs(analysis).into_iter();
    let direction = direction.map(
        |DirectionPair {
             read, write, ratio, ..
         }| ("workload", read, write, ratio),
    );
    let growth = growths(analysis).into_iter();
    let skips = skip_costs(analysis).into_iter();
    sync.chain(direction)
        .chain(growth.map(|g| (g.factor, g.first, g.end, g.ratio)))
        .chain(skips.map(|s| ("skip", s.least, s.worst, s.ratio)))
        .collect()
}

fn others(analysis: &Analysis, factor: &str) -> Vec<String> {
    let names = analysis.factors.iter();
    names.filter(|name| *name != factor).cloned().collect()
}

fn setting(
    analysis: &Analysis,
    factor: &str,
    base: &CellAnalysis,
    other: &CellAnalysis,
    ratio: Ratio,
) -> Option<Setting> {
    let place = analysis.factors.iter().position(|name| name == factor)?;
    let level = |cell: &CellAnalysis| cell.cell.levels.get(place).cloned().unwrap_or_default();
    let levels = other.cell.levels.iter().enumerate();
    Some(Setting {
        held: levels
            .filter(|(i, _)| *i != place)
            .map(|(_, level)| level.clone())
            .collect(),
        levels: (level(base), level(other)),
        medians: (base.response?.median, other.response?.median),
        ratio,
    })
}
