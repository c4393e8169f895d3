use super::*;
use crate::FurtherTarget;
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Rate;

/// A run on `/a` and `/b`.
fn two_targets() -> RunRecord {
    let mut record = RunRecord::default();
    record.run.target = "/a".to_owned();
    record.further_targets = vec![FurtherTarget {
        id: 1,
        target: "/b".to_owned(),
        ..FurtherTarget::default()
    }];
    record
}

#[test]
fn cells_find_their_target_by_its_path() {
    let record = two_targets();
    let mut cell = Cell::default();
    assert_eq!(record.targets_of(&cell), [0]);
    cell.spec.target = "/b".parse().ok();
    assert_eq!(record.target_of(&cell), Some(1));
    assert_eq!(record.targets_of(&cell), [1]);
}

#[test]
fn a_target_goes_by_its_given_name() {
    let mut record = two_targets();
    let mut own = Environment::default();
    own.put(&KEYS.target_name, "WD-Red".to_owned());
    record.environment.put_target(1, own);
    assert_eq!(record.target_text(), "/a, WD-Red");
    let called = |path: &str| record.target_called(path.parse().ok().as_ref());
    assert_eq!(called("/b"), "WD-Red");
    assert_eq!(record.target_called(None), "/a");
}

#[test]
fn groups_use_the_targets_of_running_ones() {
    let mut record = two_targets();
    let facts = [
        ("device_link_mb_s", "600"),
        ("target_1_device_link_mb_s", "3500"),
        ("cpu", "x"),
    ];
    let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
    record.environment = facts.into_iter().collect();
    let cell = |active: [bool; 2]| {
        let group = |(name, runs): (&str, bool)| {
            let mut spec = CellSpec {
                target: name.parse().ok(),
                ..CellSpec::default()
            };
            spec.trial.rate = (!runs).then_some(Rate::ZERO);
            GroupSpec {
                name: "g".to_owned(),
                spec,
            }
        };
        let mut cell = Cell::default();
        cell.spec.groups = ["/a", "/b"].into_iter().zip(active).map(group).collect();
        cell
    };
    let link = |cell: &Cell| record.environment_of(cell).get(&KEYS.device_link_mb_s);
    let (first, second, both) = (cell([true, false]), cell([false, true]), cell([true, true]));
    assert_eq!(record.targets_of(&second), [1]);
    assert_eq!(record.targets_of(&both), [0, 1]);
    assert_eq!(
        [link(&first), link(&second), link(&both)],
        [Some(600.0), Some(3500.0), None]
    );
    assert_eq!(record.environment_of(&both).text("cpu"), Some("x"));
}

#[test]
fn paths_come_back_and_text_needs_no_bytes() {
    let path = of_bytes(b"/a \xff\x00\xfe".to_vec()).expect("paths are bytes");
    let mut record = RunRecord::default();
    record.run.target = path.display().to_string();
    let bytes = beyond_text(&path).expect("not UTF-8");
    record.environment.put(&KEYS.target_path_hex, bytes);
    assert_eq!(target_paths(&record), [path]);
    record.run.target = "/shown".to_owned();
    assert_eq!(target_paths(&record), [Path::new("/shown")]);
    assert_eq!(beyond_text(Path::new("/ä")), None);
}

fn run(host: &str, device: &str) -> RunRecord {
    let mut record = RunRecord::default();
    record.run.target = "/data".to_owned();
    record.environment.put(&KEYS.host_name, host.to_owned());
    record
        .environment
        .put(&KEYS.device_model, device.to_owned());
    record
}

fn names(mut records: Vec<RunRecord>) -> Vec<String> {
    tell_targets_apart(&mut records);
    records.iter().map(RunRecord::target_text).collect()
}

#[test]
fn a_path_on_two_hosts_is_two_targets() {
    let two = vec![run("alpha", "X1"), run("beta", "X1"), run("alpha", "X1")];
    assert_eq!(
        names(two),
        ["/data on alpha", "/data on beta", "/data on alpha"]
    );
}

#[test]
fn a_path_on_two_disks_is_two_targets() {
    let two = vec![run("alpha", "X1"), run("alpha", "X2")];
    assert_eq!(names(two), ["/data on X1", "/data on X2"]);
}

#[test]
fn devices_of_one_model_are_distinguished() {
    let on = |device: &str| {
        let mut record = run("lab", "X1");
        record.environment.put(&KEYS.device, device.to_owned());
        record
    };
    assert_eq!(
        names(vec![on("sda"), on("sdb"), on("sda")]),
        ["/data on sda", "/data on sdb", "/data on sda"]
    );
}

#[test]
fn several_disks_per_host_need_both_in_names() {
    let four = [
        ("alpha", "X1"),
        ("alpha", "X2"),
        ("beta", "X1"),
        ("beta", "X2"),
    ];
    assert_eq!(
        names(four.map(|(host, model)| run(host, model)).to_vec()),
        [
            "/data on alpha/X1", "/data on alpha/X2", "/data on beta/X1", "/data on beta/X2"
        ]
    );
    let mut all = Vec::new();
    for host in ["alpha", "beta"] {
        for (model, device) in [("X1", "sda"), ("X1", "sdb"), ("X2", "sda")] {
            let mut record = run(host, model);
            record.environment.put(&KEYS.device, device.to_owned());
            all.push(record);
        }
    }
    let all = names(all);
    assert_eq!(all[0], "/data on alpha/X1/sda");
    assert_eq!(BTreeSet::from_iter(&all).len(), 6);
}

#[test]
fn storage_without_known_differences_keeps_the_shortest_name() {
    let model = |digest: &str| {
        let mut record = run("alpha", "X1");
        record
            .environment
            .put(&KEYS.model_digest, digest.to_owned());
        record
    };
    let all = vec![model("1"), model("2"), run("beta", "X1")];
    assert_eq!(
        names(all),
        ["/data on alpha", "/data on alpha", "/data on beta"]
    );
}

#[test]
fn unshared_or_indistinguishable_names_stay() {
    assert_eq!(
        names(vec![run("alpha", "X1"), run("alpha", "X1")]),
        ["/data"; 2]
    );
    let mut elsewhere = run("beta", "X1");
    elsewhere.run.target = "/mnt".to_owned();
    assert_eq!(
        names(vec![run("alpha", "X1"), elsewhere]),
        ["/data", "/mnt"]
    );
    let mut named = run("beta", "X1");
    named
        .environment
        .put(&KEYS.target_name, "backup".to_owned());
    assert_eq!(names(vec![run("alpha", "X1"), named]), ["/data", "backup"]);
    assert_eq!(
        names(vec![run("", ""), run("", "X1")]),
        ["/data", "/data on X1"]
    );
}
