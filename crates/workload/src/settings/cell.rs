//! The settings of one cell, typed, from the definition to the report.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::trial::{Rate, TrialSpec};

use super::Tool;
use crate::command_template::Linkage;
use crate::command_template::Template;
use crate::names::Active;
use crate::names::TargetName;
use crate::system_settings::SystemSettings;
use crate::trial::WorkloadCode;

/// The settings of a cell, before the choices that need a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// The trial; its seed is set for each trial. With groups, the merged trial of all groups.
    pub trial: TrialSpec,
    /// Groups that do different things at the same time; empty if all workers do the same.
    pub groups: Vec<GroupSpec>,
    /// The active groups; `None`: all.
    pub active: Option<Active>,
    /// The workload code, if one sets pattern and share of reads.
    pub workload: Option<WorkloadCode>,
    /// Whether short probes choose the completion strategy (`batch = "auto"`), the default.
    pub batch_auto: bool,
    /// The build of the built-in reader that each trial runs, if any.
    pub linkage: Option<Linkage>,
    /// The user's program that each trial runs, if any.
    pub command: Option<Template>,
    /// The tool that carries out the cell.
    pub tool: Tool,
    /// Its target in a run with several; `None`: the target of the run.
    pub target: Option<TargetName>,
    /// Settings of the kernel that are changed for the time of each trial.
    pub system: SystemSettings,
    /// Time without I/O before each trial; part of the budget, and not of the trial.
    pub idle: Duration,
    /// Names of the settings that the report of another tool does not give; their fields are meaningless.
    pub unknown: BTreeSet<&'static str>,
}

/// The settings without which a cell is not described: cells in which one of them is known on one side only are not compared.
pub const DESCRIBING: [&str; 8] = [
    "pattern", "read_percent", "bs", "threads", "depth", "backend", "cache", "region",
];

/// A group of a cell: workers with the same settings.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// Name of the group.
    pub name: String,
    /// The settings of its workers; has no groups itself.
    pub spec: CellSpec,
}

impl GroupSpec {
    /// The settings of its workers.
    pub fn trial(&self) -> &TrialSpec {
        &self.spec.trial
    }

    /// Whether it issues no requests in this cell: its rate is 0.
    pub fn is_idle(&self) -> bool {
        self.spec.trial.rate == Some(Rate::ZERO)
    }
}

impl CellSpec {
    /// A cell whose trials are these, with nothing left to choose.
    pub fn of(trial: TrialSpec) -> Self {
        Self {
            trial,
            batch_auto: false,
            ..Self::default()
        }
    }

    /// Whether a trial runs a program instead of issuing requests.
    pub fn runs_program(&self) -> bool {
        self.linkage.is_some() || self.command.is_some()
    }

    /// The longest time of a trial according to its limits, with the idle time before it.
    pub fn time_foreseen(&self) -> Option<Duration> {
        Some(self.trial.time_foreseen()?.saturating_add(self.idle))
    }

    /// Whether two cells can be compared: both say in which order their requests go, and neither leaves out a [`DESCRIBING`] setting
    /// that the other one says.
    pub fn is_comparable(&self, other: &Self) -> bool {
        self.says_order()
            && DESCRIBING
                .iter()
                .all(|name| self.unknown.contains(name) == other.unknown.contains(name))
    }

    /// Whether the order of requests is known, without which nothing else that a report says of them describes a cell.
    pub fn says_order(&self) -> bool {
        !self.unknown.contains("pattern")
    }

    /// The completion strategy; `auto` until it is chosen.
    pub fn batch_name(&self) -> String {
        match self.batch_auto {
            true => "auto".to_owned(),
            false => self.trial.batch.to_string(),
        }
    }

    /// The program with its arguments and placeholders.
    pub fn program(&self) -> Option<Template> {
        let reader = self.linkage.map(Linkage::template);
        self.command.clone().or(reader)
    }
}

impl Default for CellSpec {
    fn default() -> Self {
        Self {
            trial: TrialSpec::default(),
            groups: Vec::new(),
            active: None,
            workload: None,
            batch_auto: true,
            linkage: None,
            command: None,
            tool: Tool::IOLAB,
            target: None,
            system: SystemSettings::default(),
            idle: Duration::ZERO,
            unknown: BTreeSet::new(),
        }
    }
}

/// A level with its factor, as users type it: `bs=4KiB`.
pub fn level_label(factor: &str, level: &str) -> String {
    format!("{factor}={level}")
}

/// The label of a cell in messages: `bs=4KiB, depth=8`; `every trial` if nothing varies.
pub fn cell_label(factors: &[String], levels: &[String]) -> String {
    if factors.is_empty() {
        return "every trial".to_owned();
    }
    let parts: Vec<String> = factors
        .iter()
        .zip(levels)
        .map(|(factor, level)| level_label(factor, level))
        .collect();
    parts.join(", ")
}

/// Some of the cells of a tool, in the words of a message: `2 of its 6 cells (bs=16MiB)`, `any of its 6 cells`, `its only cell`.
pub fn own_cells(factors: &[String], some: &[&[String]], others: &[&[String]]) -> String {
    match (some.len(), some.len() + others.len()) {
        (1, 1) => "its only cell".to_owned(),
        (n, all) if n == all => format!("any of its {all} cells"),
        (n, all) => format!(
            "{n} of its {all} cells ({})",
            some_cells_label(factors, some, others)
        ),
    }
}

/// Most cells that [`some_cells_label`] names individually.
const NAMED_MAX: usize = 3;
/// Levels of one factor that it names.
const LEVELS_MAX: usize = 4;

/// A label of some cells among others, by their levels. If a factor's levels occur in no other cell, these levels
/// (`bs=8MiB, 16MiB`); otherwise cell by cell (`bs=4KiB, depth=1; bs=64KiB, depth=8; and 4 more`).
fn some_cells_label(factors: &[String], some: &[&[String]], others: &[&[String]]) -> String {
    let levels_of = |place: usize| {
        let mut levels: Vec<&str> = Vec::new();
        for level in some.iter().filter_map(|cell| cell.get(place)) {
            if !levels.contains(&level.as_str()) {
                levels.push(level);
            }
        }
        levels
    };
    let own = factors.iter().enumerate().map(|(place, factor)| {
        let levels = levels_of(place);
        let mut shared = others.iter().filter_map(|cell| cell.get(place));
        let is_shared = shared.any(|level| levels.contains(&level.as_str()));
        (factor, levels, is_shared)
    });
    let apart = own.filter(|(_, levels, is_shared)| !is_shared && levels.len() <= LEVELS_MAX);
    if let Some((factor, levels, _)) = apart.min_by_key(|(_, levels, _)| levels.len()) {
        return level_label(factor, &levels.join(", "));
    }
    let named = some.iter().take(NAMED_MAX);
    let mut parts: Vec<String> = named.map(|cell| cell_label(factors, cell)).collect();
    if some.len() > NAMED_MAX {
        parts.push(format!("and {} more", some.len() - NAMED_MAX));
    }
    parts.join("; ")
}
