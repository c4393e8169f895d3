//! Tests.

use super::*;
use iolab_workload::Kind;

#[test]
fn targets_on_one_disk_are_named_together() {
    let all = [
        ("/a", &["vda"][..]),
        ("/b", &["sdb", "sdc"]),
        ("/c", &["vda"]),
        ("/d", &["sdc", "sdb"]),
        ("/e", &["sde"]),
        ("/f", &["vda", "sdd"]),
    ];
    let all = all.map(|(named, below)| {
        let below = below.iter().map(|name| ((*name).to_owned(), 0));
        (named.to_owned(), below.collect())
    });
    insta::assert_snapshot!(shared(&all).join("\n"), @"
    /b and /d share the throughput of sdb
    /b and /d share the throughput of sdc
    /a, /c and /f share the throughput of vda
    ");
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

/// Facts of a target, without those that are empty: bytes and id of its device, its partition, its identity, the id and the bytes of its
/// file.
fn facts(values: [&str; 6]) -> Environment {
    let [bytes, id, partition, identity, file, file_bytes] = values;
    let number = |text: &str| text.parse::<u64>().ok();
    let mut facts = Environment::default();
    facts.put(&KEYS.device_bytes, number(bytes));
    facts.put(&KEYS.device_id, id.to_owned());
    facts.put(&KEYS.device_partition, partition.to_owned());
    facts.put(&KEYS.device_identity, identity.to_owned());
    facts.put(&KEYS.target_file_id, file.to_owned());
    facts.put(&KEYS.target_file_bytes, number(file_bytes));
    facts
}

#[test]
fn another_target_of_this_name_is_not_written() {
    use TargetKind::{BlockDevice, File};
    let whole = ["30", "naa.1", "", "one", "", ""];
    let part = ["", "naa.1", "1+20", "one", "", ""];
    let file = ["40", "naa.1", "", "one", "one", "16"];
    let rows = [
        (BlockDevice, whole, ["31", "naa.1", "", "one", "", ""]),
        (BlockDevice, whole, ["30", "naa.2", "", "one", "", ""]),
        (BlockDevice, whole, ["30", "", "", "one", "", ""]),
        (BlockDevice, part, ["", "naa.1", "21+20", "other", "", ""]),
        (BlockDevice, part, ["", "naa.1", "1+20", "other", "", ""]),
        (BlockDevice, part, ["", "naa.1", "1+20", "", "", ""]),
        (BlockDevice, ["", "naa.1", "", "", "", ""], part),
        (File, file, ["40", "naa.1", "", "one", "two", "16"]),
        (File, file, ["40", "naa.1", "", "one", "one", "26"]),
        (File, file, ["40", "naa.1", "", "one", "", "16"]),
        (File, file, ["40", "naa.2", "", "one", "one", "16"]),
        // A record of an earlier version of iolab.
        (File, ["40", "naa.1", "", "one", "", ""], file),
    ];
    let told = rows.map(|(kind, before, now)| {
        let record = run_on("/x", kind, facts(before));
        let same = seen(&record, (kind, true), &record.environment);
        assert_eq!(
            same.is_ok(),
            before[3] == "one" && (kind != File || before[4] == "one")
        );
        refused(&record, kind, &facts(now))
    });
    insta::assert_snapshot!(told.join("\n"), @"
    refusing to write to /x: it is not the target that the run began on (device_bytes was 30 and is 31)
    refusing to write to /x: it is not the target that the run began on (device_id was naa.1 and is naa.2)
    refusing to write to /x: it is not the target that the run began on (device_id was naa.1 and is unknown)
    refusing to write to /x: it is not the target that the run began on (device_partition was 1+20 and is 21+20)
    refusing to write to /x: it is not the target that the run began on (device_identity was one and is other)
    refusing to write to /x: it is not the target that the run began on (device_identity was one and is unknown)
    refusing to write to /x: the run file has no device_identity, which would tell it from another target of this name
    refusing to write to /x: it is not the target that the run began on (target_file_id was one and is two)
    refusing to write to /x: it is not the target that the run began on (target_file_bytes was 16 and is 26)
    refusing to write to /x: it is not the target that the run began on (target_file_id was one and is unknown)
    refusing to write to /x: it is not the target that the run began on (device_id was naa.1 and is naa.2)
    refusing to write to /x: the run file has no target_file_id, which would tell it from another target of this name
    ");
    // Facts that the run began without, and a target on which nothing is lost.
    let older = run_on("/x", BlockDevice, facts(["30", "", "", "one", "", ""]));
    assert!(seen(&older, (BlockDevice, true), &facts(whole)).is_ok());
    let scratch = run_on("/x", TargetKind::Scratch, facts(whole));
    let other = facts(["31", "naa.2", "", "one", "", ""]);
    assert!(seen(&scratch, (TargetKind::Scratch, true), &other).is_ok());
    let warnings = |before| {
        let read = run_on("/x", File, facts(before));
        seen(&read, (File, false), &facts(file)).expect("nothing is lost")
    };
    assert_eq!(warnings(file), [""; 0]);
    assert_eq!(warnings(["40", "naa.1", "", "one", "", ""]), [""; 0]);
    insta::assert_snapshot!(warnings(["40", "naa.1", "", "one", "two", "16"]).join("\n"), @"/x is not the target that the run began on (target_file_id was two and is one)");
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
