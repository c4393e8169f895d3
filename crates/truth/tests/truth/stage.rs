//! Performance of a scenario: makes its target, lets iolab measure it, and compares iolab's output with the
//! row.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use iolab_truth::fuse::Ledger;
use iolab_truth::iolab::{Seen, measure};
use iolab_truth::scenarios::MACHINE;
use iolab_truth::system::unless_missing;
use iolab_truth::{Scenario, Scene};
use needs::Need;

/// Lock for one scenario at a time, since they would disturb each other. Scenarios in guests measure disks that
/// are separate files: they may run alongside each other, but not alongside others.
static STAGE: RwLock<()> = RwLock::new(());

/// A performed scenario, with its target still present.
pub(crate) struct Performance {
    pub(crate) seen: Seen,
    pub(crate) scene: Scene,
    _alone: RwLockWriteGuard<'static, ()>,
}

/// Excludes all others.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    STAGE.write().unwrap_or_else(PoisonError::into_inner)
}

/// Excludes everything outside guests.
pub(crate) fn in_guests() -> RwLockReadGuard<'static, ()> {
    STAGE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the target of a scenario; a skip where that is impossible.
#[track_caller]
pub(crate) fn built(scenario: &Scenario) -> Option<(Scene, RwLockWriteGuard<'static, ()>)> {
    let alone = alone();
    let scene = (scenario.build)().map_err(|why| why.during(scenario.name));
    Some((unless_missing(scene)?, alone))
}

/// Performs a scenario; a skip if its target cannot be made here.
#[track_caller]
pub(crate) fn perform(scenario: &Scenario) -> Option<Performance> {
    let done = performed(scenario)?;
    agrees(scenario, &done.seen);
    Some(done)
}

/// Share of late requests above which a target's median is not as configured.
const LATE_MAX: f64 = 0.2;
/// Mean excess of the delay, as a share, above which its throughput is not as configured.
const EXCESS_MAX: f64 = 0.1;

/// Performs a scenario on a target with a configured speed; a skip if the machine was too busy for the target
/// to keep it.
#[track_caller]
pub(crate) fn perform_in_time(scenario: &Scenario) -> Option<Performance> {
    let done = performed(scenario)?;
    let ledger = done.ledger();
    let (late, excess) = (ledger.share_late(), ledger.excess());
    let is_in_time = match scenario.workload.response {
        "throughput" => excess <= EXCESS_MAX,
        _ => late <= LATE_MAX,
    };
    if !is_in_time {
        let (late, excess) = (late * 100.0, excess * 100.0);
        needs::skip(
            Need::Quiet,
            format_args!(
                "{}: the target held {late:.0} % of the requests for too long, and all of them {excess:.0} % longer than it should",
                scenario.name
            ),
        );
        return None;
    }
    agrees(scenario, &done.seen);
    Some(done)
}

#[track_caller]
fn performed(scenario: &Scenario) -> Option<Performance> {
    let (scene, alone) = built(scenario)?;
    let seen = measure(&scene, &scenario.workload);
    Some(Performance {
        seen,
        scene,
        _alone: alone,
    })
}

/// Compares iolab's output with the row.
#[track_caller]
pub(crate) fn agrees(scenario: &Scenario, seen: &Seen) {
    let expect = &scenario.expect;
    let all = &seen.text;
    assert_eq!(seen.code, Some(expect.code), "{all}");
    for sample in seen
        .measured()
        .filter(|sample| sample["ok"] == true && !expect.served_by.is_empty())
    {
        let verdict = sample["served_by"].as_str().unwrap_or_default();
        let reason = &sample["served_by_reason"];
        assert!(
            expect.served_by.contains(&verdict),
            "'{verdict}' ({reason}) and not {:?}:\n{all}",
            expect.served_by
        );
    }
    if expect.code == 0 {
        let succeeded = seen.measured().filter(|sample| sample["ok"] == true);
        assert_eq!(
            succeeded.count(),
            scenario.workload.trials as usize * seen.cells.len(),
            "{all}"
        );
    }
    let tolerated = if std::env::var_os("IOLAB_TRUTH_QUIET").is_some() {
        &[]
    } else {
        MACHINE
    };
    let flags: Vec<&str> = seen
        .flags()
        .into_iter()
        .filter(|flag| expect.flags.contains(flag) || !tolerated.contains(flag))
        .collect();
    assert_eq!(flags, expect.flags, "{all}");
    let mut others = seen.flags_of_others();
    others.retain(|flag| !tolerated.contains(flag));
    assert!(others.is_empty(), "{others:?} of other cells:\n{all}");
    for words in expect.says {
        assert!(seen.says(words), "'{words}' is missing:\n{all}");
    }
}

impl Performance {
    /// Observations of the file system in user space.
    #[track_caller]
    pub(crate) fn ledger(&self) -> Ledger {
        self.scene.fuse.as_ref().expect("it is FUSE").ledger()
    }
}

/// Whether a value lies within a share of the true one.
pub(crate) fn within(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= share * truth
}
