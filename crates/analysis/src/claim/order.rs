//! The order of claims, and which of them a page begins with.

use super::comparison::{Contrast, TARGET};
use super::effect::{Difference, Estimate, MARGIN};
use super::kind::Role;
use super::{Claim, Point, Standing, kind};
use crate::doubt::RatioBound;

/// Most claims at the beginning of a page.
pub const HEADLINES_MAX: usize = 5;

impl Claim {
    /// Meaning of this claim for the reader.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it compares targets and shows nothing of them: neither a difference, nor equivalence, nor how large a difference can be.
    pub fn is_undecided(&self) -> bool {
        let is_open = |one: &Point| one.difference() == Difference::CannotTell;
        self.compares_targets() && self.points.iter().all(is_open)
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
        let is_shown = |one: &&Point| one.standing == Standing::Worse || one.is_effect();
        let ratios = self.points.iter().filter(is_shown);
        let ratios = ratios.filter_map(|point| point.ratio);
        let sizes = ratios.chain(self.ratio).map(|ratio| ratio.lasting_size());
        sizes.fold(0.0, f64::max)
    }

    /// Key of the kind of a claim: its name, and the factor that it is about.
    pub fn kind(&self) -> (&'static str, &str) {
        let topic = self.comparison().map_or("", |one| one.contrast.topic());
        (self.kind.name, topic)
    }
}

impl Contrast {
    /// The compared factor.
    pub fn topic(&self) -> &str {
        match self {
            Self::Pattern => "pattern",
            Self::Direction => "direction",
            Self::Levels { factor } => factor,
            Self::Company => "company",
        }
    }
}

impl Point {
    /// How the value differs from the one that it is compared with.
    pub fn difference(&self) -> Difference {
        let interval = self.ratio.and_then(|ratio| ratio.interval);
        match self.standing {
            Standing::Main | Standing::Differs | Standing::Opposite | Standing::Worse => {
                match interval.is_some_and(|(_, high)| high < 1.0) {
                    true => Difference::Lower,
                    false => Difference::Higher,
                }
            }
            Standing::Equivalent => Difference::Equivalent,
            Standing::NotFound => Difference::NotFound,
            _ => Difference::CannotTell,
        }
    }

    /// Whether it is shown to be higher or lower than its base in a comparison.
    pub fn is_effect(&self) -> bool {
        let is_shown = matches!(
            self.standing,
            Standing::Main | Standing::Differs | Standing::Opposite
        );
        self.base.is_some() && is_shown
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

    /// The logarithm of the ratio in the interval that is closest to 1; 0 where the interval contains 1.
    pub fn size(&self) -> f64 {
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
