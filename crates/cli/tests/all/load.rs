//! Trials at a given rate, on a real file system at a tiny size.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::support::words::words;
use crate::support::{self, exported, folder, refusals, run};

/// A run that is over in a moment.
const TINY: [&str; 8] = [
    "--size", "1MiB", "--time", "20ms", "--budget", "1s", "--seed", "7",
];

fn run_load(folder: &Path, more: &[&str]) -> support::Done {
    let arguments = [&["run", "load-latency", "-o", "l.iolab"], &TINY[..], more].concat();
    run(folder, &arguments)
}

fn number(row: &Value, column: &str) -> f64 {
    row[column]
        .as_f64()
        .unwrap_or_else(|| panic!("{column}: {}", row[column]))
}

#[test]
fn the_built_in_experiment_measures_response_time() {
    let folder = folder();
    // Where io_uring is forbidden psync does as well.
    let more = words!("--rate 500,5000 --set backend=psync --set depth=1");
    run_load(folder.path(), &more).expect(0);
    let table = run(folder.path(), &["table", "l.iolab", "--format", "json"]).expect(0);
    let table: Value = serde_json::from_str(&table.stdout).unwrap();
    let cells = table["cells"].as_array().unwrap().iter();
    let rates: Vec<&Value> = cells.map(|cell| &cell["level_rate"]).collect();
    assert_eq!(rates, ["500", "5000"]);
    let rows = exported(folder.path(), "l.iolab");
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row["arrivals"], "poisson");
        assert_eq!(number(&row, "rate"), number(&row, "rate_wanted"));
        assert!(number(&row, "backlog_max") >= number(&row, "backlog_end"));
        if number(&row, "read_requests") > 0.0 {
            let (response, service) = (
                number(&row, "read_response_mean_ns"),
                number(&row, "read_latency_mean_ns"),
            );
            // Histograms keep three digits.
            assert!(response >= service * 0.999, "{response} {service}");
            assert!(row["read_lateness_p99_ns"].is_u64());
        }
        assert!(row["write_response_p50_ns"].is_null());
    }
}

#[test]
fn a_rate_that_nothing_can_hold_is_flagged_wherever_it_shows() {
    let folder = folder();
    let more =
        words!("--rate 1000000000 --set backend=psync --set depth=1 --set arrivals=constant");
    run_load(folder.path(), &more).expect(0);
    let table = run(folder.path(), &["table", "l.iolab", "--format", "json"]).expect(0);
    let table: Value = serde_json::from_str(&table.stdout).unwrap();
    let cells = &table["cells"];
    let flags = cells[0]["flags"].as_str().unwrap();
    assert!(
        flags.split(", ").any(|flag| flag == "rate not held"),
        "{flags}"
    );
    assert!(number(&cells[0], "rate_not_held_trials") > 0.0);
    assert!(number(&cells[0], "backlog_end_max") > 1e6);
    assert!(
        number(&cells[0], "service_p50_ns_median") <= number(&cells[0], "latency_p50_ns_median")
    );
}

#[test]
fn every_histogram_is_exported_under_its_name() {
    let folder = folder();
    let more =
        words!("--set rate_iops=20000 --set backend=null --set read_percent=50 --set trials_max=1");
    run_load(folder.path(), &more).expect(0);
    let arguments = ["export", "l.iolab", "--format", "json", "--histogram"];
    let rows = run(folder.path(), &arguments).expect(0);
    let rows: Vec<Value> = serde_json::from_str(&rows.stdout).unwrap();
    let directions = rows.iter().filter_map(|row| row["direction"].as_str());
    let directions: BTreeSet<&str> = directions.collect();
    let all = words!("read read-lateness read-response write write-lateness write-response");
    assert_eq!(directions, all.into());
}

#[test]
fn what_a_rate_cannot_be_combined_with_is_refused() {
    let folder = folder();
    let load = words!("run load-latency --set backend=psync --set depth=1");
    let refused = [
        &["--rate", "0"][..],
        &["--rate=-3"],
        &["--rate", "1e12"],
        &["--set", "batch=all"],
        &["--set", "latency=false"],
        &["--set", "response=iops", "--set", "arrivals=bursts"],
    ];
    let mut lines: Vec<Vec<&str>> = refused
        .iter()
        .map(|more| [&load[..], *more].concat())
        .collect();
    lines.push(words!("run read-size --rate 100 --set latency=false").to_vec());
    let lines: Vec<&[&str]> = lines.iter().map(Vec::as_slice).collect();
    insta::assert_snapshot!(refusals(folder.path(), &lines));
}

#[test]
fn a_resumed_run_answers_what_it_was_asked() {
    let folder = folder();
    for (name, levels, rate, code) in [
        ("yes.iolab", "p99<100ms", Some("100"), 0),
        ("no.iolab", "p99<1us", Some("100"), 4),
        ("search.iolab", "p99<5ms", None, 0),
    ] {
        let mut run_it = vec!["run", "load-latency", "model:sata-ssd", "-o", name];
        run_it.extend(["--seed", "7", "--size", "16MiB", "--budget", "10s"]);
        run_it.extend(["--slo", levels]);
        run_it.extend(
            rate.into_iter()
                .flat_map(|rate| ["--time", "1s", "--rate", rate]),
        );
        let first = run(folder.path(), &run_it).expect(code);
        assert!(first.stdout.contains(levels), "{}", first.stdout);
        let again = run(folder.path(), &["resume", name]).expect(code);
        assert_eq!(again.stdout, first.stdout);
    }
}

/// A search ends when it has found the rate; its cells need not be precise by then, and most have one trial.
#[test]
fn cells_of_a_search_end_with_it() {
    let folder = folder();
    let run_it = words!("run load-latency model:sata-ssd -o s.iolab --seed 1 --slo p99<1ms");
    run(folder.path(), &run_it).expect(0);
    let all = run(folder.path(), &["table", "--format", "json", "s.iolab"]).expect(0);
    let all: Value = serde_json::from_str(&all.stdout).expect("JSON");
    let cells = all["cells"].as_array().expect("cells");
    let ends = |cell: &&Value, end: &str| cell["ended_by"] == end;
    assert!(cells.iter().any(|cell| ends(&cell, "search")));
    let mut precise = cells.iter().filter(|cell| ends(cell, "precision"));
    assert!(precise.all(|cell| number(cell, "n") >= 6.0));
}
