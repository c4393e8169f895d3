//! A share, next to the limit that it is compared with.

use iolab_workload::quantity::{digits, format_percent, significant};

/// Most digits that distinguish a share from its limit.
const DIGITS_MAX: usize = 6;

/// A share and its limit: `9.8 %` and `10 %`, `10.04 %` and `10 %`. The share has as many digits as show on
/// which side of its limit it lies.
pub(crate) fn beside_limit(share: f64, limit: f64) -> (String, String) {
    let allowed = in_percent(limit);
    let (percent, most) = (share * 100.0, limit * 100.0);
    // The limit too is known only as it is printed, so that these texts have to differ.
    let number = |text: &str| text.trim_end_matches(" %").parse::<f64>().ok();
    let hides = |text: &str| percent != most && number(text) == number(&allowed);
    let precise = (3..=DIGITS_MAX).map(|count| format!("{} %", digits(percent, count)));
    let mut texts = std::iter::once(format_percent(share)).chain(precise);
    let text = texts
        .find(|text| !hides(text))
        .unwrap_or_else(|| match percent > most {
            true => format!("just above {allowed}"),
            false => format!("just below {allowed}"),
        });
    (text, allowed)
}

/// `20 %`, `0.01 %`, also for shares below a tenth of a percent.
fn in_percent(share: f64) -> String {
    match share > 0.0 && share < 0.000_95 {
        true => format!("{} %", significant(share * 100.0)),
        false => format_percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_the_limit_is_seen() {
        let cases = [
            (0.098, 0.1, "9.8 % (10 % allowed)"),
            (0.31, 0.2, "31 % (20 % allowed)"),
            (0.1, 0.1, "10 % (10 % allowed)"),
            (0.104, 0.1, "10.4 % (10 % allowed)"),
            (0.100_4, 0.1, "10.04 % (10 % allowed)"),
            (0.099_96, 0.1, "9.996 % (10 % allowed)"),
            (0.199_6, 0.2, "19.96 % (20 % allowed)"),
            (0.1 + 1e-9, 0.1, "just above 10 % (10 % allowed)"),
            (0.1 - 1e-9, 0.1, "just below 10 % (10 % allowed)"),
            (0.0, 0.0001, "0.0 % (0.0100 % allowed)"),
        ];
        for (share, limit, expected) in cases {
            let (text, allowed) = beside_limit(share, limit);
            assert_eq!(format!("{text} ({allowed} allowed)"), expected);
        }
    }
}
