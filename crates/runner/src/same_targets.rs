//! Whether a run resumes on the same targets: a name may denote another file or disk by then.

use iolab_analysis::consent::NeededConsent;
use iolab_record::environment::{Environment, KEYS, Key, Text};
use iolab_record::{RunRecord, TargetKind};
use iolab_storage::Target;
use iolab_workload::{Error, Result};

use super::identity_texts::{self, Difference};
use super::target_numbers::kind_of;

/// The present state of a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetNow {
    /// Its kind.
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

/// Refuses to write to existing targets that may differ from the targets of the `record`, and to go on with another kind of
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
            let what = format!("its kind was {before} and is {kind}");
            return Err(
                other(path, "continue on", &what).hint("start a new run on what has this name now")
            );
        }
        let found = match before {
            TargetKind::File => difference_of_file(&record.environment, now, number),
            TargetKind::BlockDevice => difference_of_device(&record.environment, now, number),
            // Made for each session, or not written to.
            TargetKind::Scratch
            | TargetKind::CharDevice
            | TargetKind::Imported
            | TargetKind::Model => continue,
        };
        match found {
            None => {}
            Some(Difference::Other(what)) if !writes => {
                warnings.push(format!(
                    "{path} is not the target that the run began on ({what})"
                ));
            }
            Some(Difference::Unknown(_)) if !writes => {}
            Some(Difference::Other(what)) => {
                return Err(other(path, "write to", &what).hint(advice(
                    before,
                    [&record.environment, now],
                    number,
                )));
            }
            Some(Difference::Unknown(why)) => {
                return Err(Error::refused(format!(
                    "refusing to write to {path}: it cannot be told from another target that has this name now ({why})"
                ))
                .hint("start a new run on it; the run file keeps the trials so far"));
            }
        }
    }
    Ok(warnings)
}

/// Period in which a run can be resumed, as far as its targets decide it.
pub(super) enum Resumable {
    /// At any time.
    Always,
    /// As long as the target at this path stays attached or mounted, and the machine does not restart: nothing else
    /// distinguishes it from others.
    WhileAttached(String),
    /// Never: the run destroys data at this path, and the target cannot be distinguished from another one.
    Never(String),
}

impl Resumable {
    /// The limits of a run with this consent.
    pub(super) fn of(record: &RunRecord, consent: NeededConsent) -> Self {
        if !consent.destroys_data {
            return Self::Always;
        }
        let targets = record.target_kinds().zip(record.targets()).enumerate();
        let limits = targets.filter_map(|(number, (kind, path))| {
            let known = &record.environment;
            let identity = match kind {
                TargetKind::BlockDevice => known.get_of(number, &KEYS.device_identity),
                TargetKind::File => known.get_of(number, &KEYS.target_file_id),
                TargetKind::Scratch
                | TargetKind::CharDevice
                | TargetKind::Imported
                | TargetKind::Model => return None,
            };
            match identity {
                None => Some(Self::Never(path.to_owned())),
                Some(identity) => identity_texts::is_passing(&identity)
                    .then(|| Self::WhileAttached(path.to_owned())),
            }
        });
        let strictest = limits.min_by_key(|limit| !matches!(limit, Self::Never(_)));
        strictest.unwrap_or(Self::Always)
    }

    /// The advice for a run that was interrupted; `command` resumes it.
    pub(super) fn advice(&self, command: &str) -> String {
        match self {
            Self::Always => format!("finish it with: {command}"),
            Self::WhileAttached(path) => format!(
                "finish it with: {command}; not after a restart of the machine, or once {path} was attached or mounted anew: no id tells it from others then"
            ),
            Self::Never(path) => format!(
                "start a new run: {path} has no id that tells it from others, so that iolab resume refuses to write to it"
            ),
        }
    }
}

fn other(path: &str, what: &str, difference: &str) -> Error {
    Error::refused(format!(
        "refusing to {what} {path}: it is not the target that the run began on ({difference})"
    ))
}

/// The remedy if a target is a different one.
fn advice(kind: TargetKind, lists: [&Environment; 2], number: usize) -> &'static str {
    match kind {
        TargetKind::File => "see 'stat' of it; start a new run on this file",
        _ if lists.iter().any(|list| is_loop(list, number)) => {
            "see 'losetup -l': a loop device is known by its file, and the offset in that; start a new run on this device"
        }
        _ => "see 'lsblk -o NAME,START,SIZE,MODEL,WWN,SERIAL'; start a new run on this device",
    }
}

/// Whether the disk of a target is a loop device, by the name that the kernel gives these alone.
fn is_loop(list: &Environment, number: usize) -> bool {
    let disk = list.get_of(number, &KEYS.device_disk);
    disk.is_some_and(|disk| disk.starts_with("loop"))
}

fn difference_of_file(
    before: &Environment,
    now: &Environment,
    number: usize,
) -> Option<Difference> {
    let id = |list: &Environment| list.get_of(number, &KEYS.target_file_id);
    match (id(before), id(now)) {
        (None, _) => Some(Difference::Unknown(
            "the run file does not tell which file it was",
        )),
        (Some(_), None) => Some(Difference::Unknown(
            "its file system tells neither a time of birth nor a handle",
        )),
        (Some(before), Some(now)) if before != now => Some(identity_texts::of_files(&before, &now)),
        _ => {
            let size = |list: &Environment| list.get_of(number, &KEYS.target_file_bytes);
            let names = (KEYS.target_file_bytes.name(), size(before), size(now));
            let texts = (names.0, names.1.map(text_of), names.2.map(text_of));
            changed(texts)
                .or_else(|| difference_of_disk(before, now, number))
                .map(Difference::Other)
        }
    }
}

fn difference_of_device(
    before: &Environment,
    now: &Environment,
    number: usize,
) -> Option<Difference> {
    let texts = |key: &'static Key<Text>| {
        let of = |list: &Environment| list.get_of(number, key);
        (key.name(), of(before), of(now))
    };
    let of_disk = difference_of_disk(before, now, number);
    let other = of_disk.or_else(|| changed(texts(&KEYS.device_partition)));
    if let Some(other) = other {
        return Some(Difference::Other(other));
    }
    match texts(&KEYS.device_identity) {
        (_, None, _) => Some(Difference::Unknown(
            "the run file does not tell which device it was",
        )),
        (_, _, None) => Some(Difference::Unknown(
            "the kernel tells no id of it, or of a device below it",
        )),
        (_, Some(before), Some(now)) if before == now => None,
        (_, Some(before), Some(now)) => Some(identity_texts::of_devices(&before, &now)),
    }
}

/// The first fact of a disk that a run has recorded and that differs now.
fn difference_of_disk(before: &Environment, now: &Environment, number: usize) -> Option<String> {
    let bytes = &KEYS.device_bytes;
    let of = |list: &Environment| list.get_of(number, bytes).map(text_of);
    let size = (bytes.name(), of(before), of(now));
    let texts = [&KEYS.device_vendor, &KEYS.device_model, &KEYS.device_id].map(|key| {
        let of = |list: &Environment| list.get_of(number, key);
        (key.name(), of(before), of(now))
    });
    std::iter::once(size).chain(texts).find_map(changed)
}

fn text_of(bytes: u64) -> String {
    bytes.to_string()
}

/// A recorded fact that differs now, in words; earlier versions of iolab may not have recorded it.
fn changed((name, before, now): (&str, Option<String>, Option<String>)) -> Option<String> {
    let before = before?;
    let now = now.unwrap_or_else(|| "unknown".to_owned());
    (before != now).then(|| format!("{name} was {before} and is {now}"))
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
        let advice = |now: &Environment| {
            let error = seen(&record, (block, true), now).expect_err("it is another one");
            error.remedy().expect("a remedy").to_owned()
        };
        let mut image = disk(1 << 30, "file");
        image.put(&KEYS.device_disk, "loop7".to_owned());
        insta::assert_snapshot!(advice(&image), @"see 'losetup -l': a loop device is known by its file, and the offset in that; start a new run on this device");
        insta::assert_snapshot!(advice(&disk(1 << 30, "naa.2")), @"see 'lsblk -o NAME,START,SIZE,MODEL,WWN,SERIAL'; start a new run on this device");
        let scratch = run_on("/mnt", TargetKind::Scratch, disk(1 << 30, "naa.1"));
        let lost = seen(
            &scratch,
            (TargetKind::Scratch, true),
            &disk(2 << 30, "naa.2"),
        );
        assert!(lost.is_ok(), "nothing is lost");
    }

    #[test]
    fn the_advice_to_resume_states_its_limits() {
        let advice = |kind: TargetKind, identity: Option<&str>, destroys_data: bool| {
            let mut facts = Environment::default();
            if let Some(identity) = identity {
                facts.put(&KEYS.device_identity, identity.to_owned());
            }
            let consent = NeededConsent {
                destroys_data,
                ..NeededConsent::default()
            };
            Resumable::of(&run_on("/dev/zram0", kind, facts), consent).advice("COMMAND")
        };
        let device = TargetKind::BlockDevice;
        insta::assert_snapshot!(advice(device, Some("naa.1"), true), @"finish it with: COMMAND");
        insta::assert_snapshot!(advice(device, Some("boot-2-one"), true), @"finish it with: COMMAND; not after a restart of the machine, or once /dev/zram0 was attached or mounted anew: no id tells it from others then");
        insta::assert_snapshot!(advice(device, None, true), @"start a new run: /dev/zram0 has no id that tells it from others, so that iolab resume refuses to write to it");
        insta::assert_snapshot!(advice(device, None, false), @"finish it with: COMMAND");
        insta::assert_snapshot!(advice(TargetKind::Scratch, None, true), @"finish it with: COMMAND");
        insta::assert_snapshot!(advice(TargetKind::File, None, true), @"start a new run: /dev/zram0 has no id that tells it from others, so that iolab resume refuses to write to it");
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
        let first = run(of("1048576+20971520", "2-one"));
        insta::assert_snapshot!(refused(&first, block, &of("22020096+20971520", "2-other")), @"refusing to write to /dev/sdb1: it is not the target that the run began on (device_partition was 1048576+20971520 and is 22020096+20971520)");
        insta::assert_snapshot!(refused(&first, block, &of("1048576+20971520", "2-other")), @"refusing to write to /dev/sdb1: it is not the target that the run began on (its place on the disks, or what lies below it, differs)");
        insta::assert_snapshot!(refused(&run(of("", "")), block, &first.environment), @"refusing to write to /dev/sdb1: it cannot be told from another target that has this name now (the run file does not tell which device it was)");
        insta::assert_snapshot!(refused(&first, block, &of("1048576+20971520", "")), @"refusing to write to /dev/sdb1: it cannot be told from another target that has this name now (the kernel tells no id of it, or of a device below it)");
        let passing = run(of("", "boot-2-one"));
        insta::assert_snapshot!(refused(&passing, block, &of("", "boot-2-two")), @"refusing to write to /dev/sdb1: it cannot be told from another target that has this name now (it, or a device below it, has no id of its own, and was attached anew since, or the machine restarted)");
        assert!(seen(&passing, (block, true), &passing.environment).is_ok());
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
        let record = run_on("/data/f", file, of("2-one-at", 16));
        let refused_now = |now: &Environment| refused(&record, file, now);
        assert!(seen(&record, (file, true), &record.environment).is_ok());
        insta::assert_snapshot!(refused_now(&of("2-two-at", 16)), @"refusing to write to /data/f: it is not the target that the run began on (inode or time of birth of the file differ)");
        insta::assert_snapshot!(refused_now(&of("2-one-at", 26)), @"refusing to write to /data/f: it is not the target that the run began on (target_file_bytes was 16 and is 26)");
        insta::assert_snapshot!(refused_now(&of("", 16)), @"refusing to write to /data/f: it cannot be told from another target that has this name now (its file system tells neither a time of birth nor a handle)");
        let mut cloned = disk(1 << 40, "naa.2");
        cloned.put(&KEYS.target_file_id, "2-one-at".to_owned());
        cloned.put(&KEYS.target_file_bytes, 16_u64);
        insta::assert_snapshot!(refused_now(&cloned), @"refusing to write to /data/f: it is not the target that the run began on (device_id was naa.1 and is naa.2)");
        // A record of an earlier version of iolab.
        let older = run_on("/data/f", file, disk(1 << 40, "naa.1"));
        let unknown = refused(&older, file, &record.environment);
        insta::assert_snapshot!(unknown, @"refusing to write to /data/f: it cannot be told from another target that has this name now (the run file does not tell which file it was)");
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
        let record = run_on("/data/f", file, of("2-one-at"));
        let warnings = seen(&record, (file, false), &of("2-two-at")).expect("nothing is lost");
        insta::assert_snapshot!(warnings.join("\n"), @"/data/f is not the target that the run began on (inode or time of birth of the file differ)");
        let same = seen(&record, (file, false), &of("2-one-at")).expect("the same");
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
        insta::assert_snapshot!(refused(&record, TargetKind::File, &Environment::default()), @"refusing to continue on /mnt/x: it is not the target that the run began on (its kind was scratch and is file)");
    }
}
