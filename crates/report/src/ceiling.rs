//! The ceiling of a cell and the share of it that the cell reaches, in words.

use iolab_analysis::analysis::{DoubtKind, Efficiency};
use iolab_workload::units::{format_percent, significant};

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
