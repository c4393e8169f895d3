//! The samples behind a report, as JSON small enough to lie in the page, from which the page makes CSV.

use iolab_record::{RunRecord, Sample};
use serde_json::{Value, json};

use super::Input;
use super::section::file_name;
use iolab_workload::escape_control::escape_control;

/// Names of the values of a sample, in the order of [`row`].
const COLUMNS: [&str; 14] = [
    "cell",
    "sample",
    "block",
    "position",
    "warmup",
    "ok",
    "requests",
    "bytes",
    "elapsed_ns",
    "latency_p50_ns",
    "latency_p99_ns",
    "cpu_ns",
    "device_fraction",
    "served_by",
];

/// Everything that the page's script reads, safe to stand in a `<script>` element.
pub(super) fn json(inputs: &[Input]) -> String {
    let runs: Vec<Value> = inputs.iter().map(|input| run(input.run.record())).collect();
    escaped(&json!({ "columns": COLUMNS, "runs": runs }).to_string())
}

fn run(record: &RunRecord) -> Value {
    let experiment = &record.experiment;
    let clean = |texts: &[String]| {
        texts
            .iter()
            .map(|t| escape_control(t).into_owned())
            .collect::<Vec<_>>()
    };
    let cells: Vec<Value> = record
        .cells
        .iter()
        .map(|cell| json!([cell.id, clean(&cell.levels)]))
        .collect();
    json!({
        "experiment": escape_control(&experiment.name),
        "file": file_name(&experiment.name),
        "factors": clean(&experiment.factors),
        "cells": cells,
        "samples": record.samples.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn row(sample: &Sample) -> Value {
    let latency = sample.main_operation().waited();
    json!([
        sample.cell,
        sample.id,
        sample.block,
        sample.position,
        u8::from(sample.warmup),
        u8::from(sample.ok),
        sample.requests(),
        sample.bytes(),
        sample.elapsed_ns,
        latency.map(|l| l.p50_ns),
        latency.map(|l| l.p99_ns),
        sample.cpu_ns(),
        sample.verdict.device_fraction,
        sample.verdict.served_by.name(),
    ])
}

/// JSON without anything that ends or opens an element, or a line of script.
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
