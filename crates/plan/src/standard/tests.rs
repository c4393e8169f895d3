use super::*;
use crate::cells::cells;

/// A renamed setting would fall out of the list, and be reported as a deviation of every run.
#[test]
fn the_operators_choices_are_settings() {
    for name in OPEN.iter().flat_map(|names| names.split(' ')) {
        assert!(Setting::find(name).is_some(), "{name}");
    }
}

fn deviations(name: &str, sets: &[&str], target: TargetFacts) -> Vec<Deviation> {
    let mut experiment = Experiment::find(name).expect("built in");
    for set in sets {
        experiment.apply_set(set).expect(set);
    }
    let cells = cells(&experiment).expect("cells");
    let specs: Vec<&CellSpec> = cells.iter().map(|cell| &cell.spec).collect();
    let standard = experiment.standard.expect("of a standard");
    standard.deviations(&experiment, &specs, target)
}

const PURGED: TargetFacts = TargetFacts {
    medium: Some(Medium::Model),
    bytes: None,
    write_cache: Some(false),
    purged: None,
    trimmed: None,
    pass_bs: None,
    written: None,
};

/// The preparation of the IOPS test by a purge.
const PURGE: &str = "precondition=purge+seq:2/128k+steady:round=cells";
/// A device that was to be purged, and was trimmed.
const ONLY_TRIMMED: TargetFacts = TargetFacts {
    medium: Some(Medium::Device),
    purged: Some(false),
    trimmed: Some(true),
    ..PURGED
};

#[test]
fn full_rounds_on_a_purged_device_deviate_nowhere() {
    for (name, time) in [
        ("pts-iops", "time=60s"),
        ("pts-lat", "time=60s"),
        ("pts-wsat", "time=30min"),
        ("pts-tp", "time=60s"),
    ] {
        assert_eq!(deviations(name, &[time], PURGED), [], "{name}");
    }
}

#[test]
fn each_deviation_of_the_target_is_named() {
    let device = TargetFacts {
        medium: Some(Medium::Device),
        bytes: Some(1 << 40),
        write_cache: Some(true),
        trimmed: Some(false),
        ..TargetFacts::default()
    };
    for (sets, target, expected) in [
        (
            &["region=256GiB"][..],
            device,
            vec![
                Deviation::ActiveRange(0.25),
                Deviation::TrimRefused,
                Deviation::WriteCacheOn,
            ],
        ),
        (
            &["region=768GiB"],
            TargetFacts {
                write_cache: None,
                ..device
            },
            vec![Deviation::ActiveRange(0.75), Deviation::TrimRefused],
        ),
        (
            &[],
            TargetFacts {
                medium: Some(Medium::File),
                ..TargetFacts::default()
            },
            vec![Deviation::File, Deviation::TrimmedOnly],
        ),
        (&[PURGE], ONLY_TRIMMED, vec![Deviation::TrimmedOnly]),
        (
            &[PURGE],
            TargetFacts {
                trimmed: Some(false),
                ..ONLY_TRIMMED
            },
            vec![Deviation::TrimRefused],
        ),
        (
            &[PURGE],
            TargetFacts {
                purged: Some(true),
                trimmed: None,
                ..ONLY_TRIMMED
            },
            vec![],
        ),
        // A plan does not show the features of a device; a file has none.
        (&[PURGE], TargetFacts::default(), vec![]),
        (
            &[PURGE],
            TargetFacts {
                medium: Some(Medium::File),
                ..TargetFacts::default()
            },
            vec![Deviation::File, Deviation::TrimmedOnly],
        ),
        (
            &["precondition=seq:1+steady:round=cells"],
            TargetFacts::default(),
            vec![Deviation::NotPurged, Deviation::Passes],
        ),
        (
            &[],
            TargetFacts {
                pass_bs: Some(4096),
                ..PURGED
            },
            vec![Deviation::Passes],
        ),
    ] {
        let sets = [&["time=60s"], sets].concat();
        assert_eq!(deviations("pts-iops", &sets, target), expected, "{sets:?}");
    }
}

#[test]
fn each_deviation_of_the_settings_is_named() {
    let round = Deviation::RoundTime {
        time: Duration::from_secs(2),
        of: Duration::from_secs(60),
    };
    assert_eq!(deviations("pts-iops", &["time=2s"], PURGED), [round]);
    for (sets, expected) in [
        (
            &["bs=4k,64k,1M"][..],
            vec![
                Deviation::Cells {
                    missing: 35,
                    of: 56,
                },
                Deviation::Order,
            ],
        ),
        (
            &["bs=8k"],
            vec![
                Deviation::Cells {
                    missing: 49,
                    of: 56,
                },
                Deviation::Tracked,
            ],
        ),
        (
            &["precondition=trim+seq:2/128k+steady:round=cells,range=30%"],
            vec![Deviation::Limits],
        ),
        (&["cache=cold"], vec![Deviation::PageCache]),
        (&["pattern=rand"], vec![Deviation::Requests]),
        (&["bytes=1M"], vec![Deviation::Bounded]),
        (
            &["read_percent=100,95,65,50,35,20,5,0"],
            vec![Deviation::FurtherCells(8)],
        ),
        (
            &["precondition=trim+seq:2/128k+steady:round=cells,rounds=26"],
            vec![Deviation::Limits],
        ),
        (
            &["rate=1000", "sync=each"],
            vec![Deviation::Setting("sync"), Deviation::Setting("rate")],
        ),
        (&["thinktime=1ms"], vec![Deviation::Setting("thinktime")]),
        (
            &["compressible=100"],
            vec![Deviation::Setting("compressible")],
        ),
        (&["threads=2", "depth=16", "backend=libaio"], vec![]),
    ] {
        let sets = [&["time=60s"], sets].concat();
        assert_eq!(deviations("pts-iops", &sets, PURGED), expected, "{sets:?}");
    }
    let load = ["time=60s", "depth=2", "backend=libaio"];
    let latency = deviations("pts-lat", &load, PURGED);
    assert_eq!(latency, [Deviation::Setting("depth")]);
}

/// Sources differ in whether steady rounds end the test: only rounds of its own length do.
#[test]
fn a_short_write_saturation_test_reports_its_writes() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (set, fills, time, ended_steady, is_complete) in [
        ("time=30min", 0.3, hours(3), true, true),
        ("time=30min", 0.3, hours(3), false, false),
        ("time=30min", 3.9, hours(23), false, false),
        ("time=30min", 4.0, hours(3), false, true),
        ("time=30min", 0.3, hours(24), false, true),
        ("time=60s", 0.3, hours(1), true, false),
        ("time=60s", 4.1, hours(1), true, true),
    ] {
        let target = TargetFacts {
            written: Some(Written {
                fills,
                time,
                ended_steady,
            }),
            ..PURGED
        };
        let found = deviations("pts-wsat", &[set], target);
        let says = found.contains(&Deviation::Saturation { fills });
        assert_eq!(says, !is_complete, "{set} {fills} {time:?} {ended_steady}");
        let of_iops = deviations("pts-iops", &[set], target);
        assert_eq!(of_iops, deviations("pts-iops", &[set], PURGED));
    }
}
