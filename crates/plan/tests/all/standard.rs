//! Deviations from tests of a standard.

use std::time::Duration;

use iolab_plan::cells::cells;
use iolab_plan::standard::{Deviation, Medium, TargetFacts, Written};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Pattern;
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

/// The cells of the tests and the tracked ones, as the standard has them: % of reads and size, in the order of a round.
#[test]
fn built_in_cells_are_those_of_the_standard() {
    const KIB: u64 = 1024;
    let grid = |mixes: &[u8], sizes: &[u64]| -> Vec<(u8, u64)> {
        let of_mix = |mix: &u8| sizes.iter().map(|bs| (*mix, *bs)).collect::<Vec<_>>();
        mixes.iter().flat_map(of_mix).collect()
    };
    let sizes = [1024, 128, 64, 32, 16, 8, 4].map(|kib| kib * KIB);
    let iops = grid(&[100, 95, 65, 50, 35, 5, 0], &[&sizes[..], &[512]].concat());
    for (name, points, tracked, (seq, seq_bs)) in [
        (
            "pts-iops",
            iops,
            vec![(65, 64 * KIB), (0, 4 * KIB), (100, 1024 * KIB)],
            (2, 128 * KIB),
        ),
        (
            "pts-lat",
            grid(&[100, 65, 0], &[8 * KIB, 4 * KIB, 512]),
            vec![(0, 4 * KIB)],
            (2, 128 * KIB),
        ),
        (
            "pts-tp",
            grid(&[100, 0], &[1024 * KIB]),
            vec![(0, 1024 * KIB)],
            (2, 1024 * KIB),
        ),
        (
            "pts-wsat",
            vec![(0, 4 * KIB)],
            vec![(0, 4 * KIB)],
            (0, 1024 * KIB),
        ),
    ] {
        let experiment = experiment(name);
        let cells = cells(&experiment).expect("cells");
        let own = cells.iter().map(|cell| &cell.spec);
        let found: Vec<(u8, u64)> = own
            .clone()
            .map(|own| (own.trial.read_percent, own.trial.bs))
            .collect();
        assert_eq!(found, points, "{name}");
        let places = experiment.tracked(own);
        let mut found: Vec<(u8, u64)> = places.into_iter().map(|place| points[place]).collect();
        found.sort_unstable();
        let mut tracked = tracked;
        tracked.sort_unstable();
        assert_eq!(found, tracked, "{name}");
        let passes = experiment.design.precondition;
        assert_eq!((passes.seq, passes.seq_bs), (seq, seq_bs), "{name}");
        let pattern = match name {
            "pts-tp" => Pattern::Seq,
            _ => Pattern::RandReplace,
        };
        assert!(
            cells.iter().all(|cell| cell.spec.trial.pattern == pattern),
            "{name}"
        );
    }
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
