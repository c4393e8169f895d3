//! One stream of requests over several targets: where each byte is.

use std::ops::Range;

use crate::settings::CellSpec;
use crate::trial::{Backend, Descriptors, FileLayout, FileSet, TrialSpec};
use crate::units::format_size;
use crate::{Result, usage_errors};

/// Pieces of a region, assigned to targets in turn as in RAID 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripe {
    /// Size of a piece, bytes.
    pub piece: u64,
    /// Number of targets.
    pub targets: u64,
}

impl Stripe {
    /// The stripe of a trial over so many targets. Without a piece size in the trial, each request goes to the next target.
    pub fn of(trial: &TrialSpec, targets: usize) -> Self {
        Self {
            piece: trial.stripe.unwrap_or(trial.bs).max(1),
            targets: targets.max(1) as u64,
        }
    }

    /// The slots that a worker's files have in its offsets: a stripe with a single row, whose pieces have the size of the largest
    /// file.
    pub fn of_slots(trial: &TrialSpec, files: FileSet) -> Self {
        Self {
            piece: trial.file_slot(),
            targets: files.count.into(),
        }
    }

    /// Index of the target that holds a byte, and the offset of the byte there.
    #[inline(always)]
    pub fn place(self, offset: u64) -> (usize, u64) {
        let (piece, within) = (offset / self.piece, offset % self.piece);
        let (row, target) = (piece / self.targets, piece % self.targets);
        (target as usize, row * self.piece + within)
    }

    /// The range on each target that covers `range`, in whole pieces.
    pub fn on_each(self, range: Range<u64>) -> Range<u64> {
        let row = self.piece.saturating_mul(self.targets);
        let start = range.start / row * self.piece;
        start..range.end.div_ceil(row).saturating_mul(self.piece)
    }

    /// Total bytes on targets of which the smallest has so many.
    pub fn capacity(self, smallest: u64) -> u64 {
        (smallest / self.piece)
            .saturating_mul(self.piece)
            .saturating_mul(self.targets)
    }

    /// Bytes from this offset to the end of its piece.
    pub fn left_of_piece(self, offset: u64) -> u64 {
        self.piece - offset % self.piece
    }
}

impl CellSpec {
    /// The stripe over the targets of a cell; `None` for one target.
    pub fn striped(&self) -> Option<Stripe> {
        let targets = self.target.as_ref()?.parts().len();
        (targets > 1).then(|| Stripe::of(&self.trial, targets))
    }
}

impl TrialSpec {
    /// Checks a trial that is striped over several targets.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](crate::Kind::Usage): a setting that cannot be striped.
    pub fn check_stripe(&self, stripe: Stripe) -> Result<()> {
        usage_errors! {
            !stripe.piece.is_multiple_of(self.bs) || !self.offset.is_multiple_of(stripe.piece) =>
                format!("stripe={} with bs={} and offset={}", format_size(stripe.piece), format_size(self.bs), format_size(self.offset)),
                "no request may cross from one target to the next: choose a stripe that is a multiple of bs, and an offset that is a multiple of the stripe";
            self.bs_mix.is_some() || !self.skip.is_multiple_of(self.bs) =>
                "bs_mix, or a skip that is not a multiple of bs, striped over several targets",
                "a request could cross from one target to the next: leave it out";
            matches!(self.backend, Backend::Sync | Backend::Mmap) => format!("backend {} striped over several targets", self.backend),
                "it works on one file position or one mapping: set backend=psync or backend=io_uring";
            self.layout == FileLayout::Private || self.starts_fresh() => "files made for each thread or trial striped over several targets",
                "set layout=shared, fresh=false and allocate=recycled";
            self.descriptors == Descriptors::Shared => "descriptors=shared striped over several targets",
                "set descriptors=private: each thread opens every target";
            self.sync_every > 1 => format!("sync_every={} striped over several targets", self.sync_every),
                "a sync reaches the target of one write only: set sync_every=1, or sync=end";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_lies_in_one_place_and_each_target_is_filled_from_its_start() {
        let stripe = Stripe {
            piece: 4,
            targets: 3,
        };
        let mut seen: Vec<Vec<u64>> = vec![Vec::new(); 3];
        for offset in 0..36 {
            let (target, there) = stripe.place(offset);
            seen[target].push(there);
            assert!(stripe.on_each(offset..offset + 1).contains(&there));
            assert_eq!(stripe.place(offset - offset % 4).0, target);
        }
        for own in seen {
            assert_eq!(own, (0..12).collect::<Vec<u64>>());
        }
        assert_eq!(stripe.place(13), (0, 5));
        assert_eq!(stripe.on_each(0..36), 0..12);
        assert_eq!(stripe.on_each(12..14), 4..8);
        assert_eq!(stripe.capacity(14), 36);
        assert_eq!(stripe.left_of_piece(5), 3);
    }

    #[test]
    fn what_could_cross_to_the_next_target_is_refused() {
        let good = TrialSpec {
            bs: 4096,
            stripe: Some(8192),
            ..TrialSpec::default()
        };
        let check = |spec: &TrialSpec| spec.check_stripe(Stripe::of(spec, 2));
        check(&good).expect("whole requests");
        let wrong = [
            TrialSpec {
                stripe: Some(6144),
                ..good.clone()
            },
            TrialSpec {
                offset: 4096,
                ..good.clone()
            },
            TrialSpec {
                bs_mix: "4k:50,8k:50".parse().ok(),
                ..good.clone()
            },
            TrialSpec {
                skip: 512,
                ..good.clone()
            },
            TrialSpec {
                backend: Backend::Sync,
                ..good.clone()
            },
            TrialSpec {
                layout: FileLayout::Private,
                ..good.clone()
            },
            TrialSpec {
                descriptors: Descriptors::Shared,
                ..good.clone()
            },
            TrialSpec {
                sync_every: 2,
                ..good.clone()
            },
        ];
        for spec in wrong {
            let error = check(&spec).expect_err("refused");
            assert!(error.remedy().is_some(), "{error}");
        }
    }
}
