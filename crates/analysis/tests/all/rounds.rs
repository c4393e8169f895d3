//! Conditions of the claim that rounds are steady: each run is steady but for one thing.

use std::time::Duration;

use iolab_analysis::analysis::{DoubtKind, RoundsEnd, SteadyAnalysis, analyse};
use iolab_analysis::claim::{Claim, Standing, claims, kind};
use iolab_plan::precondition::{Round, SteadyRounds};
use iolab_record::{
    EndedBy, Event, EventKind, FurtherTarget, PreparationKind, PreparationStep, RunRecord,
};
use iolab_synthetic::{At, Disturbance, Disturber, Noise, OverTime, Scenario};
use iolab_workload::response::Response;

const OF_CELLS: &str = "precondition=steady:round=cells";

/// Rounds of all cells, of which the last five are alike.
fn of_cells(experiment: &str, sets: &[&str]) -> Scenario {
    Scenario {
        noise: Noise::Lognormal { sigma: 0.01 },
        trials: 5,
        ..Scenario::of(experiment, &[&[OF_CELLS], sets].concat())
    }
}

/// The run, ended by its rounds.
fn run(scenario: &Scenario) -> RunRecord {
    let (mut record, _) = scenario.run(1);
    for cell in &mut record.cells {
        cell.ended_by = Some(EndedBy::Steady);
    }
    record
}

fn rounds(record: &RunRecord) -> SteadyAnalysis {
    analyse(record).steady.expect("rounds")
}

/// The end of the rounds, and the doubts with the number or share of each.
fn state(record: &RunRecord) -> (RoundsEnd, Vec<(DoubtKind, f64)>) {
    let all = claims(&[&analyse(record)]);
    let is_of_rounds = |claim: &&Claim| claim.kind.name.contains("rounds");
    let claim = all.iter().find(is_of_rounds).expect("rounds");
    let end = rounds(record).end;
    let doubts = claim.of(Standing::Doubtful);
    let doubts = doubts.map(|point| (point.doubts[0].what, point.value));
    (end, doubts.collect())
}

/// Steady rounds without doubts.
const STEADY: (RoundsEnd, Vec<(DoubtKind, f64)>) = (RoundsEnd::Steady, Vec::new());

/// Steady rounds with one doubt.
fn but(what: DoubtKind, value: f64) -> (RoundsEnd, Vec<(DoubtKind, f64)>) {
    (RoundsEnd::Steady, vec![(what, value)])
}

#[test]
fn disturbance_of_tracked_cells_denies_steady_state() {
    let reads = of_cells("read-random", &["bs=4k,64k"]);
    assert_eq!(state(&run(&reads)), STEADY);
    let track = |record: &mut RunRecord| {
        record.experiment.toml += "\n[[track]]\nbs = \"4KiB\"\n";
    };
    let disturbed = |at: At| {
        let mut record = run(&Scenario {
            disturbances: vec![Disturbance::of_every_trial(Disturber::Cpu, at, 1.0)],
            ..reads.clone()
        });
        let all = state(&record);
        track(&mut record);
        (all, state(&record))
    };
    let alike = |cells| but(DoubtKind::CpuContended, cells);
    assert_eq!(disturbed(At::all()), (alike(2.0), alike(1.0)));
    assert_eq!(disturbed(At::levels("bs=64k")), (alike(1.0), STEADY));

    let mut slept = run(&reads);
    for sample in slept.samples.iter_mut().filter(|sample| sample.cell == 1) {
        sample.counters.pressure.suspended_ns = Some(3_000_000_000);
    }
    assert_eq!(state(&slept), but(DoubtKind::Suspended, 1.0));
    track(&mut slept);
    assert_eq!(state(&slept), STEADY);

    let mut changing = run(&Scenario {
        over_time: Some(OverTime {
            sigma: 0.02,
            at: At::levels("bs=64k"),
            after: 0.5,
            ratio: 0.3,
            slope: 0.0,
            once_in: None,
        }),
        ..of_cells("read-random", &["bs=4k,64k", "time=4s", "bytes=none"])
    });
    assert_eq!(state(&changing), but(DoubtKind::LevelInTrials, 1.0));
    track(&mut changing);
    assert_eq!(state(&changing), STEADY);
}

#[test]
fn standard_needs_its_limits_and_cells() {
    let by_standard = |sets: &[&str], tracked: &str| {
        let scenario = Scenario {
            trials: 6,
            ..Scenario::of("pts-lat", sets)
        };
        let mut record = run(&scenario);
        let toml = &mut record.experiment.toml;
        let own = toml.find("[[track]]").expect("what is tracked");
        toml.truncate(own);
        *toml += &format!("[[track]]\nread_percent = 0\nbs = \"{tracked}\"\n");
        let followed = analyse(&record).standard;
        followed.is_some_and(|test| test.keeps_limits())
    };
    let own = "4KiB";
    let sets = &["bs=8k,4k", "region=64MiB"][..];
    assert!(by_standard(sets, own));
    assert!(!by_standard(sets, "8KiB"));
    let wide =
        "precondition=trim+seq:2/128KiB+steady:round=cells,window=6,range=90%,slope=10%,rounds=25";
    assert!(!by_standard(&[sets, &[wide]].concat(), own));
    let all = claims(&[&analyse(&run(&of_cells("read-random", &["bs=4k,64k"])))]);
    let is_by_others = |claim: &Claim| claim.kind == &kind::STEADY_ROUNDS[1];
    assert!(all.iter().any(is_by_others));
}

/// A run of random writes whose only cell makes 24,414 requests per second, after these rounds.
fn after_writes(rounds: &[(Option<&str>, f64)]) -> RunRecord {
    let mut scenario = Scenario::of("write-random", &["bs=4k", "sync=none"]);
    scenario.experiment.design.precondition.steady = Some(SteadyRounds {
        round: Round::Writes(Duration::from_secs(60)),
        ..SteadyRounds::default()
    });
    let (mut record, _) = scenario.run(1);
    for (target, iops) in rounds {
        add_round(&mut record, *target, *iops);
    }
    record
}

fn add_round(record: &mut RunRecord, target: Option<&str>, iops: f64) {
    let own = |step: &&PreparationStep| step.target.as_deref() == target;
    let before = record.preparation.iter().filter(own).count();
    record.preparation.push(PreparationStep {
        at_utc: record.run.started_utc.clone(),
        kind: PreparationKind::Round,
        number: before as u32 + 1,
        ok: true,
        bs: Some(4096),
        target: target.map(str::to_owned),
        requests: (iops * 60.0) as u64,
        bytes: (iops * 60.0) as u64 * 4096,
        elapsed_ns: 60_000_000_000,
    });
}

#[test]
fn only_complete_rounds_of_last_session_count() {
    let steady = [(None, 1e5); 5];
    assert_eq!(state(&after_writes(&steady)), STEADY);
    let mut resumed = after_writes(&steady[..3]);
    for number in 1..=5 {
        add_round(&mut resumed, None, 2e5);
        resumed.preparation.last_mut().expect("a round").number = number;
    }
    assert_eq!(rounds(&resumed).rounds, 5);
    let mut cut = after_writes(&steady[..4]);
    add_round(&mut cut, None, 1e5);
    cut.preparation.last_mut().expect("a round").ok = false;
    assert_eq!(
        (state(&cut), rounds(&cut).rounds),
        ((RoundsEnd::TooFew, Vec::new()), 4)
    );
    // One of two targets keeps changing.
    let of_two = |n: u32| [(Some("/a"), 1e5), (Some("/b"), 1e5 * f64::from(n))];
    let two: Vec<_> = (1..=5).flat_map(of_two).collect();
    assert_eq!(
        state(&after_writes(&two)),
        (RoundsEnd::NotSteady, Vec::new())
    );
}

#[test]
fn window_needs_values_of_all_live_cells() {
    let reads = of_cells("read-random", &["bs=4k,64k"]);
    let mut closed = run(&reads);
    closed.samples.retain(|sample| sample.cell == 0);
    closed.events.push(Event {
        at_utc: closed.run.started_utc.clone(),
        kind: EventKind::Gap,
        cell: Some(1),
        message: "it cannot do that".to_owned(),
    });
    closed.cells[1].ended_by = None;
    assert_eq!(state(&closed), STEADY);
    assert_eq!(rounds(&closed).rounds, 6);
    let mut one = run(&reads);
    one.cells[1].ended_by = Some(EndedBy::TrialsMax);
    assert_eq!(state(&one), (RoundsEnd::NotSteady, Vec::new()));
    let mut tails = reads.clone();
    tails.experiment.response = Response::P99;
    let mut without = run(&tails);
    for sample in &mut without.samples {
        sample.operations.read.latency = None;
    }
    for cell in &mut without.cells {
        cell.ended_by = Some(EndedBy::TrialsMax);
    }
    assert_eq!(state(&without), (RoundsEnd::LacksValues, Vec::new()));
    assert_eq!(rounds(&without).worst(), None);
}

#[test]
fn values_before_a_preparation_are_in_no_window() {
    let mut record = run(&of_cells("read-random", &["bs=4k,64k"]));
    for cell in &mut record.cells {
        cell.ended_by = Some(EndedBy::TrialsMax);
    }
    let mut later = record.samples.iter().filter(|sample| sample.block == 3);
    record.events.push(Event {
        at_utc: later.next().expect("a round").started_utc.clone(),
        kind: EventKind::Resume,
        ..Event::default()
    });
    let found = rounds(&record);
    assert_eq!(
        (found.end, found.rounds, found.judged),
        (RoundsEnd::TooFew, 6, 3)
    );
    assert_eq!(found.worst(), None);
}

/// Bytes written before the window count for their own target, since its last preparation, relative to what the
/// cell can reach.
#[test]
fn writes_of_others_and_older_preparations_are_excluded() {
    let writes = of_cells("write-random", &["bs=4k,64k", "sync=none"]);
    let of_round = |record: &RunRecord, round: u32| {
        let own = record.samples.iter().filter(move |one| one.block == round);
        own.map(|one| one.operations.write.bytes).sum::<u64>()
    };
    let is_doubted = |record: &RunRecord| match state(record) {
        (RoundsEnd::Steady, doubts) => {
            let mut doubts = doubts.into_iter();
            doubts.any(|(what, share)| what == DoubtKind::NotWrittenOver && share < 0.9)
        }
        _ => false,
    };
    let whole = |record: &RunRecord, target: Option<&str>, at_utc: &str| PreparationStep {
        at_utc: at_utc.to_owned(),
        kind: PreparationKind::Sequential,
        ok: true,
        target: target.map(str::to_owned),
        bytes: record
            .cells
            .iter()
            .map(|cell| cell.trial().region)
            .max()
            .expect("cells"),
        ..PreparationStep::default()
    };
    // The round before the window writes a third of the region, all of them more than once.
    let mut record = run(&writes);
    let region = 3 * of_round(&record, 0);
    for cell in &mut record.cells {
        cell.spec.trial.region = region;
    }
    assert!(is_doubted(&record), "{:?}", state(&record));
    let started = record.run.started_utc.clone();
    let mut prepared = record.clone();
    prepared.preparation.push(whole(&record, None, &started));
    assert_eq!(state(&prepared), STEADY);
    // The targets are prepared anew before the first round of a later session.
    prepared.events.push(Event {
        at_utc: record.samples[0].started_utc.clone(),
        kind: EventKind::Resume,
        ..Event::default()
    });
    prepared.preparation[0].at_utc = "2026-01-01T00:00:00Z".to_owned();
    assert!(is_doubted(&prepared), "{:?}", state(&prepared));
    let mut later = record.samples.iter().filter(|sample| sample.block == 1);
    prepared.events[0].at_utc = later.next().expect("a round").started_utc.clone();
    assert_eq!(state(&prepared), but(DoubtKind::NotWrittenOver, 0.0));

    let mut two = record;
    two.run.target = "/a".to_owned();
    two.further_targets = vec![FurtherTarget {
        id: 1,
        target: "/b".to_owned(),
        ..FurtherTarget::default()
    }];
    for (cell, target) in two.cells.iter_mut().zip(["/a", "/b"]) {
        cell.spec.target = target.parse().ok();
    }
    two.preparation.push(whole(&two, Some("/b"), &started));
    assert!(is_doubted(&two), "{:?}", state(&two));
    // A cell of the other target writes much before the window.
    two.preparation.clear();
    for sample in two
        .samples
        .iter_mut()
        .filter(|one| one.cell == 1 && one.block == 0)
    {
        sample.operations.write.bytes = 2 * region;
    }
    assert!(is_doubted(&two), "{:?}", state(&two));
}
