//! The overview of a study of made-up runs: what fits on a screen.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::RunRecord;
use iolab_report::chart::Style;
use iolab_report::input::Input;
use iolab_report::overview::Overview;

use iolab_synthetic::{add_cell, around, record};
use iolab_workload::trial::Pattern;

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

/// Each operation was measured with a size of its own, which decides its unit.
#[test]
fn numbers_of_different_sizes_have_their_own_units() {
    let mut reads = record("read-size", &["bs"]);
    add_cell(&mut reads, &["bs=1MiB"], &around(500.0));
    let mut writes = record("write-size", &["bs"]);
    add_cell(&mut writes, &["bs=64KiB", "read_percent=0"], &around(100.0));
    let inputs = [reads, writes].map(|record| {
        let path = PathBuf::from(format!("{}.iolab", record.experiment.name));
        Input::new(path, AnalysedRun::of(record))
    });
    let text = Overview::new(&inputs).text(&Style {
        width: 1000,
        ascii: false,
    });
    insta::assert_snapshot!(text.lines().next().unwrap_or_default(), @"/data: sequential 1 MiB read 500 MB/s, 64 KiB write 1526 IOPS (one at a time; +/- 1.0 % at most)");
}

/// Runs of one experiment on two disks: a row for each, with its name, whichever is given first.
#[test]
fn each_disk_has_a_row_of_its_own_at_a_glance() {
    let [ssd, hdd] = [("/ssd", 1.0), ("/hdd", 0.2)].map(|(target, scale)| {
        let mut record = curve("read-size", &[], scale);
        record.run.target = target.to_owned();
        Input::new(PathBuf::from(target), AnalysedRun::of(record))
    });
    let rows = |inputs: [&Input; 2]| -> Vec<String> {
        let text = Overview::new(inputs).text(&Style {
            width: 1000,
            ascii: false,
        });
        let glance = text.split("at a glance").nth(1).unwrap_or_default();
        let rows = glance.lines().skip(1).take_while(|line| !line.is_empty());
        let mut rows: Vec<String> = rows
            .map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        rows.sort();
        rows
    };
    let first = rows([&ssd, &hdd]);
    insta::assert_snapshot!(first.join("\n"), @r"
    /hdd scratch file 191 +/- 1.0 %
    /ssd scratch file 955 +/- 1.0 %
    ");
    assert_eq!(rows([&hdd, &ssd]), first);
}

/// Half of an interval as a share of the number says nothing where it is more than all of it.
#[test]
fn an_interval_wider_than_its_number_has_no_share_of_it() {
    let lines = |runs: &[(&str, &str)]| {
        let input = |(name, size): &(&str, &str)| {
            let mut record = record(name, &["bs"]);
            let level = format!("bs={size}");
            add_cell(&mut record, &[&level], &[1.0, 2.0, 3.0, 4.0, 5.0, 900.0]);
            if *name == "read-random" {
                record.cells[0].spec.trial.pattern = Pattern::Rand;
            }
            Input::new(PathBuf::from(name), AnalysedRun::of(record))
        };
        let inputs: Vec<Input> = runs.iter().map(input).collect();
        let text = Overview::new(&inputs).text(&Style {
            width: 1000,
            ascii: false,
        });
        text.lines().next().unwrap_or_default().to_owned()
    };
    let both = [("read-size", "1MiB"), ("read-random", "4KiB")];
    insta::assert_snapshot!([lines(&both[..1]), lines(&both)].join("\n"));
}

#[test]
fn a_study_fits_on_a_screen() {
    let inputs = study();
    let overview = Overview::new(&inputs);
    for (name, width, ascii) in [("80", 80, false), ("ascii", 80, true), ("120", 120, false)] {
        let text = overview.text(&Style { width, ascii });
        // A study adds the places of its report, its picture and its run files.
        assert!(text.lines().count() <= 39, "{text}");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(usize::from(width)), "{text}");
        assert!(!ascii || text.replace('µ', "u").is_ascii(), "{text}");
        insta::assert_snapshot!(format!("overview_{name}"), text);
    }
}

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
