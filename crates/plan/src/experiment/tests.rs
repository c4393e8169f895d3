use std::time::Duration;

use super::*;
use crate::cells::cells;
use iolab_workload::Kind;
use iolab_workload::foreign_options::{Answer, FOREIGN};
use proptest::prelude::*;

const HEAD: &str = "name = 'mine'\nquestion = 'why?'\nresponse = 'iops'\n";

fn read(rest: &str) -> Result<Experiment> {
    Experiment::from_toml(&format!("{HEAD}{rest}"), "mine.toml")
}

#[test]
fn the_micro_benchmark_study_is_built_in() {
    let micro = |name: &str| {
        ["-size", "-stride", "-random"]
            .iter()
            .any(|end| name.ends_with(end))
            && name != "buffer-size"
    };
    assert_eq!(BUILTIN.iter().filter(|(name, _)| micro(name)).count(), 6);
    for (name, text) in BUILTIN.iter().filter(|(name, _)| micro(name)) {
        let experiment = Experiment::from_toml(text, name).unwrap();
        assert_eq!(experiment.name, *name);
        let sizes = if name.ends_with("stride") { 80 } else { 16 };
        assert_eq!(experiment.cell_count(), sizes, "{name}");
        let mut cell = experiment.base().unwrap();
        for factor in &experiment.factors {
            let last = factor.levels.last().unwrap();
            factor.of.setting.set(&mut cell, last).unwrap();
            let trial = &cell.trial;
            trial.check().unwrap();
            assert_eq!(trial.writes(), name.starts_with("write"));
            assert_eq!(trial.region, 1 << 30);
            assert!(trial.limit.bytes.is_some() && trial.limit.time.is_some());
        }
    }
}

#[test]
fn an_unrecorded_latency_cannot_be_the_response() {
    let document = "name = 'm'\nquestion = 'q'\nresponse = 'latency'\n";
    for rest in [
        "[settings]\nlatency = false\n",
        "[factors]\nlatency = [true, false]\n",
    ] {
        let error = Experiment::from_toml(&format!("{document}{rest}"), "m.toml").unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @r"
            m.toml: the response is latency, but latency=false leaves latencies unrecorded
              set latency=true, or ask for another response
            ");
        }
    }
    let mut experiment = Experiment::from_toml(document, "m.toml").unwrap();
    assert!(experiment.apply_set("latency=false").is_err());
    experiment.apply_set("latency=true").unwrap();
}

#[test]
fn factors_keep_their_order_and_ranges_multiply() {
    let experiment =
        read("[factors]\nthreads = [4, 1]\nbs = { from = '4KiB', to = '20KiB', times = 2 }\n")
            .unwrap();
    let names: Vec<&str> = experiment
        .factors
        .iter()
        .map(|f| f.of.setting.name)
        .collect();
    assert_eq!(names, ["threads", "bs"]);
    assert_eq!(experiment.factors[0].levels, ["4", "1"]);
    assert_eq!(experiment.factors[1].levels, ["4KiB", "8KiB", "16KiB"]);
    assert_eq!(experiment.design, Design::default());
}

#[test]
fn mistakes_say_what_and_where() {
    let told = [
        "[factors]\nbz = ['4k']\n",
        "[factors]\nbs = []\n",
        "[factors]\nbs = ['4k', 4096]\n",
        "[factors]\nbs = ['4k', true]\n",
        "[factors]\nbs = '4k'\n",
        "[factors]\nbs = { from = '4k', to = '1k', times = 2 }\n",
        "[factors]\nbs = { from = '4k', too = '1k', times = 2 }\n",
        "[factors]\nsync = { from = 1, to = 2, times = 2 }\n",
        "[settings]\nthreads = '4kB'\n",
        "[settings]\nthreads = 1.5\n",
        "[settings]\nbs = ['4k', '8k']\n",
        "[settings]\ndepth = 1\niodepth = 2\n",
        "[factors]\ndepth = [1, 2]\n[settings]\ndepth = 1\n",
        "[settings]\nbs = 1\nbs = 2\n",
        "[design]\ntrials = 3\n",
        "[design]\ntrials_min = 'three'\n",
        "[design]\nbudget = '1parsec'\n",
        "[design]\nbudget = '31d'\n",
        "[design]\nprecision = 1.5\n",
        "[design]\nprecision = nan\n",
        "[design]\ntrials_min = 9\ntrials_max = 8\n",
        "[design]\ntrials_max = 10001\n",
        "what = 1\n",
        "[settings\n",
    ]
    .map(|rest| {
        let error = read(rest).expect_err(rest);
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
        format!("{rest}{error}\n")
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn header_mistakes_are_found() {
    let told = [
        "question = ''\nresponse = 'iops'",
        "name = '../x'\nquestion = ''\nresponse = 'iops'",
        "name = 'x'\nquestion = ''\nresponse = 'speed'",
        "name = 'x'\nquestion = \"a\\u001b[2J\"\nresponse = 'iops'",
        "name = 'x'\nquestion = \"a\\u202Eb\"\nresponse = 'iops'",
    ]
    .map(|text| Experiment::from_toml(text, "mine.toml").expect_err(text))
    .map(|error| format!("{error}\n"));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn set_makes_factors_and_settings() {
    let mut experiment = Experiment::find("read-size").unwrap();
    experiment.apply_set("bs=4k,1M").unwrap();
    assert_eq!(experiment.factors[0].levels, ["4KiB", "1MiB"]);
    experiment.apply_set("numjobs=1,2").unwrap();
    assert_eq!(experiment.factors.len(), 2);
    experiment.apply_set(" bs = 64k").unwrap();
    assert_eq!(experiment.factors.len(), 1);
    assert_eq!(experiment.base().unwrap().trial.bs, 65_536);
    experiment.apply_set("backend=psync,io_uring").unwrap();
    assert_eq!(
        experiment.base().unwrap().trial.backend.to_string(),
        "psync"
    );
    assert!(experiment.settings.iter().all(|(s, _)| s.name != "backend"));
    experiment.apply_set("precision=0.01").unwrap();
    experiment.apply_set("budget=5min").unwrap();
    assert_eq!(experiment.design.precision, 0.01);
    assert_eq!(experiment.design.budget, Duration::from_secs(300));
}

#[test]
fn a_wrong_set_changes_nothing() {
    let before = Experiment::find("read-size").unwrap();
    let told = [
        "bs", "bs=", "bs=4k,,8k", "bs=4k,4096", "bsize=4k", "precision=2", "budget=1,2",
        "trials_max=99999",
    ]
    .map(|set| {
        let mut experiment = before.clone();
        let error = experiment.apply_set(set).expect_err(set);
        assert_eq!(experiment, before);
        format!("--set {set}\n{error}\n")
    });
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_skip_without_effect_is_refused() {
    for (sets, works) in [
        (&["skip=4k"][..], false),
        (&["skip=0,4k"], false),
        (&["skip=0"], true),
        (&["skip=4k", "pattern=strided"], true),
        (&["skip=4k,8k", "pattern=seq,strided"], true),
    ] {
        let mut experiment = Experiment::find("read-size").unwrap();
        for set in sets {
            experiment.apply_set(set).unwrap();
        }
        assert_eq!(experiment.base().is_ok(), works, "{sets:?}");
    }
}

#[test]
fn an_absurd_grid_is_refused() {
    let mut experiment = Experiment::find("read-stride").unwrap();
    let many: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    let error = experiment
        .apply_set(&format!("threads={}", many.join(",")))
        .unwrap_err();
    insta::assert_snapshot!(error, @r"
    --set threads=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,...: the plan has more than 10000 cells: 5 bs x 16 skip x 200 threads
      give the factors fewer levels, or ask several smaller questions
    ");
}

proptest! {
    #[test]
    fn definitions_round_trip(
        name in prop::sample::select(vec!["write-random", "pts-iops", "interference"]),
        sets in prop::collection::vec(
            prop::sample::select(vec![
                "bs=512,4k,3M", "bs=1M", "threads=1,2,1024", "pattern=zipf:1.25,rand", "batch=auto,50%,all",
                "sqpoll=true,false", "time=none", "time=1ns,90min", "bytes=7M", "compressible=100",
                "read_percent=0,33,100", "budget=1h30m", "precision=0.001", "trials_max=77", "skip=0",
                "trials_min=3", "refine=3", "settle=7s", "precondition=seq:2/128KiB,steady:round=cells",
                "warmup=none",
            ]),
            0..12,
        )
    ) {
        let mut experiment = Experiment::find(name).unwrap();
        for set in sets {
            // A setting that contradicts the experiment is refused and changes nothing.
            let _ = experiment.apply_set(set);
        }
        let text = experiment.to_toml().unwrap();
        prop_assert_eq!(Experiment::from_toml(&text, "again").unwrap(), experiment);
    }

    #[test]
    fn no_text_panics(text in "(?s).{0,200}", key in "[a-z_]{1,8}", value in ".{0,20}") {
        let _ = Experiment::from_toml(&text, "x");
        let _ = read(&format!("[factors]\n{key} = [{value}]\n"));
        let _ = Experiment::find("read-size").unwrap().apply_set(&format!("{key}={value}"));
    }
}

#[test]
fn a_bound_of_trials_moves_the_other_along() {
    let mut experiment = Experiment::find("read-size").unwrap();
    experiment.apply_set("trials_min=1000").unwrap();
    assert_eq!(experiment.design.trials_max, 1000);
    experiment.apply_set("trials_max=2").unwrap();
    assert_eq!(experiment.design.trials_min, 2);
    assert!(experiment.apply_set("trials_max=0").is_err());
    // Both of one user cannot hold.
    let both = |sets: [&str; 2]| {
        let changes = sets.map(|set| Change::parse(set).expect(set));
        let mut experiment = Experiment::find("read-size").unwrap();
        let applied = experiment.apply_all(&changes);
        applied.err().map(|error| error.to_string())
    };
    insta::assert_snapshot!(both(["trials_min=50", "trials_max=10"]).expect("a contradiction"), @r"
    trials_min=50 and trials_max=10
      trials_min is at most trials_max
    ");
    assert_eq!(both(["trials_max=50", "trials_min=10"]), None);
}

#[test]
fn refine_needs_sizes_and_excludes_competing_settings() {
    let refined =
        |rest: &str| read(&format!("{rest}[design]\nrefine = 4\n")).and_then(|e| cells(&e));
    assert_eq!(
        refined("[factors]\nbs = ['4k', '8k']\nthreads = [1, 2]\n")
            .unwrap()
            .len(),
        4
    );
    let told = [
        "",
        "[factors]\nthreads = [1, 2]\n",
        "[factors]\nbs = ['4k', '8k']\nregion = ['1M', '2M']\n",
    ]
    .map(|rest| {
        let error = refined(rest).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(error.remedy().is_some());
        error.message().to_owned()
    });
    insta::assert_snapshot!(told.join("\n"), @r"
    refine is set, but bs does not vary
    refine is set, but bs does not vary
    refine is set, but region varies besides bs
    ");
    let error =
        read("[factors]\nbs = ['4k', '8k']\n[design]\nrefine = 33\n").and_then(|e| cells(&e));
    insta::assert_snapshot!(error.unwrap_err().message(), @"refine is 33");
}

#[test]
fn added_levels_are_kept_and_checked() {
    let head = "[factors]\nbs = ['4k', '8k']\nthreads = [1, 2]\n[design]\nrefine = 1\n[refined]\nblock = 7\n";
    let experiment = read(&format!("{head}bs = ['6KiB']\n")).unwrap();
    let again = Experiment::from_toml(&experiment.to_toml().unwrap(), "again").unwrap();
    assert_eq!(again, experiment);
    let planned = cells(&again).unwrap();
    let levels: Vec<String> = planned.iter().map(|c| c.levels.join(" ")).collect();
    assert_eq!(
        levels,
        ["4KiB 1", "4KiB 2", "8KiB 1", "8KiB 2", "6KiB 1", "6KiB 2"]
    );
    assert_eq!(planned.iter().filter(|c| c.refined).count(), 2);
    for bad in [
        "bs = ['8KiB']", "bs = ['6k']", "bs = ['6KiB', '6KiB']", "bs = ['much']",
    ] {
        let wrong = read(&format!("{head}{bad}\n")).and_then(|e| cells(&e));
        assert_eq!(wrong.unwrap_err().kind(), Kind::Usage, "{bad}");
    }
}

#[test]
fn brackets_without_end_are_refused() {
    // Pairs of brackets without a key do not count towards the parser's limit.
    let pairs = "{}".repeat(100_000);
    for opening in ["{a=", "{a={b=", "["] {
        let text = format!("x = {{{pairs}b={}", opening.repeat(100_000));
        let error = read(&text).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @r"
            mine.toml: more than 100 brackets are open at once
              'iolab show read-size' prints a complete experiment to compare with
            ");
        }
    }
}

#[test]
fn a_budget_too_small_is_announced_with_needs() {
    let design = Design {
        trials_min: 6,
        budget: Duration::from_secs(3),
        ..Design::default()
    };
    let times = |least, longest| BlockTimes {
        probes: Duration::ZERO,
        least,
        longest,
    };
    let told = |cells: usize, ms: u64| {
        let block = Duration::from_millis(ms).saturating_mul(cells as u32);
        design.shortfall(cells, times(Duration::ZERO, block))
    };
    let is_enough = |cells: usize, least: Duration, block: Duration| {
        let budget = design.enough(times(least, block));
        let design = Design { budget, ..design };
        assert_eq!(
            design.shortfall(cells, times(least, block)),
            None,
            "{budget:?}"
        );
        // On the slowest storage each cell gets the fewest trials.
        assert_eq!(budget, block * (design.trials_min + design.warm_ups()));
        let short = Design {
            budget: budget.mul_f64(0.4),
            ..design
        };
        assert_ne!(
            short.shortfall(cells, times(least, block)),
            None,
            "{budget:?}"
        );
    };
    for (cells, least, block) in [(9900, 0, 4950), (1, 0, 3600), (112, 112, 112), (5, 2, 60)] {
        let [least, block] = [least, block].map(Duration::from_secs);
        is_enough(cells, least, block);
    }
    let far = told(9900, 500).expect("far too much");
    insta::assert_snapshot!(far);
    let one = design.shortfall(1, times(Duration::ZERO, Duration::from_secs(3600)));
    insta::assert_snapshot!(one.expect("too much"), @"1 cell takes up to 2.0 h, more than the budget (3 s): each gets a warm-up and at least one measured trial; choose a shorter --time or a larger --budget");
    insta::assert_snapshot!(told(2, 500).expect("too much"), @"2 cells in 3 s may give only n = 2, and an interval needs 6 trials of each, which take up to 7 s: choose fewer levels (--set NAME=VALUE,...), a shorter --time or a larger --budget");
    assert_eq!(told(2, 400), None);
    let asked = Design {
        trials_min: 200,
        ..design
    };
    let asked = asked.shortfall(1, times(Duration::from_millis(100), Duration::ZERO));
    insta::assert_snapshot!(asked.expect("far too little"), @"1 cell in 3 s gives n = 29, and trials_min asks for 200 trials of each: choose a larger --budget: this experiment alone needs 21 s");
    // A block that begins within the budget is completed; the one that completes the fewest trials may begin a little later.
    for (ms, trials_min, gives) in [
        (440, 9, Some("gives n = 6,")),
        (480, 6, None),
        (510, 6, None),
        (580, 6, Some("gives n = 5,")),
        (700, 6, Some("gives n = 4,")),
    ] {
        let design = Design {
            trials_min,
            ..design
        };
        let block = Duration::from_millis(ms);
        let told = design.shortfall(1, times(block, block));
        let is_told = |gives| told.as_ref().is_some_and(|text| text.contains(gives));
        assert_eq!(
            gives.is_some_and(is_told),
            told.is_some(),
            "{ms} ms: {told:?}"
        );
        assert_eq!(gives.is_some(), told.is_some(), "{ms} ms: {told:?}");
    }
    let least = Duration::from_secs(1);
    let sure = design.shortfall(112, times(least * 112, least * 112));
    let sure = sure.expect("far too little");
    insta::assert_snapshot!(sure, @"112 cells in 3 s give n = 1 and take up to 4 min, and an interval needs 6 trials of each: choose fewer levels (--set NAME=VALUE,...) or a larger --budget: this experiment alone needs 14 min");
    // Seven blocks of 400 ms fit into the budget, but not together with probes of 1.2 s.
    let block = Duration::from_millis(400);
    assert_eq!(design.shortfall(1, times(block, block)), None);
    let probed = BlockTimes {
        probes: Duration::from_millis(1200),
        ..times(block, block)
    };
    let probed = design.shortfall(1, probed).expect("too little");
    insta::assert_snapshot!(probed, @"1 cell in 3 s gives n = 4, and an interval needs 6 trials of each: choose a larger --budget: this experiment alone needs 4 s");
}

/// The argument of each `--set` in a text.
fn sets(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("--set ").skip(1);
    behind.map(|rest| rest.split([' ', ';', '(']).next().unwrap_or(rest))
}

#[test]
fn answers_about_other_tools_options_are_valid() {
    for foreign in FOREIGN {
        assert!(
            !foreign
                .names()
                .any(|name| DesignEntry::find(name).is_some())
        );
        let Some(Answer::Way(text) | Answer::None(text)) = foreign.answer else {
            continue;
        };
        for set in sets(text) {
            let set = set.trim_end_matches([',', ':', '.']);
            let (name, _) = set.split_once('=').unwrap_or((set, ""));
            let known = Setting::find(name).is_some() || DesignEntry::find(name).is_some();
            assert!(known, "{name} in: {text}");
            if set.contains('=') && !set.contains(['"', 'N']) {
                Change::parse(set).expect(text);
            }
        }
    }
}

#[test]
fn groups_keep_their_order_when_the_region_changes() {
    let mut experiment = Experiment::find("interference").expect("built in");
    experiment.apply_set("region=8M").expect("valid");
    let trials = |experiment: &Experiment| -> Vec<(u64, u64)> {
        let cell = &cells(experiment).expect("valid")[1].spec;
        let specs = cell.trials().into_iter();
        specs.map(|spec| (spec.offset, spec.region)).collect()
    };
    assert_eq!(trials(&experiment), [(0, 8 << 20), (8 << 20, 8 << 20)]);
    experiment.apply_set("writer.offset=1G").expect("valid");
    experiment.apply_set("region=16M").expect("valid");
    let moved = trials(&experiment);
    assert_eq!(
        moved[1],
        (2 << 30, 16 << 20),
        "1 GiB is 128 regions of 8 MiB"
    );
    experiment.apply_set("writer.offset=20M").expect("valid");
    experiment.apply_set("region=4M").expect("valid");
    assert_eq!(trials(&experiment)[1].0, 20 << 20, "no number of regions");
}

#[test]
fn decisions_of_rounds_go_with_them() {
    let mut experiment = read("[settings]\nbs = '4k'\n").unwrap();
    let before = experiment.design;
    experiment
        .apply_set("precondition=steady:round=cells,window=4,rounds=9")
        .unwrap();
    let design = experiment.design;
    assert_eq!((design.trials_min, design.trials_max), (4, 9));
    assert_eq!(design.warmup, WarmUp::None);
    experiment.apply_set("precondition=none").unwrap();
    assert_eq!(experiment.design, before);
}

#[test]
fn idle_time_beyond_the_budget_is_refused() {
    let with = |idle: &str| {
        let changes = ["budget=0.3s", idle].map(|set| Change::parse(set).expect("valid"));
        let mut experiment = Experiment::find("read-size").expect("built in");
        experiment.apply_all(&changes)
    };
    assert!(with("idle=0.1s").is_ok());
    let told = with("idle=1h").expect_err("no time is left").to_string();
    insta::assert_snapshot!(told);
}
