//! Comparison of runs: matching of cells, and other differences.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::compare::{
    CellVerdict, Comparison, Conclusion, Criteria, HypothesisTest, ReplicationUnit, RunSide,
    SideValue,
};
use iolab_analysis::doubt::DoubtKind;
use iolab_plan::experiment::Experiment;
use iolab_record::environment::KEYS;
use iolab_record::{RunRecord, ServedBy, TargetKind};
use iolab_workload::Kind;
use iolab_workload::response::Response;
use iolab_workload::settings::{SETTINGS, Setting, Value};
use iolab_workload::trial::{CacheState, Rate};

use iolab_synthetic::{add_cell, around, record, serve, size_curve};

fn terms() -> Criteria {
    Criteria {
        margin: 0.05,
        tests: vec![HypothesisTest::Welch],
        within_run: true,
        ..Criteria::default()
    }
}

/// Two runs; if the same one is given twice, two levels of it.
pub(crate) fn of(
    base: &RunRecord,
    new: &RunRecord,
    held: Option<(&str, [&str; 2])>,
) -> iolab_workload::Result<Comparison> {
    let first = AnalysedRun::of(base.clone());
    let second = (!std::ptr::eq(base, new)).then(|| {
        // Synthetic runs all start at the same time; their seeds differ.
        let mut other = new.clone();
        other.run.seed += 1;
        AnalysedRun::of(other)
    });
    let source = |run, side: usize| RunSide {
        run,
        held: held.map(|(factor, levels)| (factor, levels[side])),
    };
    let names = ["base", "new"].map(|name| name.to_owned().into());
    let new = source(second.as_ref().unwrap_or(&first), 1);
    Comparison::of_runs(names, source(&first, 0), new, terms())
}

#[test]
fn cells_match_by_levels_in_any_order() {
    let base = size_curve(
        "read-size",
        &[("4KiB", 100.0), ("64KiB", 400.0), ("1MiB", 900.0)],
    );
    let new = size_curve(
        "read-size",
        &[("1MiB", 901.0), ("4KiB", 50.0), ("2MiB", 950.0)],
    );
    let comparison = of(&base, &new, None).unwrap();
    let verdicts: Vec<(&str, CellVerdict)> = comparison
        .cells
        .iter()
        .map(|c| (c.levels[0].as_str(), c.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("4KiB", CellVerdict::Slower),
            ("1MiB", CellVerdict::Equivalent)
        ]
    );
    assert_eq!(comparison.only_base, ["bs=64KiB"]);
    assert_eq!(comparison.only_new, ["bs=2MiB"]);
    assert_eq!(comparison.conclusion(), Conclusion::Regression);
    assert!(
        comparison.differences.is_empty(),
        "{:?}",
        comparison.differences
    );
}

#[test]
fn factor_matches_fixed_setting_of_the_other_run() {
    let toml = |sets: &[&str]| {
        let mut experiment = Experiment::find("read-size").unwrap();
        sets.iter()
            .for_each(|set| experiment.apply_set(set).unwrap());
        experiment.to_toml().unwrap()
    };
    let mut base = record("read-size", &["bs", "threads"]);
    base.experiment.toml = toml(&["bs=4k,64k", "threads=1,4"]);
    for bs in ["4KiB", "64KiB"] {
        for threads in ["1", "4"] {
            let levels = [format!("bs={bs}"), format!("threads={threads}")];
            add_cell(
                &mut base,
                &levels.each_ref().map(String::as_str),
                &around(100.0),
            );
        }
    }
    let mut new = record("read-size", &["bs"]);
    new.experiment.toml = toml(&["bs=4k,64k", "threads=4"]);
    for bs in ["bs=4KiB", "bs=64KiB"] {
        let cell = add_cell(&mut new, &[bs], &around(100.0));
        new.cells[cell].spec.trial.threads = 4;
    }
    let comparison = of(&base, &new, None).unwrap();
    let levels: Vec<String> = comparison
        .cells
        .iter()
        .map(|c| c.levels.join(" "))
        .collect();
    assert_eq!(levels, ["4KiB 4", "64KiB 4"]);
    assert_eq!(comparison.only_base.len(), 2);
}

#[test]
fn levels_of_one_run_compare_at_equal_others() {
    let mut run = record("buffer-size", &["bs", "buffer_init"]);
    for (bs, init, mb_s) in [
        ("4KiB", "zeroed", 100.0),
        ("4KiB", "untouched", 50.0),
        ("1MiB", "zeroed", 300.0),
        ("1MiB", "untouched", 299.0),
    ] {
        let cell = add_cell(
            &mut run,
            &[&format!("bs={bs}"), &format!("buffer_init={init}")],
            &around(mb_s),
        );
        run.cells[cell].spec.trial.buffer_init = init.parse().expect("a value");
    }
    let comparison = of(&run, &run, Some(("buffer_init", ["zeroed", "untouched"]))).unwrap();
    assert_eq!(comparison.factors, ["bs"]);
    let verdicts: Vec<CellVerdict> = comparison.cells.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [CellVerdict::Slower, CellVerdict::Equivalent]);
    assert!(
        comparison.differences.is_empty(),
        "{:?}",
        comparison.differences
    );
}

#[test]
fn further_differences_of_sides_are_listed() {
    let base = size_curve("read-size", &[("4KiB", 100.0), ("1MiB", 900.0)]);
    let mut new = base.clone();
    new.run.tool_version = "0.2.0".to_owned();
    new.environment.put(&KEYS.kernel_release, "7.0".to_owned());
    new.environment.put(&KEYS.ranks, 4);
    // The environment of one process of a launcher.
    new.environment.put(&KEYS.rank_hosts, 1);
    for cell in &mut new.cells {
        cell.spec.trial.cache = CacheState::Cold;
    }
    new.cells[1].spec.trial.threads = 4;
    serve(&mut new, 0, ServedBy::PageCache, "all from memory");
    let comparison = of(&base, &new, None).unwrap();
    let differences = comparison.differences.iter();
    let told = differences.map(|d| (d.what.key(), d.base.clone(), d.new.clone()));
    let known = |value: &str| SideValue::Known(value.to_owned());
    let set = |name: &str, value| SideValue::Set(Setting::find(name).expect("a setting"), value);
    let cache = |state: &str| set("cache", Value::Word(state.to_owned()));
    let threads = |count: u32| set("threads", count.into());
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("tool_version".into(), known("0.1.0"), known("0.2.0")),
            ("kernel_release".into(), SideValue::Unknown, known("7.0")),
            ("ranks".into(), known("1"), known("4")),
            ("cache".into(), cache("direct"), cache("cold")),
            ("threads".into(), threads(1), threads(4)),
        ]
    );
    let sources = comparison
        .cells
        .iter()
        .map(|cell| !cell.is_served_differently());
    assert_eq!(sources.collect::<Vec<bool>>(), [false, true]);
}

#[test]
fn incomparable_runs_have_a_reason() {
    let base = size_curve("read-size", &[("4KiB", 100.0), ("8KiB", 100.0)]);
    let other = size_curve("read-size", &[("1MiB", 100.0), ("2MiB", 100.0)]);
    let error = of(&base, &other, None).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    let cells = "BASE has cells such as bs=4KiB, NEW has cells such as bs=1MiB";
    assert_eq!(
        error.message(),
        format!("the two have no cell in common: {cells}")
    );
    let mut latency = base.clone();
    latency.experiment.response = Response::Latency;
    let error = of(&base, &latency, None).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert_eq!(
        error.message(),
        "BASE measures throughput and NEW median latency"
    );
}

/// Levels that `[[only]]` lists with other levels of a second factor share no cell to be compared in.
#[test]
fn coupled_levels_name_what_else_differs() {
    let mut pairs = record("pairs", &["threads", "depth"]);
    for (threads, depth) in [(1, 16), (4, 4), (16, 1)] {
        let levels = [format!("threads={threads}"), format!("depth={depth}")];
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        add_cell(&mut pairs, &levels, &around(100.0));
    }
    let run = AnalysedRun::of(pairs);
    let error = Comparison::of_levels(&run, "threads=1,16", "run", terms()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the two have no cell in common: BASE has cells such as depth=16, NEW has cells such as depth=1\n  \
         the cells with these levels of threads differ in depth too: measure both levels with the same depth"
    );
}

#[test]
fn times_are_better_when_they_are_short() {
    let mut base = size_curve("read-size", &[("4KiB", 100.0), ("8KiB", 100.0)]);
    let mut new = size_curve("read-size", &[("4KiB", 50.0), ("8KiB", 200.0)]);
    for response in ["latency", "elapsed"] {
        base.experiment.response = response.parse().expect("a response");
        new.experiment.response = response.parse().expect("a response");
        let verdicts: Vec<CellVerdict> = of(&base, &new, None)
            .unwrap()
            .cells
            .iter()
            .map(|c| c.verdict)
            .collect();
        assert_eq!(
            verdicts,
            [CellVerdict::Slower, CellVerdict::Faster],
            "{response}"
        );
    }
}

#[test]
fn shared_drift_does_not_hide_a_difference() {
    // The machine gets slower by a third while both are measured, block by block.
    let drifting = |mb_s: f64| -> Vec<f64> {
        (0..20)
            .map(|i| mb_s * (1.0 - f64::from(i) / 60.0) * (1.0 + f64::from(i * 7 % 5) / 500.0))
            .collect()
    };
    let mut run = record("write-size", &["sync"]);
    for (sync, mb_s) in [("none", 100.0), ("odsync", 90.0), ("osync", 100.3)] {
        let cell = add_cell(&mut run, &[&format!("sync={sync}")], &drifting(mb_s));
        run.cells[cell].spec.trial.sync = sync.parse().expect("a value");
    }
    let verdict = |levels| of(&run, &run, Some(("sync", levels))).unwrap().cells[0].verdict;
    assert_eq!(verdict(["none", "odsync"]), CellVerdict::Slower);
    assert_eq!(verdict(["none", "osync"]), CellVerdict::Equivalent);
    // Separate runs might have drifted apart.
    let alone = |mb_s| {
        let mut run = record("write-size", &["bs"]);
        add_cell(&mut run, &["bs=4KiB"], &drifting(mb_s));
        run
    };
    let comparison = of(&alone(100.0), &alone(80.0), None).unwrap();
    assert_eq!(
        comparison.cells[0].verdict,
        CellVerdict::CannotTell(DoubtKind::Dependent)
    );
    assert_eq!(comparison.conclusion(), Conclusion::CannotTell);
}

#[test]
fn all_cells_are_judged_by_shared_blocks() {
    // Both sides have the same drift; what one cell loses, the other gains.
    let drifting = |mb_s: f64, blocks: u32| -> Vec<f64> {
        (0..blocks)
            .map(|i| mb_s * (1.0 + f64::from(i * 7 % 5) / 10.0))
            .collect()
    };
    let mut run = record("write-size", &["sync", "bs"]);
    for (sync, bs, mb_s, blocks) in [
        ("none", "4KiB", 100.0, 20),
        ("none", "1MiB", 500.0, 20),
        ("osync", "4KiB", 108.0, 20),
        ("osync", "1MiB", 500.0 / 1.08, 15),
    ] {
        let levels = [format!("sync={sync}"), format!("bs={bs}")];
        let levels = levels.each_ref().map(String::as_str);
        let cell = add_cell(&mut run, &levels, &drifting(mb_s, blocks));
        run.cells[cell].spec.trial.sync = sync.parse().expect("a value");
    }
    let comparison = of(&run, &run, Some(("sync", ["none", "osync"]))).unwrap();
    let overall = comparison.overall.unwrap();
    let estimate = overall.estimate.expect("blocks in common");
    assert!((estimate.ratio - 1.0).abs() < 1e-6, "{overall:?}");
    assert_eq!(estimate.blocks, Some(15));
    assert_eq!(overall.verdict, CellVerdict::Equivalent);
    assert!(of(&run, &run.clone(), None).unwrap().overall.is_none());
}

#[test]
fn a_difference_in_any_fixed_setting_is_named() {
    let mut same = record("mine", &[]);
    add_cell(&mut same, &[], &around(100.0));
    for setting in SETTINGS {
        let (mut base, mut new) = (same.clone(), same.clone());
        if setting.name == "arrivals" {
            // These settings need a rate.
            base.cells[0].spec.trial.rate = Some(Rate::Requests(5));
            new.cells[0].spec.trial.rate = Some(Rate::Requests(5));
        }
        let other = match setting.name {
            "workload" => "RR",
            _ => setting.example,
        };
        setting.set(&mut new.cells[0].spec, other).expect("a value");
        let found = of(&base, &new, None).expect("cells in common").differences;
        let column = match setting.name {
            // The setting that a shorthand sets.
            "workload" => "pattern",
            "linkage" => "command",
            _ => setting.column,
        };
        let named = found
            .iter()
            .find(|difference| difference.what.key() == column);
        let named = named.unwrap_or_else(|| panic!("{} is not named", setting.name));
        assert_ne!(named.base, named.new);
    }
}

#[test]
fn a_choice_unknown_of_one_side_is_named() {
    let mut base = record("mine", &[]);
    add_cell(&mut base, &[], &around(100.0));
    let mut new = base.clone();
    base.cells[0].spec.unknown.insert("batch");
    let batch = SETTINGS.iter().find(|setting| setting.name == "batch");
    for (level, is_named) in [("one", false), ("all", true)] {
        let cell = &mut new.cells[0].spec;
        batch.expect("a setting").set(cell, level).expect("a value");
        let found = of(&base, &new, None).expect("a cell").differences;
        let mut named = found.iter().filter(|found| found.what.key() == "batch");
        assert_eq!(named.next().is_some(), is_named, "{level}");
    }
}

#[test]
fn two_runs_do_not_accuse_each_other() {
    let one_run_each = |base: &RunRecord, new: &RunRecord| {
        let (first, second) = (AnalysedRun::of(base.clone()), AnalysedRun::of(new.clone()));
        let names = ["base", "new"].map(|name| name.to_owned().into());
        let terms = Criteria {
            within_run: false,
            ..terms()
        };
        Comparison::of_runs(
            names,
            RunSide::whole(&first),
            RunSide::whole(&second),
            terms,
        )
        .unwrap()
    };
    let base = size_curve("read-size", &[("4KiB", 100.0), ("64KiB", 400.0)]);
    let mut new = size_curve("read-size", &[("4KiB", 50.0), ("64KiB", 401.0)]);
    new.run.seed += 1;
    let comparison = one_run_each(&base, &new);
    let verdicts: Vec<CellVerdict> = comparison.cells.iter().map(|c| c.verdict).collect();
    assert_eq!(
        verdicts,
        [
            CellVerdict::CannotTell(DoubtKind::OneRunEach),
            CellVerdict::Equivalent
        ]
    );
    assert_eq!(comparison.conclusion(), Conclusion::CannotTell);
    assert_eq!(comparison.unit, ReplicationUnit::OneRunEach);
    // A run and a copy of its file.
    let comparison = one_run_each(&base, &base);
    assert_eq!(comparison.count(CellVerdict::Identical), 2);
    assert_eq!(comparison.conclusion(), Conclusion::Settled);
    // Content decides, not the identity of the run.
    let mut altered = base.clone();
    for sample in &mut altered.samples {
        sample.elapsed_ns *= 10;
    }
    let comparison = one_run_each(&base, &altered);
    assert_eq!(comparison.count(CellVerdict::Identical), 0);
    assert_eq!(comparison.unit, ReplicationUnit::OneRunEach);
    // The same run in an unfinished state.
    let mut part = base.clone();
    part.samples.pop();
    assert_eq!(one_run_each(&part, &base).unit, ReplicationUnit::OneRunEach);
    // Two runs of a model differ only in the seed.
    let computed = |record: &RunRecord| {
        let mut record = record.clone();
        record.run.target_kind = TargetKind::Model;
        record
    };
    assert_eq!(
        one_run_each(&computed(&base), &new).unit,
        ReplicationUnit::OneRunEach
    );
    let comparison = one_run_each(&computed(&base), &computed(&new));
    assert_eq!(comparison.unit, ReplicationUnit::ComputedRuns);
    assert_eq!(comparison.cells[0].verdict, CellVerdict::Slower);
}
