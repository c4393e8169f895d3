//! Performs a scenario: makes its target, lets iolab measure it, and holds what iolab says against the row.

use std::sync::{Mutex, MutexGuard, PoisonError};

use iolab_truth::fuse::Ledger;
use iolab_truth::iolab::{Seen, measure};
use iolab_truth::scenarios::MACHINE;
use iolab_truth::system::{cpu_waited_for, warn};
use iolab_truth::{Scenario, Scene};

/// One scenario at a time: they would disturb each other.
static STAGE: Mutex<()> = Mutex::new(());

/// A scenario that was performed, with its target still there.
pub(crate) struct Performance {
    pub(crate) seen: Seen,
    pub(crate) scene: Scene,
    _alone: MutexGuard<'static, ()>,
}

/// Keeps everybody else waiting.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    STAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the target of a scenario; `None`, and a word why, where that cannot be done here.
pub(crate) fn built(scenario: &Scenario) -> Option<(Scene, MutexGuard<'static, ()>)> {
    let alone = alone();
    match (scenario.build)() {
        Ok(scene) => Some((scene, alone)),
        Err(why) => {
            warn(&format!("skipped: {}: {why}", scenario.name));
            None
        }
    }
}

/// Performs a scenario; `None`, and a word why, where its target cannot be made here.
#[track_caller]
pub(crate) fn perform(scenario: &Scenario) -> Option<Performance> {
    let (scene, alone) = built(scenario)?;
    let seen = measure(&scene, &scenario.workload);
    agrees(scenario, &seen);
    Some(Performance {
        seen,
        scene,
        _alone: alone,
    })
}

/// Share of the time, percent, that tasks may wait for a CPU before targets are not as fast any more as they are told to be.
const WAITED_FOR_MAX: f64 = 80.0;

/// Performs a scenario whose target has a speed of its own; `None`, and a word why, where the machine is too busy for that.
#[track_caller]
pub(crate) fn perform_in_time(scenario: &Scenario) -> Option<Performance> {
    let waited_for = cpu_waited_for().unwrap_or(0.0);
    if waited_for > WAITED_FOR_MAX {
        let name = scenario.name;
        warn(&format!(
            "skipped: {name}: tasks of this machine wait for a CPU {waited_for} % of the time, and so would the target"
        ));
        return None;
    }
    perform(scenario)
}

/// Holds what iolab said against the row.
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
    for words in expect.says {
        assert!(seen.says(words), "'{words}' is missing:\n{all}");
    }
}

impl Performance {
    /// What the file system in user space saw.
    #[track_caller]
    pub(crate) fn ledger(&self) -> Ledger {
        self.scene.fuse.as_ref().expect("it is FUSE").ledger()
    }
}

/// Whether a value lies within a share of what is true.
pub(crate) fn within(value: f64, truth: f64, share: f64) -> bool {
    (value - truth).abs() <= share * truth
}
