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
        crate::fit::fit_to(plan, &crate::SystemUnderTest::Targets(targets), None)
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

#[test]
fn several_targets_are_levels_and_one_is_none() {
    const SPACES: &str = "/b\u{a0}";
    let spaces = format!("target=/a , {SPACES},/a");
    // What an experiment sets, the names on the command line, the targets, and the levels of the setting.
    type Names<'a> = &'a [&'a str];
    let rows: [(Names<'_>, Names<'_>, Names<'_>, Names<'_>); 8] = [
        (&[], &[], &["."], &[]),
        (&[], &["x"], &["x"], &[]),
        (&[], &["/a", "/b"], &["/a", "/b"], &["/a", "/b"]),
        (&["target=/a,/b"], &[], &["/a", "/b"], &["/a", "/b"]),
        (&["target=/a"], &[], &["/a"], &[]),
        // The command line wins.
        (&["target=/a,/b"], &["/c"], &["/c"], &[]),
        (&["target=none,/b"], &["/c"], &["/c", "/b"], &["none", "/b"]),
        // A name keeps the spaces at its end.
        (
            &[&spaces],
            &[],
            &["/a ", SPACES, "/a"],
            &["/a ", SPACES, "/a"],
        ),
    ];
    for (sets, given, targets, levels) in rows {
        let mut experiment = experiment("read-size", sets);
        let given: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
        let found = settle_targets(&mut experiment, &given).expect("targets");
        assert!(
            found.iter().eq(targets.iter().map(Path::new)),
            "{sets:?}: {found:?}"
        );
        let found: Vec<&str> = experiment.values("target").collect();
        assert_eq!(found, levels, "{sets:?} {given:?}");
    }
}

#[test]
fn invalid_levels_of_target_are_refused() {
    for given in [["/a", "/a"], ["/a", "/b\n"]] {
        let given = given.map(PathBuf::from);
        let error = settle_targets(&mut experiment("read-size", &[]), &given).expect_err("refused");
        assert_eq!(error.kind(), iolab_workload::Kind::Usage, "{error}");
    }
}
