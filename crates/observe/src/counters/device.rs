//! What block devices counted; traffic of all processes.

use std::collections::BTreeSet;

use iolab_spec::counters::{Bottom, DeviceStat};

use iolab_target::Stack;

/// The counters of the disks at the bottom; `None` where they are not known, or are those of the devices themselves. Stacks
/// that share a disk count it once.
pub(super) fn read_bottom(stacks: &[Stack]) -> Option<Bottom> {
    if stacks.iter().all(|stack| stack.bottom.is_none()) {
        return None;
    }
    let mut disks = BTreeSet::new();
    for stack in stacks {
        match &stack.bottom {
            Some(below) => disks.extend(below.iter().copied()),
            None => {
                disks.insert(stack.device?);
            }
        }
    }
    Some(Bottom {
        stat: sum(disks)?,
        in_file: stacks.iter().any(|stack| stack.in_file),
    })
}

/// The counters of the devices that targets lie on; `None` where one has none, or lies on another, which counts its traffic
/// once more.
pub(super) fn read_devices(stacks: &[Stack]) -> Option<DeviceStat> {
    let devices = stacks.iter().map(|stack| stack.device);
    let devices = devices.collect::<Option<BTreeSet<(u32, u32)>>>()?;
    let mut lower = stacks.iter().flat_map(|stack| &stack.below);
    let is_sum = !devices.is_empty() && !lower.any(|lower| devices.contains(lower));
    is_sum.then(|| sum(devices)).flatten()
}

fn sum(disks: BTreeSet<(u32, u32)>) -> Option<DeviceStat> {
    let mut disks = disks.into_iter();
    disks.try_fold(DeviceStat::default(), |sum, disk| {
        Some(sum.plus(read_device(disk)?))
    })
}

fn read_device((major, minor): (u32, u32)) -> Option<DeviceStat> {
    parse_device(&std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?)
}

/// Documentation/block/stat.rst of Linux; its sectors are always 512 bytes.
fn parse_device(text: &str) -> Option<DeviceStat> {
    let fields: Vec<u64> = text
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let [
        read_ios,
        read_merges,
        read_sectors,
        _,
        write_ios,
        write_merges,
        write_sectors,
        _,
        _,
        busy_ms,
        ..,
    ] = fields[..]
    else {
        return None;
    };
    Some(DeviceStat {
        read_ios,
        read_merges,
        read_bytes: read_sectors.saturating_mul(512),
        write_ios,
        write_merges,
        write_bytes: write_sectors.saturating_mul(512),
        // Counted since Linux 5.5.
        flush_ios: fields.get(15).copied().unwrap_or(0),
        busy_ms,
        queue_ms: fields.get(10).copied(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_counters_are_read_as_linux_prints_them() {
        let stat =
            "  446216 784926 9550688 4382310 883461 322361 4960736 3612 0 1 6 7 8 9 10 11 12\n";
        let stat = parse_device(stat).expect("complete");
        assert_eq!((stat.read_ios, stat.read_bytes), (446_216, 9_550_688 * 512));
        assert_eq!(
            (stat.write_ios, stat.write_bytes),
            (883_461, 4_960_736 * 512)
        );
        assert_eq!(
            (stat.busy_ms, stat.queue_ms, stat.flush_ios),
            (1, Some(6), 11)
        );
        assert_eq!(parse_device("1 2 3"), None);
    }

    #[test]
    fn what_ends_in_memory_is_known_to_reach_no_disk() {
        let stack = |bottom| Stack {
            bottom,
            in_file: true,
            ..Stack::default()
        };
        let none = read_bottom(&[stack(Some(Vec::new()))]).expect("known");
        assert_eq!((none.stat, none.in_file), (DeviceStat::default(), true));
        assert_eq!(read_bottom(&[stack(None)]), None);
        // One disk that cannot be read makes the sum unknown.
        assert_eq!(read_bottom(&[stack(Some(vec![(4095, 1_048_575)]))]), None);
    }

    #[test]
    fn several_targets_are_counted_together() {
        let on = |device: u32, bottom: Option<Vec<(u32, u32)>>| Stack {
            device: Some((4095, device)),
            bottom,
            ..Stack::default()
        };
        assert_eq!(read_devices(&[]), None);
        // One that cannot be read makes the sum unknown, and so does one that lies on no device.
        assert_eq!(read_devices(&[on(1, None)]), None);
        assert_eq!(read_devices(&[Stack::default()]), None);
        // A device beside one that ends in memory is a bottom of its own.
        assert_eq!(read_bottom(&[on(1, Some(Vec::new())), on(2, None)]), None);
        let memory = [on(1, Some(Vec::new())), on(2, Some(Vec::new()))];
        let none = read_bottom(&memory).expect("known");
        assert_eq!(none.stat, DeviceStat::default());
    }

    #[test]
    fn devices_upon_each_other_have_no_sum() {
        let entries = std::fs::read_dir("/sys/dev/block").into_iter().flatten();
        let number = |entry: std::io::Result<std::fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let (major, minor) = name.split_once(':')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let found: Vec<(u32, u32)> = entries.filter_map(number).take(2).collect();
        let [upper, lower] = found[..] else {
            return eprintln!("skipped: there are no two block devices here");
        };
        let on = |device, below| Stack {
            device: Some(device),
            below,
            ..Stack::default()
        };
        let apart = [on(upper, Vec::new()), on(lower, Vec::new())];
        assert!(read_devices(&apart).is_some());
        let [_, lowest] = apart;
        assert_eq!(read_devices(&[on(upper, vec![lower]), lowest]), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}", fields: Vec<u64>) {
            let _ = parse_device(&text);
            let line = fields.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(parse_device(&line).is_some(), fields.len() >= 10);
        }

        #[test]
        fn what_is_added_can_be_taken_away(a in 0..1u64 << 60, b in 0..1u64 << 60) {
            let of = |n: u64| DeviceStat { read_ios: n, write_bytes: n / 2, busy_ms: n / 3, ..DeviceStat::default() };
            prop_assert_eq!(of(a).plus(of(b)).since(of(b)), of(a));
        }
    }
}
