//! Tests of inquiries into a rate that falls under load: a short and a long trial of one cell are compared.

use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{CacheState, Pattern, TrialLimit};

use super::Phenomenon;
use super::tests::{between, planned};
use crate::cells::{OneProcess, Plan};
use crate::suspect::Compared;

/// Random writes of `bs` bytes: a load of 16 MiB compared with a longer one.
fn phenomenon(bs: u64) -> Phenomenon {
    let mut cell = CellSpec::default();
    cell.trial.cache = CacheState::Direct;
    cell.trial.pattern = Pattern::Rand;
    cell.trial.read_percent = 0;
    cell.trial.bs = bs;
    let until = |limit: TrialLimit| {
        let mut side = cell.clone();
        side.trial.limit = limit;
        side
    };
    let base = until(TrialLimit {
        bytes: Some(16 << 20),
        ..TrialLimit::default()
    });
    let other = until(TrialLimit {
        time: Some(Duration::from_secs(1)),
        ..TrialLimit::default()
    });
    let took = [Duration::from_millis(250), Duration::from_secs(1)];
    let mut asked = between([&base, &other], took);
    asked.sides.compared = Compared::Loads;
    asked.changes_inside = true;
    asked
}

fn tried(asked: &Phenomenon) -> Vec<String> {
    planned(asked).1.tried
}

/// Few requests in flight and the size of the region would change the speed, and with it whether a load ends before the fall.
#[test]
fn only_suspects_that_watch_bytes_explain_a_fall() {
    assert_eq!(tried(&phenomenon(4096)), ["small-requests", "written-data"]);
    assert_eq!(tried(&phenomenon(1 << 20)), ["written-data"]);
    let mut few = phenomenon(4096);
    few.sides.base.trial.limit.bytes = Some(1 << 20);
    assert_eq!(tried(&few), ["written-data"]);
    let mut reads = phenomenon(1 << 20);
    for side in [&mut reads.sides.base, &mut reads.sides.other] {
        side.trial.read_percent = 100;
    }
    assert_eq!(tried(&reads), [""; 0]);
    let mut depths = phenomenon(4096);
    depths.sides.compared = Compared::Cells;
    depths.sides.other.trial.pattern = Pattern::Seq;
    assert_eq!(tried(&depths), ["waiting", "reach"]);
}

/// Two cells whose factor is the time of a trial are not loads of a fall.
#[test]
fn cells_differing_in_time_have_the_usual_suspects() {
    let mut times = phenomenon(4096);
    times.sides.compared = Compared::Cells;
    times.sides.base.trial.limit = TrialLimit {
        time: Some(Duration::from_millis(250)),
        ..TrialLimit::default()
    };
    let found = tried(&times);
    assert!(!found.is_empty(), "{found:?}");
    for suspect in ["small-requests", "written-data"] {
        assert!(!found.contains(&suspect.to_owned()), "{found:?}");
    }
}

#[test]
fn each_variant_of_a_load_keeps_its_end() {
    let (experiment, inquiry) = planned(&phenomenon(4096));
    assert_eq!((inquiry.variants.len(), inquiry.shorter_ns), (4, None));
    let plan = Plan::of_new_run(experiment, &OneProcess).expect("a plan");
    let limits = |label: &str| {
        let mut cells = plan.cells().iter();
        let cell = cells.find(|cell| plan.describe(cell) == label);
        cell.expect("a cell").spec.trial.limit
    };
    let own = phenomenon(4096).sides;
    for variant in &inquiry.variants {
        assert_eq!(limits(&variant.base), own.base.trial.limit);
        assert_eq!(limits(&variant.other), own.other.trial.limit);
    }
}
