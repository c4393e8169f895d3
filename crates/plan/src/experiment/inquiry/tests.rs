use super::*;
use crate::cells::{OneProcess, Plan};
use crate::suspect::{Compared, MachineState, Signs};
use iolab_workload::trial::{BufferInit, CacheState, Pattern};

/// Two cells whose throughput differs on a modelled disk.
pub(super) fn between([base, other]: [&CellSpec; 2], took: [Duration; 2]) -> Phenomenon {
    Phenomenon {
        text: "throughput of rand 0.1 times the rate of seq".to_owned(),
        seen: 0.1,
        expected: 1.0,
        sides: Sides {
            base: base.clone(),
            other: other.clone(),
            is_model: true,
            compared: Compared::Cells,
            iops: None,
            machine: MachineState::default(),
            signs: Signs::default(),
        },
        only: Vec::new(),
        took,
        response: Response::Throughput,
        precondition: Precondition::default(),
        changes_inside: false,
        around: Duration::ZERO,
        write_out: Duration::ZERO,
        budget: Duration::from_secs(300),
        fill: Duration::ZERO,
    }
}

/// The experiment that is planned, and what it asks for.
pub(super) fn planned(asked: &Phenomenon) -> (Experiment, Inquiry) {
    let experiment = Experiment::inquiry(asked).expect("valid");
    let inquiry = experiment.inquiry.clone().expect("an inquiry");
    (experiment, inquiry)
}

fn phenomenon(budget: u64) -> Phenomenon {
    let mut base = CellSpec::default();
    base.trial.cache = CacheState::Direct;
    base.trial.limit.time = Some(Duration::from_millis(300));
    let mut other = base.clone();
    other.trial.pattern = Pattern::Rand;
    let mut asked = between([&base, &other], [Duration::from_millis(300); 2]);
    asked.budget = Duration::from_secs(budget);
    asked
}

#[test]
fn lasting_leftovers_leave_no_suspect_to_try() {
    let mut worn = phenomenon(60);
    worn.sides.machine.leftover = Leftover::Lasting;
    let (_, inquiry) = planned(&worn);
    assert!(inquiry.tried.is_empty());
    let reasons: Vec<&Obstacle> = inquiry.untried.iter().map(|one| &one.why).collect();
    assert_eq!(reasons, [&Obstacle::KeepsState; 3]);
}

/// Trials of a minute would leave time for one block in five minutes.
#[test]
fn long_trials_are_shortened_to_fit_the_budget() {
    let mut long = phenomenon(300);
    let minute = Duration::from_secs(60);
    for cell in [&mut long.sides.base, &mut long.sides.other] {
        cell.trial.limit.time = Some(minute);
    }
    long.took = [minute; 2];
    let of = |asked: &Phenomenon| {
        let (experiment, inquiry) = planned(asked);
        let plan = Plan::of_new_run(experiment.clone(), &OneProcess).expect("a plan");
        let block = plan
            .cells()
            .iter()
            .filter_map(|cell| cell.spec.time_foreseen());
        let blocks = experiment.design.trials_min + 1;
        (inquiry, block.sum::<Duration>() * blocks)
    };
    let (inquiry, takes) = of(&long);
    assert_eq!(inquiry.shorter_ns, Some(1_000_000_000));
    assert_eq!(inquiry.tried.len(), 2);
    assert!(takes <= long.budget, "{takes:?}");
    long.budget = Duration::from_secs(20);
    let (inquiry, takes) = of(&long);
    assert_eq!(inquiry.shorter_ns, Some(238_000_000));
    assert!(
        !inquiry.tried.is_empty() && takes <= long.budget,
        "{takes:?}"
    );
    long.changes_inside = true;
    assert_eq!(of(&long).0.shorter_ns, None);
}

/// A fall to a tenth needs nine times the time of a trial; suspects beyond the budget are left out.
#[test]
fn drained_credits_are_restored_before_each_trial() {
    let mut drained = phenomenon(700);
    drained.sides.is_model = false;
    drained.sides.machine.leftover = Leftover::Drained(10.0);
    let (experiment, inquiry) = planned(&drained);
    assert_eq!(inquiry.idle_ns, Some(3_000_000_000));
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    let idle = Duration::from_secs(3);
    assert!(plan.cells().iter().all(|cell| cell.spec.idle == idle));
    // All four suspects take 10 variants and 66 s a block, two take 27 s.
    assert_eq!(inquiry.tried.len(), 2, "{inquiry:?}");
    drained.budget = Duration::from_secs(60);
    let (_, inquiry) = planned(&drained);
    assert!(inquiry.tried.is_empty());
    let no_time = Obstacle::NoTime {
        budget_s: 480,
        idle_ns: 1_000_000_000,
        fill_ns: 0,
    };
    assert_eq!(inquiry.untried[0].why, no_time);
}

#[test]
fn all_variants_are_cells_of_one_plan() {
    let (experiment, inquiry) = planned(&phenomenon(300));
    assert_eq!(inquiry.tried, ["read-ahead", "waiting", "reach"]);
    assert_eq!(inquiry.variants.len(), 8);
    let plan = Plan::of_new_run(experiment.clone(), &OneProcess).expect("a plan");
    let labels: Vec<String> = plan
        .cells()
        .iter()
        .map(|cell| plan.describe(cell))
        .collect();
    for variant in &inquiry.variants {
        assert!(labels.contains(&variant.base), "{variant:?} {labels:?}");
        assert!(labels.contains(&variant.other), "{variant:?} {labels:?}");
    }
    let text = experiment.to_toml().expect("TOML");
    assert_eq!(
        Experiment::from_toml(&text, "again").expect("valid"),
        experiment
    );
}

/// By the run that shows the difference, the drive's share takes longer in random order, or does not.
#[test]
fn suspects_with_a_sign_are_tried_first() {
    let tried = |sign: Sign| {
        let mut asked = phenomenon(300);
        asked.sides.signs.stages.device = sign;
        planned(&asked).1.tried
    };
    assert_eq!(tried(Sign::OnWorseSide), ["read-ahead", "reach", "waiting"]);
    assert_eq!(tried(Sign::Unknown), ["read-ahead", "waiting", "reach"]);
    assert_eq!(tried(Sign::NotThere), ["waiting", "read-ahead", "reach"]);
}

/// Two of them alone are a factorial: each, both, none.
#[test]
fn suspects_that_are_asked_for_are_tried_alone() {
    let mut asked = phenomenon(300);
    asked.only = vec!["waiting", "reach"];
    let (_, inquiry) = planned(&asked);
    assert_eq!(inquiry.tried, ["waiting", "reach"]);
    assert_eq!(inquiry.variants.len(), 4);
    let left = Untried {
        suspect: "read-ahead".to_owned(),
        why: Obstacle::NotAskedFor,
    };
    assert_eq!(inquiry.untried, [left]);
}

/// Huge pages have fewer faults too: they are compared with small pages that have none either.
#[test]
fn a_hidden_suspect_is_measured_without_its_cover() {
    let mut asked = phenomenon(300);
    asked.sides.is_model = false;
    asked.took = [Duration::from_millis(5); 2];
    for (cell, bs) in [
        (&mut asked.sides.base, 64 << 10),
        (&mut asked.sides.other, 16 << 20),
    ] {
        cell.trial.bs = bs;
        cell.trial.cache = CacheState::Hot;
        cell.trial.pattern = Pattern::Seq;
        cell.trial.buffer_init = BufferInit::Untouched;
    }
    let (_, inquiry) = planned(&asked);
    assert_eq!(inquiry.tried, ["page-faults", "buffer-footprint", "tlb"]);
    let of = |without: &[&str]| {
        let mut variants = inquiry.variants.iter();
        let variant = variants
            .find(|one| one.without == without)
            .expect("a variant");
        (variant.base.clone(), variant.other.clone())
    };
    // Alone it is hidden.
    assert_eq!(of(&["tlb"]), of(&[]));
    asked.only = vec!["tlb"];
    assert_eq!(planned(&asked).1.tried, ["page-faults", "tlb"]);
    let all = of(&["page-faults", "buffer-footprint", "tlb"]);
    let but = of(&["page-faults", "buffer-footprint"]);
    assert!(
        all.1.contains("huge") && but.1.contains("populated"),
        "{all:?} {but:?}"
    );
}

#[test]
fn an_inquiry_from_elsewhere_is_checked() {
    let mut experiment = Experiment::inquiry(&phenomenon(300)).expect("valid");
    if let Some(inquiry) = &mut experiment.inquiry {
        inquiry.untried.push(Untried {
            suspect: "tlb".to_owned(),
            why: Obstacle::KeepsState,
        });
    }
    let text = experiment.to_toml().expect("TOML");
    let wrong = text.replace("tried = [\"read-ahead\", ", "tried = [\"moon\", ");
    assert_ne!(wrong, text);
    let error = Experiment::from_toml(&wrong, "x").expect_err("no such suspect");
    insta::assert_snapshot!(error.message(), @"x: the inquiry names suspects or ratios that cannot be");
    let steering = text.replace("keeps-state", "\\u001b[2J");
    assert_ne!(steering, text);
    let error = Experiment::from_toml(&steering, "x").expect_err("a control character");
    insta::assert_snapshot!(error.message(), @r#"
    x: TOML parse error at line 30, column 7
       |
    30 | why = "\u001b[2J"
       |       ^^^^^^^^^^^
    unknown variant `[2J`, expected one of `is-the-difference`, `keeps-state`, `needs-change-system`, `needs-root`, `no-time`, `not-asked-for`, `conflict`
    "#);
}
