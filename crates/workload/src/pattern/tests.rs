//! Patterns visit the blocks that they promise, over all workers.

use crate::trial::share;
use std::collections::HashSet;

use crate::trial::Others;
use proptest::prelude::*;

use super::*;

fn spec(pattern: Pattern, bs: u64, blocks: u64, threads: u32) -> TrialSpec {
    TrialSpec {
        pattern,
        bs,
        region: bs * blocks,
        threads,
        ..TrialSpec::default()
    }
}

fn pass(spec: &TrialSpec, worker: u32, count: u64) -> Vec<u64> {
    let mut offsets = Offsets::new(spec, worker);
    (0..count).map(|_| offsets.next_offset()).collect()
}

proptest! {
    #[test]
    fn workers_together_make_one_pass(
        blocks in 1u64..400, threads in 1u32..9, seed: u64,
        pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
        layout in prop::sample::select(vec![FileLayout::Shared, FileLayout::Interleaved]),
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        prop_assume!(u64::from(threads) <= blocks);
        let spec = TrialSpec { seed, layout, first_offset, offset: 1 << 20, ..spec(pattern, 512, blocks, threads) };
        for passes in 1..=2 {
            let mut seen: Vec<u64> = (0..threads)
                .flat_map(|t| {
                    let count = share(blocks, t, threads).1;
                    pass(&spec, t, passes * count).split_off(((passes - 1) * count) as usize)
                })
                .collect();
            seen.sort_unstable();
            let all: Vec<u64> = (0..blocks).map(|b| (1 << 20) + b * 512).collect();
            prop_assert_eq!(seen, all);
        }
    }

    #[test]
    fn zones_get_their_share_of_the_requests(
        blocks in 100u64..100_000, threads in 1u32..4, seed: u64, first in 1u64..99, share in 1u64..99,
    ) {
        let zones = format!("zones:{share}/{first}:{}/{}", 100 - share, 100 - first);
        let spec = TrialSpec { seed, offset: 1 << 20, ..spec(zones.parse().expect("zones"), 4096, blocks, threads) };
        const DRAWS: u64 = 4000;
        for worker in 0..threads {
            let drawn: Vec<u64> = pass(&spec, worker, DRAWS).iter().map(|at| (at - (1 << 20)) / 4096).collect();
            prop_assert!(drawn.iter().all(|block| *block < blocks));
            let inside = drawn.iter().filter(|block| **block < blocks * first / 100).count() as f64;
            let p = share as f64 / 100.0;
            // Six standard deviations of the binomial distribution.
            let bound = 6.0 * (DRAWS as f64 * p * (1.0 - p)).sqrt();
            prop_assert!((inside - DRAWS as f64 * p).abs() <= bound, "{inside} of {DRAWS} for {zones}");
        }
    }

    #[test]
    fn processes_together_visit_each_block_once(
        blocks in 1u64..400, ranks in 1u32..7, threads in 1u32..5, bs in 1u64..9_000, slack in 0u64..9_000, seed: u64,
        pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
        layout in prop::sample::select(vec![FileLayout::Shared, FileLayout::Interleaved]),
    ) {
        let workers = ranks * threads;
        prop_assume!(u64::from(workers) <= blocks);
        let region = blocks * bs + slack % bs;
        let of_rank = |rank: u32| {
            let before = rank * threads;
            let others = Others { before, after: workers - threads - before, ..Others::default() };
            TrialSpec { seed, layout, region, others, ..spec(pattern, bs, blocks, threads) }
        };
        let mut seen = Vec::new();
        for rank in 0..ranks {
            let spec = of_rank(rank);
            prop_assert!(spec.check().is_ok());
            let range = spec.own_range();
            for worker in 0..threads {
                let own = pass(&spec, worker, quota(&spec, worker));
                prop_assert!(own.iter().all(|at| range.contains(at) && at + bs <= range.end));
                seen.extend(own);
            }
        }
        let mut end = 0;
        for rank in 0..ranks {
            let range = of_rank(rank).own_range();
            if of_rank(rank).has_own_range() {
                prop_assert_eq!(range.start, end);
                end = range.end;
            } else {
                prop_assert_eq!(&range, &(0..region));
                end = region;
            }
            let writer = TrialSpec {
                others: Others { before_written: Some(rank * threads), ..of_rank(0).others },
                ..of_rank(0)
            };
            prop_assert_eq!(writer.written_range(), range);
        }
        prop_assert_eq!(end, region);
        seen.sort_unstable();
        prop_assert_eq!(seen, (0..blocks).map(|block| block * bs).collect::<Vec<_>>());
        let private: u64 = (0..ranks)
            .flat_map(|rank| (0..threads).map(move |worker| (rank, worker)))
            .map(|(rank, worker)| of_rank(rank).private_bytes(worker))
            .sum();
        prop_assert_eq!(private, blocks * bs);
    }

    #[test]
    fn a_process_acts_like_its_share_of_threads(
        blocks in 16u64..400, seed: u64, first in 0u32..4,
        pattern in prop::sample::select(vec![
            Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::RandReplace, Pattern::Zipf(1.2),
        ]),
        layout in prop::sample::select(vec![
            FileLayout::Shared, FileLayout::Interleaved, FileLayout::Overlapping, FileLayout::Private,
        ]),
    ) {
        let all = TrialSpec { seed, layout, read_percent: 50, ..spec(pattern, 512, blocks, 4) };
        let others = Others { before: first, after: 3 - first, ..Others::default() };
        let alone = TrialSpec { threads: 1, others, ..all.clone() };
        prop_assert_eq!(pass(&alone, 0, 50), pass(&all, first, 50));
        prop_assert_eq!(alone.private_bytes(0), all.private_bytes(first));
        prop_assert_eq!(quota(&alone, 0), quota(&all, first));
        let (mut one, mut other) = (Mix::new(&alone, 0), Mix::new(&all, first));
        prop_assert!((0..50).all(|_| one.next_is_read() == other.next_is_read()));
    }

    #[test]
    fn each_worker_passes_once_over_its_file(
        blocks in 1u64..400, threads in 1u32..9, seed: u64,
        pattern in prop::sample::select(vec![
            Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::Strided,
        ]),
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        prop_assume!(u64::from(threads) <= blocks);
        let spec = TrialSpec { seed, first_offset, layout: FileLayout::Private, ..spec(pattern, 512, blocks, threads) };
        for worker in 0..threads {
            let count = share(blocks, worker, threads).1;
            let mut seen = pass(&spec, worker, 2 * count).split_off(count as usize);
            seen.sort_unstable();
            prop_assert_eq!(count * 512, spec.private_bytes(worker));
            prop_assert_eq!(seen, (0..count).map(|block| block * 512).collect::<Vec<_>>());
        }
    }

    #[test]
    fn overlapping_workers_make_a_pass_each(
        blocks in 1u64..400, threads in 1u32..9, seed: u64,
        pattern in prop::sample::select(vec![
            Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::Strided,
        ]),
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        let spec = TrialSpec { seed, first_offset, layout: FileLayout::Overlapping, ..spec(pattern, 512, blocks, threads) };
        for worker in 0..threads {
            let mut seen = pass(&spec, worker, blocks);
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..blocks).map(|block| block * 512).collect::<Vec<_>>());
        }
    }

    #[test]
    fn every_offset_is_aligned_and_inside(
        blocks in 1u64..2_000, threads in 1u32..5, skip_blocks in 0u64..50, bs in 1u64..9_000,
        slack in 0u64..9_000,
        pattern in prop::sample::select(vec![
            Pattern::Seq, Pattern::Reverse, Pattern::Strided, Pattern::Rand,
            Pattern::RandReplace, Pattern::Zipf(1.2),
        ]),
        layout in prop::sample::select(vec![
            FileLayout::Shared, FileLayout::Interleaved, FileLayout::Overlapping, FileLayout::Private,
        ]),
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        prop_assume!(u64::from(threads) <= blocks);
        prop_assume!(layout != FileLayout::Interleaved || pattern != Pattern::Strided);
        let spec = TrialSpec {
            layout,
            first_offset,
            skip: skip_blocks * bs,
            region: blocks * bs + slack % bs,
            ..spec(pattern, bs, blocks, threads)
        };
        for worker in 0..threads {
            for offset in pass(&spec, worker, 600) {
                prop_assert_eq!(offset % bs, 0);
                let end = match layout {
                    FileLayout::Private => spec.private_bytes(worker),
                    FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => spec.region,
                };
                prop_assert!(offset + bs <= end);
            }
        }
    }

    #[test]
    fn strided_visits_each_block_once_when_phases_tile(
        blocks in 1u64..500, skip_blocks in 0u64..600, seed: u64,
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        let spec = TrialSpec { seed, first_offset, skip: skip_blocks * 4096, ..spec(Pattern::Strided, 4096, blocks, 1) };
        let seen: HashSet<u64> = pass(&spec, 0, blocks).into_iter().collect();
        prop_assert_eq!(seen.len() as u64, blocks);
    }

    #[test]
    fn mix_keeps_its_share(percent in 0u8..=100, seed: u64) {
        let spec = TrialSpec { read_percent: percent, seed, ..TrialSpec::default() };
        let mut mix = Mix::new(&spec, 0);
        let reads = (0..10_000).filter(|_| mix.next_is_read()).count() as f64;
        // Six standard deviations of the binomial: about one false alarm in 5e8.
        prop_assert!((reads - 100.0 * f64::from(percent)).abs() <= 300.0);
    }
}

#[test]
fn strided_reads_skip_the_given_bytes() {
    let spec = TrialSpec {
        skip: 8192,
        ..spec(Pattern::Strided, 4096, 10, 1)
    };
    let blocks: Vec<u64> = pass(&spec, 0, 11).into_iter().map(|o| o / 4096).collect();
    assert_eq!(blocks, [0, 3, 6, 9, 1, 4, 7, 2, 5, 8, 0]);
}

#[test]
fn an_odd_skip_leaves_the_last_part_out() {
    let spec = TrialSpec {
        skip: 1024,
        ..spec(Pattern::Strided, 4096, 4, 1)
    };
    assert_eq!(pass(&spec, 0, 4), [0, 5120, 10240, 0]);
}

#[test]
fn interleaved_workers_take_turns() {
    let spec = TrialSpec {
        layout: FileLayout::Interleaved,
        ..spec(Pattern::Seq, 4096, 7, 3)
    };
    let blocks = |worker| -> Vec<u64> {
        let offsets = pass(&spec, worker, 4).into_iter();
        offsets.map(|offset| offset / 4096).collect()
    };
    assert_eq!(blocks(0), [0, 3, 6, 0]);
    assert_eq!(blocks(1), [1, 4, 1, 4]);
    assert_eq!(blocks(2), [2, 5, 2, 5]);
}

#[test]
fn trials_begin_at_different_blocks() {
    for pattern in [Pattern::Seq, Pattern::Reverse, Pattern::Strided] {
        let begins: HashSet<u64> = (0..20)
            .map(|seed| {
                let spec = TrialSpec {
                    seed,
                    first_offset: FirstOffset::Random,
                    ..spec(pattern, 4096, 1 << 20, 1)
                };
                pass(&spec, 0, 1)[0]
            })
            .collect();
        assert!(begins.len() > 18, "{pattern}: {begins:?}");
    }
}

#[test]
fn workers_that_take_turns_begin_as_neighbours() {
    let spec = TrialSpec {
        layout: FileLayout::Interleaved,
        first_offset: FirstOffset::Random,
        ..spec(Pattern::Seq, 4096, 3000, 3)
    };
    let first = pass(&spec, 0, 1)[0];
    assert!(first > 0);
    assert_eq!(pass(&spec, 1, 1)[0], first + 4096);
    assert_eq!(pass(&spec, 2, 1)[0], first + 8192);
}

#[test]
fn passes_differ_and_seeds_differ() {
    let one = spec(Pattern::Rand, 512, 64, 1);
    let two = pass(&one, 0, 128);
    assert_ne!(two[..64], two[64..]);
    let other = TrialSpec {
        seed: 2,
        ..one.clone()
    };
    assert_ne!(pass(&one, 0, 64), pass(&other, 0, 64));
    assert_eq!(pass(&one, 0, 128), two);
}

/// Neighbours in a random order are far apart: the mean distance in a uniform shuffle is n/3.
#[test]
fn permutation_looks_random() {
    for (blocks, key) in [(1_000u64, 1), (4_096, 2), (262_144, 3), (1_000_003, 4)] {
        let p = Permutation::new(blocks, key);
        let mean = (1..10_000.min(blocks))
            .map(|i| p.apply(i).abs_diff(p.apply(i - 1)) as f64)
            .sum::<f64>()
            / (10_000.min(blocks) - 1) as f64;
        let ratio = mean / (blocks as f64 / 3.0);
        assert!((0.85..1.15).contains(&ratio), "{blocks}: {ratio}");
    }
}

#[test]
fn zipf_prefers_few_blocks() {
    let spec = spec(Pattern::Zipf(1.2), 4096, 10_000, 1);
    let offsets = pass(&spec, 0, 20_000);
    let mut counts = std::collections::HashMap::new();
    for offset in &offsets {
        *counts.entry(offset).or_insert(0u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // P(rank k) = k^-1.2 / H(10000, 1.2); H is about 4.78, so the most popular has 0.209 and the ratio is 2^1.2.
    let top = f64::from(counts[0]) / 20_000.0;
    assert!((0.19..0.23).contains(&top), "{top}");
    let ratio = f64::from(counts[0]) / f64::from(counts[1]);
    assert!((2.0..2.65).contains(&ratio), "{ratio}");
}
