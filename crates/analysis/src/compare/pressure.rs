//! Differences of two sides in their disturbances, over all cells.

use iolab_stats::median;

use super::difference::{Difference, DiffersIn, SideValue};
use crate::disturbance::CellDisturbance;
use crate::imbalance::Disturber;

/// Smallest difference of two shares that is reported. Verdicts on cells use a higher one: see [`Disturber::differs`].
const STRONG: f64 = 0.05;

/// Disturbances whose medians over the matched cells differ strongly.
pub(super) fn differences(pairs: &[(&CellDisturbance, &CellDisturbance)]) -> Vec<Difference> {
    let difference = |what: Disturber| {
        let (base, new): (Vec<f64>, Vec<f64>) = pairs
            .iter()
            .filter_map(|(base, new)| Some((what.value(base)?, what.value(new)?)))
            .unzip();
        let (base, new) = (median(&base)?, median(&new)?);
        let strong = match what {
            Disturber::Splitting | Disturber::Fragmentation => what.differs(base, new),
            _ => (base - new).abs() >= STRONG,
        };
        strong.then_some(Difference {
            what: DiffersIn::Disturbance(what),
            base: SideValue::Disturbed(what, base),
            new: SideValue::Disturbed(what, new),
        })
    };
    Disturber::ALL
        .iter()
        .copied()
        .filter_map(difference)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_differences_are_told_and_others_are_not() {
        let of = |steal, cpu_stall| CellDisturbance {
            steal: Some(steal),
            cpu_stall,
            ..CellDisturbance::default()
        };
        let (base, new) = (of(0.01, Some(0.1)), of(0.12, Some(0.13)));
        let told = differences(&[(&base, &new), (&base, &new)]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].what, DiffersIn::Disturbance(Disturber::Steal));
        let stolen = |share| SideValue::Disturbed(Disturber::Steal, share);
        assert_eq!(
            (&told[0].base, &told[0].new),
            (&stolen(0.01), &stolen(0.12))
        );
        // A value unknown on one side is not a difference.
        assert_eq!(differences(&[(&of(0.0, None), &of(0.0, Some(0.9)))]), []);
        assert_eq!(differences(&[]), []);
    }
}
