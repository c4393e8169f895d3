//! Conditions of the claim that rounds are steady: each run is steady but for one thing.

use std::time::Duration;

use iolab_analysis::analysis::{RoundsEnd, analyse};
use iolab_analysis::claim::{Payload, Rounds, RoundsDoubts, claims};
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

fn rounds(record: &RunRecord) -> Rounds {
    let all = claims(&[&analyse(record)]);
    let mut found = all.into_iter().filter_map(|claim| match claim.payload {
        Some(Payload::Rounds(rounds)) => Some(rounds),
        _ => None,
    });
    found.next().expect("rounds")
}

fn state(record: &RunRecord) -> (RoundsEnd, RoundsDoubts) {
    let found = rounds(record);
    (found.steady.end, found.doubts)
}

const NONE: RoundsDoubts = RoundsDoubts {
    written: None,
    changing: 0,
    cached: 0,
    disturbed: 0,
    suspended: 0,
};

#[test]
fn disturbance_of_tracked_cells_denies_steady_state() {
    let reads = of_cells("read-random", &["bs=4k,64k"]);
    assert_eq!(state(&run(&reads)), (RoundsEnd::Steady, NONE));
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
    let alike = |disturbed| (RoundsEnd::Steady, RoundsDoubts { disturbed, ..NONE });
    assert_eq!(disturbed(At::all()), (alike(2), alike(1)));
    assert_eq!(
        disturbed(At::levels("bs=64k")),
        (alike(1), (RoundsEnd::Steady, NONE))
    );

    let mut slept = run(&reads);
    for sample in slept.samples.iter_mut().filter(|sample| sample.cell == 1) {
        sample.counters.pressure.suspended_ns = Some(3_000_000_000);
    }
    let doubts = RoundsDoubts {
        suspended: 1,
        ..NONE
    };
    assert_eq!(state(&slept), (RoundsEnd::Steady, doubts));
    track(&mut slept);
    assert_eq!(state(&slept), (RoundsEnd::Steady, NONE));

    let mut changing = run(&Scenario {
        over_time: Some(OverTime {
            sigma: 0.02,
            at: At::levels("bs=64k"),
            after: 0.5,
            ratio: 0.3,
            once_in: None,
        }),
        ..of_cells("read-random", &["bs=4k,64k", "time=4s", "bytes=none"])
    });
    let doubts = RoundsDoubts {
        changing: 1,
        ..NONE
    };
    assert_eq!(state(&changing), (RoundsEnd::Steady, doubts));
    track(&mut changing);
    assert_eq!(state(&changing), (RoundsEnd::Steady, NONE));
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
        rounds(&record).is_by_standard
    };
    let own = "4KiB";
    let sets = &["bs=8k,4k", "region=64MiB"][..];
    assert!(by_standard(sets, own));
    assert!(!by_standard(sets, "8KiB"));
    let wide =
        "precondition=trim+seq:2/128KiB+steady:round=cells,window=6,range=90%,slope=10%,rounds=25";
    assert!(!by_standard(&[sets, &[wide]].concat(), own));
    assert!(!rounds(&run(&of_cells("read-random", &["bs=4k,64k"]))).is_by_standard);
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
    assert_eq!(state(&after_writes(&steady)), (RoundsEnd::Steady, NONE));
    let mut resumed = after_writes(&steady[..3]);
    for number in 1..=5 {
        add_round(&mut resumed, None, 2e5);
        resumed.preparation.last_mut().expect("a round").number = number;
    }
    assert_eq!(rounds(&resumed).steady.rounds, 5);
    let mut cut = after_writes(&steady[..4]);
    add_round(&mut cut, None, 1e5);
    cut.preparation.last_mut().expect("a round").ok = false;
    assert_eq!(
        (state(&cut), rounds(&cut).steady.rounds),
        ((RoundsEnd::TooFew, NONE), 4)
    );
    // One of two targets keeps changing.
    let of_two = |n: u32| [(Some("/a"), 1e5), (Some("/b"), 1e5 * f64::from(n))];
    let two: Vec<_> = (1..=5).flat_map(of_two).collect();
    assert_eq!(state(&after_writes(&two)), (RoundsEnd::NotSteady, NONE));
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
    assert_eq!(state(&closed), (RoundsEnd::Steady, NONE));
    assert_eq!(rounds(&closed).steady.rounds, 6);
    let mut one = run(&reads);
    one.cells[1].ended_by = Some(EndedBy::TrialsMax);
    assert_eq!(state(&one), (RoundsEnd::NotSteady, NONE));
    let mut tails = reads.clone();
    tails.experiment.response = Response::P99;
    let mut without = run(&tails);
    for sample in &mut without.samples {
        sample.operations.read.latency = None;
    }
    for cell in &mut without.cells {
        cell.ended_by = Some(EndedBy::TrialsMax);
    }
    assert_eq!(state(&without), (RoundsEnd::LacksValues, NONE));
    assert_eq!(rounds(&without).steady.worst(), None);
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
        (found.steady.end, found.steady.rounds, found.steady.judged),
        (RoundsEnd::TooFew, 6, 3)
    );
    assert_eq!(found.steady.worst(), None);
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
        (RoundsEnd::Steady, doubts) => doubts.written.is_some_and(|share| share < 0.9),
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
    assert_eq!(state(&prepared), (RoundsEnd::Steady, NONE));
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
    let doubts = RoundsDoubts {
        written: Some(0.0),
        ..NONE
    };
    assert_eq!(state(&prepared), (RoundsEnd::Steady, doubts));

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
