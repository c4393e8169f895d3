//! The ceiling of a cell and the share of it that the cell reaches, in words.

use iolab_analysis::analysis::{DoubtKind, Efficiency};
use iolab_workload::quantity::{format_percent, significant};

/// `510 MB/s stated`.
pub fn ceiling(of: &Efficiency) -> String {
    let unit = if of.is_iops { "IOPS" } else { "MB/s" };
    format!("{} {unit} {}", significant(of.ceiling), of.source)
}

/// `87 %`; above 100 % with the reason.
pub fn share(of: &Efficiency) -> String {
    let share = format_percent(of.share);
    match of.cause {
        _ if of.share <= 1.0 => share,
        cause => format!("{share} ({})", cause.unwrap_or(DoubtKind::ExceedsCeiling)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_record::peak_source::PeakSource;

    #[test]
    fn share_above_one_has_an_explanation() {
        let of = |share, cause| Efficiency {
            ceiling: 510.0,
            is_iops: false,
            source: PeakSource::Stated,
            share,
            cause,
        };
        assert_eq!(share(&of(0.87, None)), "87 %");
        let cached = of(1.39, Some(DoubtKind::PageCache));
        assert_eq!(share(&cached), "139 % (page cache)");
        assert_eq!(share(&of(1.39, None)), "139 % (exceeds ceiling)");
        assert!(of(1.39, None).exceeds() && !of(1.0, None).exceeds());
        assert_eq!(ceiling(&of(0.5, None)), "510 MB/s stated");
    }
}
