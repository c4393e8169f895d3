//! The verdict on each suspect, from the part of the phenomenon that disappears if it is removed, alone and with
//! all others.

use iolab_plan::experiment::Inquiry;
use iolab_stats::{SignedRank, holm, signed_rank, signed_rank_within};

use super::variants::{Variants, differences};
use super::{ALPHA, Deviations, Found, Point, Quantity, Standing, WhyUntried};
use crate::analysis::TRIALS_MIN;
use crate::claim::effect::MARGIN;

/// Share of the phenomenon from which a suspect is a cause by itself.
const CAUSE: f64 = 0.5;
/// Share of the phenomenon from which it counts as fully explained.
const EXPLAINED: f64 = 0.9;
/// Share of the phenomenon up to which a change does not count.
const CLEARED: f64 = 0.25;
/// Share of the phenomenon from which an opposite effect is a reversal.
const REVERSED: f64 = 0.1;
/// Most blocks that are suggested.
const BLOCKS_MAX: f64 = 10_000.0;

/// Results of the deviations of each variant. `unchecked` has the suspects that are not shown to be removed, with the reason.
pub(super) fn judge<'a>(
    inquiry: &'a Inquiry,
    deviations: &[Deviations],
    unchecked: Vec<(String, WhyUntried)>,
) -> Found<'a> {
    let variants = Variants::new(inquiry, deviations);
    let whole = variants.of::<&str>(&[]);
    let test = variants.left::<&str>(&[]);
    let seen = (inquiry.seen / inquiry.expected).ln().abs();
    let margin = match inquiry.compares_quantiles() {
        // Some requests take longer than most on any storage.
        true => seen / 2.0,
        false => MARGIN.ln_1p(),
    };
    let again = again(test.as_ref(), seen, margin);
    let is_there = again == Standing::Reproduced;
    // If one of them was not removed, the part that remains without all is unknown.
    let is_rest_known = is_there && !inquiry.tried.is_empty() && unchecked.is_empty();
    let rest = match is_rest_known {
        true => variants.remaining(Standing::Unexplained, &inquiry.tried),
        false => None,
    };
    let mut suspects = match is_there {
        true => variants.verdicts(),
        false => Vec::new(),
    };
    withhold(&mut suspects, &unchecked);
    suspects.sort_by(|a, b| b.value.total_cmp(&a.value));
    let most = suspects.iter().find(|point| is_cause(point.standing));
    let without_one = || variants.remaining(Standing::Unexplained, &most?.suspects);
    let is_less = |one: &Point| {
        let all = rest.as_ref().and_then(|all| all.interval);
        one.interval
            .zip(all)
            .is_some_and(|(one, all)| one.1 < all.0)
    };
    let is_explained = most.is_some_and(|cause| cause.value >= EXPLAINED);
    let planned = inquiry.untried.iter();
    let planned = planned.map(|one| (one.suspect.clone(), WhyUntried::Planned(one.why.clone())));
    let unchecked = unchecked.into_iter().filter(|_| is_there);
    Found {
        inquiry,
        again,
        ratio: test.map(|test| variants.ratio(&test)),
        blocks: whole.len(),
        level_changed: false,
        rest: without_one().filter(is_less).or(rest),
        doubts: Vec::new(),
        is_explained,
        suspects,
        explains: None,
        untried: unchecked.chain(planned).collect(),
    }
}

/// Whether a suspect is a cause by itself.
fn is_cause(standing: Standing) -> bool {
    matches!(standing, Standing::Cause | Standing::Reverses)
}

/// Withholds the verdict on suspects whose removal is not shown.
fn withhold(found: &mut Vec<Point>, unchecked: &[(String, WhyUntried)]) {
    let is_unchecked = |point: &Point| {
        unchecked
            .iter()
            .any(|(name, _)| point.suspects == [name.as_str()])
    };
    let is_joint = |point: &&Point| point.standing == Standing::Joint;
    // If one of several joint causes was not removed, nothing is known about the rest.
    if found.iter().filter(is_joint).any(is_unchecked) {
        open_joint(found);
    }
    found.retain(|point| !is_unchecked(point));
}

/// Opens the verdict on joint causes, which are only shown together.
pub(super) fn open_joint(found: &mut Vec<Point>) {
    use Standing::{Joint, Together, TogetherReverse, Undecided};
    found.retain(|point| !matches!(point.standing, Together | TogetherReverse));
    let joint = found.iter_mut().filter(|point| point.standing == Joint);
    joint.for_each(|point| point.standing = Undecided);
}

/// Whether a phenomenon of this size, a logarithm, is reproduced; sizes up to the margin do not count.
fn again(test: Option<&SignedRank>, seen: f64, margin: f64) -> Standing {
    let Some((test, interval)) = test.and_then(|test| Some((test, test.interval?))) else {
        return Standing::Undecided;
    };
    // A small part may be certain, but is a different effect from the one to be explained.
    if interval.high < (seen / 2.0).max(margin) {
        Standing::NotReproduced
    } else if interval.low > 0.0 && test.centre > margin {
        Standing::Reproduced
    } else {
        Standing::Undecided
    }
}

/// The effect of removing a suspect, in one contrast between two variants.
struct Removal {
    values: Vec<f64>,
    /// The test, with the p-value adjusted for all suspects.
    test: SignedRank,
}

impl Variants<'_> {
    /// The part that disappears between two variants.
    fn removal(&self, with: &Deviations, without: &Deviations) -> Option<Removal> {
        let values: Vec<f64> = differences(with, without).into_values().collect();
        let test = signed_rank(&values, 1.0 - ALPHA).filter(|_| values.len() >= TRIALS_MIN)?;
        Some(Removal { values, test })
    }

    /// The part that disappears without each tried suspect, in two contrasts: removing the suspect from all, and
    /// leaving it as the only one. The first misses a suspect if another one suffices, the second if it needs
    /// another one.
    fn removals(&self) -> Vec<[Option<Removal>; 2]> {
        let tried = &self.inquiry.tried;
        let (whole, nothing) = (self.of::<&str>(&[]), self.of(tried));
        let removals = tried.iter().map(|suspect| {
            [
                self.removal(&whole, &self.of(&[suspect])),
                self.removal(&self.of(&self.others(suspect)), &nothing),
            ]
        });
        let mut removals: Vec<[Option<Removal>; 2]> = removals.collect();
        // Holm's correction over all suspects, with two tests each.
        let all: Vec<&mut Removal> = removals.iter_mut().flatten().flatten().collect();
        let p: Vec<f64> = all.iter().map(|removal| removal.test.p).collect();
        for (removal, p) in all.into_iter().zip(holm(&p).unwrap_or_default()) {
            removal.test.p = p;
        }
        removals
    }

    /// All suspects that were tried but for this one.
    fn others(&self, suspect: &String) -> Vec<&String> {
        let tried = self.inquiry.tried.iter();
        tried.filter(|one| *one != suspect).collect()
    }

    /// The verdict on each suspect that was tried, with the share that is gone without it, and what joint causes make together.
    fn verdicts(&self) -> Vec<Point> {
        let (tried, size) = (&self.inquiry.tried, self.size);
        let (whole, nothing) = (self.of::<&str>(&[]), self.of(tried));
        let removals = self.removals();
        let least = (CLEARED * size).max(MARGIN.ln_1p());
        let is_small = |removal: &Option<Removal>| {
            let within = |one: &Removal| signed_rank_within(&one.values, least);
            let p = removal.as_ref().and_then(within);
            p.is_some_and(|p| p <= ALPHA)
        };
        // Parts that are present and not shown to be small; a part exactly at the limit counts.
        let shown = |removal: &Option<Removal>| {
            let is_there = |one: &Removal| one.test.p <= ALPHA && one.test.centre > 0.0;
            removal.as_ref().is_some_and(is_there) && !is_small(removal)
        };
        let is_needed: Vec<bool> = removals.iter().map(|[alone, _]| shown(alone)).collect();
        let is_enough: Vec<bool> = removals.iter().map(|[_, only]| shown(only)).collect();
        let all_gone = self.removal(&whole, &nothing).map(|one| one.test);
        let all_gone = all_gone.is_some_and(|all| all.p <= ALPHA && all.centre > CAUSE * size);
        let is_hidden = |place: &usize| is_enough[*place] && !is_needed[*place];
        let hidden: Vec<usize> = (0..tried.len()).filter(is_hidden).collect();
        let none_shown = !is_needed.iter().chain(&is_enough).any(|shown| *shown);
        // A suspect that is needed and does not suffice needs another one. If no other suspect shows, some of
        // them are interchangeable.
        let lacks_partner = is_needed.iter().filter(|needed| **needed).count() == 1
            && !is_enough.iter().any(|enough| *enough)
            && tried.len() > 2;
        let joint = |place: &usize| match hidden.len() {
            0 => none_shown && all_gone && tried.len() > 1,
            1 => false,
            _ => all_gone && hidden.contains(place),
        };
        let verdict = |place: usize| {
            let [alone, only] = &removals[place];
            if is_needed[place] {
                let is_most = |one: &Removal| one.test.centre >= CAUSE * size;
                return match alone.as_ref().is_some_and(is_most) {
                    true if self.is_reversed(&[&tried[place]]) => Standing::Reverses,
                    true => Standing::Cause,
                    false => Standing::Contributes,
                };
            }
            if joint(&place) {
                return Standing::Joint;
            }
            match (is_enough[place], is_small(alone) && is_small(only)) {
                (true, _) => Standing::ByItself,
                (false, true) if !lacks_partner => Standing::Cleared,
                (false, _) => Standing::Undecided,
            }
        };
        let of_suspect = |place: usize| {
            let (suspect, standing) = (&tried[place], verdict(place));
            let by_itself = standing == Standing::ByItself;
            let gone = match by_itself {
                true => differences(&self.of(&self.others(suspect)), &nothing),
                false => differences(&whole, &self.of(&[suspect])),
            };
            let left = self.left(&[suspect]).filter(|_| !by_itself);
            // Without a block that the variants share, nothing is known of it.
            let unknown = || Point {
                suspects: vec![suspect.clone()],
                ..Point::new(Standing::Undecided, Quantity::Share, 0.0)
            };
            let share = self.share(standing, &gone, &[suspect]);
            let found = Point {
                ratio: left.map(|left| self.ratio(&left)),
                ..share.unwrap_or_else(unknown)
            };
            let needed = || Some(blocks_needed(&removals[place], least)? as f64);
            match found.standing {
                Standing::Cleared if found.value.abs() > MARGIN => Point {
                    standing: Standing::Minor,
                    ..found
                },
                Standing::Undecided => match needed() {
                    None => found,
                    of => Point {
                        standing: Standing::MoreBlocks,
                        of,
                        ..found
                    },
                },
                _ => found,
            }
        };
        let mut all: Vec<Point> = (0..tried.len()).map(of_suspect).collect();
        let joint = all.iter().filter(|one| one.standing == Standing::Joint);
        let joint: Vec<&String> = joint.flat_map(|one| &one.suspects).collect();
        if !joint.is_empty() {
            // Without exactly these if there is such a variant, otherwise without all that were tried.
            let taken = match self.of(&joint).is_empty() {
                true => tried.iter().collect(),
                false => joint,
            };
            let standing = match self.is_reversed(&taken) {
                true => Standing::TogetherReverse,
                false => Standing::Together,
            };
            let gone = differences(&whole, &self.of(&taken));
            all.extend(self.share(standing, &gone, &taken).map(|found| Point {
                ratio: self.left(&taken).map(|left| self.ratio(&left)),
                ..found
            }));
        }
        all
    }

    /// Whether the phenomenon is reversed without these suspects. Scatter about zero and effects too small to matter do not
    /// count.
    fn is_reversed(&self, without: &[&String]) -> bool {
        let least = (REVERSED * self.size).max(MARGIN.ln_1p());
        let interval = self.left(without).and_then(|left| left.interval);
        interval.is_some_and(|interval| interval.high < -least)
    }
}

/// Estimated number of blocks that would settle an open verdict, since intervals narrow with the square root of
/// their number. `None` if unknown.
fn blocks_needed(removals: &[Option<Removal>; 2], least: f64) -> Option<usize> {
    let needed = removals.iter().flatten().filter_map(|removal| {
        let interval = removal.test.interval?;
        let half = (interval.high - interval.low) / 2.0;
        let centre = removal.test.centre.abs();
        // A value far from the limit on its side has more room.
        let room = (least - centre).abs().max(least / 3.0);
        let blocks = removal.values.len() as f64;
        Some((blocks * (half / room).powi(2), blocks))
    });
    let needed = needed.filter(|(needed, blocks)| needed > blocks && *needed <= BLOCKS_MAX);
    let most = needed.map(|(needed, _)| needed).fold(0.0, f64::max);
    (most > 0.0).then(|| most.ceil() as usize)
}

#[cfg(test)]
mod tests;
