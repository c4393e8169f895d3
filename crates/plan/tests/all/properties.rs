//! Properties that hold for any seed, text or change.

use std::collections::HashSet;

use iolab_plan::blocks::{block_order, trial_seed};
use iolab_plan::experiment::Experiment;
use proptest::prelude::*;

use crate::lines::experiment;

proptest! {
    #[test]
    fn each_block_visits_each_cell_once(seed: u64, block: u32, cells in 0usize..300) {
        let mut order = block_order(seed, block, cells);
        prop_assert_eq!(&order, &block_order(seed, block, cells));
        order.sort_unstable();
        prop_assert_eq!(order, (0..cells).collect::<Vec<_>>());
    }

    #[test]
    fn blocks_and_seeds_have_orders_of_their_own(seed: u64, block in 0u32..1000) {
        let order = block_order(seed, block, 30);
        prop_assert_ne!(&order, &block_order(seed, block + 1, 30));
        prop_assert_ne!(&order, &block_order(seed ^ 1, block, 30));
    }

    #[test]
    fn definitions_round_trip(
        name in prop::sample::select(vec!["write-random", "pts-iops", "interference"]),
        sets in prop::collection::vec(
            prop::sample::select(vec![
                "bs=512,4k,3M", "bs=1M", "threads=1,2,1024", "pattern=zipf:1.25,rand", "batch=auto,50%,all",
                "sqpoll=true,false", "time=none", "time=1ns,90min", "bytes=7M", "compressible=100",
                "read_percent=0,33,100", "budget=1h30m", "precision=0.001", "trials_max=77", "skip=0",
                "trials_min=3", "refine=3", "settle=7s", "precondition=seq:2/128KiB,steady:round=cells",
                "warmup=none",
            ]),
            0..12,
        )
    ) {
        let mut experiment = experiment(name);
        for set in sets {
            // A setting that contradicts the experiment is refused and changes nothing.
            let _ = experiment.apply_set(set);
        }
        let text = experiment.to_toml().unwrap();
        prop_assert_eq!(Experiment::from_toml(&text, "again").unwrap(), experiment);
    }

}

#[test]
fn trial_seeds_do_not_repeat() {
    let seeds: HashSet<u64> = (0..100)
        .flat_map(|cell| (0..100).map(move |block| trial_seed(42, cell, block)))
        .collect();
    assert_eq!(seeds.len(), 10_000);
    assert!(seeds.iter().all(|seed| i64::try_from(*seed).is_ok()));
}

/// Each cell comes first about equally often: 3000 blocks of 6, expected 500, six standard deviations 122.
#[test]
fn no_cell_is_preferred() {
    let mut first = [0u32; 6];
    (0..3000).for_each(|block| first[block_order(9, block, 6)[0]] += 1);
    assert!(
        first.iter().all(|count| count.abs_diff(500) < 122),
        "{first:?}"
    );
}

/// A stored seed stays valid: this order must never change.
#[test]
fn the_plan_of_a_seed_is_fixed() {
    assert_eq!(block_order(1, 0, 8), [2, 7, 4, 0, 5, 3, 1, 6]);
    assert_eq!(block_order(1, 1, 8), [6, 2, 4, 7, 0, 3, 1, 5]);
}
