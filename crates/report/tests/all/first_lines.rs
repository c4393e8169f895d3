//! First lines of a document: the answer to the question of a run, and how far to trust it.

use std::path::PathBuf;

use iolab_record::{Asked, Fit, Question, RunRecord, RunStatus, TargetKind};
use iolab_report::chart::Style;
use iolab_report::overview::{Input, Overview};
use iolab_report::report::StudyReport;
use iolab_synthetic::{add_cell, around, record};
use iolab_workload::service_level::ServiceLevels;

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
    let mut lacking = asked("p99<1ms");
    let question = lacking.experiment.asked.as_mut().expect("a question");
    question.of = Asked::Fit(Fit::default());
    let told = [
        asked("p99<1ms"),
        asked("p99<10us"),
        lacking,
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
