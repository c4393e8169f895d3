//! Weaknesses of a run's numbers: how it was carried out, doubts about its cells, and whether its trials are enough.

use std::collections::BTreeSet;

use iolab_record::{RunStatus, ServedBy, TargetKind};
use iolab_workload::trial::{SyncPolicy, TrialSpec};

use super::{Claim, Kind, Point, Quantity, Standing, id, kind};
use crate::analysis::{Analysis, CellAnalysis, CellServed, Response, TAIL_REQUESTS_MIN};
use crate::doubt::{Doubt, DoubtClass, DoubtKind, of_cell};

/// A run, with its index among those that are shown.
pub(super) type Of<'a> = (&'a Analysis, usize);

/// A claim about the cells that show it; `None` if none does.
pub(super) fn about(
    kind: &'static Kind,
    of: Of<'_>,
    shows: impl Fn(&CellAnalysis) -> bool,
) -> Option<Claim> {
    let claim = Claim::of_run(kind, of, shows);
    (!claim.cells.is_empty()).then_some(claim)
}

/// Items in descending order of their sizes, the last of equal ones first.
pub(super) fn worst_first<T>(items: impl Iterator<Item = T>, size: impl Fn(&T) -> f64) -> Vec<T> {
    let mut all: Vec<T> = items.collect();
    all.sort_by(|a, b| size(a).total_cmp(&size(b)));
    all.reverse();
    all
}

fn names<const N: usize>(names: [(&str, &str); N]) -> Vec<(String, String)> {
    names
        .map(|(name, is)| (name.to_owned(), is.to_owned()))
        .into()
}

/// The plan was not carried out.
pub(super) fn unfinished(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let has_interval =
        |cell: &CellAnalysis| cell.response.is_some_and(|of| of.median_interval.is_some());
    let place = match analysis.status {
        RunStatus::Done => return None,
        RunStatus::Running => 0,
        RunStatus::Failed => 1,
        RunStatus::Interrupted if !analysis.is_ended_by_user() => 2,
        RunStatus::Interrupted => 3 + usize::from(analysis.cells.iter().any(has_interval)),
    };
    let without = analysis.cells.iter().filter(|cell| cell.n == 0).count();
    let without = Point::count(Standing::Unknown, "cell", without);
    let points = Some(without.of(analysis.cells.len() as f64)).filter(|point| point.value > 0.0);
    Some(Claim::of_run(&kind::UNFINISHED[place], of, |_| true).with_points(points))
}

/// The purpose of the run is unknown.
pub(super) fn definition_not_read(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    // With one trial per cell, no number is based on blocks.
    let has_blocks = analysis.cells.iter().any(|cell| cell.n > 1);
    let kind = &kind::DEFINITION_NOT_READ[usize::from(has_blocks)];
    (!analysis.has_definition).then(|| Claim::of_run(kind, of, |_| true))
}

/// The cells depend on what earlier ones left.
pub(super) fn order_of_cells(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let depends = analysis.depends_on_order;
    depends.then(|| Claim::of_run(&kind::ORDER_OF_CELLS, of, |_| true))
}

/// Cells that a tool left out, or gave up, a claim for each reason.
pub(super) fn gaps((analysis, run): Of<'_>) -> Vec<Claim> {
    let mut all: Vec<Claim> = Vec::new();
    for cell in &analysis.cells {
        let Some(why) = &cell.gap else { continue };
        let held = names([("tool", cell.cell.spec.tool.name()), ("why", why)]);
        let kind = &kind::GAPS[usize::from(cell.failed > 0)];
        match all
            .iter_mut()
            .find(|claim| claim.kind == kind && claim.held == held)
        {
            Some(claim) => claim.cells.push(id(run, cell)),
            None => all.push(Claim {
                held,
                ..Claim::new(kind, vec![id(run, cell)])
            }),
        }
    }
    all
}

/// The version of each other tool and the command line of one of its trials.
pub(super) fn peers((analysis, run): Of<'_>) -> Vec<Claim> {
    let mut all: Vec<Claim> = Vec::new();
    for cell in &analysis.cells {
        let tool = cell.cell.spec.tool.name();
        let Some(command) = &cell.peer_command else {
            continue;
        };
        if !all.iter().any(|claim| claim.held[0].1 == tool) {
            all.push(Claim {
                held: names([("tool", tool), ("command", command)]),
                ..Claim::new(&kind::PEERS, vec![id(run, cell)])
            });
        }
    }
    all
}

/// A modelled disk was measured, and no device.
pub(super) fn model(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let title = analysis.model.as_ref()?;
    Some(Claim {
        held: names([("target", &analysis.target), ("title", title)]),
        ..Claim::of_run(&kind::MODEL[usize::from(title.is_empty())], of, |_| true)
    })
}

/// Cells that a file server served.
pub(super) fn over_the_network(of: Of<'_>) -> Option<Claim> {
    about(&kind::NETWORK, of, |cell| {
        cell.served.as_ref().and_then(CellServed::unanimous) == Some(ServedBy::Network)
    })
}

/// Doubts about cells, the weightiest first, each with its cells in descending order of its extent.
pub(super) fn doubts((analysis, run): Of<'_>) -> impl Iterator<Item = Claim> {
    let all = analysis.cells.iter().map(|cell| (cell, of_cell(cell)));
    let all: Vec<(&CellAnalysis, Vec<Doubt>)> = all.collect();
    let told = DoubtKind::ALL.iter().copied();
    let told = told.filter(|what| is_told(analysis, *what));
    told.filter_map(move |what| {
        let own = all.iter().filter_map(|(cell, doubts)| {
            let is_told = what != DoubtKind::FewTrials || cell.n > 0 && analysis.has_response(cell);
            let doubt = doubts.iter().find(|doubt| doubt.what == what && is_told)?;
            Some(Point {
                cell: Some(id(run, cell)),
                doubts: vec![doubt.clone()],
                ..Point::count(Standing::Doubtful, "trial", cell.n)
            })
        });
        let points = worst_first(own, |point| point.doubts[0].extent.unwrap_or(0.0));
        let cells: Vec<_> = points.iter().filter_map(|point| point.cell).collect();
        (!cells.is_empty()).then(|| Claim::new(&kind::DOUBT, cells).with_points(points))
    })
}

/// Whether a claim of its own is about the doubt: it makes numbers useless, or something helps against it.
fn is_told(analysis: &Analysis, what: DoubtKind) -> bool {
    match (what, what.class()) {
        // Other claims say what was read back, and what the drive counted.
        (DoubtKind::VerifyFailed | DoubtKind::Throttled, _) => false,
        // A standard, or the job file, prescribes which trials follow each other.
        (DoubtKind::EarlierWrites, _) => {
            analysis.standard.is_none() && analysis.target_kind != TargetKind::Imported
        }
        // An inquiry has as many blocks as its question needs.
        (DoubtKind::FewTrials | DoubtKind::FewRequests, _) => {
            analysis.inquiry.is_none() && analysis.seeks_precision
        }
        (_, DoubtClass::Invalid | DoubtClass::Source) => true,
        _ => what.remedy().is_some(),
    }
}

/// Requests that reached the device in pieces.
pub(super) fn requests_in_pieces((analysis, run): Of<'_>) -> Option<Claim> {
    let own = analysis.cells.iter();
    let own = own.filter(|cell| cell.disturbance.is_in_pieces());
    let ios = |cell: &&CellAnalysis| cell.disturbance.ios_per_request.unwrap_or(1.0);
    let cells = worst_first(own, ios);
    let most = Point::main(Quantity::Count("device I/O"), ios(cells.first()?));
    let cells = cells.iter().map(|cell| id(run, cell)).collect();
    Some(Claim::new(&kind::REQUESTS_IN_PIECES, cells).with_points([most]))
}

/// Whether a trial writes and nothing makes that durable.
fn is_unsynced(trial: &TrialSpec) -> bool {
    trial.writes_data() && trial.sync == SyncPolicy::None
}

/// Writes to storage without a sync, except those that another claim reports as owed write-back.
pub(super) fn not_durable(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let is_imported = analysis.target_kind == TargetKind::Imported;
    let is_unsynced_cell = |cell: &CellAnalysis| {
        let served = cell.served.as_ref();
        cell.cell.program().is_none()
            && cell.cell.spec.trials().into_iter().any(is_unsynced)
            && served.is_some_and(|served| !served.any(ServedBy::NotStorage))
            && !cell.flags.contains(&DoubtKind::WriteBackOwed)
    };
    let kind = &kind::NOT_DURABLE[usize::from(is_imported)];
    let claim = about(kind, of, is_unsynced_cell)?;
    let cells = analysis.cells.iter().filter(|cell| is_unsynced_cell(cell));
    let trials = cells.flat_map(|cell| cell.cell.spec.named_trials());
    let groups = trials.filter(|(_, trial)| is_unsynced(trial));
    let settings = groups.map(|(group, _)| match group {
        None => "--set sync=end".to_owned(),
        Some(group) => ["--set ", group, ".sync=end"].concat(),
    });
    let settings: Vec<String> = settings.collect::<BTreeSet<_>>().into_iter().collect();
    Some(Claim {
        held: names([("sync", &settings.join(" "))]),
        ..claim
    })
}

/// Cells whose interval is wider than the requested precision.
pub(super) fn below_precision((analysis, run): Of<'_>) -> Option<Claim> {
    // An inquiry has as many blocks as its question needs, and its comparisons have their own intervals. Steady
    // rounds and a soak have no goal of precision, and get no more trials.
    if analysis.inquiry.is_some() || !analysis.seeks_precision {
        return None;
    }
    let goal = analysis.precision_goal;
    let measured = analysis.cells.iter();
    let measured = measured.filter(|cell| cell.n > 0 && analysis.has_response(cell));
    let wide = measured.filter_map(|cell| {
        let precision = cell.precision.filter(|precision| *precision > goal)?;
        Some((cell, precision))
    });
    let wide = worst_first(wide, |(_, precision)| *precision);
    let (worst, precision) = *wide.first()?;
    let cells: Vec<_> = wide.iter().map(|(cell, _)| id(run, cell)).collect();
    // Further trials are at one level or the other.
    let mut changed = analysis.timeline.over_run.iter();
    let has_changed = changed.any(|shift| cells.iter().any(|id| shift.cells.contains(&id.cell)));
    let response = worst.response?;
    let points = [
        Point::main(Quantity::Share, goal),
        Point::count(Standing::Main, "trial", worst.n),
        Point {
            interval: response
                .median_interval
                .map(|median| (median.low, median.high)),
            ..Point::main(Quantity::Of(analysis.response), response.median)
        },
        Point::main(Quantity::Share, precision),
    ];
    let kind = &kind::BELOW_PRECISION[usize::from(has_changed)];
    Some(Claim::new(kind, cells).with_points(points))
}

/// Cells whose trials have too few requests for a 99th percentile.
pub(super) fn tail_unknown(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let kind = &kind::TAIL_UNKNOWN[usize::from(analysis.response == Response::P99)];
    let claim = about(kind, of, |cell| match &cell.mix {
        Some(mix) => {
            let requests = mix.iter().filter(|(operation, _)| operation.is_request());
            let mut all = requests.filter_map(|(_, one)| one.as_ref());
            all.any(|one| !one.has_tail)
        }
        None => cell.latency.is_some() && cell.tail.is_none(),
    })?;
    let needed = Point::count(Standing::Main, "request", TAIL_REQUESTS_MIN as usize);
    Some(claim.with_points([needed]))
}

/// Cells with traced trials whose stages are not known.
pub(super) fn not_joined(of @ (analysis, _): Of<'_>) -> Option<Claim> {
    let missing = |cell: &CellAnalysis| {
        let stages = cell.stages.as_ref();
        stages
            .filter(|stages| stages.known < stages.traced)?
            .note
            .clone()
    };
    let why = analysis.cells.iter().find_map(missing)?;
    Some(Claim {
        held: names([("why", &why)]),
        ..Claim::of_run(&kind::NOT_JOINED, of, |cell| missing(cell).is_some())
    })
}
