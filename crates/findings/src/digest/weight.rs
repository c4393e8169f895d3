//! How much a result of each rule matters to somebody who chooses settings or storage.

/// Rules from the weightiest to the lightest.
const ORDER: [&str; 23] = [
    "agreement",
    "verified",
    "durability",
    "cost-of-sync",
    "serialised",
    "scaling",
    "load",
    "preparation",
    "sizes",
    "random",
    "writes-against-reads",
    "programs-differ",
    "programs-equivalent",
    "plateau",
    "skips",
    "cost-of-skipping",
    "request-costs",
    "best-size",
    "tails",
    "latency-tail",
    "best-sizes",
    "fixed-costs",
    "bends",
];

/// The weight of a rule; the greater, the earlier it is told.
pub(super) fn of(rule: &str) -> usize {
    let place = ORDER.iter().position(|name| *name == rule);
    place.map_or(0, |place| ORDER.len() - place)
}
