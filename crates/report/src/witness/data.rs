//! The evidence and the claims of an observation as data for other programs.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::sentences;
use crate::claims::ClaimData;
use crate::data_column::{IOLAB_VERSION, SCHEMA};
use crate::rows::json_object;
use crate::findings::FindingKind;
use iolab_analysis::witness::{Evidence, OtherUse, WitnessClaim};
use iolab_record::ServedBy;
use iolab_workload::escape_control::escape_control;

/// JSON document of `iolab witness`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WitnessDocument<'a> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The result of the evidence, in one sentence.
    text: String,
    /// Claims in the order in which they are printed: the parts of `text`, each with its numbers.
    claims: Vec<ClaimData<WitnessClaim<'a>>>,
    #[serde(flatten)]
    evidence: &'a Evidence,
}

/// Writes one object.
///
/// # Errors
/// Errors of `to`.
pub fn json(evidence: &Evidence, to: &mut dyn Write) -> io::Result<()> {
    let document = WitnessDocument {
        schema: SCHEMA,
        iolab_version: IOLAB_VERSION,
        text: super::headline(evidence),
        claims: of(evidence),
        evidence,
    };
    json_object(&document, to)
}

/// All claims of the evidence, in the order in which they are printed.
pub(super) fn of<'a>(evidence: &'a Evidence) -> Vec<ClaimData<WitnessClaim<'a>>> {
    let data = |claim: WitnessClaim<'a>| ClaimData {
        kind: claim.kind().to_owned(),
        purpose: row(&claim).0,
        role: claim.role(),
        // The first line contains all claims.
        headline: true,
        runs: Vec::new(),
        quantity: None,
        sentence: escape_control(&sentences::sentence(&claim, evidence)).into_owned(),
        basis: row(&claim).1,
        evidence: claim,
    };
    evidence.claims().into_iter().map(data).collect()
}

/// Purpose and basis of a claim.
fn row(claim: &WitnessClaim<'_>) -> (FindingKind, String) {
    const COUNTERS: &str = "counters of the devices, of all processes";
    let (purpose, basis) = match claim {
        WitnessClaim::Served { verdict, .. } => (
            match verdict.served_by {
                ServedBy::Unknown => FindingKind::Limit,
                _ => FindingKind::Result,
            },
            &*escape_control(&verdict.reason),
        ),
        WitnessClaim::NothingOfNote => (
            FindingKind::Result,
            "I/O accounts of its processes; below 256 KiB",
        ),
        WitnessClaim::Flushes(_) | WitnessClaim::DeviceLoad { load: Some(_), .. } => {
            (FindingKind::Result, COUNTERS)
        }
        WitnessClaim::DeviceLoad { load: None, .. } => (FindingKind::Limit, COUNTERS),
        WitnessClaim::Syncs(_) => (
            FindingKind::Result,
            "trace events of the kernel, of syncs that file systems got from its threads",
        ),
        WitnessClaim::OtherUse(other) => (
            match other {
                OtherUse::Unknown => FindingKind::Limit,
                _ => FindingKind::Doubt,
            },
            "counters of the devices without the share of the program",
        ),
        WitnessClaim::Overstated { .. } => (
            FindingKind::Doubt,
            "report of the program; the most that devices carried in all of its time",
        ),
        WitnessClaim::MostIo(_) => (
            FindingKind::Result,
            "I/O accounts of other processes, which name no device",
        ),
    };
    (purpose, basis.to_owned())
}
