//! Which claims a page begins with.

use super::answers::Aspect;
use super::best::Best;
use super::change::Place;
use super::comparison::{Comparison, Contrast};
use super::effect::{Difference, Effect, MARGIN};
use super::series::{Shape, State};
use super::{Claim, Standing};

/// Most claims that a page begins with.
pub const HEADLINES_MAX: usize = 5;

/// What a claim is to the reader; the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It answers the question of an experiment.
    Answer,
    /// It explains a number.
    Explanation,
    /// A difference, or the best size of an access: it decides what to choose.
    Effect,
    /// The best size in each of several settings, in which the question was another one.
    BestInSettings,
    /// A change over time: a median mixes two levels.
    Change,
    /// No steady state: longer runs give other results.
    Unsteady,
    /// A limit that changes a decision.
    Limit,
    /// Levels that are equivalent.
    Equivalence,
    /// It says more of what others say.
    Detail,
    /// It weakens the numbers, and changes no decision.
    Weakness,
    /// Nothing was found, or nothing can be told: no news.
    Nothing,
}

impl Claim {
    /// What it is to the reader.
    pub fn role(&self) -> Role {
        match self {
            Self::Comparison(comparison) => comparison.role(),
            Self::Best(curves) if curves.iter().any(Best::shows) => match self.runs().len() {
                1 if curves.len() > 1 => Role::BestInSettings,
                _ => Role::Effect,
            },
            Self::Best(_) => Role::Nothing,
            Self::Ways(ways) if ways.shows() => Role::Answer,
            Self::Ways(_) => Role::Nothing,
            Self::Verified(_) | Self::Load(_) => Role::Answer,
            Self::Programs(programs) => match programs.aspect {
                Aspect::Ratio | Aspect::Equivalence(_) => Role::Answer,
                Aspect::Significance => Role::Detail,
            },
            Self::TooFew(_) | Self::Preparation(_) => Role::Explanation,
            Self::Change(_) => Role::Change,
            Self::Steady(steady) => match steady.state {
                State::Reached => Role::Detail,
                State::NotWrittenOver { .. } | State::NotReached { .. } => Role::Unsteady,
            },
            Self::LongTail(_) => Role::Limit,
            Self::Queued(_) | Self::FixedCosts(_) | Self::Bent(_) | Self::Together(_) => {
                Role::Detail
            }
            Self::Course(_) => Role::Weakness,
        }
    }

    /// Whether it is what the experiment asks about first; of claims of its role these stand first.
    fn leads(&self) -> bool {
        match self {
            Self::Comparison(comparison) => comparison.leads,
            _ => true,
        }
    }

    /// How much it matters among claims of its role: the natural logarithm of the greatest ratio that its interval allows no
    /// smaller one than; 0 where it is about no ratio, so that such claims keep their order.
    pub fn size(&self) -> f64 {
        match self {
            Self::Comparison(comparison) => {
                comparison.shown().map(Effect::size).fold(0.0, f64::max)
            }
            Self::Best(curves) => curves.iter().map(spread).fold(0.0, f64::max),
            Self::Ways(ways) => spread(ways),
            Self::LongTail(tail) => tail.interval.0.ln(),
            Self::Verified(_)
            | Self::Programs(_)
            | Self::Load(_)
            | Self::TooFew(_)
            | Self::Preparation(_)
            | Self::Change(_)
            | Self::Steady(_)
            | Self::Queued(_)
            | Self::FixedCosts(_)
            | Self::Bent(_)
            | Self::Together(_)
            | Self::Course(_) => 0.0,
        }
    }
}

impl Comparison {
    /// Effects in which one side is higher.
    pub fn shown(&self) -> impl Iterator<Item = &Effect> {
        let all = self.effects.iter();
        all.filter(|one| matches!(one.difference, Difference::Higher | Difference::Lower))
    }

    /// Effects of one kind.
    pub fn of(&self, difference: Difference) -> impl DoubleEndedIterator<Item = &Effect> {
        self.effects
            .iter()
            .filter(move |one| one.difference == difference)
    }

    fn role(&self) -> Role {
        if self.shown().next().is_some() {
            Role::Effect
        } else if self.of(Difference::Equivalent).next().is_some() {
            Role::Equivalence
        } else {
            Role::Nothing
        }
    }
}

impl Effect {
    /// The logarithm of the least ratio, of either sign, that the interval allows; 0 where it holds 1.
    pub fn size(&self) -> f64 {
        let Some((low, high)) = self.estimate.interval else {
            return 0.0;
        };
        low.ln().max(-high.ln()).max(0.0)
    }
}

/// The logarithm of the least ratio between the best size and the worst one.
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

/// The claims that show something, the weightiest first, and those that show nothing.
pub fn ordered(claims: &[Claim]) -> (Vec<&Claim>, Vec<&Claim>) {
    let (mut news, nothing): (Vec<&Claim>, Vec<&Claim>) = claims
        .iter()
        .partition(|claim| claim.role() < Role::Nothing);
    let key = |claim: &Claim| (claim.role(), !claim.leads());
    news.sort_by(|a, b| key(a).cmp(&key(b)).then(b.size().total_cmp(&a.size())));
    (news, nothing)
}

/// The claims that a page may begin with, the weightiest first, of which it takes [`HEADLINES_MAX`]: none that shows nothing, no effect
/// within the margin, of one kind about the same runs one, and no factors of a run whose ways are compared as wholes.
pub fn headlines(claims: &[Claim]) -> Vec<&Claim> {
    let mut chosen: Vec<&Claim> = Vec::new();
    let answers = |claim: &Claim, runs: &[usize]| {
        matches!(claim, Claim::Ways(_)) && claim.role() == Role::Answer && claim.runs() == runs
    };
    let is_of_ways = |claim: &Claim| {
        let runs = claim.runs();
        matches!(claim, Claim::Comparison(_)) && claims.iter().any(|other| answers(other, &runs))
    };
    let decides = |claim: &Claim| match claim.role() {
        _ if is_of_ways(claim) => false,
        Role::Effect => claim.size() > MARGIN.ln_1p(),
        role => role <= Role::Equivalence,
    };
    for claim in ordered(claims).0.into_iter().filter(|claim| decides(claim)) {
        let is_alike =
            |other: &&Claim| other.kind() == claim.kind() && other.runs() == claim.runs();
        if !chosen.iter().any(is_alike) {
            chosen.push(claim);
        }
    }
    chosen
}

impl Claim {
    /// Claims of one kind share it: the name of the kind, and the factor that is compared.
    pub fn kind(&self) -> (&'static str, &str) {
        match self {
            Self::Comparison(Comparison { contrast, .. }) => match contrast {
                Contrast::Pattern { .. } => ("random-against-sequential", ""),
                Contrast::Direction { .. } => ("writes-against-reads", ""),
                Contrast::Ordered { factor } => ("scaling", factor),
                Contrast::Levels { factor, .. } => ("levels", factor),
            },
            Self::Best(_) => ("best-size", ""),
            Self::Ways(_) => ("fastest-way", ""),
            Self::LongTail(_) => ("long-tail", ""),
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
                Place::OverRun { .. } => ("level-over-run", ""),
                Place::WithinTrials { .. } => ("level-within-trials", ""),
                Place::InWarmUp => ("level-in-warm-up", ""),
            },
            Self::Steady(steady) => match steady.state {
                State::Reached => ("steady-state", ""),
                State::NotWrittenOver { .. } => ("not-written-over", ""),
                State::NotReached { .. } => ("not-steady", ""),
            },
            Self::Queued(_) => ("queued", ""),
            Self::FixedCosts(_) => ("fixed-costs", ""),
            Self::Bent(_) => ("bends", ""),
            Self::Together(_) => ("shared-limit", ""),
            Self::Course(course) => match course.shape {
                Shape::Drifting { .. } => ("drift", ""),
                Shape::Dependent => ("dependence", ""),
                Shape::TwoGroups(_) => ("two-groups", ""),
            },
        }
    }
}
