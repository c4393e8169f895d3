//! Differences whose cause can be asked for: between two cells, and between a shorter and a longer load of one.

use std::time::Duration;

use crate::phenomenon::{
    self, Fall, Phenomenon, PhenomenonKind, Unclaimed, WhyUnpaired, unexplainable, with_limits,
};
use crate::signs::signs;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{
    CellId, Claim, Comparison, Difference, Estimate, Groups, LevelChange, MARGIN, Point, Quantity,
    Standing, claims, is_rate, two_groups,
};
use iolab_analysis::doubt::{Doubt, DoubtClass};
use iolab_plan::suspect::{Compared, MachineState, Sides};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::TrialLimit;

/// Share of their number below which the gain of more requests in flight is a phenomenon.
const GAIN: f64 = 0.5;

/// Reason why no difference of a run can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unexplainable {
    /// The run itself explains another one.
    Explains,
    /// The cells run programs, and no setting removes a mechanism from these.
    Programs,
    /// A trial has groups of workers.
    Groups,
    /// Several processes measured together.
    Ranks,
    /// The cells have several targets.
    Targets,
    /// Another tool measured some of its cells.
    Tools,
}

/// The phenomena of a run, the greatest first.
///
/// # Errors
/// Reason why nothing can be explained, whatever the cells show: they are not trials of one process of iolab on
/// one target.
pub fn phenomena(run: &Analysis) -> Result<Vec<Phenomenon>, Unexplainable> {
    let any = |is: fn(&CellSpec) -> bool| run.cells.iter().any(|cell| is(&cell.cell.spec));
    let reasons = [
        (run.inquiry.is_some(), Unexplainable::Explains),
        (any(CellSpec::runs_program), Unexplainable::Programs),
        (run.spans_ranks(), Unexplainable::Ranks),
        (any(CellSpec::has_groups), Unexplainable::Groups),
        (any(|spec| spec.tool.is_peer()), Unexplainable::Tools),
        (any(|spec| spec.target.is_some()), Unexplainable::Targets),
    ];
    if let Some((_, why)) = reasons.into_iter().find(|(holds, _)| *holds) {
        return Err(why);
    }
    let claims = claims(&[run]);
    let changes = changes(&claims).into_iter();
    let mut all: Vec<Phenomenon> = changes
        .filter_map(|(one, _)| fall(run, &one)?.ok())
        .collect();
    for claim in &claims {
        if let Some(comparison) = claim.comparison() {
            let effects = claim.points.iter();
            all.extend(effects.filter_map(|effect| of_effect(run, comparison, effect)));
        }
        all.extend(of_curve(run, claim));
    }
    all.extend(phenomenon::explainable(run));
    all.retain(|one| one.size > MARGIN.ln_1p());
    all.sort_by(|a, b| b.size.total_cmp(&a.size));
    all.sort_by_key(|one| {
        // A difference by construction explains itself.
        let explains_itself = one
            .sides(run)
            .is_some_and(|sides| sides.by_construction().is_some());
        // Loads that last beyond a fall take longer than any trial of the run, and differences within a cell come last.
        let compared = one.compared();
        let is_within = compared == Compared::Quantiles;
        (is_within, explains_itself, compared, one.unclaimed)
    });
    Ok(all)
}

impl Phenomenon {
    /// Both sides, on a machine about which nothing is known; `None` where the run lacks a cell.
    pub fn sides(&self, run: &Analysis) -> Option<Sides> {
        let spec = |id: CellId| Some(&run.cell(id.cell)?.cell.spec);
        let (base, other) = (spec(self.base)?, spec(self.other)?);
        let [base, other] = match self.kind {
            PhenomenonKind::Cells => [base.clone(), other.clone()],
            PhenomenonKind::Loads(fall) => fall.sides(base),
            // Both end by their time: with nothing else in flight, the bytes of a trial would take longer.
            PhenomenonKind::Quantiles(tail) => {
                let limit = TrialLimit {
                    time: Some(tail.time),
                    ..TrialLimit::default()
                };
                with_limits(base, [limit; 2])
            }
        };
        Some(Sides {
            base,
            other,
            is_model: run.model.is_some(),
            compared: self.compared(),
            iops: match self.kind {
                PhenomenonKind::Quantiles(tail) => Some(tail.iops),
                _ => None,
            },
            machine: MachineState::default(),
            signs: signs(run, self),
        })
    }
}

/// The difference of an effect, or the gain that it lacks.
fn of_effect(run: &Analysis, comparison: &Comparison, effect: &Point) -> Option<Phenomenon> {
    let unclaimed = unclaimed(run, effect);
    let (cells, seen) = ([effect.base?, effect.cell?], effect.ratio?);
    let in_flight = gained(run, comparison, effect);
    if let Some(expected) = in_flight.filter(|most| seen.ratio <= GAIN * most) {
        let (_, high) = seen.interval?;
        let size = (expected / high).ln();
        return Some(Phenomenon {
            expected,
            ..Phenomenon::of_cells(cells, seen, size, unclaimed)
        });
    }
    // A proportional gain of more requests in flight is expected.
    let is_expected = in_flight.is_some_and(|most| most > 1.0 && seen.ratio >= 1.0);
    let is_shown = match effect.difference() {
        Difference::Higher | Difference::Lower => true,
        Difference::CannotTell => unclaimed.is_some(),
        _ => false,
    };
    (is_shown && !is_expected).then(|| Phenomenon::of_cells(cells, seen, seen.size(), unclaimed))
}

/// Reason why an effect is not claimed although trying suspects can still explain it.
fn unclaimed(run: &Analysis, effect: &Point) -> Option<Unclaimed> {
    let is_source = |doubt: &Doubt| doubt.what.class() == DoubtClass::Source;
    let (owed, doubts): (Vec<&Doubt>, Vec<&Doubt>) =
        effect.doubts.iter().partition(|doubt| doubt.what.is_owed());
    if doubts.is_empty() {
        return (!owed.is_empty()).then_some(Unclaimed::Owed);
    }
    let others = || doubts.iter().filter(|one| !is_source(one));
    if !others().all(|doubt| doubt.what.class() == DoubtClass::Others) {
        return None;
    }
    if others().count() == doubts.len() {
        return Some(Unclaimed::Disturbed);
    }
    let (cells, seen) = ([effect.base?, effect.cell?], effect.ratio?);
    let sides = Phenomenon::of_cells(cells, seen, seen.size(), None).sides(run)?;
    sides
        .have_sources_to_try()
        .then_some(Unclaimed::OtherSource)
}

/// Whether there are doubts, and all are about disturbances by others.
fn are_disturbances(doubts: &[Doubt]) -> bool {
    let is_other = |doubt: &Doubt| doubt.what.class() == DoubtClass::Others;
    !doubts.is_empty() && doubts.iter().all(is_other)
}

/// Ratio of the requests in flight, if it could raise the response by as much.
fn gained(run: &Analysis, comparison: &Comparison, effect: &Point) -> Option<f64> {
    let factor = comparison.contrast.topic();
    let counts = matches!(factor, "threads" | "depth") && is_rate(run.response);
    let number = |id: CellId| {
        let level = run.level(run.cell(id.cell)?, factor);
        level.parse::<f64>().ok().filter(|_| counts)
    };
    Some(number(effect.cell?)? / number(effect.base?)?)
}

/// The worst of the smaller and of the larger sizes compared with the best size, and the deepest dip.
fn of_curve(run: &Analysis, claim: &Claim) -> Vec<Phenomenon> {
    let mut curve: Vec<&Point> = claim.ranked().collect();
    let place = |point: &&Point| {
        let id = point.cell?.cell;
        let place = run.cells.iter().position(|cell| cell.cell.id == id)?;
        Some((run.cells[place].cell.trial().bs, place))
    };
    curve.sort_by_key(place);
    let is_best = |point: &&Point| point.standing == Standing::Best;
    let Some(best) = curve.iter().position(is_best) else {
        return Vec::new();
    };
    let worst = [&curve[..best], &curve[best + 1..]].map(|side| worst(curve[best], side));
    let dip = dip(&curve).filter(|dip| {
        let mut worst = worst.iter().flatten();
        worst.all(|one| one.other != dip.other)
    });
    worst.into_iter().flatten().chain(dip).collect()
}

/// The worst of some sizes compared with the best one.
fn worst(top: &Point, of: &[&Point]) -> Option<Phenomenon> {
    let worse = of.iter().filter(|one| match one.standing {
        Standing::Worse => true,
        Standing::Doubtful => are_disturbances(&one.doubts),
        _ => false,
    });
    let sized = worse.filter_map(|one| {
        let seen = one.ratio?;
        let (low, high) = seen.interval?;
        Some((one, seen, low.ln().max(-high.ln())))
    });
    let (one, seen, size) = sized.max_by(|a, b| a.2.total_cmp(&b.2))?;
    let cells = [top.cell?, one.cell?];
    Some(Phenomenon::of_cells(cells, seen, size, disturbed(one)))
}

/// Why the difference of a size is not claimed: only disturbances leave one to explain.
fn disturbed(one: &Point) -> Option<Unclaimed> {
    (one.standing == Standing::Doubtful).then_some(Unclaimed::Disturbed)
}

/// The deepest dip: a size with a better one on either side, compared with the lower of these two.
fn dip(curve: &[&Point]) -> Option<Phenomenon> {
    let more = |one: &Point| matches!(one.quantity, Quantity::Of(what) if what.more_is_better());
    // Distance of each from the best size, on the logarithm: the estimate and the ends of its interval.
    let far = |one: &Point| -> Option<(f64, f64, f64)> {
        let Some(Estimate {
            ratio, interval, ..
        }) = one.ratio
        else {
            return Some((0.0, 0.0, 0.0));
        };
        let (low, high) = interval?;
        match more(one) {
            false => Some((ratio.ln(), low.ln(), high.ln())),
            true => Some((-ratio.ln(), -high.ln(), -low.ln())),
        }
    };
    let is_sound = |one: &&&Point| {
        one.standing != Standing::Unknown
            && (one.doubts.is_empty() || are_disturbances(&one.doubts))
    };
    let places = 1..curve.len().saturating_sub(1);
    let dips = places.filter_map(|place| {
        let (before, rest) = curve.split_at(place);
        let (one, after) = rest.split_first()?;
        is_sound(&one).then_some(())?;
        let shoulder = |side: &[&Point]| {
            let sound = side.iter().filter(is_sound);
            let known = sound.filter_map(|one| Some((one.cell?, far(one)?)));
            known.min_by(|a, b| a.1.2.total_cmp(&b.1.2))
        };
        let (left, right) = (shoulder(before)?, shoulder(after)?);
        let (base, base_far) = if left.1.2 > right.1.2 { left } else { right };
        let (depth, nearest, _) = far(one)?;
        let sign = if more(one) { -1.0 } else { 1.0 };
        let seen = Estimate::of((sign * (depth - base_far.0)).exp(), None);
        let (cells, size) = ([base, one.cell?], nearest - base_far.2);
        Some(Phenomenon::of_cells(cells, seen, size, disturbed(one)))
    });
    dips.max_by(|a, b| a.size.total_cmp(&b.size))
}

/// Share of the bytes before the fall after which the shorter load ends.
const SHORTER: f64 = 0.5;

/// Length of the longer load, as a multiple of the time before the fall.
const LONGER: f64 = 2.0;

/// The bytes of both loads are a multiple of this: the largest requests of a suspect.
const UNIT: u64 = 256 << 10;

/// An effect of a run that has no two sides to be measured again.
#[derive(Debug, Clone, PartialEq)]
pub enum Unpaired {
    /// A change of the level of throughput, or slow requests.
    Claim(Box<Claim>, WhyUnpaired),
    /// Trials in two groups, not caused by a change over the run.
    TwoGroups(Groups),
}

/// The greatest change of each cell that has one, with its claim.
fn changes(claims: &[Claim]) -> Vec<(LevelChange, &Claim)> {
    let size = |change: &LevelChange| change.factor().ln().abs();
    let mut all: Vec<(LevelChange, &Claim)> = Vec::new();
    let changes = claims.iter();
    for change in changes.filter_map(|claim| Some((claim.level_change()?, claim))) {
        match all.iter_mut().find(|known| known.0.cell == change.0.cell) {
            Some(known) if size(&change.0) > size(&known.0) => *known = change,
            Some(_) => {}
            None => all.push(change),
        }
    }
    all
}

/// A fall as a difference between a shorter and a longer load; `None` if its cell is missing.
fn fall(run: &Analysis, change: &LevelChange) -> Option<Result<Phenomenon, WhyUnpaired>> {
    let cell = run.cell(change.cell.cell)?;
    if let Some(why) = obstacle(run, cell, change) {
        return Some(Err(why));
    }
    let seconds = change.since.bytes / 1e6 / change.before_mb_s;
    // The time is a setting and appears on pages: whole milliseconds.
    let time = |part: f64| {
        let time = Duration::try_from_secs_f64(part * seconds).ok()?;
        Some(Duration::from_millis(time.as_millis().max(1) as u64))
    };
    let bytes =
        |part: f64| (part * change.since.bytes / UNIT as f64).round().max(1.0) as u64 * UNIT;
    let seen = (1.0 + (LONGER - 1.0) * change.factor()) / LONGER;
    let unclaimed = change.is_disturbed.then_some(Unclaimed::Disturbed);
    Some(Ok(Phenomenon {
        kind: PhenomenonKind::Loads(Fall {
            first_bytes: bytes(SHORTER),
            whole_bytes: bytes(1.0 + (LONGER - 1.0) * change.factor()),
            first: time(SHORTER)?,
            whole: time(LONGER)?,
            factor: change.factor(),
            after_bytes: change.since.bytes,
            levels_mb_s: [change.before_mb_s, change.after_mb_s],
        }),
        ..Phenomenon::of_cells(
            [change.cell; 2],
            Estimate::of(seen, None),
            -seen.ln(),
            unclaimed,
        )
    }))
}

fn obstacle(run: &Analysis, cell: &CellAnalysis, change: &LevelChange) -> Option<WhyUnpaired> {
    let trial = cell.cell.trial();
    if change.factor() >= 1.0 {
        Some(WhyUnpaired::Rises)
    } else if trial.reads() && trial.writes() {
        Some(WhyUnpaired::ReadsAndWrites)
    } else if let Some(why) = phenomenon::obstacle(cell) {
        Some(why)
    } else if change.is_of_run && run.cells.len() > 1 {
        Some(WhyUnpaired::SeveralCells)
    } else {
        run.is_preconditioned.then_some(WhyUnpaired::Preconditioned)
    }
}

/// Effects within the cells of a run that no difference shows, in the order of its claims.
pub fn unpaired(run: &Analysis) -> Vec<Unpaired> {
    let all = claims(&[run]);
    let claim = |claim: &Claim, why| Unpaired::Claim(Box::new(claim.clone()), why);
    let changed = changes(&all).into_iter();
    let changed = changed.filter_map(|(change, own)| Some(claim(own, fall(run, &change)?.err()?)));
    let tails = all.iter();
    let tails = tails.filter_map(|own| Some(claim(own, unexplainable(own, run)?)));
    let groups = two_groups(run, |cell| is_steady(run, cell));
    let groups = groups.map(Unpaired::TwoGroups);
    changed.chain(tails).chain(groups).collect()
}

/// Whether a cell did not change with others over the run: otherwise its levels before and after the change are
/// two groups of trials.
fn is_steady(run: &Analysis, cell: &CellAnalysis) -> bool {
    let mut shifts = run.timeline.over_run.iter();
    !shifts.any(|shift| shift.cells.contains(&cell.cell.id))
}
