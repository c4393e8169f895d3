//! The text of a study or a run fits a screen, whatever its findings and doubts.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::{RunRecord, RunStatus, ServedBy};
use iolab_report::chart::Style;
use iolab_report::layout::SCREEN_LINES;
use iolab_report::overview::{Input, Overview};
use iolab_synthetic::{add_cell, record, serve};

use crate::overview::study;

/// Lines that a command adds.
const BELOW: usize = 2;

type Change = fn(&mut RunRecord);

/// Changes to a run that lead to findings against it, or to notes.
const CHANGES: [(&str, Change); 7] = [
    ("quiet", |_| ()),
    ("disturbed", |run| {
        for sample in &mut run.samples {
            if let Some(device) = &mut sample.counters.device {
                device.read_bytes *= 5;
                device.write_bytes *= 5;
            }
            sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns / 2);
        }
    }),
    ("in part from memory", |run| {
        for cell in (0..run.cells.len()).step_by(2) {
            serve(
                run,
                cell,
                ServedBy::PageCache,
                "nothing was read from the device",
            );
        }
    }),
    ("of unknown origin", |run| {
        for cell in 0..run.cells.len() {
            serve(run, cell, ServedBy::Unknown, "nothing was counted");
        }
    }),
    ("ended", |run| run.run.status = RunStatus::Interrupted),
    ("few trials", |run| {
        run.samples.retain(|sample| sample.block < 3);
    }),
    ("scattered, and one failed", |run| {
        for (place, sample) in run.samples.iter_mut().enumerate() {
            sample.elapsed_ns += sample.elapsed_ns * 3 * (place as u64 * 7 % 4) / 4;
        }
        if let Some(sample) = run.samples.last_mut() {
            sample.ok = false;
        }
    }),
];

/// A study on each of these targets, changed.
fn studies(targets: &[&str], change: Change) -> Vec<Input> {
    let on = |target: &&str| {
        let runs = study().into_iter();
        let name = (*target).to_owned();
        runs.map(move |input| {
            let mut record = input.run.record().clone();
            record.run.target.clone_from(&name);
            change(&mut record);
            let path = PathBuf::from(format!("{}.iolab", record.experiment.name));
            Input::new(path, AnalysedRun::of(record))
        })
        .collect::<Vec<_>>()
    };
    targets.iter().flat_map(on).collect()
}

fn check(name: &str, overview: &Overview<'_>) {
    for width in [80, 120] {
        let ascii = false;
        let text = overview.screen(BELOW, &Style { width, ascii });
        let lines = text.lines().count() + BELOW;
        assert!(lines <= SCREEN_LINES, "{name}: {lines}\n{text}");
    }
}

#[test]
fn every_screen_ends_in_time() {
    let long = "/srv/data/of/a/laboratory/with/a/long/name";
    for (name, change) in CHANGES {
        for targets in [
            &["/mnt/disk"][..],
            &["/mnt/disk", long],
            &["/a", "/b", "/c", "/d", "/e"],
        ] {
            let inputs = studies(targets, change);
            check(name, &Overview::new(&inputs));
            for input in &inputs {
                check(name, &Overview::new([input]));
            }
        }
    }
}

/// Useless numbers come after the verdict, with advice.
#[test]
fn a_disturbed_disk_begins_with_its_verdict() {
    let record = |change: Change| {
        let mut record = record("glance", &["workload"]);
        for (level, values) in [("RS", [900.0, 90.0]), ("WS", [500.0, 40.0])] {
            let values = values.repeat(4);
            add_cell(&mut record, &[&format!("workload={level}")], &values);
        }
        record.run.target = "/mnt/disk".to_owned();
        change(&mut record);
        Input::new(PathBuf::from("glance.iolab"), AnalysedRun::of(record))
    };
    let disturbed = CHANGES[1].1;
    let style = Style {
        width: 100,
        ascii: false,
    };
    let text = Overview::new([&record(disturbed)]).screen(BELOW, &style);
    insta::assert_snapshot!(text);
}
