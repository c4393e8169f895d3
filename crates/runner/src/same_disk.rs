//! Whether a run that destroys data resumes on the same disk: the name of a device may denote another disk by then.

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{RunRecord, TargetKind};
use iolab_workload::{Error, Result};

/// Refuses to write to devices that differ from those of the `record`; `kinds` and `now` are what the targets are now, in its order.
///
/// # Errors
/// Of kind [`Refused`](iolab_workload::Kind::Refused): another kind of target, or another disk.
pub(super) fn check_same_disks(
    record: &RunRecord,
    kinds: impl Iterator<Item = TargetKind>,
    now: &Environment,
) -> Result<()> {
    let before = record.target_kinds();
    for (number, ((before, kind), path)) in before.zip(kinds).zip(record.targets()).enumerate() {
        let difference = match before {
            _ if !before.is_existing() => None,
            _ if before != kind => Some(format!("its kind was {before} and is {kind}")),
            TargetKind::BlockDevice => difference(&record.environment, now, number),
            _ => None,
        };
        if let Some(difference) = difference {
            return Err(Error::refused(format!(
                "refusing to write to {path}: it is not the device that the run began on ({difference})"
            ))
            .hint(match [&record.environment, now].iter().any(|list| is_loop(list, number)) {
                true => "see 'losetup -l': a loop device is known by path and inode of its file; start a new run on this device",
                false => "see 'lsblk -o NAME,SIZE,MODEL,WWN,SERIAL'; start a new run on this device",
            }));
        }
    }
    Ok(())
}

/// Whether the disk of a target is a loop device, by the name that the kernel gives these alone.
fn is_loop(list: &Environment, number: usize) -> bool {
    let disk = list.get_of(number, &KEYS.device_disk);
    disk.is_some_and(|disk| disk.starts_with("loop"))
}

/// The first fact of a disk that a run has recorded and that differs now.
fn difference(before: &Environment, now: &Environment, number: usize) -> Option<String> {
    let bytes = &KEYS.device_bytes;
    let of = |list: &Environment| list.get_of(number, bytes).map(|bytes| bytes.to_string());
    let size = (bytes.name(), of(before), of(now));
    let texts = [&KEYS.device_vendor, &KEYS.device_model, &KEYS.device_id].map(|key| {
        let of = |list: &Environment| list.get_of(number, key);
        (key.name(), of(before), of(now))
    });
    let mut facts = std::iter::once(size).chain(texts);
    facts.find_map(|(name, before, now)| {
        // An earlier version of iolab may not have recorded it.
        let before = before?;
        let now = now.unwrap_or_else(|| "unknown".to_owned());
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
        facts
    }

    #[test]
    fn another_disk_of_the_same_name_is_not_written_to() {
        let mut record = RunRecord::default();
        record.run.target = "/dev/sdb".to_owned();
        record.run.target_kind = TargetKind::BlockDevice;
        record.environment = disk(1 << 30, "naa.1");
        let seen = |record: &RunRecord, kind, now: &Environment| {
            check_same_disks(record, std::iter::once(kind), now)
        };
        let refused = |kind, now: &Environment| {
            let error = seen(&record, kind, now).expect_err("it is another one");
            assert_eq!(error.kind(), Kind::Refused);
            error.message().to_owned()
        };
        let block = TargetKind::BlockDevice;
        seen(&record, block, &record.environment).expect("the same");
        insta::assert_snapshot!(refused(block, &disk(2 << 30, "naa.1")), @"refusing to write to /dev/sdb: it is not the device that the run began on (device_bytes was 1073741824 and is 2147483648)");
        insta::assert_snapshot!(refused(block, &disk(1 << 30, "naa.2")), @"refusing to write to /dev/sdb: it is not the device that the run began on (device_id was naa.1 and is naa.2)");
        insta::assert_snapshot!(refused(block, &disk(1 << 30, "")), @"refusing to write to /dev/sdb: it is not the device that the run began on (device_id was naa.1 and is unknown)");
        refused(TargetKind::File, &record.environment);
        let mut older = record.clone();
        older.environment = disk(1 << 30, "");
        seen(&older, block, &record.environment).expect("it had no such fact");
        let advice = |now: &Environment| {
            let error = seen(&record, block, now).expect_err("it is another one");
            error.remedy().expect("a remedy").to_owned()
        };
        let mut image = disk(1 << 30, "file");
        image.put(&KEYS.device_disk, "loop7".to_owned());
        insta::assert_snapshot!(advice(&image), @"see 'losetup -l': a loop device is known by path and inode of its file; start a new run on this device");
        insta::assert_snapshot!(advice(&disk(1 << 30, "naa.2")), @"see 'lsblk -o NAME,SIZE,MODEL,WWN,SERIAL'; start a new run on this device");
        let mut scratch = record.clone();
        scratch.run.target_kind = TargetKind::Scratch;
        seen(&scratch, TargetKind::Scratch, &disk(2 << 30, "naa.2")).expect("nothing is lost");
    }
}
