//! The method of the report, with its formulas and references, and the order of the trials.

use iolab_analysis::analysis::TrialOrder;
use iolab_figure::distinct;

/// One rule of the method.
struct MethodRule {
    name: &'static str,
    applies: Applies,
    /// The rule, with its formula as plain text.
    text: &'static str,
    sources: &'static [&'static str],
}

/// Studies whose document has a rule.
enum Applies {
    Always,
    /// Studies that repeat trials for a precision.
    Blocks,
    /// Studies with a finding of one of these rules.
    To(&'static [&'static str]),
}

const BLOCKS: &str = "Fisher, The Design of Experiments (1935), ch. 4";

/// The rules that apply to a study, and the references whose numbers they cite. `orders` are the orders of trials of its
/// runs, `found` the rules of its findings.
pub(super) fn rules(
    orders: &[Option<TrialOrder>],
    found: &[&str],
) -> (Vec<String>, Vec<&'static str>) {
    let has_blocks = has_blocks(orders);
    let applies = |rule: &&MethodRule| match rule.applies {
        Applies::Always => true,
        Applies::Blocks => has_blocks,
        Applies::To(names) => names.iter().any(|name| found.contains(name)),
    };
    let mut references: Vec<&'static str> = Vec::new();
    let mut cite = |sources: &[&'static str]| {
        let numbers = sources.iter().map(|source| {
            let known = references.iter().position(|known| known == source);
            let place = known.unwrap_or_else(|| {
                references.push(source);
                references.len() - 1
            });
            format!("[{}]", place + 1)
        });
        let numbers: Vec<String> = numbers.collect();
        match numbers.is_empty() {
            true => String::new(),
            false => format!(" {}", numbers.join(", ")),
        }
    };
    let source: &[&'static str] = if has_blocks { &[BLOCKS] } else { &[] };
    let mut rules = vec![format!(
        "Trials and samples: The trial is the unit of replication. Requests inside one trial share its state and are not independent samples. {} Outliers are never dropped.{}",
        visits(orders),
        cite(source)
    )];
    for rule in RULES.iter().filter(applies) {
        let cited = cite(rule.sources);
        rules.push(format!("{}: {}{cited}", rule.name, rule.text));
    }
    (rules, references)
}

/// All rules but the one on trials, in the order in which they apply to the data.
const RULES: &[MethodRule] = &[
    MethodRule {
        name: "Throughput",
        applies: Applies::Always,
        text: "Bytes of completed requests over the time from the first start to the last end; MB/s is a million bytes per second. Opening, filling and seeding are outside of that time. Formula: throughput = bytes / elapsed.",
        sources: &[],
    },
    MethodRule {
        name: "Median and its interval",
        applies: Applies::Always,
        text: "The interval lies between two order statistics of the n trials, x(l) and x(u), and holds for any distribution. Fewer than 6 trials give none. Formula: confidence = 1 − 2 · P(B ≤ l − 1), u = n + 1 − l, with B binomial of n and 1/2.",
        sources: &["Conover, Practical Nonparametric Statistics (1999), section 3.2"],
    },
    MethodRule {
        name: "Mean and its interval",
        applies: Applies::Always,
        text: "Next to the median, with Student's t and n − 1 degrees of freedom. Formula: mean ± t(0.975; n − 1) · s / √n.",
        sources: &["Student, Biometrika 6 (1908) 1-25"],
    },
    MethodRule {
        name: "Repetition",
        applies: Applies::Blocks,
        text: "A cell is repeated until half of the interval of its median, over the median, is within the goal, or until the budget or the most trials allowed are reached. The report states which of them ended it. Repetition never ends on a p value. Formula: (high − low) / (2 · median) ≤ goal.",
        sources: &[],
    },
    MethodRule {
        name: "Ratio of medians",
        applies: Applies::Always,
        text: "For cells that share no blocks: the low end of the exact interval of one median over the high end of the other, and the high end over the low one. The interval assumes nothing about either distribution, and holds between two groups of values too. Formula: median(new) / median(base); low(new) / high(base) to high(new) / low(base).",
        sources: &["David and Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1"],
    },
    MethodRule {
        name: "Claims",
        applies: Applies::Always,
        text: "Two cells of a run that differ in one thing are compared within the blocks that both share: the median of their ratios with its exact interval (a t interval widened beyond all ratios where the blocks are too few). All intervals of one kind in a run are simultaneous 95 % intervals (Bonferroni). Higher and lower: the interval lies on one side of 1; equivalent: within 5 % of it. Below six trials, and where the evidence of these cells could turn it round, nothing is claimed.",
        sources: &["David and Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1"],
    },
    MethodRule {
        name: "Served by",
        applies: Applies::Always,
        text: "For every trial the requested bytes are compared with the process's account of storage I/O, the device's counters, what the page cache held before and after, and holes and unwritten extents. A number whose verdict is not device is never called the device's.",
        sources: &["proc(5)", "Documentation/admin-guide/iostats.rst of Linux"],
    },
    MethodRule {
        name: "Latency",
        applies: Applies::Always,
        text: "Every request's time is recorded in a histogram with 3 significant digits. A cell's quantile is the median over the trials of each trial's quantile. In a closed loop it is the service time; at a given rate it is the response time, which counts from the intended start.",
        sources: &[
            "Tene, HdrHistogram",
            "Schroeder, Wierman and Harchol-Balter, NSDI 2006",
        ],
    },
    MethodRule {
        name: "Drift and dependence",
        applies: Applies::Always,
        text: "Intervals take trials to be independent. Mann and Kendall's test looks for a drift, Ljung and Box's for dependence, both with Holm's correction over the cells. Formula: S = Σ sign(x(j) − x(i)), i < j.",
        sources: &[
            "Mann, Econometrica 13 (1945) 245-259",
            "Ljung and Box, Biometrika 65 (1978) 297-303",
            "Holm, Scandinavian Journal of Statistics 6 (1979) 65-70",
        ],
    },
    MethodRule {
        name: "Two programs",
        applies: Applies::To(&[
            "programs-differ", "programs-significance", "programs-equivalent",
            "cost-of-page-faults",
        ]),
        text: "Differences of the times are tested by Welch's t test, equivalence by two one-sided tests.",
        sources: &[
            "Welch, Biometrika 34 (1947) 28-35",
            "Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657-680",
        ],
    },
    MethodRule {
        name: "Changes of level",
        applies: Applies::To(&["level-over-run", "level-within-trials", "level-in-warm-up"]),
        text: "Lasting shifts are found by PELT on logarithms.",
        sources: &["Killick, Fearnhead and Eckley, JASA 107 (2012) 1590-1598"],
    },
    MethodRule {
        name: "Two groups",
        applies: Applies::To(&["two-groups"]),
        text: "Two groups of trials are reported if Ashman's D exceeds 3.5.",
        sources: &["Ashman, Bird and Zepf, Astronomical Journal 108 (1994) 2348-2361"],
    },
    MethodRule {
        name: "Fixed cost and rate",
        applies: Applies::To(&["cost-of-requests"]),
        text: "The time of a request is modelled as a fixed cost and a rate for its bytes. Formula: time = fixed + size / rate.",
        sources: &["Hockney, Parallel Computing 20 (1994) 389-398"],
    },
    MethodRule {
        name: "Concurrency",
        applies: Applies::To(&["serialised", "exceeds-ceiling"]),
        text: "How many requests are served at once follows from Little's law and the utilisation law; efficiency is the share of a ceiling.",
        sources: &[
            "Little, Operations Research 9 (1961) 383-387",
            "Denning and Buzen, ACM Computing Surveys 10 (1978) 225-261",
            "Williams, Waterman and Patterson, CACM 52 (2009) 65-76",
        ],
    },
    MethodRule {
        name: "Steady rounds",
        applies: Applies::To(&[
            "not-steady", "steady-rounds", "rounds-alike", "rounds-not-steady",
        ]),
        text: "Settled levels and steady rounds have the limits of the SNIA test specification.",
        sources: &["SNIA, Solid State Storage Performance Test Specification 2.0.2 (2020)"],
    },
];

/// The sentences about the orders of the runs.
fn visits(orders: &[Option<TrialOrder>]) -> String {
    let all = distinct(orders);
    let sentences = all.iter().map(|order| {
        let text = match order {
            Some(TrialOrder::BlocksAfterWarmUp) => {
                "All cells are visited in randomised complete blocks from the recorded seed, so that a drift adds to the spread of every cell and is not mistaken for an effect. The first trial of every cell is a warm-up, kept in the run file and left out of every number."
            }
            Some(TrialOrder::Blocks) => {
                "All cells are visited in randomised complete blocks from the recorded seed, so that a drift adds to the spread of every cell and is not mistaken for an effect. No trial is a warm-up."
            }
            Some(TrialOrder::Rounds) => {
                "All cells are visited in rounds, in the order of the definition, until the last rounds are steady or no more are allowed. Rounds before the last window are kept in the run file and left out of every number."
            }
            Some(TrialOrder::OnlyTrials) => {
                "Each cell has one trial, from its first request on, without a warm-up."
            }
            None => "The order of the trials is not known.",
        };
        match all.len() {
            1 => text.to_owned(),
            _ => format!("Of some runs: {text}"),
        }
    });
    sentences.collect::<Vec<String>>().join(" ")
}

/// Whether a run repeats trials for a precision, in random blocks.
fn has_blocks(orders: &[Option<TrialOrder>]) -> bool {
    orders.iter().any(|order| match order {
        Some(TrialOrder::BlocksAfterWarmUp | TrialOrder::Blocks) => true,
        Some(TrialOrder::Rounds | TrialOrder::OnlyTrials) | None => false,
    })
}
