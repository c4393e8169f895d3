//! First lines of a document: the answer to the question of a run, and how far to trust it.

use std::path::PathBuf;

use iolab_record::question::{Asked, Fit, Question};
use iolab_record::{RunRecord, RunStatus, ServedBy, TargetKind};
use iolab_report::chart::Style;
use iolab_report::input::Input;
use iolab_report::overview::Overview;
use iolab_report::report::StudyReport;
use iolab_synthetic::{add_cell, around, record, serve};
use iolab_workload::service_level::{Need, ServiceLevels};

use crate::timed;

/// Wide enough for any sentence.
const WIDE: Style = Style {
    width: 1000,
    ascii: false,
};

fn input(record: RunRecord) -> Input {
    let path = PathBuf::from(format!("{}.iolab", record.experiment.name));
    Input::new(path, timed::analysed(record))
}

/// Reads of these sizes, 100 MB/s each.
fn reads(sizes: &[&str]) -> RunRecord {
    let mut record = record("read-random", &["bs"]);
    for size in sizes {
        add_cell(&mut record, &[&format!("bs={size}")], &around(100.0));
    }
    record
}

fn asked(levels: &str) -> RunRecord {
    let mut record = reads(&["4KiB"]);
    let levels: ServiceLevels = levels.parse().expect("levels");
    record.experiment.asked = Some(Question::of_levels(Asked::Cells, &levels));
    record
}

fn fit(levels: &str) -> RunRecord {
    let mut record = asked(levels);
    let levels: ServiceLevels = levels.parse().expect("levels");
    record.experiment.asked = Some(Question {
        of: Asked::Fit(Fit {
            id: "1".to_owned(),
            requirement: "a log".to_owned(),
            workloads: vec!["wal".to_owned()],
            workload: "wal".to_owned(),
            ..Fit::default()
        }),
        needs: levels.all().iter().map(|level| Need::of(*level)).collect(),
    });
    record
}

/// First paragraphs of the Markdown and of the page.
fn first(inputs: &[Input]) -> [String; 2] {
    let report = StudyReport::new(inputs);
    let text = report.markdown("lab").expect("a document").text;
    let paragraph = text.split("\n\n").nth(1).unwrap_or_default().to_owned();
    // The paragraph appears once.
    let line = paragraph.trim_matches('*');
    assert_eq!(text.matches(line).count(), 1, "{text}");
    let page = report.html().expect("a page");
    let from = page.find("<p class=\"line\">").expect("a first line");
    let line = &page[from + 16..];
    let line = &line[..line.find("</p>").expect("its end")];
    [paragraph, line.replace('\u{a0}', " ")]
}

#[test]
fn answer_to_the_question_comes_first() {
    let mut stopped = asked("p99<1ms");
    stopped.run.status = RunStatus::Interrupted;
    let mut stopped_model = asked("p99<1ms");
    stopped_model.run.status = RunStatus::Interrupted;
    stopped_model.run.target_kind = TargetKind::Model;
    let told = [
        asked("p99<1ms"),
        asked("p99<10us"),
        fit("p99<1ms"),
        fit("p99<10us"),
        stopped,
        stopped_model,
    ];
    let told = told.map(|record| first(&[input(record)]).join("\n"));
    insta::assert_snapshot!(told.join("\n\n"));
}

/// A run without claims begins with its numbers, or says that it has none, and has no list of findings.
#[test]
fn run_without_claims_begins_with_its_numbers() {
    let mut none = reads(&["4KiB"]);
    none.samples.retain(|sample| sample.warmup);
    none.run.status = RunStatus::Interrupted;
    let mut failed = reads(&["4KiB"]);
    for sample in &mut failed.samples {
        sample.ok = false;
    }
    let mut few = reads(&[]);
    add_cell(&mut few, &["bs=4KiB"], &[100.0, 101.0]);
    add_cell(&mut few, &["bs=64KiB"], &[100.0, 101.0]);
    let told = [reads(&["4KiB"]), few, none, failed].map(|record| {
        let inputs = [input(record)];
        let overview = Overview::new(&inputs);
        let text = overview.screen(0, &WIDE);
        let [markdown, _] = first(&inputs);
        format!("{markdown}\n{text}")
    });
    insta::assert_snapshot!(told.join("\n----\n"));
}

/// Adds traffic of others on the device to each measured trial of a cell.
fn disturb(record: &mut RunRecord, cell: i64) {
    for sample in record.samples.iter_mut().filter(|one| one.cell == cell) {
        if let Some(device) = &mut sample.counters.device {
            device.read_bytes *= 2;
        }
    }
}

/// Lets the machine sleep during a measured trial of the first cell.
fn suspend(record: &mut RunRecord) {
    let slept = record.samples.iter_mut().find(|one| !one.warmup);
    let pressure = &mut slept.expect("a trial").counters.pressure;
    pressure.suspended_ns = Some(3_000_000_000);
}

/// Trials of the first cell: 16, which go through these values in turn.
fn with_trials(sizes: &[&str], values: &[f64]) -> RunRecord {
    let scatter = around(1.0);
    let trials: Vec<f64> = (0..16)
        .map(|i| values[i % values.len()] * scatter[i * 5 % 8])
        .collect();
    let mut record = record("read-random", &["bs"]);
    for (i, size) in sizes.iter().enumerate() {
        let own = if i == 0 {
            trials.clone()
        } else {
            [around(100.0), around(100.0)].concat()
        };
        add_cell(&mut record, &[&format!("bs={size}")], &own);
    }
    record
}

/// The line on trust in the data of this run's page.
fn trust_line(record: RunRecord) -> String {
    let inputs = [input(record)];
    let page = StudyReport::new(&inputs).html().expect("a page");
    let trust = page.split("<p id=\"trust\"").nth(1).expect("a verdict");
    let trust = trust.split_once('>').expect("its beginning").1;
    let trust = trust.split(" <a").next().expect("its end");
    trust.replace('\u{a0}', " ")
}

/// A reason against a run, and a run of some sizes with it.
type Flawed = (&'static str, fn(&[&str]) -> RunRecord);

/// Each reason names its number of cells: one of one, one of several, or all.
#[test]
fn trust_names_the_cells_of_its_reason() {
    let cases: [Flawed; 6] = [
        ("disturbed", |sizes| {
            let mut record = reads(sizes);
            disturb(&mut record, 0);
            record
        }),
        ("suspended", |sizes| {
            let mut record = reads(sizes);
            suspend(&mut record);
            record
        }),
        ("from the page cache", |sizes| {
            let mut record = reads(sizes);
            serve(
                &mut record,
                0,
                ServedBy::PageCache,
                "nothing reached the device",
            );
            record
        }),
        ("two groups", |sizes| {
            with_trials(sizes, &[100.0, 100.0, 150.0])
        }),
        ("a change", |sizes| {
            let values: Vec<f64> = (0..16).map(|i| if i < 8 { 100.0 } else { 60.0 }).collect();
            with_trials(sizes, &values)
        }),
        ("wide", |sizes| {
            with_trials(sizes, &[100.0, 140.0, 90.0, 120.0, 80.0, 130.0, 110.0])
        }),
    ];
    let mut told: Vec<String> = Vec::new();
    for (name, of) in cases {
        for sizes in [&["4KiB"][..], &["4KiB", "64KiB", "256KiB"]] {
            let line = trust_line(of(sizes));
            told.push(format!("{name}, {} cells: {line}", sizes.len()));
        }
    }
    let mut both = reads(&["4KiB", "64KiB"]);
    disturb(&mut both, 0);
    disturb(&mut both, 1);
    told.push(format!("both disturbed: {}", trust_line(both)));
    let mut cached = reads(&["4KiB", "64KiB", "256KiB"]);
    for cell in 0..3 {
        serve(
            &mut cached,
            cell,
            ServedBy::PageCache,
            "nothing reached the device",
        );
    }
    told.push(format!("all from the page cache: {}", trust_line(cached)));
    let mut held = reads(&["4KiB"]);
    for sample in &mut held.samples {
        sample.counters.pressure.throttled_ns = Some(sample.elapsed_ns / 4);
    }
    told.push(format!("held by a quota: {}", trust_line(held)));
    let told = told.join("\n");
    insta::assert_snapshot!(told);
}
