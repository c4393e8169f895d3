//! Groups of workers that differ: findings do not take the settings of one group for all, and do not depend on
//! the order of groups.

use crate::named;
use iolab_analysis::analysis::analyse;
use iolab_analysis::headline_numbers::HeadlineNumbers;
use iolab_record::{Sample, ServedBy};
use iolab_synthetic::{add_cell, around, record};
use iolab_workload::counters::{DeviceStat, ProcessIo};
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::{CellSpec, Setting, Value};

/// A name and settings.
type Group<'a> = (&'a str, &'a [&'a str]);

const SCAN: Group<'_> = ("scan", &["bs=64KiB"]);
const DURABLE_LOG: Group<'_> = ("log", &["read_percent=0", "sync=fdatasync"]);

fn group((name, sets): &Group<'_>) -> GroupSpec {
    let mut spec = CellSpec::default();
    for set in *sets {
        let (setting, value) = set.split_once('=').expect("setting=value");
        let setting = Setting::find(setting).expect(setting);
        setting.set(&mut spec, value).expect(value);
    }
    GroupSpec {
        name: (*name).to_owned(),
        spec,
    }
}

/// Text about a run with one cell of these groups, which must not depend on their order.
fn said(groups: &[Group<'_>], change: impl Fn(&mut Sample), rule: &str) -> String {
    let of = |groups: Vec<GroupSpec>| {
        let mut record = record("groups", &["scan.threads"]);
        add_cell(&mut record, &["scan.threads=1"], &around(100.0));
        let spec = &mut record.cells[0].spec;
        spec.groups = groups;
        spec.trial = spec.merge_trials();
        record.samples.iter_mut().for_each(&change);
        let texts = named(rule, &analyse(&record))
            .into_iter()
            .map(|one| one.text);
        texts.collect::<Vec<_>>().join("\n")
    };
    let text = of(groups.iter().map(group).collect());
    assert_eq!(of(groups.iter().rev().map(group).collect()), text);
    text
}

#[test]
fn only_groups_without_sync_are_reported() {
    let of = |groups: &[Group<'_>]| said(groups, |_| (), "not-durable");
    assert_eq!(of(&[SCAN, DURABLE_LOG]), "");
    let log = ("log", &["read_percent=0"] as &[&str]);
    let synced_scan = ("scan", &["sync=odsync"] as &[&str]);
    insta::assert_snapshot!(of(&[synced_scan, log]), @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. --set log.sync=end makes them durable, and includes that time.");
    let mixed = ("mixed", &["read_percent=70"] as &[&str]);
    insta::assert_snapshot!(of(&[mixed, DURABLE_LOG]), @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. --set mixed.sync=end makes them durable, and includes that time.");
    // An idle group writes nothing.
    let idle = ("bulk", &["read_percent=0", "rate=0"] as &[&str]);
    assert_eq!(of(&[idle, DURABLE_LOG]), "");
}

#[test]
fn advice_covers_all_groups_without_sync() {
    let mut record = record("groups", &[]);
    add_cell(&mut record, &[], &around(100.0));
    let log = ("log", &["read_percent=0"] as &[&str]);
    let bulk = ("bulk", &["read_percent=0"] as &[&str]);
    record.cells[0].spec.groups = [log, SCAN, bulk].iter().map(group).collect();
    let found = named("not-durable", &analyse(&record));
    insta::assert_snapshot!(found[0].text, @"The only cell wrote without a sync (sync=none): a power failure may lose writes that are still in a cache. --set bulk.sync=end --set log.sync=end makes them durable, and includes that time.");
}

#[test]
fn extra_device_ios_are_the_journals() {
    let journaled = |sample: &mut Sample| {
        let (reads, writes) = (&sample.operations.read, &mut sample.operations.write);
        writes.requests = reads.requests / 4;
        writes.bytes = reads.bytes / 4;
        let ours = ProcessIo {
            read_bytes: reads.bytes,
            write_bytes: writes.bytes,
            ..ProcessIo::default()
        };
        let requests = reads.requests + writes.requests;
        sample.counters.process_io = Some(ours);
        sample.counters.device = Some(DeviceStat {
            read_ios: reads.requests,
            read_bytes: ours.read_bytes,
            write_ios: requests,
            write_bytes: ours.write_bytes,
            ..DeviceStat::default()
        });
        sample.verdict.served_by = ServedBy::Device;
    };
    assert_eq!(
        said(&[SCAN, DURABLE_LOG], journaled, "requests-in-pieces"),
        ""
    );
    let log = ("log", &["read_percent=0"] as &[&str]);
    assert_ne!(said(&[SCAN, log], journaled, "requests-in-pieces"), "");
}

#[test]
fn headline_number_needs_groups_alike() {
    let rows = |groups: &[Group<'_>]| {
        let mut record = record("groups", &[]);
        add_cell(&mut record, &[], &around(100.0));
        record.cells[0].spec.groups = groups.iter().map(group).collect();
        HeadlineNumbers::of(&[&analyse(&record)]).rows.len()
    };
    let other = ("other", &["bs=64KiB", "offset=1GiB"] as &[&str]);
    assert_eq!(rows(&[SCAN, other]), 1);
    for sets in [["bs=64KiB", "pattern=rand"], ["bs=4KiB", "pattern=seq"]] {
        let other = ("other", &sets as &[&str]);
        assert_eq!((rows(&[SCAN, other]), rows(&[other, SCAN])), (0, 0));
    }
}

#[test]
fn setting_that_differs_between_groups_is_omitted() {
    let mut record = record("groups", &[]);
    add_cell(&mut record, &[], &around(100.0));
    let cell = &mut record.cells[0];
    for groups in [[SCAN, DURABLE_LOG], [DURABLE_LOG, SCAN]] {
        cell.spec.groups = groups.iter().map(group).collect();
        cell.spec.trial = cell.spec.merge_trials();
        let value = |name| cell.value_in_force(Setting::find(name).expect(name));
        for name in ["sync", "bs", "read_percent", "rate", "arrivals"] {
            assert_eq!(value(name), Value::None, "{name}");
        }
        assert_eq!(value("threads"), Value::Number(2));
        assert_eq!(value("cache"), Value::word(Some("direct")));
    }
}
