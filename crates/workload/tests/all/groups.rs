//! Trials of several groups.

use std::time::Duration;

use iolab_workload::group::split_group;
use iolab_workload::names::check_group_name;
use iolab_workload::settings::own_cells;
use iolab_workload::trial::{Rate, SyncPolicy, TrialLimit};

use crate::cases::Cases;
use crate::cells::cell;

/// Groups; which of them follow the end of others, with their bounds; what all have together.
const GROUPS: [&str; 8] = [
    "| reader: time=3s | writer: read_percent=0 bs=1M threads=2",
    // Without any limit, each makes one pass.
    "| a: bs=4k | b: read_percent=0 bs=1M threads=2",
    // The bytes of one group end the other one, and the trial with it.
    "| a: bytes=20k | b: read_percent=0 bs=1M threads=2",
    // An idle group is not there.
    "| reader: bs=4k | writer: read_percent=0 bs=1M rate=0",
    "| reader: bs=4k | writer: read_percent=0 bs=1M threads=2 offset=4G",
    "| timed: time=61s | writer: read_percent=0 bs=1M bytes=10M",
    "| a: read_percent=0 bs=1M bytes=10M | b: read_percent=0 bs=1M bytes=10M",
    "| a: time=1s | b: time=2s",
];

#[test]
fn groups_end_together_and_add_up() {
    let mut told = Cases::default();
    for groups in GROUPS {
        let cell = cell(groups);
        cell.check().expect(groups);
        let limit = |limit: TrialLimit| match (limit.bytes, limit.time) {
            (None, None) => "no limit".to_owned(),
            (Some(bytes), None) => format!("{bytes} bytes"),
            (bytes, Some(time)) => bytes.map_or(format!("{time:?}"), |_| format!("{limit:?}")),
        };
        let mut parts = Vec::new();
        for group in cell.group_trials() {
            let follows = if group.follows { "follows " } else { "" };
            let requests = group.trial.requests_bound();
            let requests = requests.map_or("any".to_owned(), |bound| bound.to_string());
            parts.push(format!(
                "{follows}{}, {requests} requests",
                limit(group.trial.limit)
            ));
        }
        let all = cell.trial.clone();
        parts.push(format!(
            "{} threads, {} + {}, {} % reads, bs {}, {}",
            all.threads,
            all.offset,
            all.region,
            all.read_percent,
            all.bs,
            limit(all.limit),
        ));
        told.add(groups, &parts.join("\n"));
    }
    insta::assert_snapshot!(told.text);
}

#[test]
fn the_bytes_of_all_targets_are_counted_once() {
    for (groups, bytes, without_second) in [
        ("| a: target=/a region=10 | b: target=/b region=10", 20, 10),
        (
            "| a: target=/a region=10 | b: target=/a offset=5 region=10",
            15,
            10,
        ),
        (
            "| a: target=/a region=30 | b: target=/a offset=5 region=10 | c: target=/a offset=20 region=20",
            40,
            40,
        ),
        (
            "| a: target=/a offset=90 region=10 | b: region=10 | c: target=/a region=10",
            30,
            20,
        ),
    ] {
        let mut cell = cell(groups);
        assert_eq!(cell.bytes_used(), bytes, "{groups}");
        // An idle group uses none.
        cell.groups[1].spec.trial.rate = Some(Rate::ZERO);
        assert_eq!(cell.bytes_used(), without_second);
        cell.groups.clear();
        cell.trial.region = 7;
        assert_eq!(cell.bytes_used(), 7);
    }
}

#[test]
fn the_whole_trial_ignores_the_order_of_groups() {
    let (scan, log) = (
        "| scan: bs=64k depth=8 rate=1000",
        "| log: read_percent=0 sync=fdatasync offset=1G region=1M threads=3",
    );
    for cell in [
        cell(&format!("{scan} {log}")),
        cell(&format!("{log} {scan}")),
    ] {
        let whole = cell.whole_trial();
        assert_eq!((whole.bs, whole.threads, whole.depth), (65_536, 4, 8));
        assert_eq!(whole.in_flight_of_all(), 8 + 3);
        assert_eq!(whole.region, (1 << 30) + (1 << 20));
        assert_eq!(whole.overwritten_bytes(), 1 << 20);
        assert!(whole.reads() && whole.writes() && whole.has_rate());
        assert_eq!(whole.rate(), None, "the log has none");
        assert!(cell.only_trial().is_none() && cell.shared(|trial| trial.sync).is_none());
        let policies = cell.writing_trials().into_iter().map(|trial| trial.sync);
        assert!(policies.eq([SyncPolicy::Fdatasync]));
        assert_eq!(cell.reading_trials().len(), 1);
    }
    assert_eq!(cell(GROUPS[7]).last_end(), Some(Duration::from_secs(2)));
}

#[test]
fn a_name_before_a_dot_is_a_group() {
    assert_eq!(split_group("reader.p99"), (Some("reader"), "p99"));
    assert_eq!(split_group("reader.p99.9"), (Some("reader"), "p99.9"));
    assert_eq!(split_group("p99.9"), (None, "p99.9"));
    assert_eq!(split_group("throughput"), (None, "throughput"));
    for name in ["", "all", "a.b", "1st", "x y"] {
        assert!(check_group_name(name).is_err(), "{name}");
    }
}

/// Cells of a grid that are named, each by the places of its levels.
type Places<'a> = &'a [(usize, usize)];

#[test]
fn cells_are_named_by_levels_they_alone_have() {
    const ALL: Places<'_> = &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)];
    let factors = ["bs".to_owned(), "depth".to_owned()];
    let named = |all: Places<'_>, some: Places<'_>| {
        let levels = |(bs, depth): &(usize, usize)| {
            [["4KiB", "64KiB", "1MiB"][*bs], ["1", "8"][*depth]].map(str::to_owned)
        };
        let (some, others): (Vec<_>, Vec<_>) = all.iter().partition(|cell| some.contains(cell));
        let [some, others] = [some, others].map(|cells| {
            cells
                .into_iter()
                .map(|cell| levels(&cell))
                .collect::<Vec<_>>()
        });
        let [some, others] =
            [&some, &others].map(|cells| cells.iter().map(|cell| &cell[..]).collect::<Vec<_>>());
        own_cells(&factors, &some, &others)
    };
    let told = [
        named(ALL, ALL),
        named(&ALL[..1], ALL),
        named(ALL, &ALL[..2]),
        named(ALL, &ALL[..4]),
        named(ALL, &[(0, 1), (1, 1), (2, 1)]),
        // Neither factor alone distinguishes them from the others.
        named(ALL, &[(1, 1), (2, 1)]),
        named(ALL, &[(0, 0), (1, 0), (2, 0), (0, 1)]),
    ];
    insta::assert_snapshot!(told.join("\n"), @"
    any of its 6 cells
    its only cell
    2 of its 6 cells (bs=4KiB)
    4 of its 6 cells (bs=4KiB, 64KiB)
    3 of its 6 cells (depth=8)
    2 of its 6 cells (bs=64KiB, depth=8; bs=1MiB, depth=8)
    4 of its 6 cells (bs=4KiB, depth=1; bs=4KiB, depth=8; bs=64KiB, depth=1; and 1 more)
    ");
}
