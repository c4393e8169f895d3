//! Judges one block by all its sectors.

use super::format::{Generation, Seen};
use super::written;
use iolab_workload::verify::{FaultKind, FoundInstead};

/// A block while its sectors are looked at one after the other.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The writes of this trial that its sectors hold, each once.
    written: Vec<Generation>,
    /// The first sector that differs from the first written one, and its content.
    differs: Option<(u64, FoundInstead)>,
    damaged: Option<u64>,
    made_for: Option<(u64, u64)>,
    earlier: bool,
    /// The first sector without a header of iolab's, and whether it is zeros.
    unknown: Option<(u64, bool)>,
}

/// The verdict on a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Every sector was written by this write of the trial.
    Whole(Generation),
    /// Every sector was written by the trial, but not all by the same write.
    Mixed(Vec<Generation>, u64),
    /// Not the result of any write of the trial.
    Faulty(FaultKind, u64, FoundInstead),
}

impl Block {
    /// Takes note of the sector at this byte.
    pub(super) fn add(&mut self, offset: u64, seen: Seen) {
        match seen {
            Seen::Written(generation) => {
                if self
                    .written
                    .first()
                    .is_some_and(|first| *first != generation)
                {
                    self.differs.get_or_insert((offset, written(generation)));
                }
                if !self.written.contains(&generation) {
                    self.written.push(generation);
                }
            }
            Seen::MadeFor(place) => {
                self.made_for.get_or_insert((offset, place));
            }
            Seen::Damaged => {
                self.damaged.get_or_insert(offset);
            }
            Seen::Earlier => {
                self.earlier = true;
                self.differs.get_or_insert((offset, FoundInstead::Earlier));
            }
            Seen::Zeros | Seen::Unknown => {
                let zeros = seen == Seen::Zeros;
                self.unknown.get_or_insert((offset, zeros));
                self.differs
                    .get_or_insert((offset, FoundInstead::unknown(zeros)));
            }
        }
    }

    /// The judgement on the block that begins at `start`.
    pub(super) fn judge(self, start: u64) -> Judgement {
        let faulty = Judgement::Faulty;
        if let Some(offset) = self.damaged {
            return faulty(FaultKind::Corrupted, offset, FoundInstead::Damaged);
        }
        if let Some((offset, place)) = self.made_for {
            return faulty(FaultKind::Misplaced, offset, FoundInstead::MadeFor(place));
        }
        let is_partly_old = self.earlier || self.unknown.is_some();
        match (self.written.as_slice(), self.differs, self.unknown) {
            ([], _, _) if self.earlier => faulty(FaultKind::Stale, start, FoundInstead::Earlier),
            ([], _, unknown) => {
                let zeros = unknown.is_some_and(|(_, zeros)| zeros);
                faulty(FaultKind::Lost, start, FoundInstead::unknown(zeros))
            }
            (_, Some((offset, found)), _) if is_partly_old => {
                faulty(FaultKind::Torn, offset, found)
            }
            ([generation], ..) => Judgement::Whole(*generation),
            (_, differs, _) => {
                let offset = differs.map_or(start, |(offset, _)| offset);
                Judgement::Mixed(self.written, offset)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 8192;

    fn judge(sectors: &[Seen]) -> Judgement {
        let mut block = Block::default();
        for (number, seen) in sectors.iter().enumerate() {
            block.add(START + 512 * number as u64, *seen);
        }
        block.judge(START)
    }

    #[test]
    fn each_kind_is_told() {
        use FaultKind::{Corrupted, Lost, Misplaced, Stale, Torn};
        use Seen::{Damaged, Earlier, MadeFor, Unknown, Zeros};
        let (old, new) = (Generation::new(0, 1), Generation::new(0, 2));
        let (was, is) = (Seen::Written(old), Seen::Written(new));
        assert_eq!(judge(&[is, is]), Judgement::Whole(new));
        let mixed = Judgement::Mixed(vec![new, old], START + 512);
        assert_eq!(judge(&[is, was, was]), mixed);
        for (sectors, kind, at, found) in [
            ([is, Damaged], Corrupted, 512, FoundInstead::Damaged),
            ([is, MadeFor(0)], Misplaced, 512, FoundInstead::MadeFor(0)),
            ([is, Earlier], Torn, 512, FoundInstead::Earlier),
            ([Earlier, is], Torn, 0, FoundInstead::Earlier),
            ([is, Zeros], Torn, 512, FoundInstead::Zeros),
            ([Unknown, is], Torn, 0, FoundInstead::Unknown),
            ([Earlier, Earlier], Stale, 0, FoundInstead::Earlier),
            ([Earlier, Zeros], Stale, 0, FoundInstead::Earlier),
            ([Zeros, Zeros], Lost, 0, FoundInstead::Zeros),
            ([Unknown, Unknown], Lost, 0, FoundInstead::Unknown),
            ([Damaged, MadeFor(0)], Corrupted, 0, FoundInstead::Damaged),
        ] {
            assert_eq!(
                judge(&sectors),
                Judgement::Faulty(kind, START + at, found),
                "{sectors:?}"
            );
        }
    }
}
