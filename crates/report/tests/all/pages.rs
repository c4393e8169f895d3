//! Pages about several disks, about soaks and about traced requests.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::RunRecord;
use iolab_report::input::{Input, InsideTrials};
use iolab_report::report::StudyReport;
use iolab_synthetic::{
    LAYERS, LayerShares, Layers, SYNC_LAYERS, add_cell, latency_inside, record, throughput_inside,
    traced,
};

/// The study of a disk, and the same of another one.
pub(crate) fn two_disks() -> Vec<Input> {
    let mut inputs = crate::overview::study();
    let others: Vec<Input> = inputs
        .iter()
        .map(|input| {
            let mut record = input.run.record().clone();
            record.run.target = "/mnt/other".to_owned();
            record.run.seed += 1;
            Input::new(PathBuf::from("other.iolab"), AnalysedRun::of(record))
        })
        .collect();
    inputs.extend(others);
    inputs
}

/// One long trial of each of two cells.
pub(crate) fn soak() -> Vec<Input> {
    let mut record = record("read-random", &["bs"]);
    for (size, mb_s) in [("4KiB", 60.0), ("64KiB", 400.0)] {
        let cell = add_cell(&mut record, &[&format!("bs={size}")], &[mb_s]);
        record.cells[cell].spec.trial.latency_over_time = true;
    }
    record.samples.retain(|sample| !sample.warmup);
    let inside = InsideTrials {
        throughput: throughput_inside(&record),
        latency: latency_inside(&record),
    };
    let mut input = Input::new(PathBuf::from("soak.iolab"), AnalysedRun::of(record));
    assert!(input.shows_inside());
    input.inside = inside;
    vec![input]
}

/// Requests and syncs whose time was split by layer.
pub(crate) fn stages() -> Vec<Input> {
    let division = LayerShares {
        first: 0.6,
        second: 0.7,
        sigma: 0.1,
    };
    let layers = Layers {
        mean: division,
        tail: division,
        sync: division,
        sync_tail: division,
    };
    let record: RunRecord = traced(1, 8, &[layers, layers]);
    vec![Input::new(
        PathBuf::from("traced.iolab"),
        AnalysedRun::of(record),
    )]
}

/// The part of a page between two others.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = page.split_once(from).expect("its beginning");
    rest.split_once(to).expect("its end").0
}

#[test]
fn the_glance_of_two_disks_has_a_column_of_each() {
    let inputs = two_disks();
    let page = StudyReport::new(&inputs).html().unwrap();
    let glance = between(&page, "<section id=\"glance\"", "</table>");
    let heading = between(glance, "<thead>", "</thead>");
    assert_eq!(heading.matches("<th ").count(), 3, "{heading}");
    // What each is, and the four kinds of access.
    assert_eq!(glance.matches("<th scope=\"row\"").count(), 5, "{glance}");
}

#[test]
fn the_page_of_a_soak_shows_what_happened_inside_its_trials() {
    let inputs = soak();
    let page = StudyReport::new(&inputs).html().unwrap();
    let section = between(&page, "<section id=\"e1\"", "<table");
    let figures: Vec<&str> = section
        .match_indices("<desc ")
        .map(|(at, _)| between(&section[at..], ">", "</desc>"))
        .collect();
    insta::assert_debug_snapshot!(figures);
    // A line for each of two trials in both.
    assert_eq!(section.matches("class=\"line\"").count(), 4, "{section}");
    let report = StudyReport::new(&inputs).markdown("lab").unwrap();
    let names: Vec<&str> = report
        .figures
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(
        names,
        ["lab-e1-read-random.svg", "lab-e1-read-random-latency.svg"]
    );
}

#[test]
fn the_page_of_traced_requests_shows_their_stages() {
    let page = StudyReport::new(&stages()).html().unwrap();
    for stage in LAYERS.iter().chain(&SYNC_LAYERS) {
        assert!(
            page.contains(&format!("data-series=\"{}\"", stage.name())),
            "{stage}"
        );
    }
    // Bars of as many stages as these differ by more than their colour.
    assert!(page.contains("class=\"hatch paper\""));
}
