//! Patterns visit the blocks that they promise, over all workers.

use crate::trial::{Others, share};
use std::collections::HashSet;

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
    /// Workers share the region, or each passes over all of it or over a file of its own.
    #[test]
    fn each_pass_visits_its_blocks_once(
        blocks in 1u64..400, threads in 1u32..9, seed: u64, skip_blocks in 0u64..600,
        pattern in prop::sample::select(vec![
            Pattern::Seq, Pattern::Reverse, Pattern::Rand, Pattern::Strided,
        ]),
        layout in prop::sample::select(vec![
            FileLayout::Shared, FileLayout::Interleaved, FileLayout::Overlapping, FileLayout::Private,
        ]),
        first_offset in prop::sample::select(vec![FirstOffset::Zero, FirstOffset::Random]),
    ) {
        prop_assume!(u64::from(threads) <= blocks);
        let is_shared = matches!(layout, FileLayout::Shared | FileLayout::Interleaved);
        prop_assume!(!is_shared || pattern != Pattern::Strided);
        let offset = if is_shared { 1 << 20 } else { 0 };
        let skip = skip_blocks * 512;
        let spec = TrialSpec { seed, layout, first_offset, offset, skip, ..spec(pattern, 512, blocks, threads) };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for worker in 0..threads {
            let count = match layout {
                FileLayout::Overlapping => blocks,
                _ => share(blocks, worker, threads).1,
            };
            let mut own = pass(&spec, worker, 2 * count);
            let mut again = own.split_off(count as usize);
            if is_shared {
                first.append(&mut own);
                second.append(&mut again);
                continue;
            }
            own.sort_unstable();
            again.sort_unstable();
            prop_assert_eq!(&own, &(0..count).map(|block| block * 512).collect::<Vec<_>>());
            prop_assert_eq!(own, again);
            prop_assert!(layout != FileLayout::Private || count * 512 == spec.private_bytes(worker));
        }
        if is_shared {
            first.sort_unstable();
            second.sort_unstable();
            prop_assert_eq!(&first, &(0..blocks).map(|b| (1 << 20) + b * 512).collect::<Vec<_>>());
            prop_assert_eq!(first, second);
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
    fn mix_keeps_its_share(percent in 0u8..=100, seed: u64) {
        let spec = TrialSpec { read_percent: percent, seed, ..TrialSpec::default() };
        let mut mix = Mix::new(&spec, 0);
        let reads = (0..10_000).filter(|_| mix.next_is_read()).count() as f64;
        // Six standard deviations of the binomial: about one false alarm in 5e8.
        prop_assert!((reads - 100.0 * f64::from(percent)).abs() <= 300.0);
    }
}

#[test]
fn ordered_patterns_follow_skip_and_turns() {
    let strided = |skip, blocks| TrialSpec {
        skip,
        ..spec(Pattern::Strided, 4096, blocks, 1)
    };
    let turns = TrialSpec {
        layout: FileLayout::Interleaved,
        ..spec(Pattern::Seq, 4096, 7, 3)
    };
    for (spec, worker, kib) in [
        (
            strided(8192, 10),
            0,
            &[0, 12, 24, 36, 4, 16, 28, 8, 20, 32, 0][..],
        ),
        // An odd skip leaves the last part out.
        (strided(1024, 4), 0, &[0, 5, 10, 0]),
        (turns.clone(), 0, &[0, 12, 24, 0]),
        (turns.clone(), 1, &[4, 16, 4, 16]),
        (turns, 2, &[8, 20, 8, 20]),
    ] {
        let seen = pass(&spec, worker, kib.len() as u64);
        assert!(
            seen.iter()
                .map(|offset| offset / 1024)
                .eq(kib.iter().copied()),
            "{seen:?}"
        );
    }
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
