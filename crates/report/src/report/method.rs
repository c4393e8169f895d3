//! The method of the report, with its formulas and references, and the order of the trials.

use iolab_analysis::analysis::TrialOrder;
use iolab_analysis::trial_values::distinct;
use iolab_workload::table;

/// One rule of the method: name, findings, text, sources.
type MethodRule = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
);

/// Stands for a finding of studies that repeat trials for a precision.
const REPETITION: &str = "repetition";

const BLOCKS: &str = "Fisher, The Design of Experiments (1935), ch. 4";

/// The rules that apply to a study, and the references whose numbers they cite. `orders` are the orders of trials of its
/// runs, `found` the rules of its findings.
pub(super) fn rules(
    orders: &[Option<TrialOrder>],
    found: &[&str],
) -> (Vec<String>, Vec<&'static str>) {
    let has_blocks = has_blocks(orders);
    let applies = |(_, of, ..): &&MethodRule| {
        let mut of = of.iter();
        of.len() == 0 || of.any(|name| found.contains(name) || has_blocks && *name == REPETITION)
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
    for (name, _, text, sources) in RULES.iter().filter(applies) {
        rules.push(format!("{name}: {text}{}", cite(sources)));
    }
    (rules, references)
}

/// All rules but the one on trials, in the order in which they apply to the data: each with the findings that need it,
/// its text with the formula, and its sources. Every study needs a rule without findings.
const RULES: [MethodRule; 15] = table! {
    ("Throughput", &[], "Bytes of completed requests over the time from the first start to the last end; MB/s is a million bytes per second. Opening, filling and seeding are outside of that time. Formula: throughput = bytes / elapsed.",
     &[]);
    ("Median and its interval", &[], "The interval lies between two order statistics of the n trials, x(l) and x(u), and holds for any distribution. Fewer than 6 trials give none. Formula: confidence = 1 − 2 · P(B ≤ l − 1), u = n + 1 − l, with B binomial of n and 1/2.",
     &["Conover, Practical Nonparametric Statistics (1999), section 3.2"]);
    ("Mean and its interval", &[], "Next to the median, with Student's t and n − 1 degrees of freedom. Formula: mean ± t(0.975; n − 1) · s / √n.",
     &["Student, Biometrika 6 (1908) 1-25"]);
    ("Repetition", &[REPETITION], "A cell is repeated until the interval of its median is within the goal on both sides, as a share of the median, or until the budget or the most trials allowed are reached. The report states which of them ended it. Repetition never ends on a p value. Formula: max(high − median, median − low) / median ≤ goal.",
     &[]);
    ("Ratio of medians", &[], "For cells that share no blocks, on logarithms. With the medians m1 and m2 of base and new and their intervals l to u, interpolated between ranks, the interval of the difference runs from m2 − m1 − √((m2 − l2)² + (u1 − m1)²) to m2 − m1 + √((u2 − m2)² + (m1 − l1)²); from l2 − u1 to u2 − l1 of the exact intervals where a wide gap between the values of a side may separate two groups. Formula: median(new) / median(base).",
     &["Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702", "Hettmansperger and Sheather, Statistics & Probability Letters 4 (1986) 75-79"]);
    ("Claims", &[], "Two cells of a run that differ in one thing are compared within the blocks that both share: the median of their ratios with its exact interval (a t interval widened beyond all ratios where the blocks are too few). All intervals of one kind in a run are simultaneous 95 % intervals (Bonferroni). Higher and lower: the interval lies on one side of 1; equivalent: within 5 % of it. Below six trials, and where the evidence of these cells could turn it round, nothing is claimed.",
     &["David and Nagaraja, Order Statistics, 3rd ed. (2003), section 7.1"]);
    ("Served by", &[], "For every trial the requested bytes are compared with the process's account of storage I/O, the device's counters, what the page cache held before and after, and holes and unwritten extents. A number whose verdict is not device is never called the device's.",
     &["proc(5)", "Documentation/admin-guide/iostats.rst of Linux"]);
    ("Latency", &[], "Every request's time is recorded in a histogram with 3 significant digits. A cell's quantile is the median over the trials of each trial's quantile. In a closed loop it is the service time; at a given rate it is the response time, which counts from the intended start.",
     &["Tene, HdrHistogram", "Schroeder, Wierman and Harchol-Balter, NSDI 2006"]);
    ("Drift and dependence", &[], "Intervals take trials to be independent. Mann and Kendall's test looks for a drift, Ljung and Box's for dependence, both with Holm's correction over the cells. Formula: S = Σ sign(x(j) − x(i)), i < j.",
     &["Mann, Econometrica 13 (1945) 245-259", "Ljung and Box, Biometrika 65 (1978) 297-303", "Holm, Scandinavian Journal of Statistics 6 (1979) 65-70"]);
    ("Two programs", &["programs-differ", "programs-equivalent", "cost-of-page-faults"], "Differences of the times are tested by Welch's t test, equivalence by two one-sided tests.",
     &["Welch, Biometrika 34 (1947) 28-35", "Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987) 657-680"]);
    ("Changes of level", &["level-over-run", "level-within-trials", "level-in-warm-up"], "Lasting shifts are found by PELT on logarithms.",
     &["Killick, Fearnhead and Eckley, JASA 107 (2012) 1590-1598"]);
    ("Two groups", &["two-groups"], "Two groups of trials are reported if Ashman's D exceeds 3.5.",
     &["Ashman, Bird and Zepf, Astronomical Journal 108 (1994) 2348-2361"]);
    ("Fixed cost and rate", &["cost-of-requests"], "The time of a request is modelled as a fixed cost and a rate for its bytes. Formula: time = fixed + size / rate.",
     &["Hockney, Parallel Computing 20 (1994) 389-398"]);
    ("Concurrency", &["serialised"], "How many requests are served at once follows from Little's law and the utilisation law; efficiency is the share of a ceiling.",
     &["Little, Operations Research 9 (1961) 383-387", "Denning and Buzen, ACM Computing Surveys 10 (1978) 225-261", "Williams, Waterman and Patterson, CACM 52 (2009) 65-76"]);
    ("Steady rounds", &["not-steady", "steady-rounds", "rounds-alike", "rounds-not-steady"], "Settled levels and steady rounds have the limits of the SNIA test specification.",
     &["SNIA, Solid State Storage Performance Test Specification 2.0.2 (2020)"]);
};

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
