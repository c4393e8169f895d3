//! Deviations from tests of a standard.

use std::time::Duration;

use iolab_plan::cells::cells;
use iolab_plan::standard::{Deviation, Medium, TargetFacts, Written};
use iolab_workload::settings::CellSpec;
use iolab_workload::units::parse_size;

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

/// Tests with their changes, and facts about targets.
const CASES: [(&str, &str); 30] = [
    ("pts-iops time=60s", "model"),
    ("pts-lat time=60s", "model"),
    ("pts-wsat time=30min", "model"),
    ("pts-tp time=60s", "model"),
    (
        "pts-iops time=60s region=256GiB",
        "device 1TiB cache not-trimmed",
    ),
    ("pts-iops time=60s region=768GiB", "device 1TiB not-trimmed"),
    ("pts-iops time=60s", "file"),
    (
        "pts-iops time=60s precondition=purge+seq:2/128k+steady:round=cells",
        "device no-cache not-purged trimmed",
    ),
    (
        "pts-iops time=60s precondition=purge+seq:2/128k+steady:round=cells",
        "device no-cache not-purged not-trimmed",
    ),
    (
        "pts-iops time=60s precondition=purge+seq:2/128k+steady:round=cells",
        "device no-cache purged",
    ),
    // A plan does not show the features of a device; a file has none.
    (
        "pts-iops time=60s precondition=purge+seq:2/128k+steady:round=cells",
        "",
    ),
    (
        "pts-iops time=60s precondition=purge+seq:2/128k+steady:round=cells",
        "file",
    ),
    (
        "pts-iops time=60s precondition=seq:1+steady:round=cells",
        "",
    ),
    ("pts-iops time=60s", "model passes=4k"),
    ("pts-iops time=2s", "model"),
    ("pts-iops time=60s bs=4k,64k,1M", "model"),
    ("pts-iops time=60s bs=8k", "model"),
    (
        "pts-iops time=60s precondition=trim+seq:2/128k+steady:round=cells,range=30%",
        "model",
    ),
    (
        "pts-iops time=60s precondition=trim+seq:2/128k+steady:round=cells,rounds=26",
        "model",
    ),
    ("pts-iops time=60s cache=cold", "model"),
    ("pts-iops time=60s pattern=rand", "model"),
    ("pts-iops time=60s bytes=1M", "model"),
    (
        "pts-iops time=60s read_percent=100,95,65,50,35,20,5,0",
        "model",
    ),
    ("pts-iops time=60s rate=1000 sync=each", "model"),
    ("pts-iops time=60s thinktime=1ms", "model"),
    ("pts-iops time=60s compressible=100", "model"),
    (
        "pts-iops time=60s threads=2 depth=16 backend=libaio",
        "model",
    ),
    ("pts-lat time=60s depth=2 backend=libaio", "model"),
    ("pts-wsat time=60s", "model"),
    ("pts-tp time=60s", "device cache"),
];

#[test]
fn each_deviation_is_named() {
    let told = CASES.map(|(line, target)| {
        let found = deviations(line, facts(target));
        let found: Vec<String> = found.iter().map(|one| format!("\n  {one:?}")).collect();
        format!("{line} on {target}:{}", found.concat())
    });
    insta::assert_snapshot!(told.join("\n"));
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
