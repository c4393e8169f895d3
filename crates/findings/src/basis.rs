//! What a finding is worth: what its rule rests on, and whether it tells a result, a doubt, or a limit.

use super::Finding;
use super::optimal::OPTIMAL_PATTERN;

/// What a sentence is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It answers a question.
    Result,
    /// It says how far the numbers can be trusted.
    Doubt,
    /// It says what the numbers do not tell.
    Limit,
}

/// A rule: its name, its kind, and what its sentences rest on.
type Rule = (&'static str, Kind, &'static str);

const RULES: &[Rule] = &[
    ("best-size", Kind::Result, MEDIANS),
    ("plateau", Kind::Result, MEDIANS),
    (
        "best-sizes",
        Kind::Result,
        "the trials of each size drawn anew 1000 times; the sizes that win",
    ),
    (
        "bends",
        Kind::Result,
        "straight pieces on log axes, their number by an information criterion; intervals from resampled trials",
    ),
    (
        "fixed-costs",
        Kind::Result,
        "the median time of a request at each size, fitted as a fixed cost and a rate",
    ),
    ("cost-of-skipping", Kind::Result, RATIOS),
    ("cost-of-sync", Kind::Result, RATIOS),
    ("writes-against-reads", Kind::Result, RATIOS),
    (
        "preparation",
        Kind::Result,
        "the ratio of medians with its interval, Welch's test, and the page faults of each trial",
    ),
    (
        "agreement",
        Kind::Result,
        "ratios within blocks; tests of difference and of equivalence, over the blocks",
    ),
    ("scaling", Kind::Result, RATIOS),
    (
        "latency-tail",
        Kind::Result,
        "the quantiles of each trial's histogram of all requests; the median of their ratio over the trials",
    ),
    (
        OPTIMAL_PATTERN,
        Kind::Result,
        "medians of all cells served by the device, and the ratio of two of them",
    ),
    (
        "serialised",
        Kind::Result,
        "how many requests were in service at once, by Little's law from the sum of their times",
    ),
    (
        "exceeds-ceiling",
        Kind::Doubt,
        "the median of each cell over the ceiling of its kind",
    ),
    ("peers", Kind::Doubt, "the command line of each trial"),
    (
        "gaps",
        Kind::Limit,
        "what each tool can be asked for, by its options",
    ),
    ("tail-unknown", Kind::Limit, "the requests of each trial"),
    ("one-place", Kind::Limit, "the targets of the runs"),
    ("untouched", Kind::Limit, "the region of each cell"),
    ("no-given-load", Kind::Limit, "the rate of each cell"),
    (
        "one-cache-state",
        Kind::Limit,
        "the cache state of each cell",
    ),
    ("random-against-sequential", Kind::Result, RATIOS),
    (
        "load",
        Kind::Result,
        "medians over the trials of their response times' quantiles",
    ),
    (
        "programs-differ",
        Kind::Result,
        "the ratio of median times with its interval",
    ),
    (
        "programs-significance",
        Kind::Result,
        "Welch's t test at each size",
    ),
    (
        "programs-equivalent",
        Kind::Result,
        "two one-sided t tests on the logarithms at each size",
    ),
    (
        "steady-state",
        Kind::Result,
        "the last 5 trials of each cell that writes",
    ),
    (
        "level-over-run",
        Kind::Doubt,
        "changepoints (PELT) in the logarithms of the trials, each confirmed by Welch's test for dependent values",
    ),
    (
        "level-within-trials",
        Kind::Doubt,
        "changepoints (PELT) in the median over the trials of each interval, confirmed likewise",
    ),
    (
        "drift",
        Kind::Doubt,
        "Mann and Kendall's test in each cell, with Holm's correction over the cells",
    ),
    (
        "dependence",
        Kind::Doubt,
        "Ljung and Box's test in each cell, with Holm's correction over the cells",
    ),
    (
        "two-groups",
        Kind::Doubt,
        "the density of each cell's trials, and its valley",
    ),
    (
        "suspended",
        Kind::Doubt,
        "the clock that counts sleep against the one that does not, in each trial",
    ),
    (
        "other-traffic",
        Kind::Doubt,
        "the device's counters beyond iolab's own bytes, over all trials of a cell",
    ),
    (
        "cpu-contended",
        Kind::Doubt,
        "pressure stall information and steal time, over all trials of a cell",
    ),
    ("requests-split", Kind::Doubt, DEVICE_REQUESTS),
    ("requests-in-pieces", Kind::Doubt, DEVICE_REQUESTS),
    (
        "read-ahead",
        Kind::Doubt,
        "the bytes that the process's account says were fetched, over those read",
    ),
    (
        "write-back-owed",
        Kind::Doubt,
        "an fdatasync that was timed after each trial",
    ),
    (
        "not-durable",
        Kind::Limit,
        "the sync policy of each cell that writes",
    ),
    (
        "rate-not-held",
        Kind::Doubt,
        "requests that were due and never made, in each trial",
    ),
    (
        "below-precision",
        Kind::Doubt,
        "half of the median's interval over the median, against the goal",
    ),
    ("failed-trials", Kind::Doubt, "what each trial ended with"),
    (
        "verify-failed",
        Kind::Doubt,
        "every block that a trial wrote, read back after it",
    ),
    (
        "verified",
        Kind::Result,
        "every block that a trial wrote, read back after it",
    ),
    (
        "unfinished",
        Kind::Limit,
        "how the run stands, and the cells without a measured trial",
    ),
    (
        "not-the-device",
        Kind::Limit,
        "the accounts of the process, the device and the page cache, for each trial",
    ),
];

const MEDIANS: &str = "medians over the trials, and whether their exact 95 % intervals overlap";
const RATIOS: &str = "ratios of medians with their 95 % intervals";
const DEVICE_REQUESTS: &str = "the device's count of requests over iolab's, in each trial";

impl Finding {
    /// What it is for; a result where the rule is not known.
    pub fn kind(&self) -> Kind {
        self.known().map_or(Kind::Result, |(_, kind, _)| *kind)
    }

    /// What its rule rests on; empty where the rule is not known.
    pub fn basis(&self) -> &'static str {
        self.known().map_or("", |(_, _, basis)| *basis)
    }

    fn known(&self) -> Option<&'static Rule> {
        RULES.iter().find(|(name, _, _)| *name == self.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_stands_once() {
        for (i, (name, _, basis)) in RULES.iter().enumerate() {
            assert!(!basis.is_empty(), "{name}");
            assert!(RULES[i + 1..].iter().all(|(other, _, _)| other != name));
        }
    }
}
