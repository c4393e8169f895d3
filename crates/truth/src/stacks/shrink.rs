//! Reduction of a failing stack, as long as it still fails.

use std::time::{Duration, Instant};

use super::plan::{Consent, Id, Plan, Step, View};
use super::trial::{self, Outcome};

/// Time limit of the reduction.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Smallest failing stack found, with its outcome.
pub fn smallest(plan: &Plan, outcome: Outcome) -> (Plan, Outcome) {
    let begin = Instant::now();
    let mut found = (plan.clone(), outcome);
    'again: loop {
        for smaller in smaller(&found.0) {
            if begin.elapsed() > TIME_MAX {
                return found;
            }
            match trial::of(&smaller) {
                Ok(outcome) if !outcome.faults.is_empty() => {
                    found = (smaller, outcome);
                    continue 'again;
                }
                _ => {}
            }
        }
        return found;
    }
}

/// Slightly smaller or simpler stacks.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans: Vec<Plan> = (1..plan.steps.len())
        .rev()
        .filter_map(|id| plan.without(id))
        .collect();
    if plan.view != View::Whole {
        plans.push(Plan {
            view: View::Whole,
            ..plan.clone()
        });
    }
    if plan.consent != Consent::Plain {
        plans.push(Plan {
            consent: Consent::Plain,
            ..plan.clone()
        });
    }
    plans
}

impl Plan {
    /// The plan without a step and everything on it; `None` if that includes the target.
    pub fn without(&self, id: Id) -> Option<Self> {
        let goes = |other: Id| other == id || self.stands_on(other, id);
        if goes(self.target) {
            return None;
        }
        let left: Vec<Id> = (0..self.steps.len()).filter(|id| !goes(*id)).collect();
        let now = |old: Id| left.iter().position(|id| *id == old).unwrap_or(0);
        let steps = left.iter().map(|old| self.steps[*old].renumbered(now));
        Some(Self {
            steps: steps.collect(),
            target: now(self.target),
            ..*self
        })
    }
}

impl Step {
    /// The step, with new numbers for the steps that it stands on.
    fn renumbered(&self, now: impl Fn(Id) -> Id) -> Self {
        let mut step = self.clone();
        match &mut step {
            Step::Root => {}
            Step::Folder { within } | Step::File { within, .. } => *within = now(*within),
            Step::Link { file } | Step::Under { file } => *file = now(*file),
            Step::Loop { over, .. } => *over = now(*over),
            Step::Mapped { over, .. } => *over = now(*over),
            Step::Ended { mapped } => *mapped = now(*mapped),
            Step::Table { on } => *on = now(*on),
            Step::Partition { table, .. } => *table = now(*table),
            Step::Format { on, .. } => on.iter_mut().for_each(|on| *on = now(*on)),
            Step::Mount { format, .. } | Step::Swap { format } => *format = now(*format),
            Step::Bind { folder } | Step::Remote { folder, .. } => *folder = now(*folder),
            Step::Overlay { lower, host } => (*lower, *host) = (now(*lower), now(*host)),
            Step::Seen { file, through } => (*file, *through) = (now(*file), now(*through)),
            Step::Hold { node, .. } => *node = now(*node),
        }
        step
    }
}
