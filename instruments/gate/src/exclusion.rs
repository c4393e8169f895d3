//! Reasons why runs are not compared, in words.

use iolab_analysis::runs::comparable_runs::ExclusionReason;

/// The reason in words: `another setting (budget)`.
pub(crate) fn excluded(why: &ExclusionReason) -> String {
    match why {
        ExclusionReason::Itself => "the new run itself".to_owned(),
        ExclusionReason::Later => "began after the new run".to_owned(),
        ExclusionReason::Unfinished => "not finished".to_owned(),
        ExclusionReason::Experiment => "another experiment or other settings".to_owned(),
        ExclusionReason::NoCellInCommon => "no cell in common".to_owned(),
        ExclusionReason::Settings(what) => format!("another setting ({what})"),
        ExclusionReason::Machine(what) => format!("another machine ({what})"),
        ExclusionReason::Target(what) => format!("another target ({what})"),
        ExclusionReason::Older => "older than the runs that are used (--last)".to_owned(),
    }
}
