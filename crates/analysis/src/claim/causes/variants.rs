//! The variants of an inquiry: the part of a phenomenon that remains without some suspects, and its share.

use std::collections::BTreeSet;

use iolab_plan::experiment::{Inquiry, Variant};
use iolab_plan::suspect::Suspect;
use iolab_stats::{SignedRank, signed_rank};

use super::{
    ALPHA, Deviations, Estimate, Point, Quantity, Standing, causes, direction, failed_check,
    measured,
};
use crate::analysis::Analysis;

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
        let mut measured = self.measured(without);
        let all = measured.values_mut();
        all.for_each(|value| *value = value.clamp(0.0, self.size));
        measured
    }

    /// The measured deviations without exactly these suspects.
    fn measured<T: AsRef<str>>(&self, without: &[T]) -> Deviations {
        let wanted: BTreeSet<&str> = without.iter().map(AsRef::as_ref).collect();
        let is_it = |variant: &Variant| {
            let own = variant.without.iter().map(String::as_str);
            own.collect::<BTreeSet<_>>() == wanted
        };
        let mut all = self.inquiry.variants.iter().zip(self.deviations);
        let found = all.find(|(variant, _)| is_it(variant));
        found.map_or_else(Deviations::new, |(_, own)| own.clone())
    }

    /// The ratio of the other side to the base with this phenomenon.
    pub(super) fn ratio(&self, left: &SignedRank) -> Estimate {
        let sign = direction(self.inquiry);
        let ratio = |deviation: f64| self.inquiry.expected * (sign * deviation).exp();
        let ends = left.interval.map(|interval| {
            let (one, other) = (ratio(interval.low), ratio(interval.high));
            (one.min(other), one.max(other))
        });
        Estimate::of(ratio(left.centre), ends)
    }

    /// The share of the phenomenon that a deviation is, for these suspects: the value about which the signed ranks are
    /// balanced, block by block.
    pub(super) fn share<T: AsRef<str>>(
        &self,
        standing: Standing,
        part: &Deviations,
        suspects: &[T],
    ) -> Option<Point> {
        let whole = self.of::<&str>(&[]);
        let rest = |share: f64| -> Vec<f64> {
            let both = part.iter();
            let both = both.filter_map(|(block, own)| Some((own, whole.get(block)?)));
            both.map(|(part, whole)| part - share * whole).collect()
        };
        let test = |share: f64| signed_rank(&rest(share), 1.0 - ALPHA);
        let interval = |share: f64| test(share)?.interval;
        test(0.0)?;
        let share = bisect(&|share| test(share).is_some_and(|test| test.centre > 0.0));
        let low = || bisect(&|share| interval(share).is_some_and(|ends| ends.low > 0.0));
        let high = || bisect(&|share| interval(share).is_some_and(|ends| ends.high >= 0.0));
        Some(Point {
            suspects: suspects.iter().map(|one| one.as_ref().to_owned()).collect(),
            interval: interval(share).map(|_| (low(), high())),
            ..Point::new(standing, Quantity::Share, share)
        })
    }

    /// The share that remains without these suspects.
    pub(super) fn remaining(&self, standing: Standing, without: &[String]) -> Option<Point> {
        self.share(standing, &self.of(without), without)
    }
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

/// The part that disappears between two variants, in the blocks that both share.
pub(super) fn differences(with: &Deviations, without: &Deviations) -> Deviations {
    let both = with.iter();
    let both = both.filter_map(|(block, value)| Some((*block, value - without.get(block)?)));
    both.collect()
}

impl Point {
    /// Its only suspect in the words of findings; empty for none, and for several.
    pub fn suspect_in_words(&self) -> &str {
        match self.suspects.as_slice() {
            [one] => Suspect::find(one).map_or(one.as_str(), |suspect| suspect.what),
            _ => "",
        }
    }
}

/// The remaining part with all suspects, without each, and without all. Uses the estimator of the verdicts, so that removed
/// and remaining parts add up. Empty if the phenomenon is not reproduced, or no suspect was tried.
pub fn remainders(analysis: &Analysis) -> Vec<Point> {
    let of_run = measured(analysis).zip(causes(analysis));
    let of_run = of_run.filter(|(_, found)| found.again == Standing::Reproduced);
    let Some(((inquiry, deviations), found)) = of_run else {
        return Vec::new();
    };
    if inquiry.tried.is_empty() {
        return Vec::new();
    }
    let variants = Variants::new(inquiry, &deviations);
    let all = inquiry.tried.len();
    let is_off = |suspect: &String| failed_check(analysis, inquiry, suspect).is_none();
    let shown = inquiry.variants.iter().filter(|variant| {
        let count = variant.without.len();
        (count <= 1 || count == all) && variant.without.iter().all(is_off)
    });
    // Joint causes reverse it only if all are removed.
    let is_reversed = |without: &[String]| {
        found.suspects.iter().any(|point| match point.standing {
            Standing::Reverses => without == point.suspects,
            Standing::TogetherReverse => without.len() == all,
            _ => false,
        })
    };
    let left = shown.filter_map(|variant| {
        let standing = match is_reversed(&variant.without) {
            true => Standing::Reverses,
            false => Standing::Unexplained,
        };
        variants.remaining(standing, &variant.without)
    });
    left.collect()
}
