//! Pages about several disks, about soaks and about traced requests.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::environment::KEYS;
use iolab_record::{Interval, Moved, PerOperation, RunRecord, SampleSeries, Series};
use iolab_report::overview::Input;
use iolab_report::report::StudyReport;
use iolab_synthetic::{
    LayerShares, Layers, add_cell, around, latency_inside, record, throughput_inside, traced,
};
use iolab_workload::trial::Pattern;

/// The study of a disk, and a second one of another disk.
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
    let (series, over_time) = (throughput_inside(&record), latency_inside(&record));
    let mut input = Input::new(PathBuf::from("soak.iolab"), AnalysedRun::of(record));
    assert!(input.shows_inside());
    (input.series, input.over_time) = (series, over_time);
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
fn page_of_soak_shows_inside_of_trials() {
    let inputs = soak();
    let page = StudyReport::new(&inputs).html().unwrap();
    let section = between(&page, "<section id=\"e1\"", "<table");
    let figures: Vec<&str> = section
        .match_indices("<desc ")
        .map(|(at, _)| between(&section[at..], ">", "</desc>"))
        .collect();
    insta::assert_debug_snapshot!(figures);
    // Both figures have a line for each of two trials.
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

/// A long trial that falls from one level to another, as one of a cache that fills up.
#[test]
fn the_glance_of_a_cliff_shows_both_levels() {
    let mut record = record("write-size", &["bs"]);
    let levels = ["bs=128KiB", "read_percent=0"];
    let cell = add_cell(&mut record, &levels, &[600.0]);
    record.cells[cell].spec.trial.latency_over_time = true;
    record.samples.retain(|sample| !sample.warmup);
    let mb_s = |number: u64| if number < 50 { 1000 } else { 200 };
    let interval = |number: u64| Interval {
        start_ns: number * 100_000_000,
        length_ns: 100_000_000,
        done: PerOperation {
            write: Moved {
                bytes: mb_s(number) * 100_000,
                ..Moved::default()
            },
            ..PerOperation::default()
        },
        drive_millidegrees: None,
    };
    let intervals = (0..100).map(interval).collect();
    record.series = vec![SampleSeries {
        sample: record.samples[0].id,
        series: Series { intervals },
    }];
    let input = Input::new(PathBuf::from("cliff.iolab"), AnalysedRun::of(record));
    let page = StudyReport::new(&[input]).html().unwrap();
    let glance = between(&page, "<section id=\"glance\"", "</table>");
    let cells = glance.split("<td").skip(1);
    let cells = cells.filter_map(|cell| Some(cell.split_once('>')?.1.split_once('<')?.0));
    let cells = cells.collect::<Vec<_>>().join("|");
    insta::assert_snapshot!(cells.replace('\u{a0}', " "), @"128 KiB seq|QD1|1000, then 200|MB/s");
}

/// Runs of one name, each with its file and definition, and random or sequential reads.
fn named_alike(runs: &[(&str, Pattern, &str)]) -> Vec<Input> {
    let run = |(file, pattern, toml): &(&str, Pattern, &str)| {
        let mut record = record("sizes", &["bs"]);
        for (size, mb_s) in [("4KiB", 60.0), ("64KiB", 400.0)] {
            let cell = add_cell(&mut record, &[&format!("bs={size}")], &around(mb_s));
            record.cells[cell].spec.trial.pattern = *pattern;
        }
        record.run.started_utc = format!("2026-01-0{file}T03:04:05Z");
        record.experiment.toml = (*toml).to_owned();
        Input::new(
            PathBuf::from(format!("v{file}.iolab")),
            AnalysedRun::of(record),
        )
    };
    runs.iter().map(run).collect()
}

/// Experiments that differ in a setting do not form a series, whatever their names.
#[test]
fn runs_with_other_settings_are_other_experiments() {
    let runs = named_alike(&[
        ("1", Pattern::Rand, "a"),
        ("2", Pattern::Seq, "b"),
        ("3", Pattern::Rand, "a"),
    ]);
    let report = StudyReport::new(&runs).markdown("x").unwrap().text;
    let headings: Vec<&str> = report
        .lines()
        .filter(|line| {
            line.starts_with('#') || line.starts_with("![") || line.contains("trials in")
        })
        .collect();
    insta::assert_snapshot!(headings.join("\n"), @"
    # 2 experiments, 3 runs on /data
    Measured: 2 experiments, 4 cells, 32 trials in 4 s, on /data. The page also has 1 earlier run.
    ## At a glance
    ## What matters
    ## sizes (v3)
    ![sizes: throughput against I/O size. From 60.0 MB/s (4KiB) to 400 MB/s (64KiB).](x-e3-sizes.svg)
    ### Earlier run: sizes (v1)
    16 trials in 2 cells, all served by the device. Run file: v1.iolab.
    ## sizes (v2)
    ![sizes: throughput against I/O size. From 60.0 MB/s (4KiB) to 400 MB/s (64KiB).](x-e2-sizes.svg)
    ## Findings of several experiments
    - The definition of the experiment in this run file cannot be read; another version of iolab may have written it. Not judged: causes, steady states, tests of a standard, the order of trials. The numbers assume blocks of trials in random order. 'iolab show' prints it. (sizes (v2), sizes (v3)) Based on: the definition of the experiment that the run file contains.
    ## Which settings to choose
    ## Behind the numbers
    ### Method
    ### References
    ### Evidence, settings and events
    #### sizes (v1)
    #### sizes (v2)
    ##### Definition, as e2-sizes.toml
    #### sizes (v3)
    ##### Definition, as e3-sizes.toml
    ### Environment
    ### Repeat it
    ");
}

/// Each command names a file that the document has, and no two commands write the same file.
#[test]
fn runs_of_one_experiment_have_separate_files() {
    let runs = named_alike(&[
        ("1", Pattern::Rand, "# first\nname = \"sizes\""),
        ("2", Pattern::Rand, "name = \"sizes\""),
        ("3", Pattern::Rand, "name = \"sizes\""),
    ]);
    let report = StudyReport::new(&runs).markdown("x").unwrap().text;
    let repeating = report
        .lines()
        .filter(|line| line.contains("# Definition") || line.contains("-again"));
    insta::assert_snapshot!(repeating.collect::<Vec<_>>().join("\n"), @"
    ##### Definition, as e1-sizes.toml
    ##### Definition, as e3-sizes.toml
    iolab run e1-sizes.toml /data --seed 7 -o e1-sizes-again.iolab
    iolab compare v1.iolab e1-sizes-again.iolab
    iolab run e3-sizes.toml /data --seed 7 -o e2-sizes-again.iolab
    iolab compare v2.iolab e2-sizes-again.iolab
    iolab run e3-sizes.toml /data --seed 7 -o e3-sizes-again.iolab
    iolab compare v3.iolab e3-sizes-again.iolab
    iolab report v1.iolab v2.iolab v3.iolab -o report-again.html
    ");
}

/// A run on a model is repeated on the definition in the report. A missing definition in a run file is reported.
#[test]
fn model_file_is_shown_once_and_in_commands() {
    let mut runs = named_alike(&[
        ("1", Pattern::Rand, "a"),
        ("2", Pattern::Rand, "a"),
        ("3", Pattern::Seq, "b"),
        ("4", Pattern::Strided, "c"),
    ]);
    for (number, input) in runs.iter_mut().enumerate() {
        let mut record = input.run.record().clone();
        record.run.target = "model:m/noisy.toml".to_owned();
        let definition = (number < 3).then(|| "title = \"Noisy\"".to_owned());
        record.environment.put(&KEYS.model_definition, definition);
        record.environment.put(&KEYS.model_digest, "d1".to_owned());
        *input = Input::new(input.path.clone(), AnalysedRun::of(record));
    }
    let report = StudyReport::new(&runs).markdown("x").unwrap().text;
    let of_model = report.lines().filter(|line| {
        let begins = ["##### Model, ", "The run file", "iolab run "];
        begins.iter().any(|begin| line.starts_with(begin))
    });
    insta::assert_snapshot!(of_model.collect::<Vec<_>>().join("\n"), @"
    ##### Model, as e2-noisy.model.toml
    The run file does not contain the definition of model:m/noisy.toml, whose digest is d1.
    iolab run e2-sizes.toml model:e2-noisy.model.toml --seed 7 -o e1-sizes-again.iolab
    iolab run e2-sizes.toml model:e2-noisy.model.toml --seed 7 -o e2-sizes-again.iolab
    iolab run e3-sizes.toml model:e2-noisy.model.toml --seed 7 -o e3-sizes-again.iolab
    iolab run e4-sizes.toml model:m/noisy.toml --seed 7 -o e4-sizes-again.iolab
    ");
}
