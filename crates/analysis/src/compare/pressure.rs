//! In what the circumstances of two sides differ: CPU time taken by others, waiting, traffic of others.

use iolab_stats::median;

use super::Difference;
use crate::analysis::Circumstances;
use iolab_spec::quantity::format_percent;

/// Least difference of two shares that is told.
const STRONG: f64 = 0.05;

/// A share, and its name as a difference.
type Share = (&'static str, fn(&Circumstances) -> Option<f64>);

const SHARES: [Share; 4] = [
    ("steal", |c| c.steal),
    ("cpu_stall", |c| c.cpu_stall),
    ("memory_stall", |c| c.memory_stall),
    ("other_traffic", |c| c.others),
];

/// The shares whose medians over the matched cells differ strongly.
pub(super) fn differences(pairs: &[(&Circumstances, &Circumstances)]) -> Vec<Difference> {
    let difference = |(what, share): Share| {
        let known: Vec<(f64, f64)> = pairs
            .iter()
            .filter_map(|(base, new)| Some((share(base)?, share(new)?)))
            .collect();
        let (base, new): (Vec<f64>, Vec<f64>) = known.into_iter().unzip();
        let (base, new) = (median(&base)?, median(&new)?);
        ((base - new).abs() >= STRONG).then(|| Difference {
            what: what.to_owned(),
            base: format_percent(base),
            new: format_percent(new),
        })
    };
    SHARES.into_iter().filter_map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_differences_are_told_and_others_are_not() {
        let of = |steal, cpu_stall| Circumstances {
            steal: Some(steal),
            cpu_stall,
            ..Circumstances::default()
        };
        let (base, new) = (of(0.01, Some(0.1)), of(0.12, Some(0.13)));
        let told = differences(&[(&base, &new), (&base, &new)]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].what, "steal");
        assert_eq!((&*told[0].base, &*told[0].new), ("1.0 %", "12 %"));
        // What one side does not know is no difference.
        assert_eq!(differences(&[(&of(0.0, None), &of(0.0, Some(0.9)))]), []);
        assert_eq!(differences(&[]), []);
    }
}
