//! The runs of one experiment over time.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::runs::FiledRun;
use iolab_analysis::runs::comparable_runs::Comparability;
use iolab_workload::units::significant;

use super::summary::moment;
use super::{Input, StudyReport, clean};
use crate::block::Table;
use crate::layout::{columns_over, none};
use iolab_figure::{Figure, Options};

/// Indices of the runs of one experiment among the inputs, in the order of time; the last one is the latest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunSequence(pub(super) Vec<usize>);

impl RunSequence {
    /// Groups runs as `iolab history` does, finished or not, in the order of their first runs: by experiment, settings, machine and
    /// target.
    pub(super) fn all(inputs: &[Input]) -> Vec<Self> {
        let kinship = Comparability { any_host: false };
        let same = |a: &Input, b: &Input| matches!(kinship.difference(&a.run, &b.run), Ok(None));
        let mut sequences: Vec<Self> = Vec::new();
        for (place, input) in inputs.iter().enumerate() {
            let first = |sequence: &&mut RunSequence| {
                let first = sequence.0.first().and_then(|first| inputs.get(*first));
                first.is_some_and(|first| same(first, input))
            };
            match sequences.iter_mut().find(first) {
                Some(sequence) => sequence.0.push(place),
                None => sequences.push(Self(vec![place])),
            }
        }
        for sequence in &mut sequences {
            let started =
                |place: &usize| inputs.get(*place).map(|i| &i.run.record().run.started_utc);
            sequence.0.sort_by(|a, b| started(a).cmp(&started(b)));
        }
        sequences
    }

    /// Figures of the runs, each with its name; none of a single run.
    pub(super) fn figures(
        &self,
        report: &StudyReport<'_>,
        options: impl Fn(&str) -> Options,
    ) -> Vec<(&'static str, Figure)> {
        let inputs = report.inputs;
        let runs: Vec<&Input> = self.0.iter().filter_map(|i| inputs.get(*i)).collect();
        if runs.len() < 2 {
            return Vec::new();
        }
        let filed = runs.iter().map(|input| FiledRun {
            file: input.path.to_str().unwrap_or_default(),
            run: &input.run,
        });
        let filed: Vec<FiledRun<'_>> = filed.collect();
        let drawn = report.sequence_figures.iter().filter_map(|row| {
            let figure = (row.draw)(&filed, &options(row.name));
            Some((row.name, figure.ok()?))
        });
        drawn.collect()
    }

    /// The latest runs of the same experiment on all targets that `all` have, where these begin with this one: they are drawn on the
    /// same axes. Else the own latest run alone.
    pub(super) fn on_all_targets<'a>(&self, all: &[Self], inputs: &'a [Input]) -> Vec<&'a Input> {
        let latest = |sequence: &Self| inputs.get(sequence.latest()?);
        let Some(own) = latest(self) else {
            return Vec::new();
        };
        let alike = || {
            all.iter()
                .filter(|other| latest(other).is_some_and(|other| own.asks_the_same(other)))
        };
        match alike().next() == Some(self) {
            true => alike().filter_map(latest).collect(),
            false => vec![own],
        }
    }

    /// The latest run.
    pub(super) fn latest(&self) -> Option<usize> {
        self.0.last().copied()
    }

    /// Each run compared with the first; `None` for a single run.
    pub(super) fn table(&self, inputs: &[Input]) -> Option<Table> {
        let runs: Vec<&Input> = self
            .0
            .iter()
            .filter_map(|place| inputs.get(*place))
            .collect();
        let (first, rest) = runs.split_first()?;
        if rest.is_empty() {
            return None;
        }
        let rows: Vec<(&Input, Option<Against>)> = runs
            .iter()
            .map(|input| (*input, Against::of(&first.run, &input.run)))
            .collect();
        let column = columns_over(&rows);
        let ratio = |heading: &str, value: &dyn Fn(&Against) -> String| {
            column(heading, 0, &|(_, ratios)| {
                ratios.as_ref().map_or_else(none, value)
            })
        };
        let at = |(ratio, cell): &(f64, String)| format!("{} ({cell})", significant(*ratio));
        let columns = vec![
            column("started", 0, &|(one, _)| {
                moment(&one.run.record().run.started_utc)
            })
            .left(),
            ratio("against the first", &|ratios| significant(ratios.mean)),
            ratio("least", &|ratios| at(&ratios.least)),
            ratio("greatest", &|ratios| at(&ratios.greatest)),
            column("run file", 0, &|(one, _)| {
                clean(&one.path.to_string_lossy())
            })
            .left(),
        ];
        Some(Table::new(
            format!(
                "{} in {} runs: geometric mean of the ratios of medians to the medians of the first run, with the cells that have \
                 the least and the greatest ratio",
                first.run.analysis().response_name(),
                runs.len()
            ),
            ["'iolab history' tests for shifts of the level".to_owned()],
            columns,
        ))
    }
}

/// Ratios of a run's medians to the medians of the first run.
struct Against {
    mean: f64,
    least: (f64, String),
    greatest: (f64, String),
}

impl Against {
    fn of(first: &AnalysedRun, run: &AnalysedRun) -> Option<Self> {
        let cells = &first.analysis().cells;
        let ratio = |cell: &iolab_analysis::analysis::CellAnalysis| {
            let before = cells
                .iter()
                .find(|other| other.cell.levels == cell.cell.levels)?;
            let ratio = cell.response?.median / before.response?.median;
            let name = clean(&cell.cell.levels.join(" "));
            (ratio.is_finite() && ratio > 0.0).then_some((ratio, name))
        };
        let ratios: Vec<(f64, String)> = run.analysis().cells.iter().filter_map(ratio).collect();
        let by_ratio = |a: &&(f64, String), b: &&(f64, String)| a.0.total_cmp(&b.0);
        let logs: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
        Some(Self {
            mean: (logs / ratios.len() as f64).exp(),
            least: ratios.iter().min_by(by_ratio)?.clone(),
            greatest: ratios.iter().max_by(by_ratio)?.clone(),
        })
    }
}
