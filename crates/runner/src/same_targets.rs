//! Whether a run resumes on the same targets: a name may denote another file or disk by then.

use iolab_analysis::consent::NeededConsent;
use iolab_record::environment::{Environment, KEYS, Key, Text};
use iolab_record::{RunRecord, TargetKind};
use iolab_storage::Target;
use iolab_workload::{Error, Result};

use super::targets::kind_of;

/// The present state of a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetNow {
    /// Kind of the target.
    pub(super) kind: TargetKind,
    /// Whether it was opened for writing.
    pub(super) writes: bool,
}

impl TargetNow {
    /// The state of an open target.
    pub(super) fn of(target: &Target) -> Self {
        Self {
            kind: kind_of(target),
            writes: target.is_writable(),
        }
    }
}

/// Refuses to write to existing targets that are not shown to be the targets of the `record`, and to go on with another kind of
/// target. `targets` and `now` describe them now, in its order. Returns a warning for each different target that is only
/// read.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): another kind of target, another target, or one that the run file
/// does not identify.
pub(super) fn check_same_targets(
    record: &RunRecord,
    targets: impl Iterator<Item = TargetNow>,
    now: &Environment,
) -> Result<Vec<String>> {
    let before = record.target_kinds();
    let mut warnings = Vec::new();
    for (number, ((before, target), path)) in before.zip(targets).zip(record.targets()).enumerate()
    {
        let TargetNow { kind, writes } = target;
        if before != kind {
            return Err(other(&format!(
                "continue on {path}: its kind was {before} and is {kind}"
            )));
        }
        let Some(identity) = identity_of(kind) else {
            continue;
        };
        let changed = difference([&record.environment, now], number);
        match changed {
            Some(changed) if writes => {
                return Err(other(&format!(
                    "write to {path}: it is not the target that the run began on ({changed})"
                )));
            }
            Some(changed) => warnings.push(format!(
                "{path} is not the target that the run began on ({changed})"
            )),
            None if writes && record.environment.get_of(number, identity).is_none() => {
                return Err(other(&format!(
                    "write to {path}: the run file has no {}, which would tell it from another target of this name",
                    identity.name()
                )));
            }
            None => {}
        }
    }
    Ok(warnings)
}

/// The target of a run with this consent that cannot be told from others, so that the run is not resumed.
pub(super) fn unidentified(record: &RunRecord, consent: NeededConsent) -> Option<&str> {
    let targets = record.target_kinds().zip(record.targets()).enumerate();
    let mut unidentified = targets.filter(|(number, (kind, _))| {
        let identity = identity_of(*kind);
        identity.is_some_and(|key| record.environment.get_of(*number, key).is_none())
    });
    let (_, (_, path)) = unidentified.next().filter(|_| consent.destroys_data)?;
    Some(path)
}

/// The fact that identifies a target of this kind; `None` for one that is made for each session, or not written to.
fn identity_of(kind: TargetKind) -> Option<&'static Key<Text>> {
    match kind {
        TargetKind::File => Some(&KEYS.target_file_id),
        TargetKind::BlockDevice => Some(&KEYS.device_identity),
        TargetKind::Scratch
        | TargetKind::CharDevice
        | TargetKind::Imported
        | TargetKind::Model
        | TargetKind::Commands => None,
    }
}

fn other(what: &str) -> Error {
    Error::refused(format!("refusing to {what}"))
        .hint("start a new run on it; the run file keeps the trials so far")
}

/// The first fact of a target that the run has recorded and that differs now.
fn difference(lists: [&Environment; 2], number: usize) -> Option<String> {
    let bytes = [&KEYS.device_bytes, &KEYS.target_file_bytes].map(|key| {
        let of = |list: &Environment| Some(list.get_of(number, key)?.to_string());
        (key.name(), lists.map(of))
    });
    let texts = [
        &KEYS.device_vendor, &KEYS.device_model, &KEYS.device_id, &KEYS.device_partition,
        &KEYS.device_identity, &KEYS.target_file_id,
    ];
    let texts = texts.map(|key| {
        let of = |list: &Environment| list.get_of(number, key);
        (key.name(), lists.map(of))
    });
    let mut all = bytes.into_iter().chain(texts);
    all.find_map(|(name, [before, now])| {
        let (before, now) = (before?, now.unwrap_or_else(|| "unknown".to_owned()));
        (before != now).then(|| format!("{name} was {before} and is {now}"))
    })
}

#[cfg(test)]
mod tests {
    use iolab_workload::Kind;

    use super::*;

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
}
