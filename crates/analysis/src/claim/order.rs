//! The order of claims, and which of them a page begins with.

use super::comparison::{Comparison, Contrast, TARGET};
use super::effect::{CellId, Difference, Effect, Estimate, MARGIN};
use super::kind::Role;
use super::{Claim, Payload, Standing, kind};
use crate::doubt::RatioBound;
use crate::trial_values::distinct;

/// Most claims at the beginning of a page.
pub const HEADLINES_MAX: usize = 5;

impl Claim {
    /// Meaning of this claim for the reader.
    pub fn role(&self) -> Role {
        self.comparison().map_or(self.role, Comparison::role)
    }

    /// Whether it compares targets and shows nothing of them: neither a difference, nor equivalence, nor how large a difference can be.
    pub fn is_undecided(&self) -> bool {
        let is_open = |one: &Effect| one.difference == Difference::CannotTell;
        let found = self.comparison().filter(|_| self.compares_targets());
        found.is_some_and(|found| found.effects.iter().all(is_open))
    }

    /// Whether it compares targets. A user gives several targets for no other reason.
    pub fn compares_targets(&self) -> bool {
        let found = self.comparison();
        found.is_some_and(|found| found.contrast.topic() == TARGET)
    }

    /// How near it is to what was asked; of claims of its role those with the least stand first.
    fn distance(&self) -> u8 {
        match self.comparison() {
            Some(_) if self.compares_targets() => 0,
            Some(comparison) if !comparison.leads => 2,
            _ => 1,
        }
    }

    /// Weight of the claim among claims of its role: the natural logarithm of the smallest ratio in its
    /// interval, without what owed time explains. Claims without a ratio have 0 and keep their order.
    pub fn size(&self) -> f64 {
        let effects = self.comparison().into_iter().flat_map(Comparison::shown);
        let worse = self.of(Standing::Worse).filter_map(|point| point.ratio);
        let ratios = effects.map(|effect| effect.estimate).chain(worse);
        let sizes = ratios.chain(self.ratio).map(|ratio| ratio.lasting_size());
        sizes.fold(0.0, f64::max)
    }

    /// Key of the kind of a claim: its name, and the factor that it is about.
    pub fn kind(&self) -> (&'static str, &str) {
        let topic = self.comparison().map_or("", |one| one.contrast.topic());
        (self.kind.name, topic)
    }
}

impl From<Comparison> for Claim {
    fn from(comparison: Comparison) -> Self {
        let kind = match comparison.is_asked() {
            true => &kind::ASKED_EFFECT,
            false => &kind::EFFECT,
        };
        let effects = comparison.effects.iter();
        let mut cells: Vec<CellId> = effects.flat_map(|one| [one.base, one.other]).collect();
        if let Contrast::Company { alone } = &comparison.contrast {
            cells.extend(alone);
        }
        Self::new(kind, cells).with_payload(Payload::Comparison(comparison))
    }
}

impl Contrast {
    /// The compared factor.
    pub fn topic(&self) -> &str {
        match self {
            Self::Pattern => "pattern",
            Self::Direction => "direction",
            Self::Levels { factor, .. } => factor,
            Self::Company { .. } => "company",
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
        distinct(self.effects.iter().map(|effect| effect.levels.1.as_str()))
    }

    /// Effects with this conclusion.
    pub fn of(&self, difference: Difference) -> impl DoubleEndedIterator<Item = &Effect> {
        let all = self.effects.iter();
        all.filter(move |one| one.difference == difference)
    }

    /// Whether it is what its cells were measured for: several targets, or groups at once and alone. An open one is an answer too.
    fn is_asked(&self) -> bool {
        [TARGET, "company"].contains(&self.contrast.topic())
    }

    fn role(&self) -> Role {
        if self.is_asked() {
            Role::Answer
        } else if self.shown().next().is_some() {
            Role::Effect
        } else if self.of(Difference::Equivalent).next().is_some() {
            // That the factor asked about never makes a difference is an answer.
            match self.leads && self.of(Difference::Equivalent).count() == self.effects.len() {
                true => Role::Answer,
                false => Role::Equivalence,
            }
        } else {
            Role::Nothing
        }
    }
}

impl Effect {
    /// The logarithm of the ratio in the interval that is closest to 1; 0 where the interval contains 1.
    pub fn size(&self) -> f64 {
        self.estimate.size()
    }
}

impl Estimate {
    /// The size without what owed time explains of it.
    fn lasting_size(&self) -> f64 {
        match (self.bound, self.ratio > 1.0) {
            (Some(RatioBound::AtMost), true) | (Some(RatioBound::AtLeast), false) => {
                self.size() - self.owed.ln()
            }
            _ => self.size(),
        }
    }

    /// As [`Effect::size`].
    fn size(&self) -> f64 {
        let Some((low, high)) = self.interval else {
            return 0.0;
        };
        low.ln().max(-high.ln()).max(0.0)
    }
}

/// The claims that show something, in descending weight, and the others: claims that show nothing, then what
/// weakens the numbers or what they do not show.
pub fn ordered(claims: &[Claim]) -> (Vec<&Claim>, Vec<&Claim>) {
    let (mut news, mut rest): (Vec<&Claim>, Vec<&Claim>) = claims
        .iter()
        .partition(|claim| claim.role() < Role::Weakness);
    let key = |claim: &Claim| (claim.role(), claim.distance());
    news.sort_by(|a, b| key(a).cmp(&key(b)).then(b.size().total_cmp(&a.size())));
    rest.sort_by_key(|claim| claim.role() != Role::Nothing);
    (news, rest)
}

/// The claims that a page may begin with, in descending weight, at most [`HEADLINES_MAX`]. Excludes claims that show nothing and
/// effects within the margin; of each kind about the same runs, only the first. A straggler comes before all others: all numbers of its run
/// reflect it.
pub fn headlines(claims: &[Claim]) -> Vec<&Claim> {
    let mut chosen: Vec<&Claim> = Vec::new();
    let answers = |claim: &Claim, runs: &[usize]| {
        claim.kind == &kind::FASTEST_WAY[0] && claim.role() == Role::Answer && claim.runs() == runs
    };
    let is_of_ways = |claim: &Claim| {
        let runs = claim.runs();
        claim.comparison().is_some() && claims.iter().any(|other| answers(other, &runs))
    };
    let decides = |claim: &Claim| match claim.role() {
        _ if is_of_ways(claim) => false,
        // Sizes that are all alike leave nothing to choose.
        Role::Effect | Role::BestInSettings => claim.size() > MARGIN.ln_1p(),
        role => role <= Role::Equivalence,
    };
    let stragglers = claims.iter().filter(|one| one.kind == &kind::STRAGGLER);
    let news = ordered(claims).0.into_iter().filter(|one| decides(one));
    for claim in stragglers.chain(news) {
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
