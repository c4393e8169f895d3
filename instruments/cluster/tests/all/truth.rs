//! A clock that is off, drifts, or has an asymmetric delay moves no number by more than the stated bound.

use std::time::Duration;

use iolab_cluster::clock::{Activity, CumulativeBytes};
use iolab_cluster::link::{Link, List, Tree};
use iolab_cluster::trial::{Contribution, Halt, MergedTrial, TrialTimeouts};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use crate::support::together;
use crate::virtual_network::{Delays, Skew, scrambled};

const HABITS: TrialTimeouts = TrialTimeouts {
    rounds: 8,
    timeout: Duration::from_secs(10),
    trial: Duration::from_secs(100),
};

/// True start and end of a rank, ns, its number, and its bytes; none of them changes on the way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Truth {
    rank: u64,
    start: i64,
    end: i64,
    bytes: u64,
}

/// Trials of half a second to a second by ranks of different speed; the last one, with its truth.
fn trials(clocks: &[Skew], delays: Delays, fanout: usize, count: u32) -> MergedTrial<List<Truth>> {
    let seed = delays.seed;
    let ranks = together(clocks, delays, fanout, |mut team| {
        let mut last = None;
        for trial in 0..count {
            let start = team.start(HABITS, Ok(()))?;
            let link = team.link();
            let rank = link.rank();
            let chance = scrambled(seed ^ (rank as u64) << 8 ^ u64::from(trial));
            link.work_until(start);
            // The wake-up is late by up to 100 us.
            link.work((chance % 100_000) as i64);
            let (begins, began) = (link.now_ns(), link.true_ns());
            let mut ends = Vec::new();
            let bytes_each = 1_000_000 + chance % 500_000;
            for _ in 0..(50 + chance % 50) {
                link.work(10_000_000);
                ends.push((link.now_ns(), bytes_each));
            }
            let bytes = bytes_each * ends.len() as u64;
            let part = Contribution {
                activity: Activity::of([(begins, link.now_ns())].into_iter()).expect("a worker"),
                cumulative: CumulativeBytes::new(begins, ends.into_iter()),
                rest: List(vec![Truth {
                    rank: rank as u64,
                    start: began,
                    end: link.true_ns(),
                    bytes,
                }]),
            };
            last = team.conclude(HABITS, Some(part))?;
        }
        Ok::<_, Halt>(last)
    });
    let mut ranks = ranks.into_iter().map(|rank| rank.expect("no rank is lost"));
    ranks.next().flatten().expect("the root has the whole")
}

prop_compose! {
    /// Clocks that are off by up to 10 s and drift by up to 100 ppm.
    fn clocks()(parts in prop::collection::vec((-10_000_000_000i64..10_000_000_000, -100.0..100.0f64), 1..24))
        -> Vec<Skew>
    {
        let skew = |(offset_ns, drift_ppm)| Skew { offset_ns, drift_ppm };
        parts.into_iter().map(skew).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_clock_moves_a_number_beyond_its_bound(
        clocks in clocks(), fanout in 1usize..6, seed: u64, greatest_ns in 2_000u64..5_000_000, count in 1u32..3,
    ) {
        let delays = Delays { least_ns: 1_000, greatest_ns, seed };
        let whole = trials(&clocks, delays, fanout, count);
        let truths = &whole.rest.0;
        prop_assert_eq!(truths.len(), clocks.len());
        // The root's clock counts: a number cannot be better than the clock it is measured with.
        let shown = |at: i64| clocks[0].reading(at) as f64;
        let first = truths.iter().map(|t| t.start).min().expect("ranks");
        let last_start = truths.iter().map(|t| t.start).max().expect("ranks");
        let first_end = truths.iter().map(|t| t.end).min().expect("ranks");
        let last = truths.iter().map(|t| t.end).max().expect("ranks");
        let holds = |bounds: iolab_cluster::clock::Bounded, truth: f64| {
            bounds.least <= truth && truth <= bounds.greatest
        };
        let elapsed = whole.activity.elapsed_ns();
        prop_assert!(holds(elapsed, shown(last) - shown(first)), "{elapsed:?}");
        let skew = whole.activity.skew_ns();
        prop_assert!(holds(skew, shown(last_start) - shown(first)), "{skew:?}");
        // Within the span, every rank moves its bytes evenly.
        let (from, to) = whole.activity.all_active().expect("they overlap");
        prop_assert!(shown(last_start) <= from as f64 && to as f64 <= shown(first_end));
        let moved: f64 = truths.iter().map(|t| {
            t.bytes as f64 * (to - from) as f64 / (shown(t.end) - shown(t.start))
        }).sum();
        let active = whole.all_active_bytes;
        // Stamps of the intervals are whole: 1 ns of 10 ms at each end.
        let slack = 1.0 + 1e-6;
        prop_assert!(active.least <= moved * slack && moved <= active.greatest * slack, "{active:?} {moved}");
        // The bound is tight: each level of the tree adds half a round trip and the drift of the clocks.
        let levels = f64::from(Tree::new(clocks.len(), fanout).height(0));
        prop_assert!(elapsed.error() <= levels * 2.0 * (greatest_ns as f64 + 10_000.0), "{elapsed:?}");
    }
}

#[test]
fn ranks_start_together() {
    let off = |seconds: i64, drift_ppm| Skew {
        offset_ns: seconds * 1_000_000_000,
        drift_ppm,
    };
    let clocks: Vec<_> = (0..40)
        .map(|i| off(i * 7 - 50, f64::from(i as i32 * 5 - 100)))
        .collect();
    let delays = Delays {
        least_ns: 1_000,
        greatest_ns: 40_000,
        seed: 3,
    };
    let whole = trials(&clocks, delays, 4, 2);
    let starts = || whole.rest.0.iter().map(|truth| truth.start);
    let apart = starts().max().expect("ranks") - starts().min().expect("ranks");
    // Wake-ups differ by up to 100 us, and three levels are off by up to 20 us each.
    assert!(apart < 100_000 + 3 * 20_000, "{apart} ns");
    let found = whole.activity.skew_ns();
    assert!(
        (found.middle() - apart as f64).abs() <= found.error(),
        "{found:?}"
    );
}
