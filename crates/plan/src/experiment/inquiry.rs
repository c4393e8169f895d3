//! Differences that experiments explain, and the cells that do so: both sides with each suspect taken away alone, with all taken
//! away, and with all but one. All of that is one experiment, so that every variant has a place in every block.

use serde::{Deserialize, Serialize};

use super::{Experiment, check_question};
use crate::suspect::{BETWEEN, Obstacle, Suspect};
use iolab_workload::{Error, Result};

/// Most blocks of an explanation, without the warm-up: more of them settle little.
pub const BLOCKS_MAX: u32 = 30;

/// A difference to be explained, and the cells that do so; written into the definition of the run that measures them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inquiry {
    /// The difference, in words.
    pub phenomenon: String,
    /// Ratio of the response of the other side to the base, in the run that showed the difference.
    pub seen: f64,
    /// Ratio that would be expected without the phenomenon.
    pub expected: f64,
    /// Suspects that are taken away, in the order of the variants.
    pub tried: Vec<String>,
    /// Suspects that are not taken away.
    #[serde(default)]
    pub untried: Vec<Untried>,
    /// Idle time before each trial, which restores what the one before has drained, ns; `None` if none is needed.
    #[serde(default)]
    pub idle_ns: Option<u64>,
    /// Time of each trial if the budget has no room for trials as long as in the first run, ns; otherwise `None`.
    #[serde(default)]
    pub shorter_ns: Option<u64>,
    /// The measured variants; the first has all suspects.
    pub variants: Vec<Variant>,
    /// Cells between both sides, which show the suspect [`BETWEEN`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<String>,
}

impl Inquiry {
    /// Whether both sides are one cell, whose 99th percentile of latency is compared with its median.
    pub fn compares_quantiles(&self) -> bool {
        let unchanged = self.variants.first();
        unchanged.is_some_and(|one| one.base == one.other)
    }

    /// The suspects on which the run gives a verdict.
    pub fn suspects(&self) -> impl Iterator<Item = &'static Suspect> {
        let between = (!self.between.is_empty()).then_some(BETWEEN);
        let names = self.tried.iter().map(String::as_str).chain(between);
        names.filter_map(Suspect::find)
    }
}

/// A suspect that is not tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Untried {
    /// Name of the suspect.
    pub suspect: String,
    /// Reason why it is not tried.
    pub why: Obstacle,
}

/// Both sides with some suspects taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The suspects that are taken away.
    pub without: Vec<String>,
    /// The cell that is compared with, by the levels of its factors: `bs=4KiB, pattern=seq`.
    pub base: String,
    /// The cell that is compared with it.
    pub other: String,
}

impl Experiment {
    /// Whether each trial on a model has a new disk. Otherwise each variant would find the caches and credits of the one
    /// before. If something is written before the first trial, all trials find that.
    pub fn starts_afresh(&self) -> bool {
        self.inquiry.is_some() && !self.design.precondition.writes()
    }

    /// Checks the texts of suspects, which come from a run file of unknown origin and are shown.
    pub(super) fn check_inquiry(&self) -> Result<()> {
        let Some(inquiry) = &self.inquiry else {
            return Ok(());
        };
        let texts = inquiry.untried.iter().flat_map(|one| match &one.why {
            Obstacle::Conflict { error } => vec![&one.suspect, error],
            _ => vec![&one.suspect],
        });
        let of_variants = inquiry
            .variants
            .iter()
            .flat_map(|one| [&one.base, &one.other]);
        let others = inquiry.between.iter().chain([&inquiry.phenomenon]);
        let mut texts = texts.chain(of_variants).chain(others);
        texts.try_for_each(|text| check_question(text).map(drop))?;
        let is_known = |name: &String| Suspect::find(name).is_some();
        let named = inquiry.variants.iter().flat_map(|one| &one.without);
        let known = named.clone().all(|name| inquiry.tried.contains(name))
            && inquiry.tried.iter().all(is_known);
        let ratios = [inquiry.seen, inquiry.expected];
        let are_ratios = ratios.iter().all(|ratio| *ratio > 0.0 && ratio.is_finite());
        match known && are_ratios && !inquiry.variants.is_empty() {
            true => Ok(()),
            false => Err(
                Error::usage("the inquiry names suspects or ratios that cannot be")
                    .hint("leave [inquiry] out, or make a new one with: iolab why FILE"),
            ),
        }
    }
}
