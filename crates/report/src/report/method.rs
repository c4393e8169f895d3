//! The method of the report: the short version of METHODS.md, with its formulas.

use std::borrow::Cow;

use iolab_analysis::analysis::TrialOrder;

use super::visits::{has_blocks, visits};

/// One rule of the method.
#[derive(Debug, Clone)]
pub(super) struct MethodRule {
    pub(super) name: &'static str,
    pub(super) text: Cow<'static, str>,
    /// The formula as plain text; empty for none.
    pub(super) formula: &'static str,
    /// Source of the rule; empty for none.
    pub(super) source: &'static str,
}

/// Name of the rule that applies only to trials which are repeated for a precision.
const REPETITION: &str = "Repetition";

/// The rules of a study whose runs have these orders of trials, in the order in which they apply to the data.
pub(super) fn rules(orders: &[Option<TrialOrder>]) -> Vec<MethodRule> {
    let has_blocks = has_blocks(orders);
    let trials = MethodRule {
        name: "Trials and samples",
        text: Cow::Owned(format!(
            "The trial is the unit of replication: requests inside one trial share its state and are not independent samples. {} Outliers are never dropped.",
            visits(orders, "")
        )),
        formula: "",
        source: match has_blocks {
            true => "Fisher, The Design of Experiments (1935), ch. 4",
            false => "",
        },
    };
    let rules = RULES
        .iter()
        .filter(|rule| has_blocks || rule.name != REPETITION);
    std::iter::once(trials).chain(rules.cloned()).collect()
}

/// Rules for every design, including repetition, in the order in which they apply to the data.
const RULES: &[MethodRule] = &[
    MethodRule {
        name: "Throughput",
        text: Cow::Borrowed(
            "Bytes of completed requests over the time from the first start to the last end; MB/s is 10^6 bytes per second. Opening, filling and seeding are outside of that time.",
        ),
        formula: "throughput = bytes / elapsed",
        source: "",
    },
    MethodRule {
        name: "Median and its interval",
        text: Cow::Borrowed(
            "The interval lies between two order statistics of the n trials, x(l) and x(u), and holds for any distribution. Fewer than 6 trials give none.",
        ),
        formula: "confidence = 1 − 2 · P(B ≤ l − 1), B ~ Binomial(n, 1/2), u = n + 1 − l",
        source: "Conover, Practical Nonparametric Statistics (1999), section 3.2",
    },
    MethodRule {
        name: "Mean and its interval",
        text: Cow::Borrowed("Beside the median, with Student's t and n − 1 degrees of freedom."),
        formula: "mean ± t(0.975; n − 1) · s / √n",
        source: "Student, Biometrika 6 (1908) 1-25",
    },
    MethodRule {
        name: REPETITION,
        text: Cow::Borrowed(
            "A cell is repeated until half of the interval of its median, over the median, is within the goal, or until the budget or the most trials allowed are reached. The report states which of them ended it. It never ends on a p value.",
        ),
        formula: "(high − low) / (2 · median) ≤ goal",
        source: "",
    },
    MethodRule {
        name: "Ratio of medians",
        text: Cow::Borrowed(
            "Of cells that share no blocks: the low end of the exact interval of one median over the high end of the other, and the high end over the low one. It assumes nothing about either distribution, and holds between two groups of values too.",
        ),
        formula: "median(new) / median(base); low(new) / high(base) to high(new) / low(base)",
        source: "David and Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1",
    },
    MethodRule {
        name: "Claims",
        text: Cow::Borrowed(
            "Two cells of a run that differ in one thing are compared within the blocks that both share: the median of their ratios with its exact interval (a t interval widened beyond all ratios where the blocks are too few). All intervals of one kind in a run are simultaneous 95 % intervals (Bonferroni). Higher and lower: the interval lies on one side of 1; equivalent: within 5 % of it. Below six trials, and where the evidence of these cells could turn it round, nothing is claimed.",
        ),
        formula: "",
        source: "David and Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1",
    },
    MethodRule {
        name: "Served by",
        text: Cow::Borrowed(
            "For every trial the requested bytes are compared with the process's account of storage I/O, the device's counters, what the page cache held before and after, and holes and unwritten extents. A number whose verdict is not device is never called the device's.",
        ),
        formula: "",
        source: "proc(5); Documentation/admin-guide/iostats.rst of Linux",
    },
    MethodRule {
        name: "Latency",
        text: Cow::Borrowed(
            "Every request's time is recorded in a histogram with 3 significant digits. A cell's quantile is the median over the trials of each trial's quantile. In a closed loop it is the service time; at a given rate it is the response time, which counts from the intended start.",
        ),
        formula: "",
        source: "Tene, HdrHistogram; Schroeder, Wierman and Harchol-Balter, NSDI 2006",
    },
    MethodRule {
        name: "Drift and dependence",
        text: Cow::Borrowed(
            "Intervals take trials to be independent. Mann and Kendall's test looks for a drift, Ljung and Box's for dependence, both with Holm's correction over the cells.",
        ),
        formula: "S = Σ sign(x(j) − x(i)), i < j",
        source: "Mann, Econometrica 13 (1945) 245-259; Holm, Scandinavian Journal of Statistics 6 (1979) 65-70",
    },
];
