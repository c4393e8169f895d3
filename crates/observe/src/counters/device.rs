//! What block devices counted; traffic of all processes.

use iolab_spec::counters::{Bottom, DeviceStat};

use iolab_target::Stack;

/// The counters of the disks at the bottom; `None` where they are not known, or are those of the device itself.
pub(super) fn read_bottom(stack: &Stack) -> Option<Bottom> {
    let disks = stack.bottom.as_ref()?;
    let stat = disks.iter().try_fold(DeviceStat::default(), |sum, disk| {
        Some(sum.plus(read_device(*disk)?))
    })?;
    Some(Bottom {
        stat,
        in_file: stack.in_file,
    })
}

pub(super) fn read_device((major, minor): (u32, u32)) -> Option<DeviceStat> {
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
        let none = read_bottom(&stack(Some(Vec::new()))).expect("known");
        assert_eq!((none.stat, none.in_file), (DeviceStat::default(), true));
        assert_eq!(read_bottom(&stack(None)), None);
        // One disk that cannot be read makes the sum unknown.
        assert_eq!(read_bottom(&stack(Some(vec![(4095, 1_048_575)]))), None);
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
