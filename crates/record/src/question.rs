//! What a run is to answer besides what it measures. Nothing of it decides what is measured or written.

use std::time::Duration;

use iolab_workload::named;
use iolab_workload::service_level::{Need, ServiceLevels};

named! {
    /// What is asked of service levels.
    #[derive(Default)]
    pub enum QuestionKind: "kind of question" {
        /// Whether they hold in every cell.
        #[default]
        Cells = "cells",
        /// Up to which rate they hold.
        Limit = "limit",
        /// Whether they hold in a workload of a requirement.
        Fit = "fit",
    }
}

/// A question about service levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked of them.
    pub of: Asked,
    /// The levels, one at least.
    pub needs: Vec<Need>,
}

/// What is asked of service levels.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Whether they hold in every cell.
    Cells,
    /// Up to which rate they hold.
    Limit,
    /// Whether they hold in a workload of a requirement.
    Fit(Fit),
}

/// What a purpose asks of storage, and the workload that a run is of it. Each of its workloads has a run of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fit {
    /// Tells it from others of the same requirement; the runs of its workloads share it.
    pub id: String,
    /// Name of the requirement.
    pub requirement: String,
    /// What the answer does not cover.
    pub not: String,
    /// How long each workload loads the storage.
    pub hold: Duration,
    /// What else the answer does not cover on this target.
    pub limits: Vec<String>,
    /// Names of all workloads.
    pub workloads: Vec<String>,
    /// The workload that the run is of.
    pub workload: String,
}

impl Question {
    /// A question about levels of the user's.
    pub fn of_levels(of: Asked, levels: &ServiceLevels) -> Self {
        let needs = levels.all().iter().map(|level| Need::of(*level));
        Self {
            of,
            needs: needs.collect(),
        }
    }

    /// What is asked.
    pub fn kind(&self) -> QuestionKind {
        match self.of {
            Asked::Cells => QuestionKind::Cells,
            Asked::Limit => QuestionKind::Limit,
            Asked::Fit(_) => QuestionKind::Fit,
        }
    }

    /// The requirement that asks; `None` where the user does.
    pub fn into_fit(self) -> Option<Fit> {
        match self.of {
            Asked::Fit(fit) => Some(fit),
            Asked::Cells | Asked::Limit => None,
        }
    }

    /// Its levels.
    pub fn levels(&self) -> ServiceLevels {
        self.needs.iter().map(|need| need.level).collect()
    }
}
