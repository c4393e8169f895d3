//! Doubts that could make the same difference as a phenomenon, or the same change as an intervention.
//!
//! Variants lie in the same randomised blocks. The work of others cannot be removed, but it is there with and
//! without each suspect. A share that disappears with a suspect is therefore not due to others, and a share that
//! remains without all suspects may be. A verdict falls if the cells with and without the suspect differ in such
//! a disturbance, or if the bytes of two cells come from different places.

use iolab_plan::experiment::Inquiry;
use iolab_plan::suspect::{ActsOn, Suspect};
use iolab_stats::median;

use super::super::effect::log_ratios;
use super::{Again, CauseVerdict, Reproduction, Suspected, Suspects, direction, sides};
use crate::analysis::{Analysis, CellAnalysis};
use crate::doubt::{Direction, Doubt, DoubtClass, DoubtKind, SideDoubts};

/// The suspects that are a kind of waiting for a CPU.
const CPU: [&str; 2] = ["cpu-binding", "cpu-waiting"];

/// The suspect that is a cache in the storage.
const WRITE_CACHE: &str = "write-cache";

/// Adds the doubts, and opens the verdicts that they could reverse.
pub(super) fn weigh(
    analysis: &Analysis,
    inquiry: &Inquiry,
    (again, found): (&mut Reproduction, &mut Vec<Suspects>),
) {
    if again.again == Again::Reproduced {
        again.doubts = of_phenomenon(analysis, inquiry, again.ratio);
    }
    let is_foreign = |doubt: &Doubt| doubt.what.class() != DoubtClass::Others;
    if again.doubts.iter().any(is_foreign) {
        again.again = Again::CannotTell;
        again.unexplained = None;
        // Difference not confirmed: keep only the suspects that were not tried.
        found.retain(|group| group.verdict == CauseVerdict::NotTried);
        return;
    }
    let mut open: Vec<Suspected> = Vec::new();
    for group in found.iter_mut() {
        if matches!(
            group.verdict,
            CauseVerdict::Cleared | CauseVerdict::CannotTell | CauseVerdict::NotTried
        ) {
            continue;
        }
        let (doubtful, sure) = parted(analysis, inquiry, &group.suspects);
        let stays = |one: &Suspected| match group.verdict {
            // Joint causes that each suffice are only shown together.
            CauseVerdict::Joint => doubtful.is_empty(),
            _ => comes_from_its_side(analysis, inquiry, one),
        };
        let (sure, opened): (Vec<Suspected>, Vec<Suspected>) = sure.into_iter().partition(stays);
        group.suspects = sure;
        open.extend(doubtful.into_iter().chain(opened));
    }
    found.retain(|group| !group.suspects.is_empty());
    if open.is_empty() {
        return;
    }
    again.is_explained = false;
    let without = again.unexplained_without.as_ref();
    if open.iter().any(|one| without == Some(&one.suspect)) {
        (again.unexplained, again.unexplained_without) = (None, None);
    }
    for one in &mut open {
        // A doubt may have caused the reversal too.
        one.is_reversed = false;
    }
    let blocks = again.blocks;
    let mut known = found.iter_mut();
    match known.find(|group| group.verdict == CauseVerdict::CannotTell) {
        Some(group) => group.suspects.extend(open),
        None => found.push(Suspects {
            verdict: CauseVerdict::CannotTell,
            suspects: open,
            blocks,
        }),
    }
    found.sort_by_key(|group| group.verdict);
}

/// Doubts that could make the difference between the unchanged cells by themselves.
fn of_phenomenon(analysis: &Analysis, inquiry: &Inquiry, ratio: Option<f64>) -> Vec<Doubt> {
    let Some(([base, other], ratio)) = sides(analysis, inquiry, &[]).zip(ratio) else {
        return Vec::new();
    };
    let deviation = ratio / inquiry.expected;
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
/// change of the other side is an effect of the intervention.
fn comes_from_its_side(analysis: &Analysis, inquiry: &Inquiry, suspected: &Suspected) -> bool {
    /// Least share of the part that disappears.
    const OWN: f64 = 0.5;
    let acts_on = Suspect::find(&suspected.suspect).map(|suspect| suspect.acts_on);
    let all: Vec<&str> = inquiry.tried.iter().map(String::as_str).collect();
    let (mut with, without) = match suspected.by_itself {
        true => (all.clone(), all),
        false => (Vec::new(), vec![suspected.suspect.as_str()]),
    };
    with.retain(|one| *one != suspected.suspect);
    let cells = sides(analysis, inquiry, &with).zip(sides(analysis, inquiry, &without));
    let (Some(acts_on), Some((with, without))) = (acts_on, cells) else {
        return true;
    };
    // Factor by which each side becomes greater, on the logarithm.
    let [base, other] = [0, 1].map(|side| {
        let logs = log_ratios(with[side].trials(), without[side].trials());
        median(&logs.into_values().collect::<Vec<f64>>()).unwrap_or(0.0)
    });
    let gone = direction(inquiry) * (base - other);
    // The other side is the better one where it is greater than expected, and more is better.
    let is_other_better = (direction(inquiry) > 0.0) == analysis.response.more_is_better();
    let of_other = match acts_on {
        ActsOn::Either => return true,
        ActsOn::Better => is_other_better,
        ActsOn::Worse => !is_other_better,
    };
    let own = direction(inquiry) * if of_other { -other } else { base };
    inquiry.compares_quantiles() || own >= OWN * gone
}

/// Separates the suspects with doubts, which they then hold, from those without.
fn parted(
    analysis: &Analysis,
    inquiry: &Inquiry,
    suspects: &[Suspected],
) -> (Vec<Suspected>, Vec<Suspected>) {
    let weighed = suspects.iter().map(|one| Suspected {
        doubts: of_suspect(analysis, inquiry, &one.suspect),
        ..one.clone()
    });
    weighed.partition(|one| !one.doubts.is_empty())
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
