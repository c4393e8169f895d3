//! The evidence of a program as data for other programs: `iolab schema witness` describes it.

use std::io::{self, Write};

use iolab_analysis::witness::{Evidence, WitnessClaim};
use schemars::JsonSchema;
use serde::Serialize;

use super::claims;
use crate::claims::ClaimData;
use crate::document::write;
use crate::document_header::{IOLAB_VERSION, SCHEMA};

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
        claims: claims::of(evidence),
        evidence,
    };
    write(&document, to)
}
