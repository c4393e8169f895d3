//! `iolab run` and `iolab study` on models: golden findings, and what every output says of where its numbers are from.

use crate::support::words::words;
use crate::support::{folder, run};

/// A disk with bursts: 300 requests a second, 3,000 while it has credits, which last 20 s.
pub(crate) const CREDITS: &str = "title = \"Bursts of 20 s\"\nsource = [\"made up\"]\n[model.limit]\n\
    requests = { sustained = 300, burst = 3000, credits = 54_000 }\n\
    [model.limit.inner.latency]\nread_us = 700\nwrite_us = 900\ninner.memory = 107_374_182_400\n";

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
