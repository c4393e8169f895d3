//! Tests.

use super::*;
use crate::tests::experiment;
use iolab_plan::cells::OneProcess;

#[test]
fn groups_on_the_runs_target_share_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = format!("reader.target={}", folder.path().display());
    let of_both = |offset: &str| {
        let common = [
            "region=1M", "cache=cold", "writer.rate=none", "writer.verify=true",
            "reader.read_percent=0", &own, offset,
        ];
        let mut experiment = experiment("interference", &common);
        let named = settle_targets(&mut experiment, &[folder.path().to_owned()])?;
        assert_eq!(named, [folder.path()]);
        let plan = Plan::of(experiment, &OneProcess)?;
        let needs = needs(std::slice::from_ref(&plan), &named, &Consent::No, true)?;
        let targets = Targets::open(&named, &needs)?;
        crate::fit::fit_to(plan, crate::SystemUnderTest::Targets(&targets))
    };
    of_both("writer.offset=1M").expect("bytes of its own");
    let error = of_both("writer.offset=0").expect_err("they overwrite each other");
    insta::assert_snapshot!(error.message(), @"every trial: verify in group writer, and group reader writes the same bytes");
}

#[test]
fn each_target_needs_what_its_cells_need() {
    let named = ["/a", "/b"].map(PathBuf::from);
    let sets = [
        ["target=/a", "read_percent=100"],
        ["target=/b", "read_percent=0"],
    ];
    let plans = sets.map(|sets| {
        let common = ["bs=4k,64k", "region=1M"];
        let experiment = experiment("read-size", &[common, sets].concat());
        Plan::of_new_run(experiment, &OneProcess).expect("a plan")
    });
    let needs = needs(&plans, &named, &Consent::No, false).expect("needs");
    assert_eq!(needs.len(), 2);
    assert_eq!([needs[0].write, needs[1].write], [false, true]);
}

fn settled(sets: &[&str], given: &[&str]) -> (Vec<PathBuf>, Vec<String>) {
    let mut experiment = experiment("read-size", sets);
    let given: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
    let targets = settle_targets(&mut experiment, &given).expect("targets");
    (
        targets,
        experiment.values("target").map(str::to_owned).collect(),
    )
}

#[test]
fn several_targets_are_levels_and_one_is_none() {
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(settled(&[], &[]), (paths(&["."]), vec![]));
    assert_eq!(settled(&[], &["x"]), (paths(&["x"]), vec![]));
    let two = || vec!["/a".to_owned(), "/b".to_owned()];
    assert_eq!(settled(&[], &["/a", "/b"]), (paths(&["/a", "/b"]), two()));
    assert_eq!(
        settled(&["target=/a,/b"], &[]),
        (paths(&["/a", "/b"]), two())
    );
    assert_eq!(settled(&["target=/a"], &[]), (paths(&["/a"]), vec![]));
    // The command line wins.
    assert_eq!(
        settled(&["target=/a,/b"], &["/c"]),
        (paths(&["/c"]), vec![])
    );
    let own = settled(&["target=none,/b"], &["/c"]);
    assert_eq!(
        own,
        (
            paths(&["/c", "/b"]),
            vec!["none".to_owned(), "/b".to_owned()]
        )
    );
}

#[test]
fn a_name_keeps_the_spaces_at_its_end() {
    let paths = ["/a ", "/b\u{a0}", "/a"].map(PathBuf::from);
    let (targets, levels) = settled(&[], &["/a ", "/b\u{a0}", "/a"]);
    assert_eq!(targets, paths);
    assert_eq!(levels, ["/a ", "/b\u{a0}", "/a"]);
    let (targets, _) = settled(&["target=/a , /b\u{a0},/a"], &[]);
    assert_eq!(targets, paths);
}

#[test]
fn invalid_levels_of_target_are_refused() {
    for given in [["/a", "/a"], ["/a", "/b\n"]] {
        let given = given.map(PathBuf::from);
        let error = settle_targets(&mut experiment("read-size", &[]), &given).expect_err("refused");
        assert_eq!(error.kind(), iolab_workload::Kind::Usage, "{error}");
    }
}
