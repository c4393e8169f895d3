//! Text about a requirement: steps that the user can take are never left out, however long the rest is.

use std::time::Duration;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::fitness::Answer;
use iolab_fit::ANSWERS;
use iolab_record::{Asked, Fit, Question, RunRecord, RunStatus, Sample};
use iolab_report::answer::Answers;
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use iolab_synthetic::{add_cell, around, record};
use iolab_workload::service_level::{Need, ServiceLevels};

use crate::timed;

/// Lines of an answer at most.
const LINES_MAX: usize = 24;
const WORKLOADS: [&str; 4] = ["log", "reads", "scan", "backup"];

/// Others used the device and the CPUs, and the machine slept.
fn disturb(sample: &mut Sample) {
    if let Some(device) = &mut sample.counters.device {
        device.read_bytes *= 3;
    }
    let pressure = &mut sample.counters.pressure;
    pressure.cpu_stall_ns = Some(sample.elapsed_ns * 6 / 10);
    pressure.steal_ns = Some(sample.elapsed_ns);
    pressure.suspended_ns = Some(1_000_000_000);
}

/// A disturbed run of a workload whose requests take 100 µs each.
fn run(workload: &str, levels: &str, status: RunStatus) -> (String, AnalysedRun) {
    run_while(disturb, workload, levels, status)
}

fn run_while(
    happens: fn(&mut Sample),
    workload: &str,
    levels: &str,
    status: RunStatus,
) -> (String, AnalysedRun) {
    let mut record: RunRecord = record(workload, &[]);
    record.run.status = status;
    add_cell(
        &mut record,
        &["bs=4KiB", "read_percent=100"],
        &around(100.0),
    );
    record.samples.iter_mut().for_each(happens);
    let levels: ServiceLevels = levels.parse().expect("levels");
    let needs = levels.all().iter().map(|level| Need {
        remedy: "a faster disk".to_owned(),
        ..Need::of(*level)
    });
    record.experiment.asked = Some(Question {
        of: Asked::Fit(Fit {
            id: "1".to_owned(),
            requirement: "mine".to_owned(),
            not: "the rest".to_owned(),
            hold: Duration::from_millis(300),
            workloads: WORKLOADS.map(str::to_owned).to_vec(),
            workload: workload.to_owned(),
            ..Fit::default()
        }),
        needs: needs.collect(),
    });
    (format!("{workload}.iolab"), timed::analysed(record))
}

/// The open answer on a terminal of 80 columns.
fn text(runs: &[(String, AnalysedRun)]) -> String {
    let named = runs.iter().map(|(file, run)| (file.clone(), run));
    let answers = Answers::of(named, &[ANSWERS]);
    assert_eq!(answers.answer(), Some(Answer::CannotTell));
    answers.screen(80)
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn steps_to_finish_a_run_are_always_shown() {
    let level = "reads.p99<10min";
    let whole = run("log", level, RunStatus::Done);
    let part = |workload| run(workload, level, RunStatus::Interrupted);
    let runs = [whole, part("reads"), part("scan"), part("backup")];
    let shown = text(&runs);
    assert!(shown.lines().count() <= LINES_MAX, "{shown}");
    insta::assert_snapshot!(shown);
    // One workload with more levels than there are lines.
    let many: Vec<String> = (1..30).map(|ms| format!("reads.p99<{ms}s")).collect();
    let many = run("reads", &many.join(","), RunStatus::Running);
    let shown = unwrapped(&text(&[many]));
    let (remarks, _) = shown.split_once(" workload level ").expect("a table");
    insta::assert_snapshot!(remarks, @"mine on /data: cannot tell: no run file, unfinished. How does throughput depend on the I/O size? reads: the run is not complete. Finish it with: iolab resume reads.iolab log, scan and backup: their run files are not given; give all run files of one iolab fit together. Each level, with the 95 % interval of what was measured in all rows: requests 8000");
}

/// A longer load narrows an interval, which decides nothing if all of it lies at the level.
#[test]
fn value_at_the_level_suggests_another_level() {
    let remark = |levels: &str| {
        let one = run_while(|_| {}, "log", levels, RunStatus::Done);
        let shown = unwrapped(&text(&[one]));
        let (_, after) = shown.split_once("- log ").expect("a remark");
        let (remark, _) = after.split_once(". ").expect("a sentence");
        remark.to_owned()
    };
    insta::assert_snapshot!(remark("throughput>100"), @"throughput>100MB/s: the value is at the level (the whole interval lies within 5 % of it); a longer load does not decide it, only another level");
    insta::assert_snapshot!(remark("throughput>105"), @"throughput>105MB/s: the level is within the interval, or within 5 % of it; a longer load does not decide it, only another level");
}

/// The failing level matters more than the load that was run, and than doubts about other levels.
#[test]
fn deciding_remarks_come_first() {
    let mut runs: Vec<_> = WORKLOADS[..3]
        .iter()
        .map(|workload| run(workload, "reads.p99<10min", RunStatus::Done))
        .collect();
    runs.push(run_while(
        |_| {},
        "backup",
        "reads.p99<1us",
        RunStatus::Done,
    ));
    let answers = Answers::of(
        runs.iter().map(|(file, run)| (file.clone(), run)),
        &[ANSWERS],
    );
    assert_eq!(answers.answer(), Some(Answer::No));
    let shown = answers.screen(80);
    assert!(shown.lines().count() <= LINES_MAX, "{shown}");
    insta::assert_snapshot!(shown);
}

/// First paragraph of a document.
#[test]
fn answer_comes_first_in_a_document() {
    let told = ["reads.p99<1ms", "reads.p99<10us"].map(|levels| {
        let (file, run) = run_while(|_| {}, "log", levels, RunStatus::Done);
        let mut record = run.record().clone();
        if let Some(Question {
            of: Asked::Fit(fit),
            ..
        }) = &mut record.experiment.asked
        {
            fit.workloads.truncate(1);
        }
        let inputs = [Input::new(file.into(), timed::analysed(record))];
        let report = StudyReport {
            answers: &[ANSWERS],
            ..StudyReport::new(&inputs)
        };
        let text = report.markdown("lab").expect("a document").text;
        let paragraph = text.split("\n\n").nth(1).unwrap_or_default().to_owned();
        // The paragraph appears once.
        assert_eq!(
            text.matches(paragraph.trim_matches('*')).count(),
            1,
            "{text}"
        );
        let page = report.html().expect("a page");
        let line = page.split("<p class=\"line\">").nth(1).unwrap_or_default();
        let line = line.split("</p>").next().unwrap_or_default();
        format!("{paragraph} {}", line.replace('\u{a0}', " "))
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    **mine on /data: yes.** mine on /data: yes.
    **mine on /data: no.** mine on /data: no.
    ");
}
