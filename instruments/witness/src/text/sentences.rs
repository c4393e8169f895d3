//! The sentences of an observation, one for each claim, and its claims as data for other programs.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use super::short;
use crate::evidence::{Evidence, kinds};
use crate::observed::Subject;
use iolab_analysis::claim::Claim;
use iolab_figure::labels::capital;
use iolab_report::claims::{self, ClaimData};
use iolab_report::data_column::{IOLAB_VERSION, SCHEMA};
use iolab_report::findings::sentences::finding;
use iolab_report::observation::Seen;
use iolab_workload::escape_control::escape_control;

/// Subject of the clauses; `None` for devices, whose clauses name them.
pub(crate) fn subject(evidence: &Evidence) -> Option<String> {
    match &evidence.observed.subject {
        Subject::Devices => None,
        Subject::Program(command) => Some(short(command)),
        Subject::Process { pid, command } => Some(format!("{} (PID {pid})", short(command))),
    }
}

/// A claim as a sentence after the name of its subject.
pub(super) fn sentence(claim: &Claim, evidence: &Evidence) -> String {
    let clause = finding(claim, &[]).text;
    match subject(evidence) {
        Some(subject) => format!("{subject}: {clause}"),
        None => clause,
    }
}

/// A claim as a sentence that follows others about the same subject.
pub(super) fn further(claim: &Claim) -> String {
    let clause = finding(claim, &[]).text;
    let is_name = ["{device}", "{tool}"]
        .iter()
        .any(|name| claim.kind.head.starts_with(name));
    match is_name {
        true => clause,
        false => capital(&clause),
    }
}

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
    #[schemars(schema_with = "claims_schema")]
    claims: Vec<ClaimData>,
    #[serde(flatten)]
    evidence: &'a Evidence,
}

fn claims_schema(generator: &mut SchemaGenerator) -> Schema {
    claims::schema_of(kinds::rows(), generator)
}

/// The document of this evidence.
pub(super) fn document(evidence: &Evidence) -> WitnessDocument<'_> {
    let data = |claim: &Claim| {
        // The first line contains all claims.
        let own = claims::of(claim, &[], true);
        ClaimData {
            sentence: escape_control(&sentence(claim, evidence)).into_owned(),
            ..own
        }
    };
    WitnessDocument {
        schema: SCHEMA,
        iolab_version: IOLAB_VERSION,
        text: evidence.headline(),
        claims: evidence.claims().iter().map(data).collect(),
        evidence,
    }
}
