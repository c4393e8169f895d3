//! A target with state: credits, which a trial uses up and which return while the target is idle.

use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::fuse::{Behaviour, Credits};
use iolab_truth::iolab::{samples, told_with_code};
use iolab_truth::system::unless_missing;

use super::{
    World, cached, explain, explain_threads_without_suspect, random_against_sequential,
    unexplained, verdicts,
};
use crate::stage::alone;

/// The cache, one request at a time, with credits for 64 MiB. Sequential reads use more than the refill, random
/// ones less.
fn with_credits() -> Behaviour {
    Behaviour {
        credits: Some(Credits {
            full: 64 << 20,
            refill: 40e6,
        }),
        serial: true,
        ..cached()
    }
}

/// Number of blocks with an empty bucket in most of them.
const BLOCKS: [&str; 4] = ["--set", "trials_min=24", "--set", "trials_max=24"];

/// The drop of the sequential reads is seen. Each trial of the explanation begins after idle time, and so the
/// cause is named.
#[test]
fn credits_return_before_each_trial_of_an_explanation() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::on_fuse(with_credits())) else {
        return;
    };
    let shown_by = [&random_against_sequential("100ms")[..], &BLOCKS].concat();
    let world = World {
        shown_by: &shown_by,
        planted: &["reach"],
        budget: "150s",
        more: &[],
    };
    explain(&scene, &world);
    let idle = samples(&scene.folder().join("why.iolab"));
    assert!(!idle.is_empty());
    for sample in &idle {
        let ns = sample["idle_ns"].as_u64();
        assert!(ns.is_some_and(|ns| ns >= 100_000_000), "{sample}");
    }
    // The time of an explanation includes its trials and the idle time between them.
    let few = [
        "why", "shown.iolab", "--budget", "10s", "-o", "short.iolab", "--seed", "6",
    ];
    let (code, said) = told_with_code(&scene, &few);
    assert_eq!(code, Some(5), "{said}");
    assert!(
        !scene.folder().join("short.iolab").exists(),
        "nothing is measured"
    );
}

/// Credits that the first trial of either side uses up: both are then as slow as the refill, and no suspect is
/// accused.
#[test]
fn credits_gone_after_warm_up_accuse_no_suspect() {
    let behaviour = Behaviour {
        delay: |_| Duration::from_micros(500),
        credits: Some(Credits {
            full: 512 << 10,
            refill: 4e6,
        }),
        ..Behaviour::default()
    };
    let Some(all) = explain_threads_without_suspect(behaviour, "300ms") else {
        return;
    };
    match unexplained(&all) {
        Some(share) => assert!(share > 0.8, "{share}"),
        // No suspect is tried if a seemingly changing level needs more idle time than there is.
        None if all.is_empty() => {}
        // The rest is unknown if the level has changed so that a suspect is not tried.
        None => {
            let verdicts = verdicts(&all);
            let is_open = verdicts
                .iter()
                .any(|(_, verdict)| verdict == "suspects-not-tried");
            assert!(
                is_open || all[0]["points"][0]["standing"] == "undecided",
                "{verdicts:?}"
            );
        }
    }
}
