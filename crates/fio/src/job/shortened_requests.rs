//! Sizes of requests of a random order with several sizes in fio, whose map of visited blocks shortens them.

use iolab_workload::pattern::derive;
use iolab_workload::trial::{FileLayout, Pattern, TrialSpec};

/// Blocks of the file on which a pass is tried.
const BLOCKS: usize = 1 << 14;

/// Mean size of fio's requests over a pass, or the part of it that the trial takes, bytes; `None` if it shortens none.
///
/// As fio's `get_next_rand_block` and `mark_random_map`: a request begins at the first block that was not visited, from a uniformly
/// drawn one on, and ends before the first one that was, or at its size. Those between two random offsets are not shortened.
pub(super) fn mean_request(trial: &TrialSpec) -> Option<f64> {
    let mix = trial.bs_mix.as_ref()?;
    let sizes = [&mix.reads, &mix.writes].into_iter();
    let mut sizes = sizes.flat_map(|sizes| sizes.shares());
    let is_longer = sizes.any(|share| share.bytes > trial.bs || share.multiples > 1);
    if trial.pattern != Pattern::Rand || !is_longer {
        return None;
    }
    let mut draws = (0..).map(|number| derive(1, number));
    let mut below = |bound: u64| {
        let draw = draws.next().unwrap_or_default();
        ((u128::from(draw) * u128::from(bound)) >> 64) as u64
    };
    // A job that ends before its pass over the file meets fewer visited blocks.
    let passes = match trial.layout {
        FileLayout::Overlapping => f64::from(trial.threads),
        FileLayout::Shared | FileLayout::Interleaved | FileLayout::Private => 1.0,
    };
    let bytes = |requests: u64| requests as f64 * trial.mean_request();
    let bytes = trial.requests_bound().map_or(f64::INFINITY, bytes);
    let share = (bytes / (trial.region.max(1) as f64 * passes)).min(1.0);
    let mut visited = Visited::new(BLOCKS);
    let (mut requests, mut covered) = (0_u64, 0);
    while (covered as f64) < share * BLOCKS as f64
        && let Some(first) = visited.next_free(below(BLOCKS as u64) as usize)
    {
        let reads = below(100) < u64::from(trial.read_percent);
        let sizes = mix.of(reads);
        let share = sizes.shares()[sizes.place(below(100) as u32)];
        let bytes = share.bytes * (1 + below(u64::from(share.multiples)));
        let wanted = bytes.div_ceil(trial.bs.max(1));
        let room = BLOCKS - first;
        let blocks = usize::try_from(wanted).unwrap_or(room).min(room);
        covered += visited.visit(first, blocks);
        requests += 1;
    }
    Some(covered as f64 * trial.bs as f64 / requests as f64)
}

/// The visited blocks of a file: an unvisited block points to itself, a visited one to a later block.
struct Visited(Vec<usize>);

impl Visited {
    fn new(blocks: usize) -> Self {
        Self((0..=blocks).collect())
    }

    /// The first unvisited block from this one on, continuing at the start of the file; `None` if all were visited.
    fn next_free(&mut self, from: usize) -> Option<usize> {
        let end = self.0.len() - 1;
        let found = match self.root(from) {
            found if found < end => found,
            _ => self.root(0),
        };
        (found < end).then_some(found)
    }

    fn root(&mut self, mut block: usize) -> usize {
        while self.0[block] != block {
            let next = self.0[block];
            self.0[block] = self.0[next];
            block = next;
        }
        block
    }

    /// Visits up to `blocks` blocks, stopping before one that was visited already; returns their number.
    fn visit(&mut self, first: usize, blocks: usize) -> usize {
        for block in first..first + blocks {
            if self.0[block] != block {
                return block - first;
            }
            self.0[block] = block + 1;
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio 3.33 made 2743 reads of 64 MiB, of 23.9 KiB on average: `fio --name=x --ioengine=null --rw=randread --bsrange=4k-64k --size=64m`.
    #[test]
    fn the_mean_request_is_that_of_fio() {
        let spec = |mix: &str| TrialSpec {
            pattern: Pattern::Rand,
            bs_mix: Some(mix.parse().expect("a mix")),
            ..TrialSpec::default()
        };
        let of = |mix: &str| mean_request(&spec(mix)).expect("shortened");
        assert_eq!(mean_request(&spec("4k")), None);
        let range = of("4k-64k") / 1024.0;
        assert!((range / 23.9 - 1.0).abs() < 0.03, "{range}");
        // With io_size=16m they are 540, of 30.3 KiB.
        let mut part = spec("4k-64k");
        part.region = 64 << 20;
        part.limit.bytes = Some(16 << 20);
        let part = mean_request(&part).expect("shortened") / 1024.0;
        assert!((part / 30.3 - 1.0).abs() < 0.03, "{part}");
        let ordered = TrialSpec {
            pattern: Pattern::RandReplace,
            ..spec("4k-64k")
        };
        assert_eq!(mean_request(&ordered), None);
    }
}
