//! Compares two programs over the sizes of the file that they read: the ratio of their times at each size, and the size from
//! which the difference is too small to matter.
//!
//! A p value below 0.05 shows a difference, not that it matters; a higher one does not show that there is none. A test of
//! equivalence shows that a difference is below 5 %; the sizes at which only the ratio of the medians is that small are shown as
//! well.

use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::claim::effect::{Difference, Estimate, confidence, judge, within_run};
use crate::curve;
use crate::doubt::{Direction, Doubt, SideDoubts};
use iolab_stats::{student, tost_log, welch};
use iolab_workload::command_template::Placeholder;

/// The margins of equivalence, as shares.
pub const MARGINS: [f64; 2] = [0.05, 0.01];

/// Numbers of first trials whose p values are shown.
pub const FIRST_TRIALS: [usize; 2] = [10, 20];

/// Level of all tests.
pub const ALPHA: f64 = 0.05;

/// The factors that name programs.
pub const FACTORS: [&str; 2] = ["linkage", "command"];

/// The comparison of both programs at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizePoint {
    /// Size of the file, bytes.
    pub size: u64,
    /// Median times of the base and of the new program, ns.
    pub medians_ns: Option<(f64, f64)>,
    /// New over base, within the blocks that both share; the intervals are simultaneous 95 % intervals over all
    /// sizes.
    pub ratio: Option<Estimate>,
    /// Conclusion from the ratio, however small the difference. Never [`Difference::Equivalent`], unless both
    /// are equal in every block.
    pub difference: Difference,
    /// Doubts that keep a difference from being claimed.
    pub doubts: Vec<Doubt>,
    /// p-values by Welch's and by Student's test, for each of [`FIRST_TRIALS`]; `None` where there are fewer trials.
    pub first_trials: [Option<(f64, f64)>; FIRST_TRIALS.len()],
    /// p-value of the equivalence test for each of [`MARGINS`], times the number of pairs of programs (Bonferroni).
    pub equivalence: [Option<f64>; MARGINS.len()],
    /// Doubts that could make two unequal programs look equivalent, for each of [`MARGINS`].
    pub against_equivalence: [Vec<Doubt>; MARGINS.len()],
}

/// Two programs over all sizes, with every other factor fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramPair {
    /// The factor that names them: `linkage` or `command`.
    pub factor: String,
    /// The first level, the base of the ratio.
    pub base: String,
    /// The second level.
    pub new: String,
    /// The fixed factors with their levels.
    pub held: Vec<(String, String)>,
    /// One per size, in ascending order.
    pub points: Vec<SizePoint>,
    /// Whether the programs read a file that iolab made; otherwise sizes have no meaning.
    pub has_files: bool,
    /// Ids of the cells of both programs, the base first.
    pub cells: Vec<i64>,
}

/// Compares the first program of a run with each other one. Empty unless the response is the elapsed time and
/// programs vary. Results for several pairs are simultaneous.
pub fn program_pairs(analysis: &Analysis) -> Vec<ProgramPair> {
    let place = |name: &str| analysis.factors.iter().position(|factor| factor == name);
    let varied = FACTORS.iter();
    let mut varied = varied.filter_map(|name| Some((*name, place(name)?)));
    let Some((factor, at)) = varied.next() else {
        return Vec::new();
    };
    let programs = analysis.levels(at);
    let Some((base, others)) = programs.split_first() else {
        return Vec::new();
    };
    if analysis.response != Response::Elapsed {
        return Vec::new();
    }
    let comparisons = of_level(analysis, factor, base).count() * others.len();
    let confidence = confidence(comparisons);
    let of = |base: &CellAnalysis, new: &CellAnalysis| point((base, new), confidence, others.len());
    let pairs = others.iter();
    let pairs = pairs.flat_map(|new| pairs_of(analysis, factor, (base, new), &of));
    pairs.collect()
}

/// Levels of other factors, the sizes that have them, and the cells of these.
type Alike<'a> = (Vec<(String, String)>, Vec<SizePoint>, Vec<&'a CellAnalysis>);

/// Two programs, once for each combination of the other factors.
fn pairs_of(
    analysis: &Analysis,
    factor: &str,
    (base, new): (&str, &str),
    point: &dyn Fn(&CellAnalysis, &CellAnalysis) -> SizePoint,
) -> Vec<ProgramPair> {
    let mut alike: Vec<Alike<'_>> = Vec::new();
    for cell in of_level(analysis, factor, base) {
        let others = |c: &CellAnalysis| curve::held(analysis, c, |name| name == factor);
        let Some(partner) = of_level(analysis, factor, new).find(|c| others(c) == others(cell))
        else {
            continue;
        };
        let held = curve::held(analysis, cell, |name| name == factor || name == "region");
        let point = point(cell, partner);
        match alike.iter_mut().find(|(other, ..)| *other == held) {
            Some((_, points, cells)) => {
                points.push(point);
                cells.extend([cell, partner]);
            }
            None => alike.push((held, vec![point], vec![cell, partner])),
        }
    }
    let pair = |(held, mut points, cells): Alike<'_>| {
        points.sort_by_key(|point| point.size);
        let programs = cells.iter().filter_map(|cell| cell.cell.spec.program());
        let uses = |of: Placeholder| programs.clone().any(|one| one.uses(of));
        ProgramPair {
            factor: factor.to_owned(),
            base: base.to_owned(),
            new: new.to_owned(),
            held,
            points,
            has_files: uses(Placeholder::File) || uses(Placeholder::Size),
            cells: cells.iter().map(|cell| cell.cell.id).collect(),
        }
    };
    alike.into_iter().map(pair).collect()
}

/// Answer about the new program at one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramAnswer {
    /// The new program takes longer than the base.
    Slower,
    /// The base takes longer.
    Faster,
    /// Both are equivalent within this one of [`MARGINS`].
    Equivalent(usize),
    /// Neither is shown.
    CannotTell,
}

impl ProgramPair {
    /// Whether they are shown to differ at any size.
    pub fn differs(&self) -> bool {
        self.points.iter().any(SizePoint::differs)
    }

    /// The size from which on the programs are equivalent within `MARGINS[margin]` at every size.
    ///
    /// Tests sizes from the largest down until one fails: a fixed sequence of tests keeps the level for all together (Westfall
    /// and Krishen, J. Stat. Plan. Inference 99 (2001) 25-40).
    pub fn equivalent_from(&self, margin: usize) -> Option<u64> {
        self.from(|point| point.is_equivalent(margin))
    }

    /// The largest size at which only doubts prevent equivalence within `MARGINS[margin]`. `None` if the
    /// programs are not equivalent at a larger one, or the tests do not show equivalence.
    pub fn doubted(&self, margin: usize) -> Option<&SizePoint> {
        let mut all = self.points.iter().rev();
        let first = all.find(|point| !point.is_equivalent(margin))?;
        first.is_tested_equivalent(margin).then_some(first)
    }

    /// The size from which on the ratio of the medians is within `MARGINS[margin]`, without any statistical certainty: the
    /// impression from the figure.
    pub fn naive_from(&self, margin: usize) -> Option<u64> {
        self.from(|point| point.is_near(margin))
    }

    /// The smallest size such that it and all larger ones satisfy `holds`.
    fn from(&self, holds: impl Fn(&SizePoint) -> bool) -> Option<u64> {
        let run = self.points.iter().rev().take_while(|point| holds(point));
        run.last().map(|point| point.size)
    }
}

impl SizePoint {
    /// The answer at this size. A difference shown to be within the least margin counts as none; the other margins count
    /// only where no difference is shown.
    pub fn answer(&self) -> ProgramAnswer {
        let tightest = (0..MARGINS.len()).rfind(|margin| self.is_equivalent(*margin));
        match self.difference {
            Difference::Higher if tightest != Some(MARGINS.len() - 1) => ProgramAnswer::Slower,
            Difference::Lower if tightest != Some(MARGINS.len() - 1) => ProgramAnswer::Faster,
            _ => tightest.map_or(ProgramAnswer::CannotTell, ProgramAnswer::Equivalent),
        }
    }

    /// Whether one of the two is shown to take longer at this size.
    pub fn differs(&self) -> bool {
        matches!(self.difference, Difference::Higher | Difference::Lower)
    }

    /// Whether the programs are shown to be equivalent within `MARGINS[margin]` at this size.
    pub fn is_equivalent(&self, margin: usize) -> bool {
        let mut against = self.against_equivalence.get(margin).into_iter();
        self.is_tested_equivalent(margin) && against.all(Vec::is_empty)
    }

    /// Whether the test alone shows equivalence, without doubts.
    fn is_tested_equivalent(&self, margin: usize) -> bool {
        let p = self.equivalence.get(margin).copied().flatten();
        p.is_some_and(|p| p <= ALPHA)
    }

    /// Whether the ratio of the medians is between `1/(1 + MARGINS[margin])` and `1 + MARGINS[margin]`, the bounds of the test of
    /// equivalence.
    fn is_near(&self, margin: usize) -> bool {
        let margin = MARGINS.get(margin).copied().unwrap_or(0.0);
        let near = |r: Estimate| r.ratio.ln().abs() < margin.ln_1p();
        self.ratio.is_some_and(near)
    }
}

fn of_level<'a>(
    analysis: &'a Analysis,
    factor: &str,
    level: &'a str,
) -> impl Iterator<Item = &'a CellAnalysis> {
    let at = analysis.factors.iter().position(|name| name == factor);
    let is_at = move |cell: &&CellAnalysis| Some(cell.cell.levels.get(at?)? == level);
    let cells = analysis.cells.iter();
    cells.filter(move |cell| is_at(cell) == Some(true))
}

/// The comparison at one size, at this confidence of its interval, of one of some pairs of programs.
fn point((base, new): (&CellAnalysis, &CellAnalysis), confidence: f64, pairs: usize) -> SizePoint {
    let (a, b) = (base.values.as_slice(), new.values.as_slice());
    let first = |count: usize| {
        let (a, b) = (a.get(..count)?, b.get(..count)?);
        Some((welch(a, b)?, student(a, b)?))
    };
    let medians = base.response.zip(new.response);
    let ratio = within_run(base, new, confidence);
    // Each pair has its own sequence of tests.
    let of_all = |p: f64| (p * pairs as f64).min(1.0);
    let against = SideDoubts::of_cells(base, new, Response::Elapsed);
    let judged = ratio.map(|ratio| judge(&ratio, 0.0, &against, false));
    let (difference, doubts) = judged.unwrap_or((Difference::CannotTell, Vec::new()));
    SizePoint {
        size: base.cell.trial().region,
        medians_ns: medians.map(|(a, b)| (a.median, b.median)),
        ratio,
        difference,
        doubts,
        first_trials: FIRST_TRIALS.map(first),
        equivalence: MARGINS.map(|margin| tost_log(a, b, margin).map(of_all)),
        against_equivalence: MARGINS
            .map(|margin| against.turning([Direction::Equal; 2], 1.0 + margin)),
    }
}
