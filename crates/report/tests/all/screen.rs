//! A study and a run of few cells end within a screen, whatever was found and whatever speaks against it.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::{RunRecord, RunStatus, ServedBy};
use iolab_report::chart::Style;
use iolab_report::input::Input;
use iolab_report::overview::Overview;
use iolab_synthetic::serve;

use crate::overview::study;

/// Most lines of a study.
const STUDY_LINES: usize = 40;
/// Most lines of a run of few cells.
const RUN_LINES: usize = 32;
/// Cells of a run of which that holds.
const FEW_CELLS: usize = 12;

type Change = fn(&mut RunRecord);

/// What may be found against runs, and what adds notes.
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

#[test]
fn a_study_ends_within_a_screen_whatever_is_found() {
    let long = "/srv/data/of/a/laboratory/with/a/long/name";
    for (name, change) in CHANGES {
        for targets in [&["/mnt/disk"][..], &["/mnt/disk", long]] {
            let inputs = studies(targets, change);
            let overview = Overview::new(&inputs);
            for width in [80, 120] {
                let text = overview.text(&Style {
                    width,
                    ascii: false,
                });
                let lines = text.lines().count();
                assert!(lines <= STUDY_LINES, "{name}, {targets:?}: {lines}\n{text}");
            }
        }
    }
}

#[test]
fn a_run_of_few_cells_ends_within_a_screen_whatever_is_found() {
    let mut judged = 0;
    for (name, change) in CHANGES {
        for input in studies(&["/mnt/disk"], change) {
            let overview = Overview::new([&input]);
            if input.run.record().cells.len() > FEW_CELLS {
                continue;
            }
            // Lines above them: the line of the run, the table and what belongs to it.
            for used in [8, 14, 20] {
                let text = overview.findings_text(used, 80);
                let lines = used + text.lines().count();
                assert!(lines <= RUN_LINES, "{name}: {lines}\n{text}");
                judged += 1;
            }
        }
    }
    assert!(judged > 50, "{judged}");
}
