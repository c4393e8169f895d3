//! Rounds that are repeated until they are steady: of all cells, and of writes before the first trial.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_record::{PreparationKind, RunRecord, Sample};

use super::*;

const ROUNDS: &str = "precondition=steady:round=cells";

/// The rate halves in each round of three cells, then stays.
fn settling(_: &TrialSpec, number: u64) -> u64 {
    1_000_000 << (number / 3).min(3)
}

/// The rate changes from round to round.
fn restless(_: &TrialSpec, number: u64) -> u64 {
    1_000_000 << (number / 3 % 2)
}

fn measured(record: &RunRecord) -> Vec<&Sample> {
    let samples = record.samples.iter();
    samples.filter(|sample| !sample.warmup).collect()
}

fn ends(record: &RunRecord) -> Vec<Option<EndedBy>> {
    let mut ends: Vec<_> = record.cells.iter().map(|cell| cell.ended_by).collect();
    ends.dedup();
    ends
}

/// Keeps the snapshot before each trial, and the end.
#[derive(Default)]
struct Watch {
    before: Vec<RunSnapshot>,
    within: Vec<Option<WithinGoal>>,
}

impl Observer for Watch {
    fn trial_starts(&mut self, snapshot: &dyn Fn() -> RunSnapshot) {
        self.before.push(snapshot());
    }

    fn run_ends(&mut self, end: &RunEnd) {
        self.within.push(end.within);
    }
}

/// Whether its rounds are of cells, how many there are, and whether they are steady.
fn judged(record: &RunRecord) -> (bool, usize, bool) {
    let analysis: Analysis = analyse(record);
    let steady = analysis.steady.expect("rounds");
    (steady.is_of_cells(), steady.rounds, steady.is_reached())
}

/// A watcher sees the round and the trials of its window.
#[test]
fn rounds_end_when_steady_and_measure_the_last() {
    let bench = bench(&[ROUNDS]);
    let mut watch = Watch::default();
    bench
        .watched(&mut mock(&settling), &mut watch)
        .expect("done");
    let seen: Vec<(RepetitionGoal, Vec<usize>)> = watch
        .before
        .iter()
        .step_by(3)
        .map(|run| (run.goal, run.cells.iter().map(|cell| cell.n).collect()))
        .collect();
    let expected = (1..=8).map(|round| {
        let goal = RepetitionGoal::SteadyRounds { round, most: 25 };
        (goal, vec![(round - 1).min(5); 3])
    });
    assert_eq!(seen, expected.collect::<Vec<_>>());
    assert_eq!(watch.within, [None]);
    let record = bench.record();
    assert_eq!(ends(&record), [Some(EndedBy::Steady)]);
    let visits = record.samples.iter().map(|one| (one.block, one.cell));
    let in_order = (1..=8).flat_map(|round| [0, 1, 2].map(|cell| (round, cell)));
    assert!(visits.eq(in_order), "rounds 4 to 8 are alike");
    assert_eq!(measured(&record).len(), 15);
    assert!(measured(&record).iter().all(|sample| sample.block >= 4));
    assert_eq!(judged(&record), (true, 8, true));
}

#[test]
fn unsteady_rounds_end_by_number_or_budget() {
    let record = recorded(&[ROUNDS], &restless);
    assert_eq!(ends(&record), [Some(EndedBy::TrialsMax)]);
    assert_eq!(record.samples.len(), 75);
    assert!(measured(&record).iter().all(|sample| sample.block >= 21));
    assert_eq!(judged(&record), (true, 25, false));
    let warned = |event: &&iolab_record::Event| event.kind == EventKind::Warning;
    assert_eq!(record.events.iter().filter(warned).count(), 1);

    let record = recorded(&[ROUNDS, "budget=1ns"], &restless);
    assert_eq!(ends(&record), [Some(EndedBy::Budget)]);
    assert_eq!(measured(&record).len(), 3, "a round is granted");
    assert_eq!(judged(&record), (true, 1, false));
}

#[test]
fn rounds_end_when_the_range_was_written_enough() {
    let ended = |sets: &[&str]| {
        let record = recorded(sets, &restless);
        let region = record.cells[0].trial().region as f64;
        let written = |last: u32| {
            let own = record.samples.iter().filter(|one| one.block <= last);
            let bytes: u64 = own.map(|one| one.operations.write.bytes).sum();
            bytes as f64 / region
        };
        let rounds = judged(&record).1 as u32;
        (ends(&record), rounds, written(rounds - 1), written(rounds))
    };
    let writing = "precondition=steady:round=cells,fills=2";
    let (by, _, before, after) = ended(&[writing, "read_percent=0", "region=512MiB"]);
    assert_eq!(by, [Some(EndedBy::Fills)]);
    assert!(before < 2.0 && after >= 2.0, "{before} {after}");
    // Rounds that only read never end this way.
    let (by, rounds, ..) = ended(&[writing]);
    assert_eq!((by, rounds), (vec![Some(EndedBy::TrialsMax)], 25));
}

/// Equal rounds on storage that was never written show new storage: the window that counts begins after the region was
/// written once.
#[test]
fn rounds_with_fills_wait_for_a_written_region() {
    let ended = |sets: &[&str]| {
        let record = recorded(sets, &|_, _| 1_000_000);
        let region = record.cells[0].trial().region as f64;
        let before_window = |window: u32| {
            let first = (judged(&record).1 as u32 + 1).saturating_sub(window);
            let own = record.samples.iter().filter(|one| one.block < first);
            own.map(|one| one.operations.write.bytes).sum::<u64>() as f64 / region
        };
        (ends(&record), before_window(5), before_window(6))
    };
    let writing = ["read_percent=0", "region=512MiB"];
    let limited = "precondition=steady:round=cells,fills=4";
    let (by, before, without_last) = ended(&[&[limited][..], &writing].concat());
    assert_eq!(by, [Some(EndedBy::Steady)]);
    assert!(
        without_last < 1.0 && before >= 1.0,
        "{without_last} {before}"
    );
    // Without such a limit five alike rounds end it.
    let (by, before, _) = ended(&[&[ROUNDS][..], &writing].concat());
    assert_eq!((by, before), (vec![Some(EndedBy::Steady)], 0.0));
}

#[test]
fn only_tracked_cells_have_to_be_steady() {
    // One cell never is.
    let elapsed = |spec: &TrialSpec, number: u64| match spec.bs {
        4096 => restless(spec, number),
        _ => 1_000_000,
    };
    let rounds = |track: &str| {
        let mut bench = bench(&[ROUNDS]);
        let text = bench.experiment.to_toml().expect("TOML");
        let text = format!("{text}\n[[track]]\nbs = \"{track}\"\n");
        bench.experiment = Experiment::from_toml(&text, "tracked").expect("valid");
        bench.start(&mut mock(&elapsed)).expect("done");
        judged(&bench.record())
    };
    assert_eq!(rounds("64KiB"), (true, 5, true));
    assert_eq!(rounds("4KiB"), (true, 25, false));
    // All cells are tracked if the plan lacks the named one.
    assert_eq!(rounds("2MiB"), (true, 25, false));
}

#[test]
fn a_resumed_run_completes_and_judges_its_rounds() {
    // Trials until the interrupt, and the rounds that a window after them needs; the level stays from round 4 on.
    for (cut, rounds) in [(1, 8), (2, 8), (3, 8), (10, 9), (12, 9), (22, 13)] {
        let cut_off = bench(&[ROUNDS]);
        let mut first = cut_at(cut, Cut::Interrupt, &settling);
        cut_off.start(&mut first).expect_err("interrupted");
        // The clock of the rates goes on where it was.
        let later = |spec: &TrialSpec, number: u64| settling(spec, number + cut);
        cut_off.take_up(&mut mock(&later)).expect("done");
        let record = cut_off.record();
        assert_eq!(judged(&record), (true, rounds, true), "{cut}");
        assert_eq!(ends(&record), [Some(EndedBy::Steady)]);
        let done = record.samples.iter().filter(|sample| sample.ok);
        let visits: BTreeSet<(u32, i64)> = done.map(|s| (s.block, s.cell)).collect();
        assert_eq!(visits.len(), rounds * 3, "each cell once in each round");
    }
}

#[test]
fn rounds_of_writes_are_stored_judged_and_told() {
    // The rate halves with each round, then stays; or it never stays.
    let of_writes = |reached: bool| {
        let elapsed = move |spec: &TrialSpec, number: u64| match spec.writes() {
            true if reached => 1_000_000 << number.min(6),
            true => 1_000_000 << (number % 2 * 3),
            false => 100_000_000,
        };
        let rounds = ["precondition=steady:round=2s,window=3,rounds=12"];
        let record = recorded(&rounds, &elapsed);
        let mut events = record.events.iter().map(|event| event.message.clone());
        let last = events.rfind(|text| text.starts_with("precondition: "));
        (record, last.expect("told"))
    };
    let (record, reached) = of_writes(true);
    let kinds = record.preparation.iter();
    let kinds: Vec<_> = kinds.map(|step| (step.kind, step.number)).collect();
    let first = [PreparationKind::Sequential, PreparationKind::Round].map(|kind| (kind, 1));
    assert_eq!(kinds[..2], first);
    // The first pass and rounds 1 to 5 halve the rate; the window is rounds 6 to 8.
    assert_eq!(judged(&record), (false, 8, true));
    assert!(record.samples.iter().any(|sample| !sample.warmup));
    let (record, not) = of_writes(false);
    assert_eq!(judged(&record), (false, 12, false));
    insta::assert_snapshot!([reached, not].join("\n"), @"
    precondition: steady after 8 rounds of random writes, the last 3 lie within 0.0 % (at most 20 % allowed) with a slope of 0.0 % (at most 10 %); IOPS 50000, 25000, 12500, 6250, 3125, 1562, 1562, 1562
    precondition: NOT steady after 12 rounds of random writes, the last 3 lie within 124 % (at most 20 % allowed) with a slope of 0.0 % (at most 10 %); IOPS 12500, 100000, 12500, 100000, 12500, 100000, 12500, 100000, 12500, 100000, 12500, 100000
    ");
}

#[test]
fn settings_decided_by_rounds_are_refused() {
    for sets in [
        &[ROUNDS, "trials_max=30"][..],
        &[ROUNDS, "warmup=first"],
        &[ROUNDS, "trials_min=7"],
        &[ROUNDS, "refine=2"],
    ] {
        let mut experiment = Experiment::find("read-size").expect("built in");
        let sets: Result<()> = sets.iter().try_for_each(|set| experiment.apply_set(set));
        let error = sets.expect_err("contradicts");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
    }
}

/// The steps of a precondition that a run keeps, with what came to an end, and whether the run goes on.
#[test]
fn preparation_keeps_each_step_with_its_end() {
    use PreparationKind::{Purge, Sequential, Trim};
    type Steps = &'static [(PreparationKind, bool)];
    let none = Err("is a partition");
    let interrupt = Some((0, Cut::Interrupt));
    let failure = Some((0, Cut::Fail(5)));
    let refusal = Some((0, Cut::Fail(95)));
    let purged = Ok((1 << 40, Duration::from_secs(3)));
    const NOTHING: Steps = &[(Purge, false), (Trim, false)];
    let rows: [(&str, _, _, bool, Steps); 8] = [
        ("seq:2", none, interrupt, false, &[(Sequential, false)]),
        ("seq:2", none, failure, false, &[(Sequential, false)]),
        ("trim", none, failure, false, &[(Trim, false)]),
        // The run continues if trims are refused.
        ("trim", none, refusal, true, &[(Trim, false)]),
        ("purge", purged, None, true, &[(Purge, true)]),
        ("purge", none, None, true, &[(Purge, false), (Trim, true)]),
        ("purge", none, interrupt, false, NOTHING),
        ("purge", none, failure, false, NOTHING),
    ];
    for (precondition, purge, cut, goes_on, expected) in rows {
        let bench = bench(&[&format!("precondition={precondition}")]);
        let mut executor = Mock {
            cut,
            purge,
            ..mock(&settling)
        };
        let done = bench.start(&mut executor);
        let record = bench.record();
        let steps = &record.preparation;
        let kinds: Vec<_> = steps.iter().map(|step| (step.kind, step.ok)).collect();
        let context = format!("{precondition} {goes_on} {steps:?}");
        assert_eq!((done.is_ok(), &kinds[..]), (goes_on, expected), "{context}");
        let bytes = steps[0].bytes;
        if purge.is_ok() {
            let told = record.events.iter().map(|event| event.message.as_str());
            insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r"
            precondition: purge of /dev/disk (1.10 TB, a disk) begins; it cannot be interrupted once it has begun
            precondition: purged all 1 TiB of the device
            ");
        }
        match precondition {
            "purge" => assert_eq!(bytes, purge.map_or(0, |(bytes, _)| bytes), "{context}"),
            _ => assert!(bytes > 0, "{context}"),
        }
        let mut events = record.events.iter();
        let warning = events.find(|event| event.kind == EventKind::Warning);
        let instead = match expected {
            [(Purge, false), (Trim, true)] => "1 GiB trimmed instead of",
            [(Purge, false), ..] => "not",
            _ => continue,
        };
        let told = format!("precondition: {instead} purged, because the target is a partition");
        assert_eq!(warning.map(|one| &one.message), Some(&told), "{context}");
    }
}

#[test]
fn an_interrupt_before_a_purge_leaves_the_device() {
    let bench = bench(&["precondition=purge"]);
    let mut executor = Mock {
        purge: Ok((1 << 40, Duration::from_secs(3))),
        ..mock(&settling)
    };
    let stop = StopFlags::at_once(Arc::new(AtomicBool::new(true)));
    let stopped = bench
        .session(&mut Silent)
        .expect("a run file")
        .carry_out(&mut executor, &stop);
    assert_eq!(stopped.expect_err("interrupted").kind(), Kind::Interrupted);
    let record = bench.record();
    assert_eq!(record.preparation, []);
    assert!(record.events.is_empty(), "{:?}", record.events);
}
