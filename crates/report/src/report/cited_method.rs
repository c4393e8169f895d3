//! The method of a study as one paragraph, with citations.

use iolab_analysis::analysis::TrialOrder;

use super::visits::{has_blocks, visits};

/// Rule that ends the repetition of trials in random blocks.
const REPETITION: &str = r" Repetition ends when half of the 95\,\% interval of the median, over the median, reaches the precision goal, or with the budget; it never ends on a p value.";

/// The rules that a sentence applies to (none: all studies), and the sentence in LaTeX.
type Sentence = (&'static [&'static str], &'static str);

const SENTENCES: &[Sentence] = &[
    (
        &[],
        r"A cell is summarised by its median with the order-statistic interval~(Conover 1999); two levels are compared by the median of their ratios within the blocks that both share, with exact simultaneous intervals over all comparisons of a kind. Cells of separate runs are compared by the ratio of their medians, whose interval comes from the ends of the exact intervals of both.",
    ),
    (
        &[
            "programs-differ", "programs-significance", "programs-equivalent", "preparation",
        ],
        r"Differences are tested by Welch's t test~(1947), equivalence by two one-sided tests~(Schuirmann 1987).",
    ),
    (
        &["drift"],
        r"Drift over the trials is tested by Mann and Kendall's test~(1945), corrected over the cells by Holm's method~(1979).",
    ),
    (
        &["level-over-run", "level-within-trials", "level-in-warm-up"],
        r"Lasting shifts of the level are found by PELT~(Killick et al. 2012).",
    ),
    (
        &["two-groups"],
        r"Two groups of trials are reported where their separation exceeds Ashman's~$D = 3.5$~(1994).",
    ),
    (
        &["best-sizes"],
        r"The place of the best size has a percentile bootstrap interval~(Efron and Tibshirani 1993).",
    ),
    (
        &["fixed-costs"],
        r"The time of a request is modelled as a fixed cost and a rate for its bytes~(Hockney 1994).",
    ),
    (
        &["serialised", "exceeds-ceiling"],
        r"How many requests are served at once follows from Little's law~(1961) and the utilisation law~(Denning and Buzen 1978); efficiency is the share of a ceiling~(Williams et al. 2009).",
    ),
    (
        &[
            "not-steady", "steady-rounds", "rounds-alike", "rounds-not-steady",
        ],
        r"Settled levels and steady rounds have the limits of the SNIA test specification~(SNIA 2020).",
    ),
    (
        &[],
        r"Latency is recorded for each request in a histogram with three significant digits~(HdrHistogram); in a closed loop it is the service time, at a given rate the response time~(Schroeder et al. 2006). For each trial, the requested bytes are compared with the process account, the device counters and the page cache; only results whose bytes the device served are reported as the device's.",
    ),
];

/// The paragraph in LaTeX, of a study whose runs have these orders of trials. `has` says whether it has a finding of a rule.
pub(super) fn method(orders: &[Option<TrialOrder>], has: impl Fn(&str) -> bool) -> String {
    let belongs = |rules: &[&str]| rules.is_empty() || rules.iter().any(|rule| has(rule));
    let sentences = SENTENCES.iter().filter(|(rules, _)| belongs(rules));
    let sentences: Vec<&str> = sentences.map(|(_, sentence)| *sentence).collect();
    let repetition = match has_blocks(orders) {
        true => REPETITION,
        false => "",
    };
    format!(
        "The unit of replication is the trial: requests inside one trial share its state and are not independent samples. {} Outliers are kept.{repetition} {}",
        visits(orders, r"~(Fisher 1935)"),
        sentences.join(" ")
    )
}
