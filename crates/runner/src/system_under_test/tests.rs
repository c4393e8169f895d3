//! Tests.

use super::*;
use iolab_workload::Kind;

#[test]
fn targets_on_one_disk_are_named_together() {
    let disk = |name: &str| Below::Disk(name.to_owned());
    let on = |path: &str, below: Vec<Below>| (path.to_owned(), below);
    let all = [
        on("/a", vec![disk("vda")]),
        on("/b", vec![disk("vda")]),
        on("/c", vec![disk("sdb"), disk("sdc")]),
        on("/d", vec![disk("sdb"), disk("sdc")]),
        on("/e", vec![disk("sde")]),
        on("/run/a", vec![Below::FileSystem(7)]),
        on("/run/b", vec![Below::FileSystem(7)]),
    ];
    insta::assert_snapshot!(shared(&all).join("\n"), @r"
        /c and /d are on sdb and sdc: they share their throughput
        /a and /b are on vda: they share its throughput
        /run/a and /run/b are on one file system: they share its throughput
        ");
    assert!(shared(&all[3..6]).is_empty());
}

fn disk(bytes: u64, id: &str) -> Environment {
    let mut facts = Environment::default();
    facts.put(&KEYS.device_bytes, bytes);
    facts.put(&KEYS.device_id, id.to_owned());
    facts.put(&KEYS.device_identity, "one".to_owned());
    facts
}

fn run_on(target: &str, kind: TargetKind, environment: Environment) -> RunRecord {
    let mut record = RunRecord::default();
    record.run.target = target.to_owned();
    record.run.target_kind = kind;
    record.environment = environment;
    record
}

/// Checks a run that writes (`writes`) or only reads.
fn seen(
    record: &RunRecord,
    (kind, writes): (TargetKind, bool),
    now: &Environment,
) -> Result<Vec<String>> {
    check_same_targets(record, std::iter::once(TargetNow { kind, writes }), now)
}

fn refused(record: &RunRecord, kind: TargetKind, now: &Environment) -> String {
    let error = seen(record, (kind, true), now).expect_err("it is another one");
    assert_eq!(error.kind(), Kind::Refused);
    assert!(error.remedy().is_some());
    error.message().to_owned()
}

#[test]
fn another_disk_of_this_name_is_not_written() {
    let block = TargetKind::BlockDevice;
    let record = run_on("/dev/sdb", block, disk(1 << 30, "naa.1"));
    let refused = |now: &Environment| refused(&record, block, now);
    assert!(seen(&record, (block, true), &record.environment).is_ok());
    insta::assert_snapshot!(refused(&disk(2 << 30, "naa.1")), @"refusing to write to /dev/sdb: it is not the target that the run began on (device_bytes was 1073741824 and is 2147483648)");
    insta::assert_snapshot!(refused(&disk(1 << 30, "naa.2")), @"refusing to write to /dev/sdb: it is not the target that the run began on (device_id was naa.1 and is naa.2)");
    insta::assert_snapshot!(refused(&disk(1 << 30, "")), @"refusing to write to /dev/sdb: it is not the target that the run began on (device_id was naa.1 and is unknown)");
    let older = run_on("/dev/sdb", block, disk(1 << 30, ""));
    assert!(
        seen(&older, (block, true), &record.environment).is_ok(),
        "it had no such fact"
    );
    let scratch = run_on("/mnt", TargetKind::Scratch, disk(1 << 30, "naa.1"));
    let lost = seen(
        &scratch,
        (TargetKind::Scratch, true),
        &disk(2 << 30, "naa.2"),
    );
    assert!(lost.is_ok(), "nothing is lost");
}

#[test]
fn unidentified_targets_are_not_resumed_destructively() {
    let of = |kind: TargetKind, identity: &str, destroys_data: bool| {
        let mut facts = Environment::default();
        facts.put(&KEYS.device_identity, identity.to_owned());
        let consent = NeededConsent {
            destroys_data,
            ..NeededConsent::default()
        };
        unidentified(&run_on("/dev/zram0", kind, facts), consent).is_some()
    };
    assert!(!of(TargetKind::BlockDevice, "one", true));
    assert!(of(TargetKind::BlockDevice, "", true));
    assert!(!of(TargetKind::BlockDevice, "", false));
    assert!(!of(TargetKind::Scratch, "", true));
    assert!(of(TargetKind::File, "", true));
}

#[test]
fn another_part_of_a_disk_is_not_written() {
    let block = TargetKind::BlockDevice;
    let of = |partition: &str, identity: &str| {
        let mut facts = Environment::default();
        facts.put(&KEYS.device_id, "naa.1".to_owned());
        facts.put(&KEYS.device_partition, partition.to_owned());
        facts.put(&KEYS.device_identity, identity.to_owned());
        facts
    };
    let run = |facts: Environment| run_on("/dev/sdb1", block, facts);
    let first = run(of("1048576+20971520", "one"));
    insta::assert_snapshot!(refused(&first, block, &of("22020096+20971520", "other")), @"refusing to write to /dev/sdb1: it is not the target that the run began on (device_partition was 1048576+20971520 and is 22020096+20971520)");
    insta::assert_snapshot!(refused(&first, block, &of("1048576+20971520", "other")), @"refusing to write to /dev/sdb1: it is not the target that the run began on (device_identity was one and is other)");
    insta::assert_snapshot!(refused(&run(of("", "")), block, &first.environment), @"refusing to write to /dev/sdb1: the run file has no device_identity, which would tell it from another target of this name");
    insta::assert_snapshot!(refused(&first, block, &of("1048576+20971520", "")), @"refusing to write to /dev/sdb1: it is not the target that the run began on (device_identity was one and is unknown)");
}

#[test]
fn another_file_of_this_name_is_not_written() {
    let file = TargetKind::File;
    let of = |id: &str, bytes: u64| {
        let mut facts = disk(1 << 40, "naa.1");
        facts.put(&KEYS.target_file_id, id.to_owned());
        facts.put(&KEYS.target_file_bytes, bytes);
        facts
    };
    let record = run_on("/data/f", file, of("one", 16));
    let refused_now = |now: &Environment| refused(&record, file, now);
    assert!(seen(&record, (file, true), &record.environment).is_ok());
    insta::assert_snapshot!(refused_now(&of("two", 16)), @"refusing to write to /data/f: it is not the target that the run began on (target_file_id was one and is two)");
    insta::assert_snapshot!(refused_now(&of("one", 26)), @"refusing to write to /data/f: it is not the target that the run began on (target_file_bytes was 16 and is 26)");
    insta::assert_snapshot!(refused_now(&of("", 16)), @"refusing to write to /data/f: it is not the target that the run began on (target_file_id was one and is unknown)");
    let mut cloned = disk(1 << 40, "naa.2");
    cloned.put(&KEYS.target_file_id, "one".to_owned());
    cloned.put(&KEYS.target_file_bytes, 16_u64);
    insta::assert_snapshot!(refused_now(&cloned), @"refusing to write to /data/f: it is not the target that the run began on (device_id was naa.1 and is naa.2)");
    // A record of an earlier version of iolab.
    let older = run_on("/data/f", file, disk(1 << 40, "naa.1"));
    let unknown = refused(&older, file, &record.environment);
    insta::assert_snapshot!(unknown, @"refusing to write to /data/f: the run file has no target_file_id, which would tell it from another target of this name");
    assert!(seen(&older, (file, false), &record.environment).is_ok_and(|w| w.is_empty()));
}

#[test]
fn another_file_is_read_with_a_warning() {
    let file = TargetKind::File;
    let of = |id: &str| {
        let mut facts = Environment::default();
        facts.put(&KEYS.target_file_id, id.to_owned());
        facts
    };
    let record = run_on("/data/f", file, of("one"));
    let warnings = seen(&record, (file, false), &of("two")).expect("nothing is lost");
    insta::assert_snapshot!(warnings.join("\n"), @"/data/f is not the target that the run began on (target_file_id was one and is two)");
    let same = seen(&record, (file, false), &of("one")).expect("the same");
    assert!(same.is_empty());
}

#[test]
fn no_run_continues_on_another_target_kind() {
    let kinds = [
        TargetKind::Scratch,
        TargetKind::File,
        TargetKind::BlockDevice,
    ];
    for (before, now) in kinds.iter().flat_map(|a| kinds.map(|b| (*a, b))) {
        let record = run_on("/mnt/x", before, Environment::default());
        for writes in [false, true] {
            let done = seen(&record, (now, writes), &Environment::default());
            // A directory that is a file by now was never agreed to.
            let is_refused = before != now || writes && before != TargetKind::Scratch;
            assert_eq!(done.is_err(), is_refused, "{before} {now} {writes}");
        }
    }
    let record = run_on("/mnt/x", TargetKind::Scratch, Environment::default());
    insta::assert_snapshot!(refused(&record, TargetKind::File, &Environment::default()), @"refusing to continue on /mnt/x: its kind was scratch and is file");
}
