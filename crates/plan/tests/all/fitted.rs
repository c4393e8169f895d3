//! Plans fitted to their target, and what a run adds to them.

use std::time::Duration;

use iolab_plan::cells::{FittedPlan, OneProcess, Plan, PlannedCell};
use iolab_plan::experiment::Experiment;

use crate::lines::experiment;

fn fitted(experiment: &Experiment) -> FittedPlan {
    let plan = Plan::of_new_run(experiment.clone(), &OneProcess).expect("a plan");
    FittedPlan::of(plan, &|_| Ok(())).expect("fitted")
}

fn times(plan: &FittedPlan) -> Vec<Option<Duration>> {
    let cells = plan.cells().iter();
    cells.map(|cell| cell.spec.trial.limit.time).collect()
}

#[test]
fn random_glance_cells_leave_sequential_ones_their_half() {
    for cell in fitted(&experiment("glance")).cells() {
        let trial = &cell.spec.trial;
        let from = if trial.pattern.is_ordered() { 0 } else { 254 };
        assert_eq!((trial.offset >> 20, trial.region >> 20), (from, 254));
    }
}

#[test]
fn trial_length_follows_a_budget_set_late() {
    let [long, short] = ["400s", "40s"].map(|budget| {
        let line = format!("load-latency rate=50,100 time=100ms budget={budget} hold:p99<1ms");
        fitted(&experiment(&line))
    });
    assert_ne!(times(&long), times(&short));
    let cut = long.clone().with_budget(Duration::from_secs(40));
    assert_eq!(cut.expect("the same experiment"), short);
    let raised = short.with_budget(Duration::from_secs(400));
    assert_eq!(raised.expect("the same experiment"), long);
}

#[test]
fn finer_sizes_and_rates_are_fitted_alike() {
    let line = "read-random bs=4k,64k refine=2 rate=50 time=100ms budget=400s hold:p99<1ms";
    let plan = fitted(&experiment(line));
    let finer = plan.finer(8, vec!["16KiB".to_owned()]).expect("finer");
    let fit = |cell: &mut PlannedCell| {
        cell.spec.trial.region = 1 << 20;
        Ok(())
    };
    let grown = plan.clone().grown(finer, &fit).expect("fitted");
    let [.., added] = grown.cells() else {
        panic!("no cell");
    };
    assert_eq!(grown.cells().len(), plan.cells().len() + 1);
    assert!(added.refined && added.spec.trial.region == 1 << 20);
    let limit = added.spec.trial.limit;
    assert_eq!(limit.time, times(&plan)[0]);
    assert!(limit.time > Some(Duration::from_millis(100)));
    // Resuming a run must give the same plan.
    let again = Plan::of(grown.experiment().clone(), &OneProcess).expect("a plan");
    assert_eq!(again.cells()[plan.cells().len()].spec.trial.limit, limit);
}
