//! How much a result of each rule matters for the choice of settings or storage.

use crate::Rule;
use crate::agreement::AGREEMENT;
use crate::concurrency::SERIALISED;
use crate::direction::WRITES_AGAINST_READS;
use crate::memory::SMALL_PAGES;
use crate::preparation::PREPARATION;
use crate::programs::{PROGRAMS_DIFFER, PROGRAMS_EQUIVALENT};
use crate::rate::LOAD;
use crate::rule::{MEDIANS, RATIOS};
use crate::scaling::SCALING;
use crate::shape::{BENDS, FIXED_COSTS};
use crate::sizes::{BEST_SIZE, BEST_SIZES, PLATEAU};
use crate::skipping::COST_OF_SKIPPING;
use crate::sync::COST_OF_SYNC;
use crate::tail::LATENCY_TAIL;
use crate::verified::VERIFIED;

/// Rules of headlines, each over several runs.
pub(super) const SIZES: Rule = Rule::result("sizes", MEDIANS);
pub(super) const RANDOM: Rule = Rule::result("random", RATIOS);
pub(super) const DURABILITY: Rule = Rule::result("durability", RATIOS);
pub(super) const SKIPS: Rule = Rule::result("skips", RATIOS);
pub(super) const REQUEST_COSTS: Rule = Rule::result("request-costs", FIXED_COSTS.basis);
pub(super) const TAILS: Rule = Rule::result("tails", LATENCY_TAIL.basis);

/// Rules from the weightiest to the lightest.
const ORDER: [Rule; 24] = [
    AGREEMENT,
    VERIFIED,
    DURABILITY,
    COST_OF_SYNC,
    SERIALISED,
    SCALING,
    LOAD,
    PREPARATION,
    SMALL_PAGES,
    SIZES,
    RANDOM,
    WRITES_AGAINST_READS,
    PROGRAMS_DIFFER,
    PROGRAMS_EQUIVALENT,
    PLATEAU,
    SKIPS,
    COST_OF_SKIPPING,
    REQUEST_COSTS,
    BEST_SIZE,
    TAILS,
    LATENCY_TAIL,
    BEST_SIZES,
    FIXED_COSTS,
    BENDS,
];

/// The weight of a rule; the greater, the earlier it is told.
pub(super) fn of(rule: Rule) -> usize {
    let place = ORDER.iter().position(|other| *other == rule);
    place.map_or(0, |place| ORDER.len() - place)
}
