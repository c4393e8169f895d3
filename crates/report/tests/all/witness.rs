//! The line that evidence for a program comes to.

use iolab_analysis::witness::{Asked, Bounds, Direction, Evidence, OtherUse};
use iolab_record::{ServedBy, ServedVerdict};
use iolab_report::witness::headline;
use iolab_workload::witness::Observed;

const MIB: u64 = 1 << 20;

fn direction(bytes: u64, served_by: ServedBy, share: Option<f64>) -> Direction {
    Direction {
        asked: Asked::Bytes(Bounds::exact(bytes)),
        moved: Some(bytes),
        carried: Some(Bounds::exact(bytes)),
        verdict: Some(ServedVerdict {
            served_by,
            device_fraction: share,
            reason: "REASON".to_owned(),
        }),
    }
}

fn nothing() -> Direction {
    Direction {
        asked: Asked::Nothing,
        moved: Some(0),
        carried: None,
        verdict: None,
    }
}

fn evidence(reads: Direction, writes: Direction) -> Evidence {
    Evidence {
        observed: Observed {
            command: vec!["/usr/bin/fio".to_owned()],
            ..Observed::default()
        },
        devices: vec!["vda".to_owned()],
        reads,
        writes,
        flushes: Some(240),
        owed: Some(0),
        others: OtherUse::None,
    }
}

#[test]
fn the_first_line_says_what_the_evidence_comes_to() {
    let mixed = direction(1024 * MIB, ServedBy::Mixed, Some(0.12));
    let written = direction(64 * MIB, ServedBy::Device, Some(1.0));
    insta::assert_snapshot!(headline(&evidence(mixed.clone(), written)), @"fio: 12 % of the 1 GiB that it read came from vda, the rest from the page cache; all of the 64 MiB that it wrote reached vda; vda completed 240 cache flushes; nothing else used vda.");
    let hot = direction(64 * MIB, ServedBy::PageCache, Some(0.0));
    insta::assert_snapshot!(headline(&evidence(hot, nothing())), @"fio: all of the 64 MiB that it read came from the page cache; nothing else used vda.");
    let unknown = direction(64 * MIB, ServedBy::Unknown, None);
    insta::assert_snapshot!(headline(&evidence(unknown, nothing())), @"fio: storage carried 64 MiB of its reads; where the 64 MiB that it read came from is unknown: REASON; nothing else used vda.");
    insta::assert_snapshot!(headline(&evidence(nothing(), nothing())), @"fio: it read and wrote no storage of note.");
    let late = Evidence {
        owed: Some(60 * MIB),
        others: OtherUse::Some {
            read: Bounds::exact(0),
            written: Bounds {
                least: 0,
                most: 3 * MIB,
            },
        },
        ..evidence(
            nothing(),
            direction(64 * MIB, ServedBy::Mixed, Some(0.0625)),
        )
    };
    insta::assert_snapshot!(headline(&late), @"fio: 6.2 % of the 64 MiB that it wrote had reached vda at its end, and 60 MiB had still to be written back; vda completed 240 cache flushes, of all processes; others may have read 0 B and written up to 3 MiB on vda meanwhile.");
    let mut open = mixed;
    open.carried = Some(Bounds {
        least: 10 * MIB,
        most: 1024 * MIB,
    });
    insta::assert_snapshot!(headline(&evidence(open, nothing())), @"fio: 12 % of the 1 GiB that it read came from vda, the rest from the page cache (between 10 MiB and 1 GiB from this device: others were used meanwhile); nothing else used vda.");
}
