//! Deviations from tests of a standard.

use std::time::Duration;

use iolab_plan::cells::cells;
use iolab_plan::standard::{Deviation, Medium, TargetFacts, Written};
use iolab_workload::settings::CellSpec;
use iolab_workload::units::parse_size;

use crate::line_files::check;
use crate::lines::experiment;

/// Facts about a target in words; without any, nothing is known of it.
fn facts(words: &str) -> TargetFacts {
    let mut facts = TargetFacts::default();
    for word in words.split_whitespace() {
        match word {
            // A model has neither a cache nor former data.
            "model" => (facts.medium, facts.write_cache) = (Some(Medium::Model), Some(false)),
            "device" => facts.medium = Some(Medium::Device),
            "file" => facts.medium = Some(Medium::File),
            "cache" => facts.write_cache = Some(true),
            "no-cache" => facts.write_cache = Some(false),
            "purged" => facts.purged = Some(true),
            "not-purged" => facts.purged = Some(false),
            "trimmed" => facts.trimmed = Some(true),
            "not-trimmed" => facts.trimmed = Some(false),
            "passes=4k" => facts.pass_bs = Some(4096),
            size => facts.bytes = Some(parse_size(size).expect(size)),
        }
    }
    facts
}

fn deviations(line: &str, target: TargetFacts) -> Vec<Deviation> {
    let experiment = experiment(line);
    let cells = cells(&experiment).expect("cells");
    let specs: Vec<&CellSpec> = cells.iter().map(|cell| &cell.spec).collect();
    let standard = experiment.standard.expect("of a standard");
    standard.deviations(&experiment, &specs, target)
}

#[test]
fn each_deviation_is_named() {
    check(&["standards"], |line| {
        let (line, target) = line.split_once('|').expect(line);
        let found = deviations(line.trim(), facts(target));
        let found: Vec<String> = found.iter().map(|one| format!("{one:?}")).collect();
        found.join(", ")
    });
}

/// Sources differ in whether steady rounds end the test: only rounds of its own length do.
#[test]
fn a_short_write_saturation_test_reports_its_writes() {
    for (time, fills, hours, ended_steady, is_complete) in [
        ("time=30min", 0.3, 3, true, true),
        ("time=30min", 0.3, 3, false, false),
        ("time=30min", 3.9, 23, false, false),
        ("time=30min", 4.0, 3, false, true),
        ("time=30min", 0.3, 24, false, true),
        ("time=60s", 0.3, 1, true, false),
        ("time=60s", 4.1, 1, true, true),
    ] {
        let target = TargetFacts {
            written: Some(Written {
                fills,
                time: Duration::from_secs(hours * 3600),
                ended_steady,
            }),
            ..facts("model")
        };
        let found = deviations(&format!("pts-wsat {time}"), target);
        let says = found.contains(&Deviation::Saturation { fills });
        assert_eq!(
            says, !is_complete,
            "{time} {fills} {hours} h {ended_steady}"
        );
        let iops = format!("pts-iops {time}");
        assert_eq!(deviations(&iops, target), deviations(&iops, facts("model")));
    }
}
