//! Claims of runs as data for other programs, each with its sentence.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::findings::sentences;
use crate::notation::{clean, in_text};
use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{self, Claim, OfRuns, Role};
use iolab_analysis::runs::RunName;

/// A claim of a run as data: a statement about cells, with its numbers and the sentence that iolab prints for
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Claim")]
pub struct ClaimData {
    /// Kind of the claim.
    #[schemars(schema_with = "kinds")]
    pub kind: &'static str,
    /// Whether the claim answers a question, changes a decision, or explains another claim.
    pub role: Role,
    /// Whether the sentence is one of the most important ones (at most five) of its run, or of several runs
    /// together.
    pub headline: bool,
    /// Runs that the claim is about, as `run` of the cells names them; empty for an observation.
    pub runs: Vec<String>,
    /// Sentence that iolab prints. Levels that are equivalent to one level may share a sentence, and so may
    /// claims that show nothing.
    pub sentence: String,
    /// Estimator and intervals of the claim, in words.
    pub basis: String,
    /// Quantity that the experiment of its first run asks about; `null` for an observation.
    pub quantity: Option<QuantityData>,
    /// Numbers and doubts of the claim.
    #[serde(flatten)]
    pub evidence: Claim,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "oneOf": one_of(claim::kind::all())})
}

/// Schemas of these kinds of claims, from the name and the meaning of each.
fn one_of(rows: Vec<(&'static str, &'static str)>) -> Value {
    let mut meanings = BTreeMap::<_, String>::new();
    for (name, meaning) in rows {
        meanings.entry(name).or_default().push_str(meaning);
    }
    let kinds = meanings.iter();
    let kinds = kinds.map(|(name, meaning)| json!({"const": name, "description": meaning.trim()}));
    kinds.collect()
}

/// Schema of a list of claims of these kinds, which are all of its document.
pub fn schema_of(
    rows: Vec<(&'static str, &'static str)>,
    generator: &mut SchemaGenerator,
) -> Schema {
    let list = generator.subschema_for::<Vec<ClaimData>>();
    if let Some(claim) = generator.definitions_mut().get_mut("Claim") {
        claim["properties"]["kind"]["oneOf"] = one_of(rows);
    }
    list
}

/// The measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Quantity")]
pub struct QuantityData {
    /// `throughput`, `IOPS`, `median latency`, `elapsed time`, or another one of `--metric`.
    name: String,
    /// Unit of its values: `MB/s`, `IOPS`, `ns`.
    unit: String,
    /// `read`, `write` or `trim`: whose latency it is, where cells of the run mix operations; `null` otherwise.
    operation: Option<String>,
    /// Group of workers whose quantity it is; `null` for whole trials.
    group: Option<String>,
}

/// A run with the name of its file.
pub type NamedRun = (RunName, AnalysedRun);

/// All claims of some runs in the order in which they are shown: first of each run, then of several runs
/// together, with choices of settings.
pub(crate) fn of_runs(runs: &[NamedRun]) -> Vec<ClaimData> {
    let analyses = analyses(runs);
    let OfRuns { each, across } = claim::of_runs(&analyses);
    let mut all = Vec::new();
    for claims in &each {
        all.extend(in_order(claims, runs));
    }
    all.extend(in_order(&across, runs));
    if runs.len() > 1 {
        all.extend(in_order(&claim::choices(&analyses), runs));
    }
    all
}

fn analyses(runs: &[NamedRun]) -> Vec<&Analysis> {
    runs.iter().map(|(_, run)| run.analysis()).collect()
}

fn in_order(claims: &[Claim], runs: &[NamedRun]) -> Vec<ClaimData> {
    let mut headlines = claim::headlines(claims);
    headlines.truncate(claim::HEADLINES_MAX);
    let (shown, not) = claim::ordered(claims);
    let all = shown.into_iter().chain(not);
    all.map(|claim| of(claim, runs, headlines.contains(&claim)))
        .collect()
}

/// A claim about some of these runs as data; whether it is a headline.
pub fn of(claim: &Claim, runs: &[NamedRun], headline: bool) -> ClaimData {
    let about = || claim.runs().into_iter().filter_map(|run| runs.get(run));
    let text = sentences::finding(claim, &analyses(runs)).text;
    ClaimData {
        kind: claim.kind.name,
        role: claim.role(),
        headline,
        runs: about().map(|(name, _)| name.id.clone()).collect(),
        quantity: about()
            .next()
            .map(|(_, run)| QuantityData::of(run.analysis())),
        sentence: clean(&in_text(&text)),
        basis: claim.kind.basis.to_owned(),
        evidence: claim.clone(),
    }
}

impl QuantityData {
    fn of(run: &Analysis) -> Self {
        Self {
            name: run.response.to_string(),
            unit: run.response.unit().to_owned(),
            operation: run.operation().map(|operation| operation.to_string()),
            group: run.response_group.as_deref().map(clean),
        }
    }
}
