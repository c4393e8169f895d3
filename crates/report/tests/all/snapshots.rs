//! Tables, charts and exports of made-up runs, reviewed before they were accepted.

use std::collections::BTreeSet;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::analysis::analyse;
use iolab_analysis::runs::RunName;
use iolab_record::{EndedBy, FurtherTarget, RunRecord, RunStatus, Sample, ServedBy, TargetKind};
use iolab_report::chart::{Style, chart};
use iolab_report::rows::Format;
use iolab_report::{document, export, prometheus, table};
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;

use iolab_synthetic::{add_cell, add_trial, around, record, serve, size_curve};

fn sizes() -> RunRecord {
    let mut record = size_curve(
        "read-size",
        &[
            ("4KiB", 61.3),
            ("64KiB", 302.0),
            ("256KiB", 489.0),
            ("1MiB", 501.5),
            ("4MiB", 502.2),
        ],
    );
    record.cells[0].ended_by = Some(EndedBy::Budget);
    record
}

pub(crate) fn strided() -> RunRecord {
    let mut record = record("read-stride", &["bs", "skip"]);
    for (bs, scale) in [("128KiB", 0.5), ("1MiB", 1.0)] {
        for (skip, mb_s) in [("4KiB", 400.0), ("1MiB", 210.0), ("4MiB", 180.0)] {
            let levels = [format!("bs={bs}"), format!("skip={skip}")];
            add_cell(
                &mut record,
                &[&levels[0], &levels[1]],
                &around(mb_s * scale),
            );
        }
    }
    record
}

fn troubled() -> RunRecord {
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &around(2.5));
    let hot = add_cell(&mut record, &["bs=64KiB"], &around(9000.0));
    serve(
        &mut record,
        hot,
        ServedBy::PageCache,
        "nothing was read from the device",
    );
    let zero = add_cell(&mut record, &["bs=1MiB"], &around(60_000.0));
    serve(
        &mut record,
        zero,
        ServedBy::NotStorage,
        "a character device",
    );
    add_cell(&mut record, &["bs=4MiB"], &[100.0, 130.0]);
    add_trial(&mut record, 3, 1.0, false).ok = false;
    add_cell(&mut record, &["bs=16MiB"], &[]);
    record.cells[4].ended_by = None;
    record.run.status = RunStatus::Interrupted;
    record
}

fn table_at(record: &RunRecord, width: u16) -> String {
    table::table(&analyse(record)).text(width)
}

fn chart_at(record: &RunRecord, width: u16, ascii: bool) -> String {
    chart(&analyse(record), &Style { width, ascii })
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for record in [sizes(), strided(), troubled()] {
        for width in 40..200 {
            for text in [
                table_at(&record, width),
                chart_at(&record, width, false),
                chart_at(&record, width, true),
            ] {
                // The caption and the line of omitted columns may be wrapped by the terminal.
                for line in text.lines().skip(1).filter(|l| !l.starts_with('(')) {
                    let columns = line.chars().count();
                    assert!(
                        columns <= usize::from(width),
                        "{columns} > {width}:\n{text}"
                    );
                }
            }
        }
    }
}

#[test]
fn ascii_charts_are_ascii() {
    assert!(chart_at(&troubled(), 80, true).is_ascii());
}

/// A run as `a.iolab`, analysed.
fn named(record: &RunRecord) -> (RunName, AnalysedRun) {
    let name = RunName::of("a.iolab", record);
    (name, AnalysedRun::of(record.clone()))
}

fn cells_text(records: &[RunRecord], format: Format) -> String {
    let runs: Vec<_> = records.iter().map(named).collect();
    let mut bytes = Vec::new();
    match format {
        Format::Csv => export::cells(&runs, &mut bytes).unwrap(),
        _ => document::table(&runs, &mut bytes).unwrap(),
    }
    String::from_utf8(bytes).unwrap()
}

fn samples_text(records: &[RunRecord], format: Format) -> String {
    let mut bytes = Vec::new();
    let runs: Vec<_> = records
        .iter()
        .map(|record| (RunName::of("a.iolab", record), record, None))
        .collect();
    export::samples(&runs, format, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn two_cells() -> RunRecord {
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &[60.0, 62.0, 61.0]);
    let hot = add_cell(&mut record, &["bs=1MiB"], &[9000.0]);
    serve(&mut record, hot, ServedBy::PageCache, "nothing was read");
    add_trial(&mut record, hot, 1.0, false).ok = false;
    record
}

#[test]
fn prometheus_keeps_newest_value_of_each_cell() {
    let of = |day: u32, bs: u64, mb: f64| {
        let mut record = two_cells();
        record.run.started_utc = format!("2026-01-{day:02}T00:00:00Z");
        for cell in &mut record.cells {
            cell.spec.trial.region = bs;
        }
        for sample in &mut record.samples {
            sample.elapsed_ns = (sample.elapsed_ns as f64 / mb) as u64;
        }
        AnalysedRun::of(record)
    };
    let written = |runs: &[AnalysedRun]| {
        let mut text = Vec::new();
        prometheus::cells(runs, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let series = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.rsplit_once("} ").unwrap().0.to_owned())
            .collect()
    };
    let one = series(&written(&[of(1, 1 << 30, 1.0)]));
    // Of equal cells on two days the newer ones count, whatever the order of the files.
    let newer = written(&[of(2, 1 << 30, 2.0)]);
    assert_eq!(written(&[of(1, 1 << 30, 1.0), of(2, 1 << 30, 2.0)]), newer);
    assert_eq!(written(&[of(2, 1 << 30, 2.0), of(1, 1 << 30, 1.0)]), newer);
    assert_eq!(series(&newer), one);
    // Other settings are other series.
    let both = series(&written(&[of(1, 1 << 30, 1.0), of(2, 1 << 20, 1.0)]));
    assert_eq!(both.len(), 2 * one.len());
    let distinct: BTreeSet<&String> = both.iter().collect();
    assert_eq!(distinct.len(), both.len());
    assert!(both[0].contains("region=\"1GiB\""), "{}", both[0]);
}

#[test]
fn row_of_all_groups_names_active_targets() {
    let mut record = two_cells();
    record.run.target = "/a".to_owned();
    record.further_targets = vec![FurtherTarget {
        id: 1,
        target: "/b".to_owned(),
        kind: TargetKind::BlockDevice,
        ..FurtherTarget::default()
    }];
    let group = |target: &str| GroupSpec {
        name: "g".to_owned(),
        spec: CellSpec {
            target: target.parse().ok(),
            ..CellSpec::default()
        },
    };
    record.cells[0].spec.groups = ["/a", "/b"].map(group).to_vec();
    record.cells[1].spec.groups = vec![group("/b")];
    let kind = record.run.target_kind.name();
    let csv = samples_text(&[record], Format::Csv);
    assert!(
        csv.contains(&format!(",\"/a, /b\",\"{kind}, block-device\",")),
        "{csv}"
    );
    assert!(csv.contains(",/b,block-device,"), "{csv}");
}

/// One account has the bytes of all groups, so it is unknown whose bytes the page cache served.
#[test]
fn only_all_groups_together_have_an_origin() {
    let run = |served_by: ServedBy, names: &[&str]| {
        let mut record = record("read-size", &["bs"]);
        let cell = add_cell(&mut record, &["bs=4KiB"], &around(60.0));
        serve(&mut record, cell, served_by, "half of it");
        let group = |name: &&str| GroupSpec {
            name: (*name).to_owned(),
            spec: record.cells[0].spec.clone(),
        };
        record.cells[0].spec.groups = names.iter().map(group).collect();
        let of_trial = |sample: &Sample| {
            let own = |group| Sample {
                group,
                ..sample.clone()
            };
            (1..=names.len() as u32).map(own).collect::<Vec<_>>()
        };
        record.group_samples = record.samples.iter().flat_map(of_trial).collect();
        let of = |row: &serde_json::Value| {
            let flags = row.get("flags").and_then(|flags| flags.as_str());
            let [group, served_by] = ["group", "served_by"].map(|name| row[name].clone());
            let flags = flags.map_or_else(String::new, |flags| format!(" {flags}"));
            format!("{group} {served_by}{flags}").trim_end().to_owned()
        };
        let records = std::slice::from_ref(&record);
        let texts = [cells_text, samples_text].map(|text| text(records, Format::Json));
        let [cells, samples] = texts.map(|text| {
            let parsed: serde_json::Value = serde_json::from_str(&text).expect("rows");
            let rows = parsed.get("cells").unwrap_or(&parsed);
            rows.as_array().expect("rows").clone()
        });
        let shown: BTreeSet<String> = cells.iter().chain(&samples).map(of).collect();
        shown.into_iter().collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(run(ServedBy::Mixed, &["data", "redo"]), @r#"
    "all" "mixed (37 % device)" mixed
    "all" "mixed"
    "data" null
    "redo" null
    "#);
    insta::assert_snapshot!(run(ServedBy::Model, &["data", "redo"]), @r#"
    "all" "model"
    "data" "model"
    "redo" "model"
    "#);
    insta::assert_snapshot!(run(ServedBy::Mixed, &["data"]), @r#"
    "all" "mixed (37 % device)" mixed
    "all" "mixed"
    "data" "mixed (37 % device)" mixed
    "data" "mixed"
    "#);
}

#[test]
fn runs_with_other_factors_share_one_table() {
    let text = samples_text(&[sizes(), strided()], Format::Csv);
    let header = text.lines().next().unwrap();
    let names: Vec<&str> = header.split(',').collect();
    let levels: Vec<&&str> = names
        .iter()
        .filter(|name| name.starts_with("level_"))
        .collect();
    assert_eq!(levels, [&"level_bs", &"level_skip"]);
    let commas = header.matches(',').count();
    assert!(text.lines().all(|line| line.matches(',').count() == commas));
    assert!(samples_text(&[], Format::Json).starts_with("[]"));
}
