//! `iolab run` and `iolab study` on models: golden findings, and what every output says of where its numbers are from.

use std::fs;
use std::path::Path;

use crate::support::words::words;
use crate::support::{entries, folder, refusals, run};

/// A disk with bursts: 300 requests a second, 3,000 while it has credits, which last 20 s.
pub(crate) const CREDITS: &str = "title = \"Bursts of 20 s\"\nsource = [\"made up\"]\n[model.limit]\n\
    requests = { sustained = 300, burst = 3000, credits = 54_000 }\n\
    [model.limit.inner.latency]\nread_us = 700\nwrite_us = 900\ninner.memory = 107_374_182_400\n";

/// What a command prints, which has to be the same whenever it is run.
fn golden(name: &str, folder: &Path, arguments: &[&str]) {
    let printed = run(folder, arguments).expect(0).stdout;
    insta::assert_snapshot!(name, printed);
}

#[test]
fn findings_of_a_hard_disk() {
    let folder = folder();
    let arguments = words!("study model:hp-97560 --suite quick --seed 1 --budget 3h -o hdd");
    golden("computed_hard_disk", folder.path(), &arguments);
    // A model leaves no scratch file behind.
    let made = entries(folder.path());
    assert_eq!(made, ["hdd"]);
    let report = fs::read_to_string(folder.path().join("hdd/report.html")).expect("a report");
    assert!(report.contains("model:hp-97560"));
    let size = ["plot", "hdd/read-size.iolab", "-o", "figure.svg"];
    run(folder.path(), &size).expect(0);
    let figure = fs::read_to_string(folder.path().join("figure.svg")).expect("a figure");
    assert!(figure.contains("model:hp-97560"));
}

#[test]
fn findings_of_a_solid_state_disk() {
    let folder = folder();
    let arguments = words!("study model:sata-ssd --suite quick --seed 1 -o ssd");
    golden("computed_solid_state_disk", folder.path(), &arguments);
}

#[test]
fn findings_of_a_volume_with_credits() {
    let folder = folder();
    fs::write(folder.path().join("credits.toml"), CREDITS).expect("written");
    let arguments = words!(
        "run write-random model:credits.toml --seed 1 --set bs=4k --set sync=none --set \
         backend=io_uring --depth 32 --size 10GiB --set bytes=none --time 2s --set trials_min=20 \
         --budget 10min -o run.iolab"
    );
    run(folder.path(), &arguments).expect(0);
    golden("computed_credits", folder.path(), &["table", "run.iolab"]);
}

#[test]
fn the_same_seed_gives_the_same_run_file() {
    let folder = folder();
    let small = words!("run write-vs-read model:sata-ssd --time 20ms --set trials_max=6");
    let samples = |seed: &str, file: &str| {
        let so = ["--seed", seed, "-o", file];
        run(folder.path(), &[&small[..], &so[..]].concat()).expect(0);
        let rows = run(folder.path(), &["export", file, "--format", "csv"]).expect(0);
        let mut lines = rows.stdout.lines().map(str::to_owned);
        let heading = lines.next().expect("a heading");
        // Columns that name the file and the time of the run differ.
        const OWN: [&str; 4] = ["run", "file", "run_started_utc", "started_utc"];
        let names: Vec<&str> = heading.split(',').collect();
        assert!(OWN.iter().all(|name| names.contains(name)), "{heading}");
        let row = |line: String| {
            let fields = names.iter().zip(line.split(','));
            let kept = fields.filter(|(name, _)| !OWN.contains(name));
            kept.map(|(_, field)| field).collect::<Vec<_>>().join(",")
        };
        lines.map(row).collect::<Vec<String>>()
    };
    let first = samples("7", "first.iolab");
    assert!(first.len() > 20);
    assert!(first == samples("7", "again.iolab"));
    assert!(first != samples("8", "other.iolab"));
}

#[test]
fn what_a_model_has_not_is_refused() {
    let folder = folder();
    let lines = [
        &["run", "read-size", "model:hp-97560", "--buffered"][..],
        &["run", "read-size", "model:hp-97560", "--peer", "fio"],
        &["run", "write-size", "model:hp-97560", "--verify"],
        &["run", "write-size", "model:hp-97560", "--fresh"],
        &["run", "linkage", "model:hp-97560"],
        &["run", "read-size", "model:hp-97560", "--size", "2TiB"],
        &["study", "model:hp-97560", "--set", "buffer_init=huge"],
        &["run", "read-size", "model:hp-97560", "--peak", "measure"],
        &["run", "linkage", "--peak", "read=1GB/s"],
    ];
    insta::assert_snapshot!(refusals(folder.path(), &lines));
}
