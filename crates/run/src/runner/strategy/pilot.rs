//! Blocks that begin with a pilot: what the first measured ones show decides how often the others visit each cell, and for how
//! long.

use std::collections::HashMap;
use std::time::Duration;

use iolab_plan::cells::PlannedCell;
use iolab_record::{EventKind, Pilot};
use iolab_spec::Result;
use iolab_spec::quantity::format_percent;
use iolab_spec::settings::CellSpec;
use iolab_spec::tool::Tool;
use iolab_spec::trial::TrialSpec;
use iolab_spec::units::format_duration;

use super::super::pilot::length::{self, FINE_NS, Profile, can_be_shorter};
use super::super::pilot::{BLOCKS, Share, Unit, allocate, spreads};
use super::super::record::Record;
use super::blocks::{Blocks, Reached};
use super::{Finding, Outlook, Step, Strategy};

/// Cells that are named in a message.
const NAMED_MAX: usize = 3;

/// Blocks, the first of which are a pilot.
pub(super) struct PilotBlocks {
    blocks: Blocks,
    /// The last block of the pilot.
    end: u32,
    has_chosen: bool,
    /// What its trials show, of cells whose trials may become shorter.
    profiles: HashMap<usize, Vec<Profile>>,
    /// The cell of the trial that was asked for last, where its profile is wanted.
    profiled: Option<usize>,
}

impl PilotBlocks {
    /// A pilot at the beginning of these blocks. One that has chosen for some trials already is not asked again.
    pub(super) fn new(mut blocks: Blocks, record: &Record) -> Self {
        let end = blocks.first() + BLOCKS;
        let is_beyond = record.last_block().is_some_and(|last| last > end);
        let chosen = record.chosen().filter(|_| is_beyond);
        let has_chosen = chosen.is_some();
        if let Some(chosen) = chosen {
            blocks.choose(end + 1, chosen, None);
        }
        Self {
            blocks,
            end,
            has_chosen,
            profiles: HashMap::new(),
            profiled: None,
        }
    }

    /// Notes what the trial shows that was asked for last.
    fn profile(&mut self, record: &Record) {
        let Some(cell) = self.profiled.take() else {
            return;
        };
        if let Some(last) = record.last() {
            let profile = Profile::of(&last.cell, &last.outcome, last.wall);
            self.profiles.entry(cell).or_default().extend(profile);
        }
    }

    /// Chooses for every cell, from the trials of the pilot alone.
    fn choose(&mut self, record: &Record) -> Step {
        let cells = record.plan.cells().len();
        let open: Vec<usize> = (0..cells).filter(|cell| !record.is_closed(*cell)).collect();
        let values = open.iter().map(|cell| {
            let values = self.blocks.repetition().values(*cell).unwrap_or_default();
            values.to_vec()
        });
        let spreads = spreads(&values.collect::<Vec<_>>());
        let groups = units(record, &open);
        let mut times: Vec<Option<Duration>> = vec![None; cells];
        let mut units = Vec::with_capacity(groups.len());
        for group in &groups {
            let spread = group
                .iter()
                .map(|place| spreads[*place])
                .fold(0.0, f64::max);
            let cost: f64 = group
                .iter()
                .map(|place| record.cost(open[*place]).as_secs_f64())
                .sum();
            let mut unit = Unit { spread, cost };
            if let [only] = group[..]
                && let Some(shorter) = self.shorter(record, open[only], spread)
            {
                times[open[only]] = Some(shorter.time);
                unit = Unit {
                    spread: shorter.spread,
                    cost: shorter.cost,
                };
            }
            units.push(unit);
        }
        let design = record.plan.experiment().design;
        let left = self.blocks.repetition().left().as_secs_f64();
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
        let visits = chosen.iter().enumerate();
        let mut found: Vec<Finding> = visits
            .map(|(cell, pilot)| Finding::Visits(cell, *pilot))
            .collect();
        let firsts: Vec<usize> = groups.iter().map(|group| open[group[0]]).collect();
        let message = in_words(record, &firsts, &shares, &times);
        found.push(Finding::Told(EventKind::Choice, message));
        let block = units.iter().zip(&shares);
        let takes: f64 = block
            .map(|(unit, share)| unit.cost * f64::from(share.visits))
            .sum();
        let takes = Duration::from_secs_f64(takes.max(0.0));
        self.blocks.choose(self.end + 1, chosen, Some(takes));
        self.has_chosen = true;
        Step::Keep(found)
    }

    /// A shorter length for the trials of a cell, where that tells more in the same time.
    fn shorter(&self, record: &Record, cell: usize, spread: f64) -> Option<length::Shorter> {
        let limit = record.plan.cells()[cell].spec.trial.limit.time?;
        let goal = record.plan.experiment().design.precision;
        length::shorter(self.profiles.get(&cell)?, limit, spread, goal)
    }
}

impl Strategy for PilotBlocks {
    fn next(&mut self, record: &Record) -> Result<Step> {
        self.profile(record);
        let until = (!self.has_chosen).then_some(self.end + 1);
        Ok(match self.blocks.advance(record, until) {
            Reached::Block => self.choose(record),
            Reached::Step(Step::Visit(mut visit)) => {
                let cell = &record.plan.cells()[visit.place.cell].spec;
                let is_pilot = !visit.place.warmup && visit.place.block <= self.end;
                if is_pilot && can_be_shorter(cell, record.plan.experiment().response) {
                    visit.series_ns = Some(FINE_NS);
                    self.profiled = Some(visit.place.cell);
                }
                Step::Visit(visit)
            }
            Reached::Step(step) => step,
        })
    }

    fn outlook(&mut self, record: &Record) -> Outlook {
        self.blocks.outlook(record)
    }
}

/// The cells that take the same counts, as places in `open`: those that differ in the tool alone.
fn units(record: &Record, open: &[usize]) -> Vec<Vec<usize>> {
    let bare = |cell: usize| CellSpec {
        tool: Tool::IOLAB,
        trial: TrialSpec {
            batch: TrialSpec::default().batch,
            ..record.plan.cells()[cell].spec.trial.clone()
        },
        ..record.plan.cells()[cell].spec.clone()
    };
    let is_peer = |cell: &PlannedCell| cell.spec.tool.is_peer();
    if !record.plan.cells().iter().any(is_peer) {
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

/// What was chosen, and which cells stay out of reach.
fn in_words(
    record: &Record,
    cells: &[usize],
    shares: &[Share],
    times: &[Option<Duration>],
) -> String {
    let goal = format_percent(record.plan.experiment().design.precision);
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
            let name = record.plan.describe(&record.plan.cells()[*cell]);
            match needed {
                Some(needed) => format!("{name} (needs about {needed} trials)"),
                None => {
                    let most = record.plan.experiment().design.trials_max;
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
