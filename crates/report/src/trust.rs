//! How far what an output shows can be trusted, in words and as data: one sentence for all formats.

use iolab_analysis::doubt::{DoubtClass, DoubtKind};
use iolab_analysis::trust::{Trust, TrustLevel};
use iolab_workload::units::{counted, format_percent};
use schemars::JsonSchema;
use serde::Serialize;

/// Intervals that are narrower are shown as this.
pub(crate) const LEAST_SHOWN: f64 = 0.001;

/// How far what is shown can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TrustInWords")]
pub(crate) struct TrustData<'a> {
    #[serde(flatten)]
    pub(crate) trust: &'a Trust,
    /// Sentence that iolab prints.
    pub(crate) sentence: String,
}

/// The verdict, once for all that is shown.
pub(crate) fn sentence(trust: &Trust) -> String {
    let Some(doubt) = trust.doubt else {
        return precision(trust).unwrap_or_else(|| counted(trust.cells, "result"));
    };
    let what = match trust.finding {
        Some(_) => format!("not every finding can be decided ({doubt})"),
        None => format!("{}{}", doubt.words(), place(trust)),
    };
    match trust.level {
        TrustLevel::Good | TrustLevel::Limited => format!("Limited: {what}."),
        TrustLevel::Poor => {
            let widest = match (trust.too_wide, trust.without_interval) {
                (Some(widest), _) => format!(" (intervals up to ±{})", format_percent(widest)),
                (None, 0) => String::new(),
                (None, _) => format!(" ({})", DoubtKind::FewTrials.words()),
            };
            let unusable = match doubt.class() {
                DoubtClass::Others => trust.disturbed,
                _ => trust.concerned,
            };
            let which = match unusable {
                n if n > 0 && n < trust.cells => {
                    format!("{n} of {} results not usable", trust.cells)
                }
                _ => "No usable result".to_owned(),
            };
            format!("{which}: {what}{widest}.")
        }
    }
}

/// `12 results, all within ±0.7 % (95 %)`; `None` where some have no interval.
pub(crate) fn precision(trust: &Trust) -> Option<String> {
    let widest = trust.widest.filter(|_| trust.without_interval == 0)?;
    let within = format!("within ±{} (95 %)", format_percent(widest.max(LEAST_SHOWN)));
    Some(match trust.sought {
        1 => format!("1 result, {within}"),
        2 => format!("2 results, both {within}"),
        n => format!("{n} results, all {within}"),
    })
}

/// Whether nothing but what others do makes the numbers useless.
pub(crate) fn is_by_others(trust: &Trust) -> bool {
    trust.level == TrustLevel::Poor && trust.doubt.map(DoubtKind::class) == Some(DoubtClass::Others)
}

/// Cells that a doubt concerns, after its words: ` in all 12 cells`, ` in 7 of 12 cells`; nothing for an only cell. If the
/// verdict is about some cells of the runs only, these are named so.
fn place(trust: &Trust) -> String {
    let whose = match trust.cells < trust.measured {
        true => " that the findings rest on",
        false => "",
    };
    match (trust.concerned, trust.cells) {
        (0, _) => String::new(),
        (_, 1) if whose.is_empty() => String::new(),
        (_, 1) => format!(" in the cell{whose}"),
        (2, 2) => format!(" in both cells{whose}"),
        (n, all) if n == all => format!(" in all {n} cells{whose}"),
        (n, all) => format!(" in {n} of {all} cells{whose}"),
    }
}
