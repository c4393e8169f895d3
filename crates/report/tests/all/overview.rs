//! The overview of a study of made-up runs, as far as it fits on a screen.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::RunRecord;
use iolab_report::chart::Style;
use iolab_report::overview::{Input, Overview};

use iolab_synthetic::{add_cell, around, record};

/// A curve over sizes of one kind of access.
fn curve(name: &str, access: &[&str], scale: f64) -> RunRecord {
    let mut record = record(name, &["bs"]);
    for (step, size) in ["4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB"]
        .iter()
        .enumerate()
    {
        let size = format!("bs={size}");
        let levels: Vec<&str> = [size.as_str()]
            .into_iter()
            .chain(access.iter().copied())
            .collect();
        let mb_s = scale * 1000.0 / (1.0 + 12.0 / f64::from(1 << (2 * step)));
        add_cell(&mut record, &levels, &around(mb_s));
    }
    record
}

fn strided(name: &str, access: &[&str]) -> RunRecord {
    let mut record = record(name, &["bs", "skip"]);
    for bs in ["128KiB", "1MiB"] {
        for (skip, mb_s) in [
            ("4KiB", 900.0),
            ("32KiB", 800.0),
            ("256KiB", 500.0),
            ("2MiB", 450.0),
        ] {
            let levels = [format!("bs={bs}"), format!("skip={skip}")];
            let own = levels.iter().map(String::as_str);
            let levels: Vec<&str> = own
                .chain(["pattern=strided"])
                .chain(access.iter().copied())
                .collect();
            add_cell(&mut record, &levels, &around(mb_s));
        }
    }
    record
}

pub(crate) fn study() -> Vec<Input> {
    let durable = ["read_percent=0", "sync=each"];
    let random = ["pattern=rand", "read_percent=0", "sync=each"];
    let records = [
        curve("read-size", &[], 1.0),
        curve("write-size", &durable, 0.2),
        strided("read-stride", &[]),
        strided("write-stride", &durable),
        curve("read-random", &["pattern=rand"], 0.9),
        curve("write-random", &random, 0.1),
    ];
    let input = |record: RunRecord| {
        let path = PathBuf::from(format!("{}.iolab", record.experiment.name));
        Input::new(path, AnalysedRun::of(record))
    };
    records.map(input).into()
}

/// Runs of one experiment on two disks.
#[test]
fn each_disk_has_a_column_of_its_own() {
    let [ssd, hdd] = [("/ssd", 1.0), ("/hdd", 0.2)].map(|(target, scale)| {
        let mut record = record("read-size", &["bs"]);
        add_cell(&mut record, &["bs=1MiB"], &around(900.0 * scale));
        record.run.target = target.to_owned();
        Input::new(PathBuf::from(target), AnalysedRun::of(record))
    });
    insta::assert_snapshot!(Overview::new([&ssd, &hdd]).screen(2, &STYLE));
}

#[test]
fn a_study_names_the_ends_of_each_curve() {
    let inputs = study();
    let text = Overview::new(&inputs).screen(2, &STYLE);
    insta::assert_snapshot!(text);
}

const STYLE: Style = Style {
    width: 100,
    ascii: false,
};

#[test]
fn the_picture_has_the_size_of_a_preview() {
    let inputs = study();
    let picture = Overview::new(&inputs)
        .picture()
        .unwrap()
        .expect("numbers to show");
    assert_eq!(picture[16..24], [0, 0, 4, 176, 0, 0, 2, 118]);
    assert!(Overview::new(&[]).picture().unwrap().is_none());
}

#[test]
fn a_page_of_a_study_is_small() {
    let page = iolab_report::report::StudyReport::new(&study())
        .html()
        .unwrap();
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
