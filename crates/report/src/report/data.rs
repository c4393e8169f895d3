//! The samples and the claims behind a report as JSON, small enough to embed in the page, whose script makes CSV from it.

use std::borrow::Cow;

use iolab_analysis::claim::Claim;
use iolab_record::{Sample, ServedBy, ShownLatency};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;

use super::file_names::file_name;
use super::{Input, StudyReport};
use crate::claims::{self, ClaimData, IdentifiedRun, RemarkData};
use crate::data_column::{DataColumn, list_schema};
use crate::document::RunSummary;
use crate::document_header::{IOLAB_VERSION, SCHEMA};
use crate::trust::TrustData;
use iolab_workload::escape_control::escape_control;
use iolab_workload::table;

/// What the page of `iolab report` holds in its element `samples`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReportDocument {
    /// Version of this schema: rises when a name is removed or changes its meaning, not when one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// Names of the values of a sample, in order.
    columns: Vec<String>,
    /// The answers of runs to the questions that they were made for (`--slo`, `fit`), which the page begins with, a line each, and one more for what a
    /// run that is not complete shows so far; empty without a question.
    answers: Vec<String>,
    /// Each run in one line per target.
    summaries: Vec<RunSummary>,
    /// How far the claims and main numbers that the page begins with can be trusted.
    trust: TrustData,
    /// The runs, with all their samples.
    runs: Vec<RunData>,
    /// Ids of the runs that claims are about, as the cells of these number them, from 0.
    claimed_runs: Vec<String>,
    /// The claims about the latest run of each experiment, then those about several of them together, in the order of the page.
    claims: Vec<ClaimData<Claim>>,
    /// The limits of the numbers of each run, in the order of the page; then, for several runs, the settings to choose.
    remarks: Vec<RemarkData>,
}

/// A run with its samples.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
struct RunData {
    /// Id of the run: 16 hexadecimal digits, the same in every copy of its file.
    run: String,
    /// Name of the experiment.
    experiment: String,
    /// Name of the experiment, as used in names of files.
    file: String,
    /// Names of the factors, in the order of the levels of a cell.
    factors: Vec<String>,
    /// Id and levels of each cell.
    cells: Vec<(i64, Vec<String>)>,
    /// All samples in the order of time, including warm-up and failed ones; values in the order of `columns`.
    samples: Vec<PageSample>,
}

/// The values of a sample, in the order of the columns.
#[derive(Serialize)]
#[serde(transparent)]
struct PageSample(Vec<Value>);

impl JsonSchema for PageSample {
    fn schema_name() -> Cow<'static, str> {
        "Sample".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        list_schema(&columns(ShownLatency::Own))
    }
}

/// What is told of each sample, the latency of its requests that are `timed`.
fn columns(timed: ShownLatency) -> Vec<DataColumn<'static, Sample>> {
    type S = Sample;
    let latency = move |sample: &S| timed.requests(sample).waited();
    Vec::from(table! {
        DataColumn::whole("cell", "id of its cell in the run file", |s: &S| Some(s.cell)).known();
        DataColumn::whole("sample", "its id in the run file", |s: &S| Some(s.id)).known();
        DataColumn::whole("block", "block that it belongs to", |s: &S| Some(s.block)).known();
        DataColumn::whole("position", "its place in the block", |s: &S| Some(s.position)).known();
        DataColumn::whole("warmup", "1: it is a warm-up trial, which is excluded", |s: &S| Some(u8::from(s.warmup))).known();
        DataColumn::whole("ok", "0: it failed, and is excluded", |s: &S| Some(u8::from(s.ok))).known();
        DataColumn::whole("requests", "requests that it carried out", |s: &S| Some(s.requests())).known();
        DataColumn::whole("bytes", "bytes of these", |s: &S| Some(s.bytes())).known();
        DataColumn::whole("elapsed_ns", "its timed span, ns", |s: &S| Some(s.elapsed_ns)).known();
        DataColumn::whole("latency_p50_ns", "median latency, ns: response time where there is a rate, else service time",
            move |s: &S| latency(s).map(|l| l.p50_ns));
        DataColumn::whole("latency_p99_ns", "99th percentile of the same, ns", move |s: &S| latency(s).map(|l| l.p99_ns));
        DataColumn::whole("cpu_ns", "CPU time in user mode and in the kernel, ns", |s: &S| Some(s.cpu_ns())).known();
        DataColumn::number("device_fraction", "bytes that the device carried, a share", |s: &S| s.verdict.device_fraction);
        DataColumn::text("served_by", "where the bytes came from",
            |s: &S| Some(s.verdict.served_by.name())).one_of(ServedBy::NAMES).known();
    })
}

/// Everything that the script of the page reads, escaped for a `<script>` element.
pub(super) fn json(report: &StudyReport<'_>) -> String {
    let (inputs, latest) = (report.inputs, &report.latest);
    let columns = columns(ShownLatency::Own);
    let shown = latest.iter().filter_map(|place| inputs.get(*place));
    let shown: Vec<_> = shown
        .map(|input| IdentifiedRun {
            id: input.run.record().id(),
            analysis: input.run.analysis(),
            bends: Cow::Borrowed(&input.interpretation.bends),
        })
        .collect();
    let runs = inputs.iter().map(run);
    let document = ReportDocument {
        schema: SCHEMA,
        iolab_version: IOLAB_VERSION,
        columns: columns
            .iter()
            .map(|column| column.name().to_owned())
            .collect(),
        answers: report.answer_lines(),
        summaries: inputs
            .iter()
            .flat_map(|input| {
                RunSummary::of(&input.run.record().id(), &input.interpretation.conclusions)
            })
            .collect(),
        trust: TrustData::of(&report.overview.digest.trust),
        runs: runs.collect(),
        claimed_runs: shown.iter().map(|run| run.id.clone()).collect(),
        claims: claims::of_runs(&shown),
        remarks: claims::remarks(&shown),
    };
    escaped(&serde_json::json!(document).to_string())
}

fn run(input: &Input) -> RunData {
    let record = input.run.record();
    let columns = columns(record.timed(0));
    let experiment = &record.experiment;
    let clean = |text: &String| escape_control(text).into_owned();
    let all_clean = |texts: &[String]| texts.iter().map(clean).collect();
    let row = |sample| PageSample(columns.iter().map(|column| column.value(sample)).collect());
    RunData {
        run: record.id(),
        experiment: clean(&experiment.name),
        file: file_name(&experiment.name),
        factors: all_clean(&experiment.factors),
        cells: record
            .cells
            .iter()
            .map(|cell| (cell.id, all_clean(&cell.levels)))
            .collect(),
        samples: record.samples.iter().map(row).collect(),
    }
}

/// Escapes what would end an element, begin one, or end a line of script.
fn escaped(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_ends_the_script() {
        let hostile = json!("</script><!--\u{2028}&amp;").to_string();
        let safe = escaped(&hostile);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        let back: Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(back, "</script><!--\u{2028}&amp;");
    }
}
