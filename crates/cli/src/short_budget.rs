//! Experiments that share a budget and have too little of it: said once for all of them.

use std::time::Duration;

use iolab_peers::overhead;
use iolab_plan::cells::Plan;
use iolab_plan::experiment::{BUDGET_MAX, INTERVAL_TRIALS};
use iolab_workload::quantity::exact_duration;
use iolab_workload::units::{budget_to_recommend, format_duration};

/// Plans with too short a budget.
pub(crate) struct ShortBudget {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// A sentence without its full stop.
    pub(crate) words: String,
}

impl ShortBudget {
    /// Plans that share this budget and have too little of it; `None` if fewer than two have, since the warning of a single
    /// one says more. `place` is the model that they measure, if any.
    pub(crate) fn of<'a>(
        plans: impl IntoIterator<Item = &'a Plan>,
        budget: Duration,
        place: Option<&str>,
    ) -> Option<Self> {
        let plans: Vec<&Plan> = plans.into_iter().collect();
        let is_short = |plan: &&&Plan| plan.shortfall(&overhead).is_some();
        let short: Vec<&Plan> = plans.iter().filter(is_short).copied().collect();
        if short.len() < 2 {
            return None;
        }
        let names = short.iter().map(|plan| plan.experiment().name.clone());
        let names: Vec<String> = names.collect();
        let factor = |plan: &&Plan| {
            let share = plan.experiment().design.budget;
            plan.enough_budget(&overhead).as_secs_f64() / share.as_secs_f64()
        };
        let greatest = plans.iter().map(factor).fold(1.0, f64::max);
        let enough = Duration::try_from_secs_f64(budget.as_secs_f64() * greatest);
        let enough = budget_to_recommend(enough.unwrap_or(Duration::MAX));
        let remedy = match enough > BUDGET_MAX {
            true => "choose fewer levels or a shorter --time".to_owned(),
            false => format!("--budget {} is enough for all", format_duration(enough)),
        };
        let trials_min = |plan: &&Plan| plan.experiment().design.trials_min;
        let trials = match short.iter().all(|plan| trials_min(plan) == INTERVAL_TRIALS) {
            true => format!("the {INTERVAL_TRIALS} trials that an interval needs"),
            false => "the trials that trials_min asks for".to_owned(),
        };
        let on = place.map_or_else(String::new, |place| format!(" on {place}"));
        let budget = exact_duration(budget);
        let too_little = format!("{on} get too little of the budget of {budget}");
        let who = match (short.len(), plans.len()) {
            (2, 2) => format!("Both experiments{too_little}"),
            (few, all) if few == all => format!("All {all} experiments{too_little}"),
            (few, all) => {
                let names = names.join(", ");
                format!("{few} of {all} experiments{too_little} ({names})")
            }
        };
        let words = format!(
            "{who}: their cells may get fewer than {trials}, or the study takes longer; {remedy}"
        );
        Some(Self { names, words })
    }
}
