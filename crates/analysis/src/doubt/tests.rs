//! Each reason with and without its evidence, and the directions in which it reverses a claim.

use std::collections::BTreeSet;

use super::*;
use crate::compare::CellVerdict;
use crate::fitness::{Evidence, LevelAnswer, ReasonedAnswer, judge};
use iolab_record::{Bottom, Counters, OperationSummary, PerOperation};
use iolab_workload::counters::{ProcessIo, Traffic};
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::{CellSpec, Setting};

const SECOND: u64 = 1_000_000_000;

fn cell(sets: &[(&str, &str)]) -> Cell {
    let mut spec = CellSpec::default();
    for (name, value) in sets {
        let setting = Setting::find(name).expect("a setting");
        setting.set(&mut spec, value).expect("a value");
    }
    Cell {
        spec,
        ..Cell::default()
    }
}

/// A log whose writes are each followed by a sync.
fn log() -> Cell {
    cell(&[("read_percent", "0"), ("sync", "fdatasync")])
}

fn environment(facts: &[(&str, &str)]) -> Environment {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    facts.iter().map(own).collect()
}

/// A second of 100 writes of 4 KiB with as many syncs, undisturbed on a device.
fn sample(id: i64) -> Sample {
    let bytes = 100 << 12;
    let io = ProcessIo {
        write_bytes: bytes,
        ..ProcessIo::default()
    };
    let stat = DeviceStat {
        write_ios: 100,
        write_bytes: bytes,
        flush_ios: 100,
        ..DeviceStat::default()
    };
    Sample {
        id,
        ok: true,
        elapsed_ns: SECOND,
        operations: PerOperation {
            write: OperationSummary {
                requests: 100,
                bytes,
                ..OperationSummary::default()
            },
            sync: OperationSummary {
                requests: 100,
                ..OperationSummary::default()
            },
            ..PerOperation::default()
        },
        counters: Counters {
            device: Some(stat),
            process_io: Some(io),
            ..Counters::default()
        },
        verdict: verdict(ServedBy::Device, ""),
        ..Sample::default()
    }
}

fn verdict(served_by: ServedBy, reason: &str) -> ServedVerdict {
    ServedVerdict {
        served_by,
        device_fraction: None,
        reason: reason.to_owned(),
    }
}

fn samples(change: impl Fn(&mut Sample)) -> Vec<Sample> {
    let mut all: Vec<Sample> = (1..=8).map(sample).collect();
    all.iter_mut().for_each(change);
    all
}

fn of(cell: &Cell, samples: &[Sample]) -> Doubts {
    Doubts::of_cell(cell, samples, &environment(&[("cpu_usable_count", "2")]))
}

/// Names of the reasons that could reverse a claim.
fn against(doubts: &Doubts, direction: Direction) -> Vec<&'static str> {
    let against = doubts.against(direction).into_iter();
    against.map(|doubt| doubt.what.name()).collect()
}

fn both(doubts: &Doubts) -> (Vec<&'static str>, Vec<&'static str>) {
    let against = |direction| against(doubts, direction);
    (against(Direction::AtLeast), against(Direction::AtMost))
}

#[test]
fn quiet_trials_on_a_device_leave_no_doubt() {
    let found = of(&log(), &samples(|_| ()));
    assert_eq!((found.all.len(), found.limit), (0, None), "{found:?}");
}

#[test]
fn possible_memory_only_contradicts_good_results() {
    for served_by in [ServedBy::PageCache, ServedBy::Hole, ServedBy::Unknown] {
        let name = DoubtKind::of_source(served_by).name();
        let found = of(
            &log(),
            &samples(|s| s.verdict = verdict(served_by, "because")),
        );
        assert_eq!(both(&found), (vec![name], vec![]), "{served_by}");
        assert_eq!(against(&found, Direction::Equal), [name]);
    }
    // Memory says nothing about the storage: both directions are in doubt.
    let found = of(
        &log(),
        &samples(|s| s.verdict = verdict(ServedBy::NotStorage, "x")),
    );
    assert_eq!(both(&found), (vec!["not-storage"], vec!["not-storage"]));
    // Writes of a log may be both in the page cache and on the device; the rest of reads came from memory.
    let mixed = samples(|s| s.verdict = verdict(ServedBy::Mixed, "x"));
    assert_eq!(of(&log(), &mixed).all, []);
    assert_eq!(both(&of(&cell(&[]), &mixed)).0, ["mixed"]);
    for (sync, name) in [("none", "not-synced"), ("end", "synced-at-end")] {
        let never = cell(&[("read_percent", "0"), ("sync", sync), ("cache", "direct")]);
        let found = of(&never, &samples(|_| ()));
        assert_eq!(both(&found), (vec![name], vec![]), "{sync}");
    }
}

#[test]
fn writes_of_groups_are_doubted_one_by_one() {
    let unsynced = |sets: [&[(&str, &str)]; 2]| {
        let groups = ["reader", "writer"].into_iter().zip(sets);
        let groups = groups.map(|(name, sets)| GroupSpec {
            name: name.to_owned(),
            spec: cell(sets).spec,
        });
        let of = |groups: Vec<GroupSpec>| {
            let mut cell = Cell::default();
            cell.spec.groups = groups;
            cell.spec.trial = cell.spec.merge_trials();
            let found = of(&cell, &samples(|_| ())).all.into_iter();
            found
                .map(|doubt| (doubt.what, doubt.note))
                .collect::<Vec<_>>()
        };
        let groups: Vec<GroupSpec> = groups.collect();
        let found = of(groups.clone());
        assert_eq!(of(groups.into_iter().rev().collect()), found);
        found
    };
    let synced: &[(&str, &str)] = &[("read_percent", "0"), ("sync", "odsync")];
    assert_eq!(unsynced([&[], synced]), []);
    let none: &[(&str, &str)] = &[("read_percent", "0")];
    let found = unsynced([&[("sync", "odsync")], none]);
    let writer = Some("writer".to_owned());
    assert_eq!(found, [(DoubtKind::NotSynced, writer)]);
}

#[test]
fn writes_after_last_sync_only_contradict_good_results() {
    let synced = |sync_every: &str, syncs: u64| {
        let own = cell(&[
            ("read_percent", "0"),
            ("sync", "fdatasync"),
            ("sync_every", sync_every),
        ]);
        let samples = samples(|sample| {
            sample.operations.write.requests = 1000;
            sample.operations.sync.requests = syncs;
        });
        of(&own, &samples)
    };
    for (sync_every, syncs) in [("1", 1000), ("32", 31), ("1000", 1)] {
        assert_eq!(synced(sync_every, syncs).all, [], "{sync_every}");
    }
    for (sync_every, syncs, share) in [("1000000", 0, 1.0), ("400", 2, 0.2)] {
        let found = synced(sync_every, syncs);
        assert_eq!(both(&found), (vec!["unsynced"], vec![]), "{sync_every}");
        let found = found.all[0].extent.expect("a share");
        assert!((found - share).abs() < 1e-9, "{found}");
    }
    let in_write = cell(&[("read_percent", "0"), ("sync", "odsync")]);
    assert_eq!(
        of(&in_write, &samples(|s| s.operations.write.requests = 1000)).all,
        []
    );
}

#[test]
fn verdicts_of_one_kind_are_one_doubt() {
    let mut all = samples(|_| ());
    all[1].verdict = verdict(ServedBy::Unknown, "17 %");
    all[4].verdict = verdict(ServedBy::Unknown, "42 %");
    let found = of(&log(), &all);
    let [doubt] = &found.all[..] else {
        panic!("{found:?}");
    };
    assert_eq!(doubt.samples, BTreeSet::from([2, 5]));
    assert_eq!(doubt.note.as_deref(), Some("17 %"));
}

#[test]
fn volatile_cache_must_be_flushed_if_counted() {
    let unflushed = samples(|s| {
        let stat = s.counters.device.as_mut().expect("there");
        stat.flush_ios = 0;
        s.counters.bottom = Some(Bottom {
            stat: DeviceStat::default(),
            in_file: false,
            passes_on: false,
        });
    });
    let cache = ("device_write_cache", "write back");
    for (facts, doubted) in [
        (&[cache, ("device_flush_counter", "device")][..], true),
        (&[cache, ("device_flush_counter", "disks")], true),
        (&[cache, ("device_flush_counter", "moon")], false),
        (&[cache], false),
        (&[("device_flush_counter", "device")], false),
    ] {
        let found = Doubts::of_cell(&log(), &unflushed, &environment(facts));
        let found: Vec<DoubtKind> = found.all.iter().map(|doubt| doubt.what).collect();
        let expected: &[_] = if doubted {
            &[DoubtKind::NeverFlushed]
        } else {
            &[]
        };
        assert_eq!(found, expected, "{facts:?}");
    }
    // A loop device over memory counts flushes, and has no disks below.
    let flushed = samples(|s| {
        s.counters.bottom = Some(Bottom {
            stat: DeviceStat::default(),
            in_file: true,
            passes_on: false,
        });
    });
    let facts = environment(&[cache, ("device_flush_counter", "device")]);
    assert_eq!(Doubts::of_cell(&log(), &flushed, &facts).all, []);
}

/// A disturbance of a trial, with the name of the doubt.
type Disturbing = (fn(&mut Sample), &'static str);

const DISTURBING: [Disturbing; 5] = [
    (
        |s| s.counters.device.as_mut().expect("there").read_bytes += 100 << 20,
        "other-traffic",
    ),
    (
        |s| s.counters.pressure.cpu_stall_ns = Some(SECOND * 9 / 10),
        "cpu-contended",
    ),
    (
        |s| s.counters.pressure.throttled_ns = Some(SECOND / 10),
        "cpu-quota",
    ),
    (|s| s.counters.pressure.steal_ns = Some(SECOND / 2), "steal"),
    (
        |s| s.counters.usage.involuntary_switches = 5000,
        "cpu-contended",
    ),
];

#[test]
fn a_disturbance_speaks_against_bad_alone() {
    for (disturb, name) in DISTURBING {
        let found = of(&log(), &samples(disturb));
        assert_eq!(both(&found), (vec![], vec![name]));
        assert_eq!(against(&found, Direction::Equal), [name]);
        // The times of a model are computed.
        let modelled = samples(|s| {
            disturb(s);
            s.verdict = verdict(ServedBy::Model, "computed");
        });
        assert_eq!(of(&log(), &modelled).all, [], "{name}");
    }
    let slept = samples(|s| s.counters.pressure.suspended_ns = Some(SECOND));
    let found = of(&log(), &slept);
    assert_eq!(both(&found), (vec!["suspended"], vec!["suspended"]));
}

/// Tasks may wait for CPUs that no worker wants. A worker may lose nearly all of its time while tasks wait for a
/// part of it.
#[test]
fn waits_of_workers_precede_machine_pressure() {
    let waited = |share: u64| {
        samples(|s| {
            s.counters.pressure.cpu_stall_ns = Some(SECOND * 6 / 10);
            s.run_delay_ns = Some(SECOND * share / 10);
        })
    };
    let found = |share: u64| {
        let found = Doubts::of_cell(
            &log(),
            &waited(share),
            &environment(&[("cpu_usable_count", "2")]),
        );
        found
            .all
            .iter()
            .map(|doubt| doubt.extent)
            .collect::<Vec<_>>()
    };
    assert_eq!(found(9), [Some(0.9)]);
    assert_eq!(found(5), [Some(0.5)]);
    assert_eq!(found(0), []);
}

#[test]
fn claim_of_other_trials_stands() {
    let mut all = samples(|_| ());
    let (disturb, _) = DISTURBING[1];
    all[..3].iter_mut().for_each(disturb);
    let found = of(&log(), &all);
    let turned = |shows: bool| {
        let turning = found.turning(Direction::AtMost, |concerned| {
            assert_eq!(*concerned, BTreeSet::from([1, 2, 3]));
            shows
        });
        turning.len()
    };
    assert_eq!((turned(true), turned(false)), (0, 1));
    // Doubts in the other direction are not asked for.
    assert!(
        found
            .turning(Direction::AtLeast, |_| panic!("asked"))
            .is_empty()
    );
    // With every trial in doubt, no trial is left to decide.
    let found = of(&log(), &samples(disturb));
    assert_eq!(
        found.turning(Direction::AtMost, |_| panic!("asked")).len(),
        1
    );
}

#[test]
fn reached_limit_explains_slow_result() {
    let limited = |wiops: &str, samples: &[Sample]| {
        let facts = environment(&[("device_limit_write_iops", wiops)]);
        Doubts::of_cell(&log(), samples, &facts)
    };
    // 100 writes and as many flushes.
    let all = samples(|_| ());
    let reached = ReachedLimit {
        what: Traffic::Writes,
        per_second: 200,
    };
    assert_eq!(limited("200", &all).limit, Some(reached));
    assert_eq!(limited("400", &all).limit, None);
    // Disturbances explain no more than the limit already does; origins still count.
    let busy = samples(|s| {
        (DISTURBING[1].0)(s);
        s.verdict = verdict(ServedBy::Unknown, "x");
    });
    assert_eq!(
        both(&limited("200", &busy)),
        (vec!["unknown-source"], vec![])
    );
    assert_eq!(both(&limited("400", &busy)).1, ["cpu-contended"]);
    // With other traffic on the device, its counters are useless: certain writes of iolab count.
    let shared = samples(DISTURBING[0].0);
    assert_eq!(limited("200", &shared).limit, None);
    assert!(limited("110", &shared).limit.is_some());
    // A limit on bytes, of a device whose counters cannot be read.
    let unseen = samples(|s| s.counters.device = None);
    let facts = environment(&[("device_limit_write_bps", "409600")]);
    assert!(Doubts::of_cell(&log(), &unseen, &facts).limit.is_some());
    let buffered = cell(&[("read_percent", "0"), ("sync", "none"), ("cache", "cold")]);
    assert_eq!(Doubts::of_cell(&buffered, &unseen, &facts).limit, None);
}

/// Every doubt that turns an answer, about a level or a comparison, is reported with it.
#[test]
fn each_doubt_is_reason_of_answers_it_opens() {
    let level = "p99<1ms".parse().expect("a level");
    for what in DoubtKind::ALL.iter().copied() {
        let of_level = LevelAnswer {
            judged: judge(&level, &Evidence::of_trials(&[], 1)),
            turned_by: vec![Doubt::from(what)],
        };
        assert_eq!(of_level.reasoned(), ReasonedAnswer::CannotTell(vec![what]));
        let of_comparison = CellVerdict::doubted(&[Doubt::from(what)]);
        assert_eq!(of_comparison, Some(CellVerdict::CannotTell(what)));
    }
}

fn others(share: f64) -> CellDisturbance {
    CellDisturbance {
        others: Some(share),
        ..CellDisturbance::default()
    }
}

#[test]
fn only_disturbance_beyond_the_base_is_a_difference() {
    let (quiet, busy, busier) = (others(0.01), others(0.37), others(0.82));
    let found = imbalances(&[&quiet, &busy], &[&busier]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].what, DoubtKind::OtherTraffic);
    assert_eq!(found[0].levels, Some([(0.01, 0.37), (0.82, 0.82)]));
    assert_eq!(found[0].side, Some(ComparedSide::New));
    // One run of the base has the same load.
    assert_eq!(imbalances(&[&quiet, &busier], &[&busy]), []);
    // A disturbed base is an imbalance too.
    assert_eq!(imbalances(&[&busy], &[&quiet]).len(), 1);
}

#[test]
fn small_differences_and_unknown_values_are_none() {
    assert_eq!(imbalances(&[&others(0.01)], &[&others(0.05)]), []);
    let unknown = CellDisturbance::default();
    assert_eq!(imbalances(&[&unknown], &[&others(4.0)]), []);
    assert_eq!(imbalances(&[], &[&others(4.0)]), []);
    let stalled = |share| CellDisturbance {
        cpu_stall: Some(share),
        ..CellDisturbance::default()
    };
    assert_eq!(imbalances(&[&stalled(0.1)], &[&stalled(0.3)]), []);
    assert_eq!(imbalances(&[&stalled(0.1)], &[&stalled(0.4)]).len(), 1);
    let pieces = |ios| CellDisturbance {
        ios_per_request: Some(ios),
        ..CellDisturbance::default()
    };
    assert_eq!(imbalances(&[&pieces(1.0)], &[&pieces(1.1)]), []);
    assert_eq!(imbalances(&[&pieces(1.0)], &[&pieces(3.87)]).len(), 1);
}
