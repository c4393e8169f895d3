//! Offsets over several files of a worker.

use super::{Offsets, derive};
use crate::trial::{FileLayout, Others, TrialSpec};

/// The purpose of the key that draws the offsets in a file.
const OFFSETS: u64 = 3 << 48;

/// A worker's order over several files, each in turn. A pass visits every block of each file once: the first files have a block more
/// if they differ.
#[derive(Debug, Clone)]
pub(super) struct InFiles {
    files: Vec<Offsets>,
    slot: u64,
    /// Requests of a pass.
    blocks: u64,
    /// Number of the next request in its pass.
    next: u64,
}

impl InFiles {
    pub(super) fn new(spec: &TrialSpec, worker: u32) -> Self {
        let own = derive(spec.seed, u64::from(spec.number_of(worker)) + 1);
        let of_file = |(number, bytes): (u64, u64)| {
            let alone = TrialSpec {
                files: None,
                layout: FileLayout::Shared,
                region: bytes,
                threads: 1,
                others: Others::default(),
                seed: derive(own, OFFSETS | number),
                ..spec.clone()
            };
            Offsets::new(&alone, 0)
        };
        Self {
            files: (0..).zip(spec.private_files(worker)).map(of_file).collect(),
            slot: spec.file_slot(),
            blocks: spec.private_bytes(worker) / spec.bs,
            next: 0,
        }
    }

    /// Length of all slots, bytes.
    pub(super) fn slots(&self) -> u64 {
        self.slot.saturating_mul(self.files.len() as u64)
    }

    /// The next offset: of a request of one block, or of this length and the alignment of its start.
    #[inline(never)]
    pub(super) fn advance(&mut self, request: Option<(u64, u64)>) -> u64 {
        let number = self.next % self.files.len() as u64;
        self.next = (self.next + 1) % self.blocks;
        let file = &mut self.files[number as usize];
        let within = match request {
            None => file.next_offset(),
            Some((len, start)) => file.next_offset_of(len, start),
        };
        number * self.slot + within
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::trial::Pattern;

    proptest! {
        #[test]
        fn each_pass_visits_every_block_once(
            seed: u64, count in 1u32..40, threads in 1u32..4, more in 0u64..200,
            pattern in prop::sample::select(vec![Pattern::Seq, Pattern::Reverse, Pattern::Rand]),
        ) {
            let mut spec = TrialSpec {
                seed, pattern, threads,
                files: Some(count),
                layout: FileLayout::Private,
                ..TrialSpec::default()
            };
            spec.region = spec.smallest_region() + more * spec.bs;
            spec.check().expect("possible");
            let slot = spec.file_slot();
            for worker in 0..threads {
                let sizes = spec.private_files(worker);
                let blocks = sizes.iter().sum::<u64>() / spec.bs;
                prop_assert_eq!(blocks * spec.bs, spec.private_bytes(worker));
                let mut offsets = Offsets::new(&spec, worker);
                let seen: Vec<_> = (0..2 * blocks)
                    .map(|_| offsets.next_offset())
                    .map(|offset| (offset / slot, offset % slot))
                    .collect();
                for pass in seen.chunks(blocks as usize) {
                    let distinct: BTreeSet<_> = pass.iter().collect();
                    prop_assert_eq!(distinct.len() as u64, blocks);
                    for (turn, (file, within)) in (0..).zip(pass) {
                        prop_assert_eq!(*file, turn % u64::from(count));
                        prop_assert!(*within < sizes[*file as usize]);
                    }
                }
            }
        }
    }
}
