//! One cell, typed: the same value from the definition to the report.

use crate::trial::TrialSpec;

use crate::command_template::Template;
use crate::group::{Active, GroupSpec};
use crate::linkage::Linkage;
use crate::target::TargetName;
use crate::tool::Tool;
use crate::workload_code::WorkloadCode;

/// What a cell asks of the engine, before the choices that only a measurement can make.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// The trial; its seed is set per trial. Where it has groups, what they are together.
    pub trial: TrialSpec,
    /// Groups that do different things side by side; none where all workers do the same.
    pub groups: Vec<GroupSpec>,
    /// The groups that run; `None`: all of them.
    pub active: Option<Active>,
    /// What gives its pattern and its share of reads, where a code does.
    pub workload: Option<WorkloadCode>,
    /// Whether short probes choose the completion strategy (`batch = "auto"`), the default.
    pub batch_auto: bool,
    /// Which build of the built-in reader each trial runs, if any.
    pub linkage: Option<Linkage>,
    /// The program of the user's that each trial runs, if any.
    pub command: Option<Template>,
    /// What carries the cell out.
    pub tool: Tool,
    /// The target that it works on, in a run that has several; `None`: the run's own.
    pub target: Option<TargetName>,
}

impl CellSpec {
    /// Whether a trial runs a program instead of issuing requests.
    pub fn runs_program(&self) -> bool {
        self.linkage.is_some() || self.command.is_some()
    }

    /// The completion strategy, or `auto` until it is chosen.
    pub fn batch_name(&self) -> String {
        match self.batch_auto {
            true => "auto".to_owned(),
            false => self.trial.batch.to_string(),
        }
    }

    /// The program with its arguments, not filled in yet.
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
        }
    }
}

/// How a cell is called in messages: `bs=4KiB, depth=8`; `every trial` where nothing varies.
pub fn cell_label(factors: &[String], levels: &[String]) -> String {
    if factors.is_empty() {
        return "every trial".to_owned();
    }
    let parts: Vec<String> = factors
        .iter()
        .zip(levels)
        .map(|(factor, level)| format!("{factor}={level}"))
        .collect();
    parts.join(", ")
}
