//! The settings of one cell, typed, from the definition to the report.

use std::time::Duration;

use crate::trial::{Rate, TrialSpec};

use crate::command_template::Template;
use crate::group_names::Active;
use crate::linkage::Linkage;
use crate::system_settings::SystemSettings;
use crate::target::TargetName;
use crate::tool::Tool;
use crate::workload_code::WorkloadCode;

/// The settings of a cell, before the choices that need a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// The trial; its seed is set for each trial. With groups, the merged trial of all groups.
    pub trial: TrialSpec,
    /// Groups that do different things at the same time; empty where all workers do the same.
    pub groups: Vec<GroupSpec>,
    /// The active groups; `None`: all.
    pub active: Option<Active>,
    /// The workload code, where one sets pattern and share of reads.
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
}

/// A group of a cell: workers with the same settings.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// The settings of its workers; has no groups itself.
    pub spec: CellSpec,
}

impl GroupSpec {
    /// Whether it issues no requests in this cell: its rate is 0.
    pub fn is_idle(&self) -> bool {
        self.spec.trial.rate == Some(Rate::ZERO)
    }
}

impl CellSpec {
    /// Whether a trial runs a program instead of issuing requests.
    pub fn runs_program(&self) -> bool {
        self.linkage.is_some() || self.command.is_some()
    }

    /// The longest time of a trial according to its limits, with the idle time before it.
    pub fn time_foreseen(&self) -> Option<Duration> {
        Some(self.trial.time_foreseen()?.saturating_add(self.idle))
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
        }
    }
}

/// A level with its factor, as users type it: `bs=4KiB`.
pub fn level_label(factor: &str, level: &str) -> String {
    format!("{factor}={level}")
}

/// The label of a cell in messages: `bs=4KiB, depth=8`; `every trial` where nothing varies.
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
