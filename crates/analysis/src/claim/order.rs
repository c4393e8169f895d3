//! The order of claims, and which of them a page begins with.

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::Aspect;
use super::best::Best;
use super::causes::CauseVerdict;
use super::change::{Change, ChangePlace, NoChange};
use super::comparison::{Comparison, Contrast, TARGET};
use super::effect::{Difference, Effect, MARGIN};
use super::rounds::RoundsState;
use super::series::State;
use super::{Claim, Standing};
use crate::analysis::Timed;
use iolab_plan::precondition::Round;
use iolab_workload::response::Response;

/// Most claims at the beginning of a page.
pub const HEADLINES_MAX: usize = 5;

/// Meaning of a claim for the reader, in the order in which claims are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Answers the question of an experiment.
    Answer,
    /// Explains a number.
    Explanation,
    /// A difference, or the best size of an access: decides what to choose.
    Effect,
    /// The best size in each of several settings, where the experiment asks something else.
    BestInSettings,
    /// A change over time: a median would mix two levels.
    Change,
    /// No steady state: longer runs would give other results.
    Unsteady,
    /// A limit that changes a decision.
    Limit,
    /// Levels that are equivalent.
    Equivalence,
    /// Adds detail to other claims.
    Detail,
    /// Weakens the numbers without changing a decision.
    Weakness,
    /// Nothing was found, or the data does not suffice.
    Nothing,
}

impl Claim {
    /// Meaning of this claim for the reader.
    pub fn role(&self) -> Role {
        match self {
            Self::Comparison(comparison) => comparison.role(),
            Self::Best(curves) if curves.iter().any(Best::shows) => match self.runs().len() {
                _ if is_of_ways(curves) => Role::Answer,
                1 if curves.len() > 1 => Role::BestInSettings,
                _ => Role::Effect,
            },
            Self::Best(_) => Role::Nothing,
            Self::Load(load) if !load.doubts.is_empty() => Role::Nothing,
            Self::Verified(_) | Self::Load(_) => Role::Answer,
            Self::Programs(programs) => match programs.aspect {
                Aspect::Ratio if programs.pair.differs() => Role::Answer,
                Aspect::Equivalence(margin) if programs.pair.equivalent_from(margin).is_some() => {
                    Role::Answer
                }
                Aspect::Significance => Role::Detail,
                Aspect::Ratio | Aspect::Equivalence(_) => Role::Nothing,
            },
            Self::TooFew(_) | Self::Preparation(_) | Self::TimeByLayer(_) => Role::Explanation,
            Self::Change(Change {
                place: ChangePlace::WithinTrials { asked: true, .. },
                ..
            }) => Role::Answer,
            Self::Change(_) => Role::Change,
            // Who lets one trial run for long asks whether it stays as it is.
            Self::Gradual(_) => Role::Answer,
            Self::NoChange(NoChange {
                factor: None,
                drift: None,
                ..
            }) => Role::Nothing,
            Self::NoChange(_) => Role::Answer,
            Self::Steady(_) => Role::Unsteady,
            // Rounds of all cells are asked for with the cells themselves.
            Self::Rounds(rounds) if rounds.asked.round == Round::Cells => Role::Answer,
            Self::Rounds(rounds) if rounds.state == RoundsState::Steady => Role::Detail,
            Self::Rounds(_) => Role::Unsteady,
            Self::LongTail(_) | Self::Limit(_) => Role::Limit,
            Self::FixedCosts(_) => Role::Detail,
            Self::Reproduced(_) => Role::Answer,
            Self::Suspects(suspects) => match suspects.verdict {
                CauseVerdict::Cause | CauseVerdict::Joint | CauseVerdict::Contributes => {
                    Role::Explanation
                }
                CauseVerdict::Cleared | CauseVerdict::CannotTell | CauseVerdict::NotTried => {
                    Role::Detail
                }
            },
        }
    }

    /// Whether it compares targets and shows nothing of them: neither a difference, nor equivalence, nor how large a difference can be.
    pub fn is_undecided(&self) -> bool {
        match self {
            Self::Comparison(found) => {
                let told = [Difference::Equivalent, Difference::NotFound];
                self.compares_targets()
                    && found.shown().next().is_none()
                    && told.into_iter().all(|one| found.of(one).next().is_none())
            }
            _ => false,
        }
    }

    /// Whether it compares targets. A user gives several targets for no other reason.
    pub fn compares_targets(&self) -> bool {
        matches!(self, Self::Comparison(Comparison { contrast: Contrast::Levels { factor, .. }, .. }) if factor == TARGET)
    }

    /// How near it is to what was asked; of claims of its role those with the least stand first.
    fn distance(&self) -> u8 {
        match self {
            Self::Comparison(_) if self.compares_targets() => 0,
            Self::Comparison(comparison) if !comparison.leads => 2,
            _ => 1,
        }
    }

    /// Weight of the claim among claims of its role: the natural logarithm of the smallest ratio in its
    /// interval. Claims without a ratio have 0 and keep their order.
    pub fn size(&self) -> f64 {
        match self {
            Self::Comparison(comparison) => {
                comparison.shown().map(Effect::size).fold(0.0, f64::max)
            }
            Self::Best(curves) => curves.iter().map(spread).fold(0.0, f64::max),
            Self::LongTail(tail) => tail.interval.0.ln(),
            Self::Verified(_)
            | Self::Programs(_)
            | Self::Load(_)
            | Self::TooFew(_)
            | Self::Preparation(_)
            | Self::TimeByLayer(_)
            | Self::Change(_)
            | Self::Gradual(_)
            | Self::NoChange(_)
            | Self::Steady(_)
            | Self::Rounds(_)
            | Self::Limit(_)
            | Self::FixedCosts(_)
            | Self::Reproduced(_)
            | Self::Suspects(_) => 0.0,
        }
    }
}

impl Comparison {
    /// Effects with a higher or a lower side.
    pub fn shown(&self) -> impl Iterator<Item = &Effect> {
        let all = self.effects.iter();
        all.filter(|one| matches!(one.difference, Difference::Higher | Difference::Lower))
    }

    /// The levels that are compared with the base, in the order of the definition.
    pub fn others(&self) -> Vec<&str> {
        let mut levels: Vec<&str> = Vec::new();
        for effect in &self.effects {
            if !levels.contains(&effect.levels.1.as_str()) {
                levels.push(&effect.levels.1);
            }
        }
        levels
    }

    /// Effects with this conclusion.
    pub fn of(&self, difference: Difference) -> impl DoubleEndedIterator<Item = &Effect> {
        self.effects
            .iter()
            .filter(move |one| one.difference == difference)
    }

    fn role(&self) -> Role {
        // Several targets, or groups at once and alone, are measured to be compared. An open comparison is an
        // answer too.
        let is_asked = match &self.contrast {
            Contrast::Levels { factor, .. } => factor == TARGET,
            Contrast::Company { .. } => true,
            Contrast::Pattern | Contrast::Direction => false,
        };
        if is_asked {
            Role::Answer
        } else if self.shown().next().is_some() {
            Role::Effect
        } else if self.of(Difference::Equivalent).next().is_some() {
            Role::Equivalence
        } else {
            Role::Nothing
        }
    }
}

impl Effect {
    /// The logarithm of the ratio in the interval that is closest to 1; 0 where the interval contains 1.
    pub fn size(&self) -> f64 {
        let Some((low, high)) = self.estimate.interval else {
            return 0.0;
        };
        low.ln().max(-high.ln()).max(0.0)
    }
}

/// Whether a claim is about ways that an experiment names.
fn is_of_ways(curves: &[Best]) -> bool {
    curves.iter().any(|best| best.is_of_ways)
}

/// The logarithm of the smallest ratio between the best and the worst size.
fn spread(best: &Best) -> f64 {
    let worse = best
        .candidates
        .iter()
        .filter(|one| one.standing == Standing::Worse);
    let sizes = worse.filter_map(|one| {
        let (low, high) = one.of_best?.interval?;
        Some(low.ln().max(-high.ln()))
    });
    sizes.fold(0.0, f64::max)
}

/// The claims that show something, in descending weight, and those that show nothing.
pub fn ordered(claims: &[Claim]) -> (Vec<&Claim>, Vec<&Claim>) {
    let (mut news, nothing): (Vec<&Claim>, Vec<&Claim>) = claims
        .iter()
        .partition(|claim| claim.role() < Role::Nothing);
    let key = |claim: &Claim| (claim.role(), claim.distance());
    news.sort_by(|a, b| key(a).cmp(&key(b)).then(b.size().total_cmp(&a.size())));
    (news, nothing)
}

/// The claims that a page may begin with, in descending weight, at most [`HEADLINES_MAX`]. Excludes claims that show nothing and
/// effects within the margin; of each kind about the same runs, only the first.
pub fn headlines(claims: &[Claim]) -> Vec<&Claim> {
    let mut chosen: Vec<&Claim> = Vec::new();
    let answers = |claim: &Claim, runs: &[usize]| {
        matches!(claim, Claim::Best(curves) if is_of_ways(curves))
            && claim.role() == Role::Answer
            && claim.runs() == runs
    };
    let is_of_ways = |claim: &Claim| {
        let runs = claim.runs();
        matches!(claim, Claim::Comparison(_)) && claims.iter().any(|other| answers(other, &runs))
    };
    let decides = |claim: &Claim| match claim.role() {
        _ if is_of_ways(claim) => false,
        // Sizes that are all alike leave nothing to choose.
        Role::Effect | Role::BestInSettings => claim.size() > MARGIN.ln_1p(),
        role => role <= Role::Equivalence,
    };
    for claim in ordered(claims).0.into_iter().filter(|claim| decides(claim)) {
        let is_alike =
            |other: &&Claim| other.kind() == claim.kind() && other.runs() == claim.runs();
        if !chosen.iter().any(is_alike) {
            chosen.push(claim);
        }
    }
    // One is the answer of whoever gives two targets; several would push aside what is shown.
    if chosen.iter().filter(|claim| claim.is_undecided()).count() > 1 {
        chosen.retain(|claim| !claim.is_undecided());
    }
    chosen
}

impl Claim {
    /// Key of the kind of a claim: its name, and the factor compared.
    pub fn kind(&self) -> (&'static str, &str) {
        match self {
            Self::Comparison(Comparison { contrast, .. }) => match contrast {
                Contrast::Pattern => ("effect", "pattern"),
                Contrast::Direction => ("effect", "direction"),
                Contrast::Levels { factor, .. } => ("effect", factor),
                Contrast::Company { .. } => ("effect", "company"),
            },
            Self::Best(curves) if is_of_ways(curves) => ("fastest-way", ""),
            Self::Best(_) => ("best-size", ""),
            Self::LongTail(_) => ("long-tail", ""),
            Self::TimeByLayer(time) => match time.timed {
                Timed::Requests => ("time-by-layer", ""),
                Timed::Syncs => ("syncs-by-layer", ""),
            },
            Self::Verified(verified) => match verified.all.failed {
                0 => ("verified", ""),
                _ => ("verify-failed", ""),
            },
            Self::Programs(programs) => match programs.aspect {
                Aspect::Ratio => ("programs-differ", ""),
                Aspect::Significance => ("programs-significance", ""),
                Aspect::Equivalence(_) => ("programs-equivalent", ""),
            },
            Self::Load(_) => ("load", ""),
            Self::TooFew(_) => ("serialised", ""),
            Self::Preparation(_) => ("preparation", ""),
            Self::Change(change) => match change.place {
                ChangePlace::OverRun { .. } => ("level-over-run", ""),
                ChangePlace::WithinTrials { .. } => ("level-within-trials", ""),
                ChangePlace::InWarmUp => ("level-in-warm-up", ""),
            },
            Self::Gradual(_) => ("gradual-change", ""),
            Self::NoChange(_) => ("no-level-change", ""),
            Self::Steady(steady) => match steady.state {
                State::NotWrittenOver { .. } => ("not-written-over", ""),
                State::NotReached { .. } => ("not-steady", ""),
            },
            Self::Rounds(rounds) => match rounds.state {
                RoundsState::Steady => ("steady-rounds", ""),
                RoundsState::Alike(_) => ("rounds-alike", ""),
                RoundsState::NotSteady => ("rounds-not-steady", ""),
                RoundsState::TooFew | RoundsState::LacksValues | RoundsState::Unended => {
                    ("rounds-not-judged", "")
                }
            },
            Self::Limit(limit) => match limit.of {
                Response::Iops => ("request-limit", ""),
                _ => ("throughput-limit", ""),
            },
            Self::FixedCosts(_) => ("fixed-costs", ""),
            Self::Reproduced(_) => ("phenomenon", ""),
            Self::Suspects(suspects) => match suspects.verdict {
                CauseVerdict::Cause => ("cause", suspects.first()),
                CauseVerdict::Joint => ("joint-cause", ""),
                CauseVerdict::Contributes => ("contributes", suspects.first()),
                CauseVerdict::Cleared => ("cleared", ""),
                CauseVerdict::CannotTell => ("suspects-open", ""),
                CauseVerdict::NotTried => ("suspects-not-tried", ""),
            },
        }
    }
}
