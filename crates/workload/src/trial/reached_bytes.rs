//! Which bytes of the region requests reach, and whether these lie in it.

use super::{FileLayout, Pattern, Segments, TrialSpec};
use crate::error::{Error, Result};
use crate::units::format_size;
use crate::usage_errors;

impl TrialSpec {
    /// Bytes that requests go to: the region, or its segments.
    pub fn visited_bytes(&self) -> u64 {
        self.segments.map_or(self.region, Segments::bytes)
    }

    /// Checks that the segments fit, and that requests stay within them.
    pub(super) fn check_segments(&self) -> Result<()> {
        let Some(segments) = self.segments else {
            return Ok(());
        };
        let alignment = segments.alignment();
        usage_errors! {
            self.bs == 0 || !alignment.is_multiple_of(self.bs) =>
                format!("segments={segments} with bs={}: they begin at multiples of {}", format_size(self.bs), format_size(alignment)),
                "choose a bs that divides that, or segments whose size is a multiple of a larger power of two (at most 1 MiB counts)";
            segments.places(self.region).is_none() =>
                format!("segments={segments} do not fit into a region of {} with gaps between them", format_size(self.region)),
                "enlarge the region with --size, or choose fewer bytes of segments";
        }
        let excluded = [
            (self.bs_mix.is_some(), "bs_mix"),
            (self.random_every > 1, "random_every"),
            (self.pattern == Pattern::Strided, "pattern=strided"),
            (self.layout == FileLayout::Private, "layout=private"),
            (self.stripe.is_some(), "stripe"),
            (self.fresh || self.allocate.is_some(), "a new file"),
        ];
        let Some((_, other)) = excluded.iter().find(|(is_so, _)| *is_so) else {
            return Ok(());
        };
        Err(Error::usage(format!("segments={segments} with {other}")).hint(
            "segments hold requests of one size in one file or device: leave out one of the two",
        ))
    }

    /// Bytes that requests can reach, however long they last: fewer than the visited ones where a sequence stays at its blocks.
    pub fn reached_bytes(&self) -> u64 {
        let visited = self.visited_bytes();
        match &self.pattern {
            Pattern::Sequence(sequence) if !sequence.moves() => {
                let blocks = sequence.distinct().saturating_mul(self.sequences());
                visited.min(blocks.saturating_mul(self.bs))
            }
            Pattern::Sequence(_)
            | Pattern::Seq
            | Pattern::Strided
            | Pattern::Reverse
            | Pattern::Rand
            | Pattern::RandReplace
            | Pattern::Zipf(_)
            | Pattern::Pareto(_)
            | Pattern::Normal(_)
            | Pattern::Zoned(_) => visited,
        }
    }

    /// How many parts of the region a sequence is visited in: one for each worker with a file of its own.
    fn sequences(&self) -> u64 {
        match self.layout {
            FileLayout::Private => u64::from(self.workers()).max(1),
            FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => 1,
        }
    }

    /// Checks that the region has the blocks of its sequence.
    pub(super) fn check_sequence(&self) -> Result<()> {
        let Pattern::Sequence(sequence) = &self.pattern else {
            return Ok(());
        };
        let blocks = self.visited_bytes() / self.bs.max(1) / self.sequences();
        match sequence.highest() < blocks {
            true => Ok(()),
            false => Err(Error::usage(format!(
                "pattern=sequence:{sequence}: block {} of {blocks}, which are numbered from 0 on",
                sequence.highest()
            ))
            .hint("choose a larger region or a smaller bs, or leave that block out")),
        }
    }
}
