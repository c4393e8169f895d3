//! Doubts that could make the same difference as a phenomenon, or the same change as an intervention.
//!
//! Variants lie in the same randomised blocks. The work of others cannot be removed, but it is there with and
//! without each suspect. A share that disappears with a suspect is therefore not due to others, and a share that
//! remains without all suspects may be. A verdict falls if the cells with and without the suspect differ in such
//! a disturbance, or if the bytes of two cells come from different places.

use iolab_plan::experiment::Inquiry;
use iolab_plan::suspect::{ActsOn, Compared, Suspect};
use iolab_stats::median;

use super::super::effect::log_ratios;
use super::verdict::open_joint;
use super::{Estimate, Found, Point, Standing, direction, sides};
use crate::analysis::{Analysis, CellAnalysis, Response};
use crate::doubt::{Direction, Doubt, DoubtClass, DoubtKind, SideDoubts};

/// The suspects that are a kind of waiting for a CPU.
const CPU: [&str; 2] = ["cpu-binding", "cpu-waiting"];

/// The suspect that is a cache in the storage.
const WRITE_CACHE: &str = "write-cache";

/// Adds the doubts, and opens the verdicts that they could reverse.
pub(super) fn weigh(analysis: &Analysis, found: &mut Found<'_>) {
    let inquiry = found.inquiry;
    if found.again == Standing::Reproduced {
        found.doubts = of_phenomenon(analysis, inquiry, found.ratio);
    }
    let is_foreign = |doubt: &Doubt| doubt.what.class() != DoubtClass::Others;
    if found.doubts.iter().any(is_foreign) {
        found.again = Standing::Undecided;
        // Difference not confirmed: keep only the suspects that were not tried.
        (found.rest, found.explains) = (None, None);
        found.suspects.clear();
        return;
    }
    let mut opened: Vec<String> = Vec::new();
    let mut opens_joint = false;
    for point in &mut found.suspects {
        let has_part = matches!(
            point.standing,
            Standing::Cause
                | Standing::Reverses
                | Standing::Joint
                | Standing::Contributes
                | Standing::ByItself
        );
        let [suspect] = point.suspects.as_slice() else {
            continue;
        };
        if !has_part {
            continue;
        }
        let (suspect, is_joint) = (suspect.clone(), point.standing == Standing::Joint);
        point.doubts = of_suspect(analysis, inquiry, &suspect);
        point.standing = if !point.doubts.is_empty() {
            opens_joint |= is_joint;
            Standing::Undecided
        } else if !is_joint && !comes_from_its_side(analysis, inquiry, point) {
            Standing::OtherSide
        } else {
            continue;
        };
        opened.push(suspect);
    }
    if opens_joint {
        open_joint(&mut found.suspects);
    }
    found.is_explained &= opened.is_empty();
    let is_open = |rest: &Point| rest.suspects.iter().any(|one| opened.contains(one));
    found
        .rest
        .take_if(|rest| rest.suspects != inquiry.tried && is_open(rest));
}

/// Doubts that could make the difference between the unchanged cells by themselves.
fn of_phenomenon(analysis: &Analysis, inquiry: &Inquiry, ratio: Option<Estimate>) -> Vec<Doubt> {
    let Some(([base, other], ratio)) = sides(analysis, inquiry, &[]).zip(ratio) else {
        return Vec::new();
    };
    let deviation = ratio.ratio / inquiry.expected;
    let is_better = (deviation > 1.0) == analysis.response.more_is_better();
    let all = SideDoubts::of_cells(base, other, analysis.response);
    let size = least_size(inquiry, deviation);
    let mut doubts = all.turning(Direction::of_sides(is_better), size);
    // A suspect is tried, and not a doubt.
    let mut tried = inquiry.tried.iter().map(String::as_str);
    let tries_cpu = tried.clone().any(|suspect| CPU.contains(&suspect));
    let tries_cache = tried.clone().any(|suspect| suspect == WRITE_CACHE);
    let tries_source = tried.any(is_the_source);
    doubts.retain(|doubt| {
        let is_of_cpu = doubt.what == DoubtKind::CpuContended;
        let is_of_source = doubt.what.class() == DoubtClass::Source;
        let is_owed = doubt.what.is_owed();
        !(tries_cpu && is_of_cpu || tries_source && is_of_source || tries_cache && is_owed)
    });
    doubts
}

/// Size of the effect that a doubt must be able to make. A disturbance for a share of the time slows the mean by
/// that share, but one request in a hundred makes a 99th percentile of any size.
fn least_size(inquiry: &Inquiry, ratio: f64) -> f64 {
    match inquiry.compares_quantiles() {
        true => 1.0,
        false => ratio.max(1.0 / ratio),
    }
}

/// Whether a suspect is the source of bytes.
fn is_the_source(suspect: &str) -> bool {
    Suspect::find(suspect).is_some_and(Suspect::is_the_source)
}

/// Whether at least half of the part that disappears with a suspect comes from the side that it acts on. A
/// change of the other side is an effect of the intervention. An intervention changes two loads or quantiles of one cell
/// together, so that these have no sides.
fn comes_from_its_side(analysis: &Analysis, inquiry: &Inquiry, point: &Point) -> bool {
    /// Least share of the part that disappears.
    const OWN: f64 = 0.5;
    let own: Vec<&str> = point.suspects.iter().map(String::as_str).collect();
    let suspect = own.first().and_then(|name| Suspect::find(name));
    let suspect = suspect.filter(|suspect| suspect.explains.contains(&Compared::Cells));
    let all: Vec<&str> = inquiry.tried.iter().map(String::as_str).collect();
    let (mut with, without) = match point.standing == Standing::ByItself {
        true => (all.clone(), all),
        false => (Vec::new(), own.clone()),
    };
    with.retain(|one| !own.contains(one));
    let cells = sides(analysis, inquiry, &with).zip(sides(analysis, inquiry, &without));
    let (Some(suspect), Some((with, without))) = (suspect, cells) else {
        return true;
    };
    // Factor by which each side becomes greater, on the logarithm.
    let grown = [0, 1].map(|side| {
        let logs = log_ratios(with[side].trials(), without[side].trials());
        median(&logs.into_values().collect::<Vec<f64>>()).unwrap_or(0.0)
    });
    let gone = direction(inquiry) * (grown[0] - grown[1]);
    // The other side is the better one where it is greater than expected, and more is better.
    let is_other_better = (direction(inquiry) > 0.0) == analysis.response.more_is_better();
    let side = usize::from(is_other_better == (suspect.acts_on == ActsOn::Better));
    // Requests that are given one size move other bytes, which is not a change of a side.
    let bytes = |cell: &CellAnalysis| cell.cell.trial().bs as f64;
    let is_sized = bytes(without[0]) == bytes(without[1]);
    let resized = match is_sized && analysis.response == Response::Throughput {
        true => (bytes(without[side]) / bytes(with[side])).ln(),
        false => 0.0,
    };
    let sign = direction(inquiry) * if side == 0 { 1.0 } else { -1.0 };
    inquiry.compares_quantiles() || sign * (grown[side] - resized) >= OWN * gone
}

/// Differences between the cells with and without a suspect, other than the suspect.
fn of_suspect(analysis: &Analysis, inquiry: &Inquiry, suspect: &str) -> Vec<Doubt> {
    let cells = sides(analysis, inquiry, &[]).zip(sides(analysis, inquiry, &[suspect]));
    let Some((with, without)) = cells else {
        return Vec::new();
    };
    let changed = with.into_iter().zip(without);
    let changed = changed.filter(|(with, without)| with.cell.id != without.cell.id);
    let of_side = |(with, without): (&CellAnalysis, &CellAnalysis)| {
        let all = SideDoubts::of_runs(&[with], &[without], analysis.response);
        let Some((before, now)) = with.response.zip(without.response) else {
            return Vec::new();
        };
        let (before, now) = (before.median, now.median);
        // The better variant may have waited more: faster threads wait for CPUs.
        let is_better = (now > before) == analysis.response.more_is_better();
        let size = least_size(inquiry, now / before);
        // Cells of a block have the same conditions: waiting costs a side at most that share of its time.
        let explains = |doubt: &Doubt| {
            let ends = doubt.levels.iter().flatten().map(|(_, most)| *most);
            let most = ends.fold(0.0, f64::max);
            most >= 1.0 || 1.0 / (1.0 - most) >= size
        };
        let comes_from_outside = |doubt: &Doubt| match doubt.what {
            DoubtKind::MemoryStall => explains(doubt),
            DoubtKind::CpuContended => !CPU.contains(&suspect) && explains(doubt),
            // Other traffic is a share of what the trial moves itself. Interventions change the other two on purpose.
            DoubtKind::OtherTraffic | DoubtKind::RequestsInPieces | DoubtKind::Fragmentation => {
                false
            }
            what => what.class() != DoubtClass::Source || !is_the_source(suspect),
        };
        let mut doubts = all.turning(Direction::of_sides(is_better), size);
        doubts.retain(comes_from_outside);
        doubts
    };
    each_kind_once(changed.flat_map(of_side).collect())
}

/// The first doubt of each kind, the weightiest kind first.
pub(super) fn each_kind_once(mut doubts: Vec<Doubt>) -> Vec<Doubt> {
    doubts.sort_by_key(|doubt| doubt.what);
    doubts.dedup_by_key(|doubt| doubt.what);
    doubts
}
