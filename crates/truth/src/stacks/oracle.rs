//! Required behaviour of iolab on a target, from the plan alone.

use super::plan::{Claim, Consent, Extent, Hold, Id, Plan, Step, View};
use crate::files::MIB;

/// Required behaviour of iolab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// Write: nothing else stands on the target's bytes.
    Free,
    /// Refuse, for any of these reasons.
    Taken(Vec<String>),
    /// Either: something else stands there without using it, or use is unknown.
    Open(String),
}

/// Smallest file system of a folder with room for a scratch file besides the reserve, bytes.
const ROOM: u64 = 256 * MIB;

/// Required behaviour of iolab on the target of a plan.
pub fn verdict(plan: &Plan) -> Expectation {
    let Some(extent) = plan.extent(plan.target) else {
        return folder(plan);
    };
    let reasons: Vec<String> = claimed(plan, &extent)
        .into_iter()
        .chain(held(plan, &extent))
        .collect();
    if !reasons.is_empty() {
        return Expectation::Taken(reasons);
    }
    let blind = (plan.view != View::Whole).then(|| "not everything can be seen".to_owned());
    match blind.or_else(|| beside(plan, &extent)) {
        Some(why) => Expectation::Open(why),
        None => Expectation::Free,
    }
}

/// Names of the idle signatures in a target, as `--destroy-data=` takes them; `None` for a bare
/// `--destroy-data`.
pub fn names(plan: &Plan) -> Option<String> {
    match plan.consent {
        Consent::Plain => None,
        Consent::Wrong => Some("ntfs".to_owned()),
        Consent::Named => {
            let extent = plan.extent(plan.target)?;
            let claims = plan.claims_of_others(plan.target);
            let inside = claims.filter(|claim| claim.active.is_none() && is_shown(claim, &extent));
            let mut names: Vec<&str> = inside
                .flat_map(|claim| claim.signature.split(','))
                .collect();
            names.sort_unstable();
            names.dedup();
            (!names.is_empty()).then(|| names.join(","))
        }
    }
}

/// Whether a claim begins within a target.
fn is_shown(claim: &Claim, target: &Extent) -> bool {
    claim.extent.overlaps(target) && target.range.contains(&claim.extent.range.start)
}

/// Verdict on a folder: a scratch file touches nothing that exists.
fn folder(plan: &Plan) -> Expectation {
    let home = plan.home(plan.target);
    if is_layer(plan, plan.target) {
        return Expectation::Open("an overlay stands on it".to_owned());
    }
    if plan.view != View::Whole {
        return Expectation::Open("not everything can be seen".to_owned());
    }
    if plan.is_remote(plan.target) {
        return Expectation::Open("it lies on a server".to_owned());
    }
    let Step::Mount { format, .. } = plan.steps[home] else {
        return Expectation::Free;
    };
    let room = plan.below(format).first().and_then(|on| plan.extent(*on));
    // Files are sparse, so all levels below must have room as well, down to the root.
    let below = plan.below(format).iter().all(|on| {
        plan.extent(*on)
            .is_some_and(|extent| plan.home(extent.base) == 0)
    });
    match below && room.is_some_and(|extent| extent.len() >= ROOM) {
        true => Expectation::Free,
        false => Expectation::Open("there may be no room".to_owned()),
    }
}

/// Whether a folder, or one that it is in, is the lower layer of an overlay.
fn is_layer(plan: &Plan, folder: Id) -> bool {
    let is_lower = plan
        .steps
        .iter()
        .any(|step| matches!(step, Step::Overlay { lower, .. } if *lower == folder));
    is_lower
        || match plan.steps[folder] {
            Step::Folder { within } => is_layer(plan, within),
            Step::Bind { folder } => is_layer(plan, folder),
            _ => false,
        }
}

/// File systems, swap and tables on the bytes that were not named.
fn claimed(plan: &Plan, target: &Extent) -> Vec<String> {
    let claims = plan.claims_of_others(plan.target);
    let on_it = claims.filter(|claim| claim.extent.overlaps(target));
    let wrong = on_it.filter(|claim| claim.active.is_some() || !is_named(plan, claim, target));
    let told = |claim: Claim| match claim.active {
        Some(id) if id == claim.by => format!("step {id} stands on it"),
        Some(id) => format!(
            "{} of step {} is in use by step {id}",
            claim.signature, claim.by
        ),
        None => format!("{} of step {} is not named", claim.signature, claim.by),
    };
    wrong.map(told).collect()
}

fn is_named(plan: &Plan, claim: &Claim, target: &Extent) -> bool {
    let names = names(plan);
    names.is_some_and(|names| {
        let mut names = names.split(',');
        is_shown(claim, target) && names.any(|name| claim.signature.split(',').any(|s| s == name))
    })
}

/// Processes that may write the bytes.
fn held(plan: &Plan, target: &Extent) -> Vec<String> {
    let holds = plan.all().filter_map(|(id, step)| match step {
        Step::Hold { node, how } if *how != Hold::Reading => Some((id, plan.extent(*node)?)),
        _ => None,
    });
    let on_it = holds.filter(|(_, extent)| extent.overlaps(target));
    on_it
        .map(|(id, _)| format!("the process of step {id} holds it"))
        .collect()
}

/// Other objects on the target's bytes, or on bytes that the target stands on.
fn beside(plan: &Plan, target: &Extent) -> Option<String> {
    if plan.is_remote(plan.target) {
        return Some("it lies on a server".to_owned());
    }
    let own: Vec<Id> = parts(plan, plan.target).chain([plan.target]).collect();
    let way = way(plan);
    let others = plan
        .all()
        .filter(|(id, _)| !own.contains(id) && !plan.stands_on(plan.target, *id));
    for (id, step) in others {
        let is_hold = matches!(step, Step::Hold { .. });
        let node = if is_hold { plan.below(id)[0] } else { id };
        let Some(extent) = plan.extent(node) else {
            continue;
        };
        let is_on_way = way.iter().any(|below| extent.overlaps(below));
        let is_writer = is_hold || plan.is_device(id);
        if extent.overlaps(target) || (is_on_way && is_writer) {
            return Some(format!("step {id} stands on it too"));
        }
    }
    let is_linked = |(id, step): (Id, &Step)| {
        matches!(step, Step::Link { .. }) && plan.extent(id).is_some_and(|e| e.base == target.base)
    };
    if !plan.is_device(plan.target) && plan.all().any(is_linked) {
        return Some("the file has two names".to_owned());
    }
    if is_in_layer(plan, target.base) {
        return Some("it lies in a layer of an overlay".to_owned());
    }
    // An object made through another node need not be visible from this one.
    let starts: Vec<u64> = own
        .iter()
        .filter_map(|id| Some(plan.extent(*id)?.range.start))
        .collect();
    let mut claims = plan.claims_of_others(plan.target);
    let foreign = claims
        .any(|claim| claim.extent.overlaps(target) && !starts.contains(&claim.extent.range.start));
    foreign.then(|| "what it holds was made by another way".to_owned())
}

/// Extents of the file systems that contain the target, and of devices whose bytes a mapping rearranges, down
/// to the bottom.
fn way(plan: &Plan) -> Vec<Extent> {
    let below = plan
        .all()
        .filter(|(id, _)| *id == plan.target || plan.stands_on(plan.target, *id));
    let base = |id: Id| plan.extent(id).map(|extent| extent.base);
    let devices = below.flat_map(|(id, step)| match step {
        Step::Format { on, .. } => on.clone(),
        Step::Mapped { over, .. } if base(id) != base(*over) => vec![*over],
        _ => Vec::new(),
    });
    devices.filter_map(|device| plan.extent(device)).collect()
}

/// Partitions of a device.
fn parts(plan: &Plan, device: Id) -> impl Iterator<Item = Id> {
    plan.all().filter_map(move |(id, step)| match step {
        Step::Partition { table, .. } if plan.below(*table).contains(&device) => Some(id),
        _ => None,
    })
}

/// Whether a file is in a lower layer, or the target is its path in the upper one.
fn is_in_layer(plan: &Plan, base: Id) -> bool {
    let under = plan.all().any(|(id, step)| {
        matches!(step, Step::Under { .. }) && (id == plan.target || plan.stands_on(plan.target, id))
    });
    under || matches!(plan.steps[base], Step::File { within, .. } if is_layer(plan, within))
}
