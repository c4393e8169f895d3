//! The verdict on each suspect, from the part of the phenomenon that disappears if it is removed, alone and with
//! all others.

use std::collections::BTreeMap;

use iolab_plan::experiment::Inquiry;
use iolab_stats::{Interval, SignedRank, holm, signed_rank, signed_rank_within};

use super::variants::{Variants, differences};
use super::{
    ALPHA, Again, CauseVerdict, Deviations, Reproduction, Share, Suspected, Suspects, WhyUntried,
    direction,
};
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

/// Results of the deviations of each variant. `unchecked` has the suspects that are not shown to be removed,
/// with the reason, and `between` the verdict of cells between both sides.
pub(super) fn judge(
    inquiry: &Inquiry,
    deviations: &[Deviations],
    unchecked: &BTreeMap<String, WhyUntried>,
    between: Option<(CauseVerdict, Suspected)>,
) -> (Reproduction, Vec<Suspects>) {
    let variants = Variants::new(inquiry, deviations);
    let blocks = variants.of::<&str>(&[]).len();
    let test = variants.left::<&str>(&[]);
    let ratio = |deviation: f64| inquiry.expected * (direction(inquiry) * deviation).exp();
    let ends = |interval: Interval| {
        let (one, other) = (ratio(interval.low), ratio(interval.high));
        (one.min(other), one.max(other))
    };
    let seen = (inquiry.seen / inquiry.expected).ln().abs();
    let margin = match inquiry.compares_quantiles() {
        // Some requests take longer than most on any storage.
        true => seen / 2.0,
        false => MARGIN.ln_1p(),
    };
    let again = again(test.as_ref(), seen, margin);
    let is_there = again == Again::Reproduced;
    let all: Vec<&String> = inquiry.tried.iter().collect();
    // If one of them was not removed, the part that remains without all is unknown.
    let unexplained = match is_there && !all.is_empty() && unchecked.is_empty() {
        true => variants.share(&variants.of(&all), &variants.of::<&str>(&[])),
        false => None,
    };
    let mut reproduction = Reproduction {
        phenomenon: inquiry.phenomenon.clone(),
        seen: inquiry.seen,
        expected: inquiry.expected,
        ratio: test.map(|test| ratio(test.centre)),
        interval: test.and_then(|test| test.interval).map(ends),
        blocks,
        shorter_ns: inquiry.shorter_ns,
        idle_ns: inquiry.idle_ns,
        again,
        unexplained,
        ..Reproduction::default()
    };
    let mut found = match is_there {
        true => variants.verdicts().into_iter().chain(between).collect(),
        false => Vec::new(),
    };
    let untried = inquiry.untried.iter().map(|one| Suspected {
        suspect: one.suspect.clone(),
        untried: Some(WhyUntried::Planned(one.why.clone())),
        ..Suspected::default()
    });
    found.extend(untried.map(|one| (CauseVerdict::NotTried, one)));
    let joint = found.iter();
    let joint = joint.filter(|(verdict, _)| *verdict == CauseVerdict::Joint);
    let joint: Vec<String> = joint.map(|(_, one)| one.suspect.clone()).collect();
    let without_joint = variants.alone_or_all(joint.iter().collect());
    withhold(&mut found, unchecked);
    for (verdict, suspected) in &mut found {
        let left = variants.left(&[&suspected.suspect]);
        suspected.ratio_without = left.map(|left| ratio(left.centre));
        suspected.is_reversed = match verdict {
            CauseVerdict::Cause | CauseVerdict::Contributes if !suspected.by_itself => left,
            CauseVerdict::Joint => variants.left(&without_joint),
            _ => None,
        }
        .is_some_and(|left| variants.is_reversed(&left));
    }
    reproduction.is_explained = found.iter().any(|(verdict, one)| match verdict {
        CauseVerdict::Cause => one.share.is_some_and(|share| share.share >= EXPLAINED),
        verdict => *verdict == CauseVerdict::Explains,
    });
    if let Some((rest, without)) = variants.left_without_one(&found, unexplained) {
        reproduction.unexplained = Some(rest);
        reproduction.unexplained_without = Some(without);
    }
    (reproduction, grouped(found, blocks))
}

/// Withholds the verdict on suspects whose removal is not shown.
fn withhold(found: &mut [(CauseVerdict, Suspected)], unchecked: &BTreeMap<String, WhyUntried>) {
    // If one of several joint causes was not removed, nothing is known about the rest.
    let is_joint = |(verdict, one): &(CauseVerdict, Suspected)| {
        *verdict == CauseVerdict::Joint && unchecked.contains_key(&one.suspect)
    };
    let joint_fails = found.iter().any(is_joint);
    for (verdict, suspected) in found {
        if joint_fails && *verdict == CauseVerdict::Joint {
            (*verdict, suspected.share) = (CauseVerdict::CannotTell, None);
        }
        if let Some(why) = unchecked.get(&suspected.suspect) {
            *verdict = CauseVerdict::NotTried;
            (suspected.share, suspected.untried) = (None, Some(why.clone()));
        }
    }
}

/// Groups suspects for claims: causes one by one, the greatest share first, and all suspects of each other
/// verdict together.
fn grouped(found: Vec<(CauseVerdict, Suspected)>, blocks: usize) -> Vec<Suspects> {
    let mut by_verdict: BTreeMap<CauseVerdict, Vec<Suspected>> = BTreeMap::new();
    for (verdict, suspected) in found {
        by_verdict.entry(verdict).or_default().push(suspected);
    }
    let of = |verdict, suspects| Suspects {
        verdict,
        suspects,
        blocks,
    };
    let mut all = Vec::new();
    for (verdict, mut suspects) in by_verdict {
        if !matches!(verdict, CauseVerdict::Cause | CauseVerdict::Contributes) {
            all.push(of(verdict, suspects));
            continue;
        }
        let share = |one: &Suspected| one.share.map_or(0.0, |share| share.share);
        suspects.sort_by(|a, b| share(b).total_cmp(&share(a)));
        all.extend(suspects.into_iter().map(|one| of(verdict, vec![one])));
    }
    all
}

/// Whether a phenomenon of this size, a logarithm, is reproduced; sizes up to the margin do not count.
fn again(test: Option<&SignedRank>, seen: f64, margin: f64) -> Again {
    let Some((test, interval)) = test.and_then(|test| Some((test, test.interval?))) else {
        return Again::CannotTell;
    };
    // A small part may be certain, but is a different effect from the one to be explained.
    if interval.high < (seen / 2.0).max(margin) {
        Again::NotReproduced
    } else if interval.low > 0.0 && test.centre > margin {
        Again::Reproduced
    } else {
        Again::CannotTell
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

    /// The verdict on each suspect that was tried.
    fn verdicts(&self) -> Vec<(CauseVerdict, Suspected)> {
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
                    true => CauseVerdict::Cause,
                    false => CauseVerdict::Contributes,
                };
            }
            if joint(&place) {
                return CauseVerdict::Joint;
            }
            match (is_enough[place], is_small(alone) && is_small(only)) {
                (true, _) => CauseVerdict::Contributes,
                (false, true) if !lacks_partner => CauseVerdict::Cleared,
                (false, _) => CauseVerdict::CannotTell,
            }
        };
        let verdicts: Vec<CauseVerdict> = (0..tried.len()).map(verdict).collect();
        let places = verdicts.iter().enumerate();
        let joint = places.clone();
        let joint = joint.filter(|(_, one)| **one == CauseVerdict::Joint);
        let joint: Vec<&String> = joint.map(|(place, _)| &tried[place]).collect();
        let taken = self.alone_or_all(joint.clone());
        let (with_others, without_joint) = (taken.len() > joint.len(), self.of(&taken));
        places
            .map(|(place, verdict)| {
                let suspect = &tried[place];
                let by_itself = is_enough[place] && !is_needed[place];
                let gone = match verdict {
                    CauseVerdict::Joint => differences(&whole, &without_joint),
                    _ if by_itself => differences(&self.of(&self.others(suspect)), &nothing),
                    _ => differences(&whole, &self.of(&[suspect])),
                };
                let is_open = *verdict == CauseVerdict::CannotTell;
                let removals = Some(&removals[place]).filter(|_| is_open);
                let suspected = Suspected {
                    suspect: suspect.clone(),
                    share: self.share(&gone, &whole),
                    by_itself: by_itself && *verdict == CauseVerdict::Contributes,
                    with_others: with_others && *verdict == CauseVerdict::Joint,
                    blocks_needed: removals.and_then(|own| blocks_needed(own, least)),
                    ..Suspected::default()
                };
                (*verdict, suspected)
            })
            .collect()
    }

    /// The remaining part without the cause of the greatest share, with the name of that cause. `None` unless it
    /// is shown to be less than the part that remains without all suspects.
    fn left_without_one(
        &self,
        found: &[(CauseVerdict, Suspected)],
        all: Option<Share>,
    ) -> Option<(Share, String)> {
        let causes = found
            .iter()
            .filter(|(verdict, one)| *verdict == CauseVerdict::Cause && !one.by_itself);
        let share = |one: &Suspected| one.share.map_or(0.0, |share| share.share);
        let (_, most) = causes.max_by(|a, b| share(&a.1).total_cmp(&share(&b.1)))?;
        let rest = self.share(&self.of(&[&most.suspect]), &self.of::<&str>(&[]))?;
        let is_less = rest.interval?.1 < all?.interval?.0;
        is_less.then(|| (rest, most.suspect.clone()))
    }

    /// The given suspects if there is a variant without exactly these, otherwise all suspects that were tried.
    fn alone_or_all<'a>(&'a self, suspects: Vec<&'a String>) -> Vec<&'a String> {
        match self.of(&suspects).is_empty() {
            true => self.inquiry.tried.iter().collect(),
            false => suspects,
        }
    }

    /// Whether the phenomenon is reversed. Scatter about zero and effects too small to matter do not count.
    fn is_reversed(&self, left: &SignedRank) -> bool {
        let least = (REVERSED * self.size).max(MARGIN.ln_1p());
        left.interval.is_some_and(|interval| interval.high < -least)
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
