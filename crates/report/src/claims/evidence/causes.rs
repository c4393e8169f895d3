//! The cause of a difference: whether the difference is there again, and what was found of each suspect.

use iolab_analysis::claim::{Again, CauseVerdict, Reproduction, Share, Suspected, Suspects};
use schemars::JsonSchema;
use serde::Serialize;

use crate::claims::Against;
use crate::claims::clean;
use crate::findings::sentences::why_untried;

/// A difference that another run showed, in the run that was made to explain it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ReproductionData {
    /// What the other run showed, in words.
    phenomenon: String,
    /// How many times as great the other side was there.
    seen: f64,
    /// How many times as great it would be without the phenomenon.
    expected: f64,
    /// How many times as great it is here; `null` without trials.
    ratio: Option<f64>,
    /// Low end of its 95 % interval.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
    /// The part of what the other run showed that is there again; `null` without trials.
    part: Option<ShareData>,
    /// Blocks in which both sides were measured.
    blocks: usize,
    /// The time of a trial, ns, where that is less than in the other run; `null` where it is as long.
    shorter_ns: Option<u64>,
    /// Idle time before each trial, ns, that is to bring back what the trial before drained; `null` where none was needed.
    idle_ns: Option<u64>,
    /// Whether the level of the run, or of a side, changed in spite of the idle time: a difference that is not there is `cannot_tell` then.
    level_changed: bool,
    /// `reproduced`, `not_reproduced` or `cannot_tell`.
    state: String,
    /// What is left of it without all suspects that were tried, or without one; `null` where it is not there, or none was tried.
    unexplained: Option<ShareData>,
    /// The suspect without which alone that is left, where more is left without all; `null`: without all.
    unexplained_without: Option<String>,
    /// What could make the difference by itself: disturbances, which could make what is not explained, and what makes it `cannot_tell`.
    doubts: Vec<Against>,
}

/// A part of a difference, of the logarithm of its ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ShareData {
    /// Estimate.
    share: f64,
    /// Low end of its 95 % interval; `null` with too few blocks.
    share_low: Option<f64>,
    /// High end of that interval.
    share_high: Option<f64>,
}

impl ShareData {
    fn of(share: &Share) -> Self {
        let (share_low, share_high) = share.interval.unzip();
        Self {
            share: share.share,
            share_low,
            share_high,
        }
    }
}

impl ReproductionData {
    pub(in crate::claims) fn of(found: &Reproduction) -> Self {
        let state = match found.again {
            Again::Reproduced => "reproduced",
            Again::NotReproduced => "not_reproduced",
            Again::CannotTell => "cannot_tell",
        };
        let (ratio_low, ratio_high) = found.interval.unzip();
        Self {
            phenomenon: clean(&found.phenomenon),
            seen: found.seen,
            expected: found.expected,
            ratio: found.ratio,
            ratio_low,
            ratio_high,
            part: found.part().as_ref().map(ShareData::of),
            blocks: found.blocks,
            shorter_ns: found.shorter_ns,
            idle_ns: found.idle_ns,
            level_changed: found.level_changed,
            state: state.to_owned(),
            unexplained: found.unexplained.as_ref().map(ShareData::of),
            unexplained_without: found.unexplained_without.as_deref().map(clean),
            doubts: found.doubts.iter().map(Against::of).collect(),
        }
    }
}

/// Suspects of one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct SuspectsData {
    /// `cause` (without it half of the difference or more is gone), `contributes` (a part of it), `joint` (each of several is enough),
    /// `cleared` (less than a quarter of it, or than the margin), `cannot_tell`, `not_tried`.
    verdict: String,
    /// In the order in which they were tried.
    suspects: Vec<SuspectData>,
    /// Blocks of the run.
    blocks: usize,
}

/// A mechanism that may cause a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Suspect")]
pub(crate) struct SuspectData {
    /// Its name.
    name: String,
    /// What part of the difference goes with it, of `joint` with all of them; `null` where it was not tried.
    share: Option<ShareData>,
    /// Of `joint`: whether that is with all other suspects too, because these were not taken away alone.
    with_others: bool,
    /// Whether the share is its effect alone, without all other suspects.
    by_itself: bool,
    /// How many times as great the other side is without it.
    ratio_without: Option<f64>,
    /// About how many blocks settle it, of `cannot_tell`; `null` where that is not known.
    blocks_needed: Option<usize>,
    /// Whether without it, or of `joint` without all of them, the difference has the opposite direction.
    is_reversed: bool,
    /// Why it was not tried.
    why: Option<String>,
    /// What could make the same change as the intervention: then it is `cannot_tell`. The base is the cell with the suspect.
    doubts: Vec<Against>,
}

impl SuspectsData {
    pub(in crate::claims) fn of(found: &Suspects) -> Self {
        let verdict = match found.verdict {
            CauseVerdict::Cause => "cause",
            CauseVerdict::Joint => "joint",
            CauseVerdict::Contributes => "contributes",
            CauseVerdict::Cleared => "cleared",
            CauseVerdict::CannotTell => "cannot_tell",
            CauseVerdict::NotTried => "not_tried",
        };
        let suspect = |one: &Suspected| SuspectData {
            name: clean(&one.suspect),
            share: one.share.as_ref().map(ShareData::of),
            with_others: one.with_others,
            by_itself: one.by_itself,
            ratio_without: one.ratio_without,
            blocks_needed: one.blocks_needed,
            is_reversed: one.is_reversed,
            why: one.untried.as_ref().map(|why| clean(&why_untried(why))),
            doubts: one.doubts.iter().map(Against::of).collect(),
        };
        Self {
            verdict: verdict.to_owned(),
            suspects: found.suspects.iter().map(suspect).collect(),
            blocks: found.blocks,
        }
    }
}
