//! Answers of runs of durable writes.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::{RunRecord, ServedBy};
use iolab_report::chart::Style;
use iolab_report::durable_write::{asks, text};
use iolab_report::input::Input;
use iolab_report::layout::SCREEN_LINES;
use iolab_workload::response::Response;

use iolab_synthetic::{add_cell, around, record, serve};

const SIZES: [&str; 3] = ["2300", "8KiB", "128KiB"];
const SYNCS: [&str; 4] = ["fdatasync", "each", "rwf_dsync", "odsync"];
const SPACE: [&str; 3] = ["append", "preallocated", "recycled"];

/// The built-in experiment with these levels, served by `served_by`.
fn log(sizes: &[&str], syncs: &[&str], space: &[&str], served_by: ServedBy) -> Input {
    let levels = |name: &str, levels: &[&str]| -> Vec<String> {
        levels
            .iter()
            .map(|level| format!("{name}={level}"))
            .collect()
    };
    let mut made = record("durable-log", &["bs", "sync", "allocate"]);
    made.experiment.response = Response::Latency;
    made.experiment.question =
        "How long does a durable write to a log take, by size, sync method and allocation of space?"
            .to_owned();
    for bs in levels("bs", sizes) {
        for sync in levels("sync", syncs) {
            for allocate in levels("allocate", space) {
                let own = [&bs, &sync, &allocate].map(String::as_str);
                let settings = ["read_percent=0", "backend=pvsync2"];
                let mb_s = 4.0 + (own.concat().len() % 7) as f64;
                let cell = add_cell(&mut made, &[&own[..], &settings].concat(), &around(mb_s));
                serve(
                    &mut made,
                    cell,
                    served_by,
                    "the target is memory, not storage",
                );
            }
        }
    }
    for sample in &mut made.samples {
        sample.operations.sync.requests = sample.operations.write.requests;
    }
    input(made)
}

fn input(record: RunRecord) -> Input {
    Input::new(PathBuf::from("log.iolab"), AnalysedRun::of(record))
}

#[test]
fn every_answer_fits_a_screen() {
    let all = log(&SIZES, &SYNCS, &SPACE, ServedBy::Device);
    let grid = text(
        &all,
        &Style {
            width: 80,
            ascii: false,
        },
    );
    insta::assert_snapshot!("durable_all", grid);
    let one_sync = log(&["8KiB"], &["fdatasync"], &SPACE, ServedBy::Device);
    insta::assert_snapshot!(
        "durable_3",
        text(
            &one_sync,
            &Style {
                width: 80,
                ascii: true
            }
        )
    );
    for served_by in [ServedBy::Device, ServedBy::NotStorage] {
        for (sizes, syncs, space) in [
            (&SIZES[..], &SYNCS[..], &SPACE[..]),
            (&["8KiB"], &SYNCS, &["append"]),
            (&["8KiB"], &["fdatasync"], &SPACE),
            (&["8KiB"], &SYNCS, &SPACE),
            (&["2300"], &["fdatasync"], &["append"]),
        ] {
            let run = log(sizes, syncs, space, served_by);
            assert!(asks(&run));
            for (width, ascii) in [(80, false), (80, true), (100, false), (200, false)] {
                let text = text(&run, &Style { width, ascii });
                assert!(text.lines().count() <= SCREEN_LINES, "{text}");
                let longest = text.lines().map(|line| line.chars().count()).max();
                assert!(longest <= Some(usize::from(width)), "{text}");
                assert!(!ascii || text.replace(['µ', '×'], "u").is_ascii(), "{text}");
                let begins = match served_by {
                    ServedBy::NotStorage => "No usable result: no storage was involved",
                    _ => "durable-log on /data: ",
                };
                assert!(text.starts_with(begins), "{text}");
                let says = "\nNot shown to be times of the storage: no storage was involved";
                assert_eq!(
                    text.contains(says),
                    served_by == ServedBy::NotStorage,
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn writes_that_are_not_durable_are_another_question() {
    let not = log(&["8KiB"], &["none"], &["recycled"], ServedBy::Device);
    assert!(!asks(&not));
    let throughput = record("durable-log", &["bs"]);
    assert!(!asks(&input(throughput)));
}
