//! The end of the pilot: visits per block and lengths of trials are chosen, kept in the run file, and told.

use std::time::Duration;

use super::super::pilot::{Share, Unit, allocate, length, spreads};
use super::Session;
use iolab_plan::cells::PlannedCell;
use iolab_record::{EventKind, Pilot};
use iolab_spec::Result;
use iolab_spec::quantity::format_percent;
use iolab_spec::settings::CellSpec;
use iolab_spec::tool::Tool;
use iolab_spec::trial::TrialSpec;
use iolab_spec::units::format_duration;

/// Cells that are named in a message.
const NAMED_MAX: usize = 3;

impl Session<'_> {
    /// Chooses for every cell, from the trials of the pilot alone.
    pub(super) fn choose_visits(&mut self) -> Result<()> {
        let cells = self.plan.cells().len();
        let open: Vec<usize> = (0..cells)
            .filter(|cell| !self.phase.is_closed(*cell))
            .collect();
        let values = open.iter().map(|cell| {
            let values = self.phase.repetition.values(*cell).unwrap_or_default();
            values.to_vec()
        });
        let spreads = spreads(&values.collect::<Vec<_>>());
        let groups = self.units(&open);
        let mut times: Vec<Option<Duration>> = vec![None; cells];
        let mut units = Vec::with_capacity(groups.len());
        for group in &groups {
            let spread = group
                .iter()
                .map(|place| spreads[*place])
                .fold(0.0, f64::max);
            let cost: f64 = group.iter().map(|place| self.cost(open[*place])).sum();
            let mut unit = Unit { spread, cost };
            if let [only] = group[..]
                && let Some(shorter) = self.shorter(open[only], spread)
            {
                times[open[only]] = Some(shorter.time);
                unit = Unit {
                    spread: shorter.spread,
                    cost: shorter.cost,
                };
            }
            units.push(unit);
        }
        let design = self.plan.experiment().design;
        let left = self.phase.repetition.left().as_secs_f64();
        let shares = allocate(&units, &design, left);
        let mut chosen = vec![
            Pilot {
                visits: 1,
                time_ns: None
            };
            cells
        ];
        for (group, share) in groups.iter().zip(&shares) {
            for place in group {
                chosen[open[*place]].visits = share.visits;
            }
        }
        for (pilot, time) in chosen.iter_mut().zip(&times) {
            pilot.time_ns = time.map(|time| time.as_nanos() as u64);
        }
        for (cell, pilot) in chosen.iter().enumerate() {
            self.file.set_pilot(cell as i64, *pilot)?;
        }
        let block = units.iter().zip(&shares);
        let block: f64 = block
            .map(|(unit, share)| unit.cost * f64::from(share.visits))
            .sum();
        self.phase
            .repetition
            .block_took(Duration::from_secs_f64(block.max(0.0)));
        self.phase.choose(chosen);
        let firsts: Vec<usize> = groups.iter().map(|group| open[group[0]]).collect();
        let message = self.in_words(&firsts, &shares, &times);
        self.event(EventKind::Choice, &message)
    }

    /// The cells that take the same counts, as places in `open`: those that differ in the tool alone.
    fn units(&self, open: &[usize]) -> Vec<Vec<usize>> {
        let bare = |cell: usize| CellSpec {
            tool: Tool::IOLAB,
            trial: TrialSpec {
                batch: TrialSpec::default().batch,
                ..self.plan.cells()[cell].spec.trial.clone()
            },
            ..self.plan.cells()[cell].spec.clone()
        };
        let is_peer = |cell: &PlannedCell| cell.spec.tool.is_peer();
        if !self.plan.cells().iter().any(is_peer) {
            return (0..open.len()).map(|place| vec![place]).collect();
        }
        let mut units: Vec<(CellSpec, Vec<usize>)> = Vec::new();
        for (place, cell) in open.iter().enumerate() {
            let own = bare(*cell);
            match units.iter_mut().find(|(known, _)| *known == own) {
                Some((_, places)) => places.push(place),
                None => units.push((own, vec![place])),
            }
        }
        units.into_iter().map(|(_, places)| places).collect()
    }

    /// What a trial of a cell took so far, which is in the pilot, s.
    fn cost(&self, cell: usize) -> f64 {
        self.costs.of(cell).as_secs_f64()
    }

    fn shorter(&self, cell: usize, spread: f64) -> Option<length::Shorter> {
        let limit = self.plan.cells()[cell].spec.trial.limit.time?;
        let goal = self.plan.experiment().design.precision;
        length::shorter(self.profiles.get(&cell)?, limit, spread, goal)
    }

    /// What was chosen, and which cells stay out of reach.
    fn in_words(&self, cells: &[usize], shares: &[Share], times: &[Option<Duration>]) -> String {
        let goal = format_percent(self.plan.experiment().design.precision);
        let most = shares.iter().map(|share| share.visits).max().unwrap_or(1);
        let several = shares.iter().filter(|share| share.visits > 1).count();
        let mut text = match several {
            0 => "pilot: each block visits each cell once".to_owned(),
            _ => format!(
                "pilot: each block visits {several} of {} cells more than once, up to {most} times, as their spread asks",
                cells.len()
            ),
        };
        let shorter: Vec<Duration> = times.iter().copied().flatten().collect();
        if let (Some(least), Some(greatest)) = (shorter.iter().min(), shorter.iter().max()) {
            let lengths = match least == greatest {
                true => format_duration(*least),
                false => format!(
                    "{} to {}",
                    format_duration(*least),
                    format_duration(*greatest)
                ),
            };
            text.push_str(&format!(
                "; trials of {lengths} in {} cell{}, where the start of a trial is like the rest of it",
                shorter.len(),
                if shorter.len() == 1 { "" } else { "s" },
            ));
        }
        let beyond: Vec<(usize, Option<u32>)> = cells
            .iter()
            .zip(shares)
            .filter(|(_, share)| !share.reaches)
            .map(|(cell, share)| (*cell, share.needed))
            .collect();
        if beyond.is_empty() {
            return text;
        }
        let mut named: Vec<String> = beyond
            .iter()
            .take(NAMED_MAX)
            .map(|(cell, needed)| {
                let name = self.plan.describe(&self.plan.cells()[*cell]);
                match needed {
                    Some(needed) => format!("{name} (needs about {needed} trials)"),
                    None => {
                        let most = self.plan.experiment().design.trials_max;
                        format!("{name} (needs more than {most} trials)")
                    }
                }
            })
            .collect();
        if beyond.len() > NAMED_MAX {
            named.push(format!("{} more", beyond.len() - NAMED_MAX));
        }
        text.push_str(&format!(
            "; {} of {} cells are not expected to be within {goal} when the budget is spent: {}",
            beyond.len(),
            cells.len(),
            named.join(", ")
        ));
        text
    }
}
