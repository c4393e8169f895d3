//! Conclusions of several runs for a decision, and how far the cells of a comparison agree.

use std::collections::BTreeSet;

use crate::compare::conclusion;
use crate::compare::conclusion::overall;
use crate::findings::{Finding, sentences};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{self, CellId, Claim, HEADLINES_MAX, Kind, Role};
use iolab_analysis::compare::Comparison;
use iolab_analysis::headline_numbers::HeadlineNumbers;
use iolab_analysis::trust::{Shown, Trust};

/// A run with its comparisons of tools.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The run.
    pub run: &'a AnalysedRun,
    /// iolab against each of its peers.
    pub peers: &'a [Comparison],
}

/// A statement for the first part of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headline {
    /// Indices of its runs, in ascending order.
    pub runs: Vec<usize>,
    /// A sentence, or a few.
    pub text: String,
    /// Whether its text names its runs.
    pub names_runs: bool,
    /// The cells that it is based on; empty if it concerns runs as a whole.
    pub cells: Vec<CellId>,
    /// Whether its text names its targets.
    pub names_targets: bool,
}

/// First part of a page.
#[derive(Debug, Clone)]
pub struct Digest<'a> {
    /// The most commonly compared numbers.
    pub glance: HeadlineNumbers<'a>,
    /// Cells with measured trials.
    pub cells: usize,
    /// Trust in these numbers and in the headlines.
    pub trust: Trust,
    /// At most [`HEADLINES_MAX`] statements, the weightiest first.
    pub headlines: Vec<Headline>,
}

impl<'a> Digest<'a> {
    /// The digest of runs, in the order in which they were made.
    pub fn of(runs: &[Told<'a>]) -> Self {
        let analyses: Vec<&Analysis> = runs.iter().map(|told| told.run.analysis()).collect();
        let analysed: Vec<&AnalysedRun> = runs.iter().map(|told| told.run).collect();
        let claims = claim::claims(&analyses);
        let glance = HeadlineNumbers::of(&analyses);
        let (headlines, findings, whole) = headlines(runs, &analyses, &claims);
        // Without headlines, the tables and curves are the output, with the numbers of all cells.
        let rows = glance.rows.iter().filter(|_| !headlines.is_empty());
        let of_runs = whole.into_iter().flat_map(|run| {
            let cells = analyses[run].cells.iter();
            cells.map(move |cell| CellId {
                run,
                cell: cell.cell.id,
            })
        });
        let numbers: Vec<CellId> = rows.map(|row| row.id()).chain(of_runs).collect();
        let cells = analyses.iter().flat_map(|run| &run.cells);
        Self {
            glance,
            cells: cells.filter(|cell| cell.n > 0).count(),
            trust: Trust::of(&Shown {
                runs: &analysed,
                findings: &findings,
                numbers: &numbers,
            }),
            headlines,
        }
    }
}

/// Further effects of a factor that a headline names, by what was found: a line each, so that other factors have their own.
const HEADLINE_NAMED: usize = 1;

/// The headlines: agreement of tools if it was asked for, then the claims of the runs. Statements that several runs make in the same
/// words appear once. With them their claims, and the runs of headlines without a claim.
fn headlines<'c>(
    runs: &[Told<'_>],
    analyses: &[&Analysis],
    claims: &'c [Claim],
) -> (Vec<Headline>, Vec<Vec<&'c Claim>>, BTreeSet<usize>) {
    let of_tools = runs.iter().enumerate().flat_map(|(run, told)| {
        let shown = told.peers.iter().find(|peer| is_shown(peer));
        shown.map(move |peer| {
            let headline = Headline {
                runs: vec![run],
                text: agreement(peer).text,
                ..Headline::default()
            };
            (headline, Vec::new())
        })
    });
    let of_claims = claim::headlines(claims).into_iter();
    let of_claims = of_claims.map(|one| {
        let (runs, names_targets) = (one.runs(), sentences::names_targets(one, analyses));
        let headline = Headline {
            names_runs: runs.len() > 1 && !one.compares_targets(),
            names_targets,
            runs,
            cells: if one.is_of_run {
                Vec::new()
            } else {
                one.cells.clone()
            },
            text: sentences::text(one, analyses, HEADLINE_NAMED),
        };
        (headline, vec![one])
    });
    let mut all: Vec<(Headline, Vec<&Claim>)> = Vec::new();
    for (headline, claims) in of_tools.chain(of_claims) {
        match all
            .iter_mut()
            .find(|(other, _)| other.text == headline.text)
        {
            Some((other, its)) => {
                other.runs.extend(headline.runs);
                other.cells.extend(headline.cells);
                its.extend(claims);
            }
            None => all.push((headline, claims)),
        }
    }
    all.truncate(HEADLINES_MAX);
    let without = all.iter().filter(|(_, its)| its.is_empty());
    let whole = without.flat_map(|(headline, _)| headline.runs.iter().copied());
    let whole = whole.collect();
    let (headlines, its): (Vec<Headline>, Vec<Vec<&Claim>>) = all.into_iter().unzip();
    (headlines, its, whole)
}

static AGREEMENT: Kind = Kind::new(
    "agreement",
    Role::Answer,
    "ratios within blocks, with simultaneous 95 % intervals",
);

/// A peer of a run compared with iolab.
pub fn agreement(comparison: &Comparison) -> Finding {
    let together = overall(comparison).map_or_else(String::new, |text| format!(" {text}"));
    Finding {
        kind: &AGREEMENT,
        text: format!("{}.{together}", conclusion(comparison)),
    }
}

/// Whether any cell, or all of them together, are shown to differ or to be equivalent. Otherwise there is
/// nothing to report.
pub(super) fn is_shown(comparison: &Comparison) -> bool {
    let mut all = comparison.cells.iter().chain(&comparison.overall);
    all.any(|cell| !cell.verdict.is_open())
}
