//! A comparison in one line that can be pasted.

use std::borrow::Cow;

use crate::doubt::in_short;
use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{CellVerdict, Comparison, Valueless, WhyUndecided};
use iolab_analysis::doubt::RatioBound;
use iolab_figure::result_names;
use iolab_workload::quantity::{counted, format_percent};

use crate::cell_counts::all_cells;
use crate::ratio::{self, RatioShown};

/// The quantity of both sides.
pub(crate) fn measured(comparison: &Comparison) -> String {
    let response = comparison.response;
    response.map_or_else(|| "values".to_owned(), |response| response.to_string())
}

/// Why there is no conclusion about a cell, in a few words: `disturbed`, `p99 needs 368 requests in a trial; ...`.
pub(crate) fn undecided(why: WhyUndecided, response: Option<Response>) -> Cow<'static, str> {
    let text = match why {
        WhyUndecided::NoValue(sides) => return no_value(sides, response).into(),
        WhyUndecided::NoRatio => "a value is not positive, and the intervals overlap",
        WhyUndecided::FewTrials => "too few trials",
        WhyUndecided::FewRuns => "too few runs",
        WhyUndecided::WideInterval => "intervals too wide",
        WhyUndecided::OneRunEach => "one run each",
        WhyUndecided::Doubted(reason) => in_short(reason),
    };
    text.into()
}

fn no_value(sides: Valueless, response: Option<Response>) -> String {
    let sides = match sides {
        Valueless::Both => "either side",
        Valueless::Base => "the base",
        Valueless::New => "the new side",
    };
    let needs = |response: &Response| response.requests_min() > 1;
    match response.filter(needs) {
        Some(response) => {
            let requests = counted(response.requests_min(), "request");
            format!(
                "{} needs {requests} in a trial; no trial of {sides} has so many (increase --time)",
                response.name()
            )
        }
        None => format!("no trial of {sides} has a value of this"),
    }
}

/// What is said of one cell.
pub(crate) struct SaidOfCell {
    /// The verdict.
    pub(crate) verdict: CellVerdict,
    /// New over base, with the interval that decided.
    pub(crate) ratio: Option<RatioShown>,
    /// Its levels; empty where there is one cell only.
    pub(crate) at: String,
    /// The quantity; `None` for bare numbers.
    pub(crate) response: Option<Response>,
}

impl SaidOfCell {
    /// `0.71 times (0.66 to 0.77)`, `1/34.5 (1/35.9 to 1/32.1) of the base`.
    fn times(&self) -> Option<String> {
        self.ratio
            .map(|shown| ratio::times_of_that(shown, "", "the base"))
    }

    /// How far its ratio lies from 1, on the logarithm.
    fn size(&self) -> f64 {
        self.ratio.map_or(0.0, RatioShown::size)
    }

    /// The bound that its ratio is, where one side did not hold its rate.
    fn bound(&self) -> Option<RatioBound> {
        Some(self.ratio?.bound()?.0)
    }

    /// Why there is no conclusion about it.
    fn why(&self) -> Option<Cow<'static, str>> {
        let why = self.verdict.why_open()?;
        Some(undecided(why, self.response))
    }
}

/// ` (the base did not hold its rate)`, ` (in 2 the base did not hold its rate)`: which sides did not hold their rates among so many cells.
fn unheld_rates(bounds: impl Iterator<Item = RatioBound>, n: usize) -> String {
    let bounds: Vec<RatioBound> = bounds.collect();
    let side = match bounds.as_slice() {
        [] => return String::new(),
        all if all.iter().all(|one| *one == RatioBound::AtMost) => "the base",
        all if all.iter().all(|one| *one == RatioBound::AtLeast) => "the new side",
        _ => "one side",
    };
    let within = match bounds.len() {
        all if all == n => String::new(),
        some => format!("in {some} "),
    };
    format!(" ({within}{side} did not hold its rate)")
}

/// The answer for all cells: those that differ, with the largest difference; those that do not; those without a conclusion, with the reason.
pub(crate) fn answer(cells: &[SaidOfCell], margin: f64) -> String {
    let all = cells.len();
    let mut parts: Vec<String> = Vec::new();
    for verdict in [
        CellVerdict::Slower,
        CellVerdict::Faster,
        CellVerdict::Lower,
        CellVerdict::Higher,
        CellVerdict::Equivalent,
        CellVerdict::NoChange,
        CellVerdict::Identical,
    ] {
        let own: Vec<&SaidOfCell> = cells.iter().filter(|c| c.verdict == verdict).collect();
        // Of bounds none is the most: sides that held their rates come first.
        let size = |cell: &SaidOfCell| (cell.bound().is_none(), cell.size());
        let greater = |a: &SaidOfCell, b: &SaidOfCell| {
            let ((exact, size), (of_other, other)) = (size(a), size(b));
            exact.cmp(&of_other).then(size.total_cmp(&other))
        };
        let Some(most) = own.iter().max_by(|a, b| greater(a, b)) else {
            continue;
        };
        let what = match verdict {
            CellVerdict::Equivalent => format!("equivalent within {}", format_percent(margin)),
            CellVerdict::Identical => "the same run".to_owned(),
            other => result_names::verdict(other).into_owned(),
        };
        let times = match verdict {
            CellVerdict::NoChange | CellVerdict::Identical => None,
            _ => most.times(),
        };
        let n = own.len();
        // The first part says of how many.
        let count = match parts.is_empty() {
            _ if n == all => all_cells(all),
            true => format!("{n} of {all} cells"),
            false => n.to_string(),
        };
        let is_bound = most.bound().is_some();
        let most_of = if n == 1 || is_bound { "" } else { "the most " };
        let unheld = own.iter().filter_map(|cell| cell.bound());
        let unheld = unheld_rates(unheld, n);
        parts.push(match (all, verdict, times) {
            (_, CellVerdict::Identical, _) => what,
            (2.., CellVerdict::NoChange, _) if n == all => format!("{what} in any of {all} cells"),
            (2.., CellVerdict::NoChange, _) => format!("{what} in {count}"),
            (1, _, Some(times)) => format!("{what}, {times}{unheld}"),
            (1, ..) => what,
            (_, CellVerdict::Equivalent, _) | (.., None) => format!("{count} {what}"),
            (.., Some(times)) => {
                format!("{count} {what}, {most_of}{times} at {}{unheld}", most.at)
            }
        });
    }
    let open: Vec<&SaidOfCell> = cells.iter().filter(|c| c.verdict.is_open()).collect();
    let mut reasons: Vec<Cow<'static, str>> = Vec::new();
    for why in open.iter().filter_map(|cell| cell.why()) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    let reasons = reasons.join(", ");
    match (open.as_slice(), all) {
        ([], _) => {}
        ([only], 1) => {
            let times = only
                .times()
                .map_or_else(String::new, |times| format!(", {times}"));
            parts.push(format!("cannot tell{times}; {reasons}"));
        }
        (open, _) if open.len() == all => {
            parts.push(format!("cannot tell in any of {all} cells: {reasons}"));
        }
        (open, _) => parts.push(format!("cannot tell in {}: {reasons}", open.len())),
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `slower, the most 1/235` would be slower by that.
    #[test]
    fn a_fraction_says_of_what() {
        let of = |verdict, at: &str, ratio| SaidOfCell {
            verdict,
            ratio: Some(RatioShown::from(ratio)),
            at: at.to_owned(),
            response: None,
        };
        let slower = |at, ratio: f64| {
            let interval = Some((0.9 * ratio, 1.1 * ratio));
            of(CellVerdict::Slower, at, (ratio, interval))
        };
        let few = CellVerdict::CannotTell(WhyUndecided::FewTrials);
        let few = of(few, "", (1.0 / 107.0, None));
        let told = [
            answer(
                &[slower("bs=4KiB", 1.0 / 235.0), slower("bs=1MiB", 0.5)],
                0.05,
            ),
            answer(&[slower("bs=1MiB", 0.5)], 0.05),
            answer(&[few], 0.05),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        both cells slower, the most 1/235 (1/261 to 1/214) of the base at bs=4KiB
        slower, 0.500 times (0.450 to 0.550)
        cannot tell, 1/107 of the base; too few trials
        ");
    }

    /// Times of a side that did not hold its rate grow with the length of a trial: none of them is the most.
    #[test]
    fn cells_that_both_sides_held_come_first() {
        let of = |at: &str, ratio: f64, bound| SaidOfCell {
            verdict: CellVerdict::Faster,
            ratio: Some(RatioShown::from((ratio, Some((0.9 * ratio, 1.1 * ratio)))).bounded(bound)),
            at: at.to_owned(),
            response: None,
        };
        let (held, behind) = (
            || of("rate=1000", 0.5, None),
            |rate| of(rate, 0.001, Some(RatioBound::AtMost)),
        );
        let told = [
            answer(&[behind("rate=2000")], 0.05),
            answer(&[behind("rate=2000"), behind("rate=4000")], 0.05),
            answer(&[held(), behind("rate=2000")], 0.05),
            answer(
                &[
                    held(),
                    behind("rate=2000"),
                    of("rate=9", 3.0, Some(RatioBound::AtLeast)),
                ],
                0.05,
            ),
        ];
        insta::assert_snapshot!(told.join("\n"), @r"
        faster, at most 1/909 of the base (the base did not hold its rate)
        both cells faster, at most 1/909 of the base at rate=4000 (the base did not hold its rate)
        both cells faster, the most 0.500 times (0.450 to 0.550) at rate=1000 (in 1 the base did not hold its rate)
        all 3 cells faster, the most 0.500 times (0.450 to 0.550) at rate=1000 (in 2 one side did not hold its rate)
        ");
    }

    #[test]
    fn a_quantile_without_a_value_names_the_requests_that_it_needs() {
        let of = |response, sides| SaidOfCell {
            verdict: CellVerdict::CannotTell(WhyUndecided::NoValue(sides)),
            ratio: None,
            at: String::new(),
            response,
        };
        let p99999 = Some(Response::P99999);
        let lacking = [
            of(None, Valueless::Base),
            of(p99999, Valueless::Both),
            of(p99999, Valueless::Base),
            of(p99999, Valueless::New),
        ];
        let told = lacking.map(|lacking| answer(&[lacking], 0.05));
        insta::assert_snapshot!(told.join("\n"), @r"
        cannot tell; no trial of the base has a value of this
        cannot tell; p99.999 needs 368887 requests in a trial; no trial of either side has so many (increase --time)
        cannot tell; p99.999 needs 368887 requests in a trial; no trial of the base has so many (increase --time)
        cannot tell; p99.999 needs 368887 requests in a trial; no trial of the new side has so many (increase --time)
        ");
    }
}
