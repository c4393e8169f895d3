//! The method of a study as one paragraph, and the works that it cites.

use iolab_analysis::analysis::TrialOrder;

use super::visits::{has_blocks, visits};

/// What ends the repetition of trials in random blocks.
const REPETITION: &str = r" Repetition ends when half of the 95\,\% interval of the median, over the median, reaches the precision goal, or with the budget; it never ends on a p value.";

/// The rules that a sentence applies to (none: all studies), and the sentence in LaTeX.
type Sentence = (&'static [&'static str], &'static str);

const SENTENCES: &[Sentence] = &[
    (
        &[],
        r"A cell is summarised by its median with the order-statistic interval~\cite{conover1999}; two levels are compared by the median of their ratios within the blocks that both share, with exact intervals that hold together over all comparisons of a kind. Cells of separate runs are compared by the ratio of their medians, whose interval comes from the ends of the exact intervals of both.",
    ),
    (
        &[
            "programs-differ", "programs-significance", "programs-equivalent", "preparation",
        ],
        r"Differences are tested by Welch's t test~\cite{welch1947}, equivalence by two one-sided tests~\cite{schuirmann1987}.",
    ),
    (
        &[],
        r"Drift over the trials is tested by Mann and Kendall's test~\cite{mann1945} and dependence by Ljung and Box's~\cite{ljung1978}, both corrected over the cells by Holm's method~\cite{holm1979}.",
    ),
    (
        &["level-over-run", "level-within-trials", "level-in-warm-up"],
        r"Lasting shifts of the level are found by PELT~\cite{killick2012}.",
    ),
    (
        &["two-groups"],
        r"Two groups of trials are reported where their separation exceeds Ashman's~$D = 3.5$~\cite{ashman1994}.",
    ),
    (
        &["best-sizes"],
        r"The place of the best size has a percentile bootstrap interval~\cite{efron1993}.",
    ),
    (
        &["bends"],
        r"Bends of a curve are the knots of a continuous piecewise linear fit on logarithmic axes, as many as a corrected information criterion allows~\cite{mcquarrie1999}.",
    ),
    (
        &["fixed-costs"],
        r"The time of a request is modelled as a fixed cost and a rate for its bytes~\cite{hockney1994}.",
    ),
    (
        &["serialised", "exceeds-ceiling"],
        r"How many requests are served at once follows from Little's law~\cite{little1961} and the utilisation law~\cite{denning1978}; efficiency is the share of a ceiling~\cite{williams2009}.",
    ),
    (
        &[
            "steady-state", "steady-rounds", "rounds-alike", "rounds-not-steady",
        ],
        r"Settled levels and steady rounds have the limits of the SNIA test specification~\cite{snia2020}.",
    ),
    (
        &[],
        r"Latency is recorded for each request in a histogram with three significant digits~\cite{hdrhistogram}; in a closed loop it is the service time, at a given rate the response time~\cite{schroeder2006}. For each trial, the requested bytes are compared with the process account, the device counters and the page cache; only results whose bytes the device served are reported as the device's.",
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
        visits(orders, r"~\cite{fisher1935}"),
        sentences.join(" ")
    )
}

/// The bibliography for BibTeX.
pub(super) fn bib() -> Vec<u8> {
    BIB.as_bytes().to_vec()
}

const BIB: &str = include_str!("references.bib");

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: [Option<TrialOrder>; 1] = [Some(TrialOrder::Blocks)];
    const METHODS: &str = include_str!("../../../../docs/METHODS.md");

    /// Key, family name of the first author, and year of each work.
    fn works() -> Vec<(&'static str, &'static str, &'static str)> {
        let field = |work: &'static str, name: &str| {
            let (_, rest) = work.split_once(&format!("  {name} = {{"))?;
            let ends = [rest.find("},\n"), rest.find("}\n")];
            rest.get(..ends.into_iter().flatten().min()?)
        };
        let work = |work: &'static str| {
            let (key, _) = work.split_once(',')?;
            let (_, key) = key.split_once('{')?;
            let authors = field(work, "author").unwrap_or_default();
            let first = authors.split(" and ").next().unwrap_or_default();
            let name = first.rsplit(' ').next().unwrap_or_default();
            let year = field(work, "year").unwrap_or_default();
            Some((
                key,
                name.trim_matches(['{', '}']),
                year.trim_end_matches('}'),
            ))
        };
        BIB.split("\n@").filter_map(work).collect()
    }

    #[test]
    fn all_that_the_draft_cites_can_be_looked_up() {
        let all = method(&BLOCKS, |_| true);
        let cited = all.split("\\cite{").skip(1);
        for key in cited.filter_map(|rest| rest.split('}').next()) {
            assert!(works().iter().any(|work| work.0 == key), "{key}");
        }
        assert!(!method(&BLOCKS, |_| false).contains("killick2012"));
    }

    #[test]
    fn all_that_the_methods_cite_is_there() {
        let works = works();
        assert!(works.len() >= 60, "{}", works.len());
        let mut seen = 0;
        for (at, _) in METHODS.match_indices('(') {
            let year = METHODS.get(at + 1..at + 5).unwrap_or_default();
            let closes = METHODS.get(at + 5..at + 6) == Some(")");
            if !closes
                || !(year.starts_with("1") || year.starts_with("20"))
                || year.parse::<u32>().is_err()
            {
                continue;
            }
            // The name precedes the year in the same sentence or table cell.
            let from = (0..=at.saturating_sub(170))
                .rev()
                .find(|i| METHODS.is_char_boundary(*i));
            let before = &METHODS[from.unwrap_or(0)..at];
            let ascii = before.replace('ö', "{\\\"o}");
            let known = |work: &&(&str, &str, &str)| work.2 == year && ascii.contains(work.1);
            assert!(works.iter().any(|work| known(&work)), "{year}: {before}");
            seen += 1;
        }
        assert!(seen >= 60, "{seen}");
    }
}
