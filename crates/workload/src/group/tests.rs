use super::*;
use crate::Kind;
use crate::settings::Setting;
use crate::trial::{Rate, WriteHint};

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
fn a_group_without_a_bound_runs_as_long_as_the_others() {
    let delayed = TrialSpec {
        start_delay: Duration::from_secs(1),
        ..TrialSpec::default()
    };
    let reader = TrialSpec {
        limit: time(3),
        ..TrialSpec::default()
    };
    let with = cell(vec![
        ("reader", reader),
        ("writer", writer()),
        ("late", delayed),
    ]);
    let trials = with.group_trials();
    let times: Vec<_> = trials.iter().map(|group| group.trial.limit.time).collect();
    assert_eq!(times, [3, 3, 2].map(|s| Some(Duration::from_secs(s))));
    assert_eq!(
        trials.iter().map(|g| g.follows).collect::<Vec<_>>(),
        [false, true, true]
    );
    // Without any limit, each makes one pass.
    let none = cell(vec![("a", TrialSpec::default()), ("b", writer())]);
    assert!(
        none.group_trials()
            .iter()
            .all(|g| !g.follows && g.trial.limit.time.is_none())
    );
    // The number of requests ends the other group, and the trial with it.
    let counted = TrialSpec {
        limit: TrialLimit {
            requests: Some(5),
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
fn together_they_have_all_threads_and_the_whole_range() {
    let far = TrialSpec {
        offset: 4 << 30,
        ..writer()
    };
    let all = cell(vec![("reader", TrialSpec::default()), ("writer", far)]).trial;
    assert_eq!((all.threads, all.offset, all.region), (3, 0, 5 << 30));
    assert_eq!((all.read_percent, all.bs), (50, 1 << 20));
    let late = TrialSpec {
        start_delay: Duration::from_secs(60),
        limit: time(1),
        ..TrialSpec::default()
    };
    let counted = TrialSpec {
        limit: TrialLimit {
            requests: Some(10),
            ..TrialLimit::default()
        },
        ..writer()
    };
    let all = cell(vec![("late", late), ("writer", counted.clone())]).trial;
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
fn what_groups_cannot_be_is_refused() {
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
    let weighted = TrialSpec {
        flow: Some(2),
        ..writer()
    };
    let told = [
        vec![("a", verified.clone()), ("b", writer())],
        vec![("a", private), ("b", writer())],
        vec![("a", many.clone()), ("b", many)],
        vec![("a", idle)],
        vec![("a", weighted), ("b", writer())],
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
    group a has a flow, and no other group has one
      flows are a proportion: give another group one too, or set flow=none
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

#[test]
fn what_needs_other_groups_is_refused_without_them() {
    let mut told = String::new();
    for set in ["flow=2", "ends_trial=true", "start_delay=1s"] {
        let (name, value) = set.split_once('=').expect("a value");
        let mut alone = CellSpec::default();
        let setting = Setting::find(name).expect("known");
        setting.set(&mut alone, value).expect("possible");
        let error = alone.check().expect_err(set);
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        told += &format!("{set}: {error}\n");
    }
    insta::assert_snapshot!(told, @r"
    flow=2: flow in a trial without groups
      it has a meaning only beside other groups: leave it out, or give groups
    ends_trial=true: ends_trial in a trial without groups
      it has a meaning only beside other groups: leave it out, or give groups
    start_delay=1s: start_delay in a trial without groups
      it has a meaning only beside other groups: leave it out, or give groups
    ");
}

#[test]
fn a_group_with_a_flow_may_run_alone() {
    let with = |rate| TrialSpec {
        flow: Some(2),
        rate,
        ..writer()
    };
    // The other one is idle in this cell; its rate of 0 replaces its flow.
    let cell = cell(vec![("a", with(None)), ("b", with(Some(Rate::ZERO)))]);
    cell.check().expect("alone");
}

#[test]
fn one_file_has_one_write_hint() {
    let hinted = |hint: Option<WriteHint>| TrialSpec {
        write_hint: hint,
        ..writer()
    };
    let (short, long) = (
        hinted(Some(WriteHint::Short)),
        hinted(Some(WriteHint::Long)),
    );
    let pair = |one: &TrialSpec, other: &TrialSpec| {
        cell(vec![("log", one.clone()), ("data", other.clone())])
    };
    let error = pair(&short, &long).check().expect_err("two hints");
    assert_eq!(
        error.message(),
        "group log has write_hint=short, and group data has write_hint=long: the kernel keeps one hint per file, and both write to one"
    );
    assert!(pair(&short, &hinted(None)).check().is_err());
    let fresh = TrialSpec {
        fresh: true,
        ..long.clone()
    };
    let reader = TrialSpec::default();
    for other in [&short, &fresh, &reader] {
        pair(&short, other)
            .check()
            .expect("no other hint for this file");
    }
    let mut apart = pair(&short, &long);
    apart.groups[1].spec.target = "/mnt/b".parse().ok();
    apart.check().expect("a file each");
}
