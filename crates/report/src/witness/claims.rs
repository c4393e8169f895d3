//! The claims on an observation as data for other programs: of the same type as those on runs.

use iolab_analysis::witness::{Evidence, NOTEWORTHY, OtherUse, WitnessClaim};
use iolab_record::ServedBy;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::format_bytes;

use super::sentences;
use crate::claims::{
    ClaimData, ClaimedData, DeviceLoadData, DirectionData, Observed, OtherUseData, OverstatedData,
    ServedData, SyncsData,
};
use crate::findings::FindingKind;

/// All claims of the evidence, in the order in which they are printed.
pub(super) fn of(evidence: &Evidence) -> Vec<ClaimData<Observed>> {
    let claims = evidence.claims();
    let data = |claim: &WitnessClaim<'_>| ClaimData {
        kind: claim.kind().to_owned(),
        purpose: purpose(claim),
        role: claim.role(),
        // The first line contains all claims.
        headline: true,
        runs: Vec::new(),
        quantity: None,
        sentence: escape_control(&sentences::sentence(claim, evidence)).into_owned(),
        basis: basis(claim),
        evidence: rests_on(claim, evidence),
    };
    claims.iter().map(data).collect()
}

fn purpose(claim: &WitnessClaim<'_>) -> FindingKind {
    match claim {
        WitnessClaim::Served { verdict, .. } if verdict.served_by == ServedBy::Unknown => {
            FindingKind::Limit
        }
        WitnessClaim::OtherUse(OtherUse::Unknown) | WitnessClaim::Load(_, None) => {
            FindingKind::Limit
        }
        WitnessClaim::OtherUse(
            OtherUse::None | OtherUse::Little { .. } | OtherUse::Some { .. },
        )
        | WitnessClaim::Overstated { .. } => FindingKind::Doubt,
        WitnessClaim::Nothing
        | WitnessClaim::Served { .. }
        | WitnessClaim::Flushes(_)
        | WitnessClaim::Syncs(_)
        | WitnessClaim::Load(..)
        | WitnessClaim::MostIo(_) => FindingKind::Result,
    }
}

fn basis(claim: &WitnessClaim<'_>) -> String {
    match claim {
        WitnessClaim::Served { verdict, .. } => escape_control(&verdict.reason).into_owned(),
        WitnessClaim::Nothing => format!(
            "I/O accounts of its processes; below {}",
            format_bytes(NOTEWORTHY as f64)
        ),
        WitnessClaim::Flushes(_) | WitnessClaim::Load(..) => {
            "counters of the devices, of all processes".to_owned()
        }
        WitnessClaim::Syncs(_) => {
            "trace events of the kernel, of syncs that file systems got from its threads".to_owned()
        }
        WitnessClaim::OtherUse(_) => {
            "counters of the devices without the share of the program".to_owned()
        }
        WitnessClaim::Overstated { .. } => {
            "report of the program; the most that devices carried in all of its time".to_owned()
        }
        WitnessClaim::MostIo(_) => {
            "I/O accounts of other processes, which name no device".to_owned()
        }
    }
}

fn rests_on(claim: &WitnessClaim<'_>, evidence: &Evidence) -> Observed {
    match claim {
        WitnessClaim::Nothing => Observed::NothingOfNote,
        WitnessClaim::Served {
            transfer,
            direction,
            verdict: _,
        } => Observed::Served(ServedData {
            transfer: transfer.name(),
            devices: evidence.devices_of(*transfer),
            direction: DirectionData::of(direction),
        }),
        WitnessClaim::Flushes(flushes) => Observed::Flushes {
            devices: flushes.disks.clone(),
            flushes: flushes.completed,
        },
        WitnessClaim::Syncs(trace) => Observed::Syncs(SyncsData::of(&trace.syncs)),
        WitnessClaim::OtherUse(other) => Observed::OtherUse(OtherUseData::from(*other)),
        WitnessClaim::Overstated {
            tool,
            transfer,
            claimed,
            carried,
        } => Observed::Overstated(OverstatedData {
            tool: (*tool).to_owned(),
            transfer: transfer.name(),
            claimed: ClaimedData::of(*claimed, Some(*carried)),
        }),
        WitnessClaim::Load(device, load) => Observed::DeviceLoad(DeviceLoadData::of(device, *load)),
        WitnessClaim::MostIo(command) => Observed::MostIo(command.into()),
    }
}
