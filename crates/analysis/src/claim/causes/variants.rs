//! The variants of an inquiry: the part of a phenomenon that remains without some suspects, and its share.

use std::collections::BTreeSet;

use iolab_plan::experiment::{Inquiry, Variant};
use iolab_stats::{SignedRank, signed_rank};

use super::{ALPHA, Deviations, Share};

/// Range in which shares are searched.
const SHARES: (f64, f64) = (-20.0, 20.0);

/// The variants of an inquiry, with their measured deviations.
pub(super) struct Variants<'a> {
    pub(super) inquiry: &'a Inquiry,
    deviations: &'a [Deviations],
    /// Size of the phenomenon, on the logarithm.
    pub(super) size: f64,
}

impl<'a> Variants<'a> {
    /// The variants of an inquiry; `deviations` has the values of each, in the same order.
    pub(super) fn new(inquiry: &'a Inquiry, deviations: &'a [Deviations]) -> Self {
        let mut variants = Self {
            inquiry,
            deviations,
            size: 0.0,
        };
        let centre = variants.left::<&str>(&[]).map(|test| test.centre);
        variants.size = centre.map_or(0.0, |centre| centre.max(0.0));
        variants
    }

    /// The remaining phenomenon as measured, which may be negative.
    pub(super) fn left<T: AsRef<str>>(&self, without: &[T]) -> Option<SignedRank> {
        let left: Vec<f64> = self.measured(without).into_values().collect();
        signed_rank(&left, 1.0 - ALPHA)
    }

    /// The remaining phenomenon without exactly these suspects, from none to all of it: nothing if it is
    /// reversed. An excess over all of it comes from the interventions.
    pub(super) fn of<T: AsRef<str>>(&self, without: &[T]) -> Deviations {
        let measured = self.measured(without).into_iter();
        measured
            .map(|(block, value)| (block, value.clamp(0.0, self.size)))
            .collect()
    }

    /// The measured deviations without exactly these suspects.
    fn measured<T: AsRef<str>>(&self, without: &[T]) -> Deviations {
        let wanted: BTreeSet<&str> = without.iter().map(AsRef::as_ref).collect();
        let is_it = |variant: &Variant| {
            variant
                .without
                .iter()
                .map(String::as_str)
                .collect::<BTreeSet<_>>()
                == wanted
        };
        let place = self.inquiry.variants.iter().position(is_it);
        let found = place.and_then(|place| self.deviations.get(place));
        found.cloned().unwrap_or_default()
    }

    /// The share of the phenomenon that a deviation is: the value about which the signed ranks are balanced,
    /// block by block.
    pub(super) fn share(&self, part: &Deviations, whole: &Deviations) -> Option<Share> {
        let pairs = paired(part, whole);
        let rest = |share: f64| -> Vec<f64> {
            let values = pairs.iter().map(|(part, whole)| part - share * whole);
            values.collect()
        };
        let test = |share: f64| signed_rank(&rest(share), 1.0 - ALPHA);
        test(0.0)?;
        let share = bisect(&|share| test(share).is_some_and(|test| test.centre > 0.0));
        let has_interval = test(share).is_some_and(|test| test.interval.is_some());
        let low = || bisect(&|share| ends(&test, share).is_some_and(|(low, _)| low > 0.0));
        let high = || bisect(&|share| ends(&test, share).is_some_and(|(_, high)| high >= 0.0));
        Some(Share {
            share,
            interval: has_interval.then(|| (low(), high())),
        })
    }
}

/// The ends of the interval of a test at a share.
fn ends(test: &dyn Fn(f64) -> Option<SignedRank>, share: f64) -> Option<(f64, f64)> {
    let interval = test(share)?.interval?;
    Some((interval.low, interval.high))
}

/// The greatest share at which `holds` is true, if it is true up to there and false beyond.
fn bisect(holds: &dyn Fn(f64) -> bool) -> f64 {
    let (mut yes, mut no) = SHARES;
    for _ in 0..30 {
        let middle = f64::midpoint(yes, no);
        match holds(middle) {
            true => yes = middle,
            false => no = middle,
        }
    }
    f64::midpoint(yes, no)
}

/// The values of the blocks that two variants share.
pub(super) fn paired(one: &Deviations, other: &Deviations) -> Vec<(f64, f64)> {
    let both = one
        .iter()
        .filter_map(|(block, value)| Some((*value, *other.get(block)?)));
    both.collect()
}

pub(super) fn differences(with: &Deviations, without: &Deviations) -> Deviations {
    let both = with
        .iter()
        .filter_map(|(block, value)| Some((*block, value - without.get(block)?)));
    both.collect()
}
