//! Runs with peers: the tools, and a plan that they and iolab can carry out alike.

use std::collections::BTreeSet;

use iolab_plan::cells::{OneProcess, Plan};
use iolab_plan::experiment::Experiment;
use iolab_runner::peers::{PeerList, adapt, find, gap_anywhere, gaps, overhead, waiting};
use iolab_workload::trial::TrialSpec;

const ALL: PeerList = &[&iolab_fio::PEER, &iolab_iozone::PEER];

#[test]
fn peers_are_found_by_their_names() {
    for peer in ALL {
        let found = find(ALL, peer.tool).expect("a peer");
        assert_eq!(found.about, peer.about);
    }
    let error = find(ALL, "foi".parse().expect("a name"))
        .err()
        .expect("unknown");
    insta::assert_snapshot!(error.remedy().unwrap(), @"did you mean fio?");
}

/// Experiments, and what a user sets.
const RUNS: [(&str, &[&str]); 11] = [
    ("read-random", &["tool=iolab,fio"]),
    ("write-size", &["tool=iolab,fio", "buffer_init=huge"]),
    ("read-random", &["tool=iolab,fio,iozone"]),
    ("read-random", &["time=none"]),
    ("read-random", &["tool=iolab,iozone", "budget=60s"]),
    (
        "read-random",
        &["tool=iolab,fio", "time=none", "bs=4k", "bytes=64M"],
    ),
    (
        "read-random",
        &[
            "tool=iolab,fio", "bs=4k", "pattern=rand,reverse", "buffer_memory=kernel",
            "first_offset=zero",
        ],
    ),
    ("read-random", &["tool=iolab,fio", "bs=4k"]),
    (
        "read-random",
        &["tool=iolab,fio,iozone", "bs=4k,64k,1M", "budget=3min"],
    ),
    ("disk-grid", &["tool=iolab,iozone"]),
    ("disk-grid", &["tool=iolab,iozone", "region=1GiB"]),
];

#[test]
fn runs_with_peers_are_adapted_and_foreseen() {
    let told = RUNS.map(|(name, sets)| {
        let mut experiment = Experiment::find(name).expect(name);
        for set in sets {
            experiment.apply_set(set).expect(set);
        }
        let chosen = |name: &str| sets.iter().any(|set| set.starts_with(&format!("{name}=")));
        let adapted = adapt(ALL, &mut experiment, &chosen).expect(name);
        let base = experiment.base().expect(name).trial;
        let mut head = vec![name.to_owned()];
        head.extend(sets.iter().map(|set| (*set).to_owned()));
        head.push(format!("-> {:?} {:?}", base.limit.time, base.buffer_init));
        let plan = Plan::of_new_run(experiment, &OneProcess).expect(name);
        let trials = || plan.cells().iter().map(|cell| &cell.spec.trial);
        if trials().all(|one| one.requests_bound() == Some(one.region / one.bs)) {
            head.push("one pass".to_owned());
        }
        let is_uneven =
            |one: &&TrialSpec| !one.region.is_multiple_of(one.bs * u64::from(one.threads));
        let uneven: BTreeSet<u64> = trials().filter(is_uneven).map(|one| one.bs).collect();
        if !uneven.is_empty() {
            head.push(format!("uneven: {uneven:?}"));
        }
        let mut told = vec![head.join(" ")];
        told.extend(adapted);
        told.extend(waiting(ALL, &plan));
        let gaps = gaps(&plan, 0, &gap_anywhere(ALL)).into_iter();
        told.extend(gaps.map(|gap| gap.told));
        let short = plan.shortfall(&overhead(ALL)).unwrap_or_default();
        told.extend(short.split_once(", and").map(|(short, _)| short.to_owned()));
        told.join("\n  ")
    });
    insta::assert_snapshot!(told.join("\n"));
}
