use super::*;
use crate::trial::Rate;

fn cell(groups: Vec<(&str, TrialSpec)>) -> CellSpec {
    let groups = groups.into_iter().map(|(name, trial)| GroupSpec {
        name: name.to_owned(),
        spec: CellSpec {
            trial,
            ..CellSpec::default()
        },
    });
    let mut cell = CellSpec {
        groups: groups.collect(),
        ..CellSpec::default()
    };
    cell.trial = cell.merge_trials();
    cell
}

fn time(seconds: u64) -> TrialLimit {
    TrialLimit {
        time: Some(Duration::from_secs(seconds)),
        ..TrialLimit::default()
    }
}

fn writer() -> TrialSpec {
    TrialSpec {
        read_percent: 0,
        bs: 1 << 20,
        threads: 2,
        ..TrialSpec::default()
    }
}

#[test]
fn an_unbounded_group_runs_as_long_as_others() {
    let reader = TrialSpec {
        limit: time(3),
        ..TrialSpec::default()
    };
    let with = cell(vec![("reader", reader), ("writer", writer())]);
    let trials = with.group_trials();
    let times: Vec<_> = trials.iter().map(|group| group.trial.limit.time).collect();
    assert_eq!(times, [Some(Duration::from_secs(3)); 2]);
    assert_eq!(
        trials.iter().map(|g| g.follows).collect::<Vec<_>>(),
        [false, true]
    );
    // Without any limit, each makes one pass.
    let none = cell(vec![("a", TrialSpec::default()), ("b", writer())]);
    assert!(
        none.group_trials()
            .iter()
            .all(|g| !g.follows && g.trial.limit.time.is_none())
    );
    // The bytes of one group end the other one, and the trial with it.
    let counted = TrialSpec {
        limit: TrialLimit {
            bytes: Some(5 * 4096),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let followed = cell(vec![("a", counted), ("b", writer())]);
    let b = &followed.group_trials()[1];
    assert!(b.follows && b.trial.requests_bound().is_none());
}

#[test]
fn an_idle_group_is_not_there() {
    let idle = TrialSpec {
        rate: Some(Rate::ZERO),
        ..writer()
    };
    let cell = cell(vec![("reader", TrialSpec::default()), ("writer", idle)]);
    assert_eq!(cell.group_trials().len(), 1);
    assert_eq!(cell.trial.read_percent, 100);
    cell.check().expect("one group is enough");
}

#[test]
fn groups_together_have_all_threads_and_bytes() {
    let far = TrialSpec {
        offset: 4 << 30,
        ..writer()
    };
    let all = cell(vec![("reader", TrialSpec::default()), ("writer", far)]).trial;
    assert_eq!((all.threads, all.offset, all.region), (3, 0, 5 << 30));
    assert_eq!((all.read_percent, all.bs), (50, 1 << 20));
    let timed = TrialSpec {
        limit: time(61),
        ..TrialSpec::default()
    };
    let counted = TrialSpec {
        limit: TrialLimit {
            bytes: Some(10 << 20),
            ..TrialLimit::default()
        },
        ..writer()
    };
    let all = cell(vec![("timed", timed), ("writer", counted.clone())]).trial;
    assert_eq!(all.limit, time(61));
    let all = cell(vec![("a", counted.clone()), ("b", counted)]).trial;
    assert_eq!(all.limit.bytes, Some(20 << 20));
}

#[test]
fn the_bytes_of_all_targets_are_counted_once() {
    let at = |target: &str, offset: u64, region: u64| {
        let mut spec = CellSpec {
            target: target.parse().ok(),
            ..CellSpec::default()
        };
        (spec.trial.offset, spec.trial.region) = (offset, region);
        spec
    };
    for (groups, bytes, without_second) in [
        (vec![at("/a", 0, 10), at("/b", 0, 10)], 20, 10),
        (vec![at("/a", 0, 10), at("/a", 5, 10)], 15, 10),
        (
            vec![at("/a", 0, 30), at("/a", 5, 10), at("/a", 20, 20)],
            40,
            40,
        ),
        (
            vec![at("/a", 90, 10), at("", 0, 10), at("/a", 0, 10)],
            30,
            20,
        ),
    ] {
        let group = |spec| GroupSpec {
            name: "g".to_owned(),
            spec,
        };
        let mut cell = CellSpec {
            groups: groups.into_iter().map(group).collect(),
            ..CellSpec::default()
        };
        assert_eq!(cell.bytes_used(), bytes, "{cell:?}");
        // An idle group uses none.
        cell.groups[1].spec.trial.rate = Some(Rate::ZERO);
        assert_eq!(cell.bytes_used(), without_second);
        cell.groups.clear();
        cell.trial.region = 7;
        assert_eq!(cell.bytes_used(), 7);
    }
}

#[test]
fn impossible_groups_are_refused() {
    let verified = TrialSpec {
        verify: true,
        ..writer()
    };
    let private = TrialSpec {
        layout: FileLayout::Private,
        ..writer()
    };
    let many = TrialSpec {
        threads: 600,
        ..TrialSpec::default()
    };
    let idle = TrialSpec {
        rate: Some(Rate::ZERO),
        ..writer()
    };
    let told = [
        vec![("a", verified.clone()), ("b", writer())],
        vec![("a", private), ("b", writer())],
        vec![("a", many.clone()), ("b", many)],
        vec![("a", idle)],
        vec![("a", TrialSpec { bs: 0, ..writer() })],
    ]
    .map(|groups| cell(groups).check().expect_err("refused").to_string());
    insta::assert_snapshot!(told.join("\n"), @r"
    verify in group a, and group b writes the same bytes
      give each a range of its own with offset and region, or leave verify out
    group a: layout=private in a group
      groups share one file: give each a range of its own with offset and region, and layout=shared
    the groups have 1200 threads together
      choose 1 to 1024 threads over all groups
    every group has the rate 0, so that nothing is done
      give one of the groups another rate
    group a: bs is 0 bytes
      choose an I/O size from 1 byte to 2 GiB minus 4 KiB, the most one system call transfers
    ");
    let apart = TrialSpec {
        offset: 1 << 30,
        ..writer()
    };
    cell(vec![("a", verified.clone()), ("b", apart)])
        .check()
        .expect("apart");
    cell(vec![("a", verified), ("b", TrialSpec::default())])
        .check()
        .expect("a reader");
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
