//! The question of a run about service levels. It affects neither measurements nor writes.

use std::time::Duration;

use iolab_workload::named;
use iolab_workload::response::{Need, ServiceLevels};

named! {
    /// The kind of a question about service levels.
    #[derive(Default)]
    pub enum QuestionKind: "kind of question" {
        /// Whether they hold in each cell.
        #[default]
        Cells = "cells",
        /// The highest rate at which they hold.
        Limit = "limit",
        /// Whether they hold in a workload of a requirement.
        Fit = "fit",
    }
}

/// A question about service levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The question.
    pub of: Asked,
    /// The levels, at least one.
    pub needs: Vec<Need>,
}

/// A question about service levels.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Whether they hold in each cell.
    Cells,
    /// The highest rate at which they hold.
    Limit,
    /// Whether they hold in a workload of a requirement.
    Fit(Fit),
}

/// A requirement, with the workload of this run. Each of its workloads has its own run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fit {
    /// Identifies the runs of the workloads that belong together.
    pub id: String,
    /// Name of the requirement.
    pub requirement: String,
    /// The limits of the answer.
    pub not: String,
    /// How long each workload loads the storage.
    pub hold: Duration,
    /// Further limits of the answer on this target.
    pub limits: Vec<String>,
    /// Names of all workloads.
    pub workloads: Vec<String>,
    /// The workload of this run.
    pub workload: String,
}

impl Question {
    /// A question about the user's levels.
    pub fn of_levels(of: Asked, levels: &ServiceLevels) -> Self {
        let needs = levels.all().iter().map(|level| Need::of(*level));
        Self {
            of,
            needs: needs.collect(),
        }
    }

    /// The kind of the question.
    pub fn kind(&self) -> QuestionKind {
        match self.of {
            Asked::Cells => QuestionKind::Cells,
            Asked::Limit => QuestionKind::Limit,
            Asked::Fit(_) => QuestionKind::Fit,
        }
    }

    /// The requirement; `None` for a question of the user.
    pub fn into_fit(self) -> Option<Fit> {
        match self.of {
            Asked::Fit(fit) => Some(fit),
            Asked::Cells | Asked::Limit => None,
        }
    }

    /// The service levels of the requirement.
    pub fn levels(&self) -> ServiceLevels {
        self.needs.iter().map(|need| need.level).collect()
    }
}
