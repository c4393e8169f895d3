//! Blocks with a pilot: the first measured blocks decide how often, and for how long, later blocks visit each cell.

use std::collections::HashMap;
use std::time::Duration;

use iolab_plan::cells::PlannedCell;
use iolab_record::{EventKind, Pilot};
use iolab_workload::Result;
use iolab_workload::quantity::{counted, exact_duration, format_percent};
use iolab_workload::settings::CellSpec;
use iolab_workload::tool::Tool;
use iolab_workload::trial::TrialSpec;

use super::super::pilot::{self, FINE_NS, Profile, can_be_shorter};
use super::super::pilot::{BLOCKS, Share, Unit, allocate, spreads};
use super::super::record::Record;
use super::blocks::{Blocks, Reached};
use super::{Finding, Outlook, Step, Strategy};

/// Most cells named in a message.
const NAMED_MAX: usize = 3;

/// Blocks, the first of which are a pilot.
pub(super) struct PilotBlocks {
    blocks: Blocks,
    /// The last block of the pilot.
    end: u32,
    has_chosen: bool,
    /// Profiles of the pilot's trials, for cells whose trials may become shorter.
    profiles: HashMap<usize, Vec<Profile>>,
    /// The cell of the last requested trial, if its profile is needed.
    profiled: Option<usize>,
}

/// Cells that get the same number of visits.
struct VisitGroup {
    cells: Vec<usize>,
    unit: Unit,
    /// The new length of their trials; `None` if it stays.
    time: Option<Duration>,
}

impl PilotBlocks {
    /// Starts the blocks with a pilot, unless the run has made its choice already.
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

    /// Stores the profile of the last requested trial.
    fn profile(&mut self, record: &Record) {
        let Some(cell) = self.profiled.take() else {
            return;
        };
        if let Some(last) = record.last() {
            let profile = Profile::of(&last.cell, &last.outcome, last.wall);
            self.profiles.entry(cell).or_default().extend(profile);
        }
    }

    /// Chooses the visits of every cell, from the trials of the pilot only.
    fn choose(&mut self, record: &Record) -> Step {
        let groups = self.groups(record);
        let units: Vec<Unit> = groups.iter().map(|group| group.unit.clone()).collect();
        let design = record.plan.experiment().design;
        let left = self.blocks.repetition().left().as_secs_f64();
        let shares = allocate(&units, &design, left);
        let once = Pilot {
            visits: 1,
            time_ns: None,
        };
        let mut chosen = vec![once; record.plan.cells().len()];
        for (group, share) in groups.iter().zip(&shares) {
            for cell in &group.cells {
                chosen[*cell] = Pilot {
                    visits: share.visits,
                    time_ns: group.time.map(|time| time.as_nanos() as u64),
                };
            }
        }
        let visits = chosen.iter().enumerate();
        let visits = visits.map(|(cell, pilot)| Finding::Visits(cell, *pilot));
        let message = in_words(record, &groups, &shares);
        let told = Finding::Told(EventKind::Choice, message);
        let step = Step::Keep(visits.chain([told]).collect());
        let block = units.iter().zip(&shares);
        let takes: f64 = block
            .map(|(unit, share)| unit.cost * f64::from(share.visits))
            .sum();
        let takes = Duration::from_secs_f64(takes.max(0.0));
        self.blocks.choose(self.end + 1, chosen, Some(takes));
        self.has_chosen = true;
        step
    }

    /// The cells that still get trials, grouped by what must have the same number of visits.
    fn groups(&self, record: &Record) -> Vec<VisitGroup> {
        let cells = 0..record.plan.cells().len();
        let open: Vec<usize> = cells.filter(|cell| !record.is_closed(*cell)).collect();
        let values = |cell: &usize| self.blocks.repetition().values(*cell).unwrap_or_default();
        let values: Vec<Vec<f64>> = open.iter().map(|cell| values(cell).to_vec()).collect();
        let spreads = spreads(&values);
        let of = |places: Vec<usize>| {
            let own = places.iter().map(|place| spreads[*place]);
            let spread = own.fold(0.0, f64::max);
            let cells: Vec<usize> = places.iter().map(|place| open[*place]).collect();
            let costs = cells.iter().map(|cell| record.cost(*cell).as_secs_f64());
            let unit = Unit {
                spread,
                cost: costs.sum(),
            };
            let shorter = match cells[..] {
                [only] => self.shorter(record, only, spread),
                _ => None,
            };
            VisitGroup {
                cells,
                unit: shorter.map_or(unit, |shorter| Unit {
                    spread: shorter.spread,
                    cost: shorter.cost,
                }),
                time: shorter.map(|shorter| shorter.time),
            }
        };
        alike(record, &open).into_iter().map(of).collect()
    }

    /// A shorter length for the trials of a cell, if it gives more information in the same time.
    fn shorter(&self, record: &Record, cell: usize, spread: f64) -> Option<pilot::Shorter> {
        let limit = record.plan.cells()[cell].spec.trial.limit.time?;
        let goal = record.plan.experiment().design.precision;
        pilot::shorter(self.profiles.get(&cell)?, limit, spread, goal)
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

/// Groups `open`, indices of cells, by all levels but the tool: tools get the same number of visits.
fn alike(record: &Record, open: &[usize]) -> Vec<Vec<usize>> {
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

/// The choice as a message, with the cells that will miss the precision goal.
fn in_words(record: &Record, groups: &[VisitGroup], shares: &[Share]) -> String {
    let most = shares.iter().map(|share| share.visits).max().unwrap_or(1);
    let several = shares.iter().filter(|share| share.visits > 1).count();
    let visits = match several {
        0 => "pilot: each block visits each cell once".to_owned(),
        _ => format!(
            "pilot: each block visits {several} of {} cells more than once, up to {most} times, as their spread asks",
            groups.len()
        ),
    };
    let parts = [
        Some(visits),
        lengths_in_words(groups),
        beyond_in_words(record, groups, shares),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join("; ")
}

/// The new lengths of trials, as a message; `None` if none changes.
fn lengths_in_words(groups: &[VisitGroup]) -> Option<String> {
    let shorter: Vec<Duration> = groups.iter().filter_map(|group| group.time).collect();
    let (least, greatest) = (shorter.iter().min()?, shorter.iter().max()?);
    let lengths = match least == greatest {
        true => exact_duration(*least),
        false => format!(
            "{} to {}",
            exact_duration(*least),
            exact_duration(*greatest)
        ),
    };
    Some(format!(
        "trials of {lengths} in {}, where the start of a trial is like the rest of it",
        counted(shorter.len() as u64, "cell")
    ))
}

/// The cells that are not expected to reach the precision goal, as a message.
fn beyond_in_words(record: &Record, groups: &[VisitGroup], shares: &[Share]) -> Option<String> {
    let design = record.plan.experiment().design;
    let shared = groups.iter().zip(shares);
    let beyond: Vec<(usize, Option<u32>)> = shared
        .filter(|(_, share)| !share.reaches)
        .map(|(group, share)| (group.cells[0], share.needed))
        .collect();
    let name = |(cell, needed): &(usize, Option<u32>)| {
        let name = record.plan.describe(&record.plan.cells()[*cell]);
        match needed {
            Some(needed) => format!("{name} (needs about {needed} trials)"),
            None => format!("{name} (needs more than {} trials)", design.trials_max),
        }
    };
    let mut named: Vec<String> = beyond.iter().take(NAMED_MAX).map(name).collect();
    if beyond.len() > NAMED_MAX {
        named.push(format!("{} more", beyond.len() - NAMED_MAX));
    }
    (!beyond.is_empty()).then(|| {
        format!(
            "{} of {} cells are not expected to be within {} when the budget is spent: {}",
            beyond.len(),
            groups.len(),
            format_percent(design.precision),
            named.join(", ")
        )
    })
}
