use Answer::{CannotTell, No, Yes};

use super::{Times, *};
use iolab_record::{LatencyOf, Operation, Sample, ServedBy};
use iolab_workload::histogram::{counts, new_latency_histogram};
use iolab_workload::settings::Setting;

#[test]
fn one_no_decides_and_open_answers_keep_reasons() {
    use ReasonedAnswer::{CannotTell, No, Yes};
    let open = |reasons: &[DoubtKind]| CannotTell(reasons.to_vec());
    let (few, slept) = (DoubtKind::NoRequest, DoubtKind::Suspended);
    let merged = |answers: &[ReasonedAnswer]| ReasonedAnswer::merge(answers.to_vec());
    assert_eq!(merged(&[Yes, Yes]), Yes);
    assert_eq!(merged(&[open(&[few]), No, Yes]), No);
    assert_eq!(
        merged(&[open(&[few]), Yes, open(&[slept, few])]),
        open(&[few, slept])
    );
    assert_eq!(merged(&[]), open(&[DoubtKind::NoTrial]));
}

type Trial = (Sample, Times);

/// A second of 1000 syncs of `ms` each on a device.
fn trial(id: i64, ms: f64) -> Trial {
    let mut histogram = new_latency_histogram();
    histogram.saturating_record_n((ms * 1e6) as u64, 1000);
    let mut sample = Sample {
        id,
        ok: true,
        elapsed_ns: 1_000_000_000,
        ..Sample::default()
    };
    sample.operations.sync.requests = 1000;
    sample.verdict.served_by = ServedBy::Device;
    (
        sample,
        vec![(LatencyOf::service(Operation::Sync), counts(&histogram))],
    )
}

fn trials(number: i64, ms: f64, change: impl Fn(&mut Sample)) -> Vec<Trial> {
    let mut all: Vec<Trial> = (0..number).map(|n| trial(n, ms)).collect();
    all.iter_mut().for_each(|(sample, _)| change(sample));
    all
}

fn busy(sample: &mut Sample) {
    sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns);
}

fn unknown(sample: &mut Sample) {
    sample.verdict.served_by = ServedBy::Unknown;
}

/// Results of `syncs.p99<10ms`: the answer as measured, the answer after doubts, and the number of doubts
/// that change it.
fn answered(trials: &[Trial]) -> (Answer, Answer, usize) {
    let mut cell = Cell::default();
    for (name, value) in [("read_percent", "0"), ("sync", "fdatasync")] {
        let setting = Setting::find(name).expect("a setting");
        setting.set(&mut cell.spec, value).expect("a value");
    }
    let levels = ["syncs.p99<10ms".parse().expect("a level")];
    let evidence = Evidence::of_trials(trials, 1);
    let environment = Environment::default();
    let found = CellAnswer::of(String::new(), &cell, &evidence, &environment, &levels);
    let level = &found.levels[0];
    (level.judged.answer, level.answer(), level.turned_by.len())
}

#[test]
fn under_disturbance_no_is_open_and_yes_stands() {
    assert_eq!(answered(&trials(12, 20.0, |_| ())), (No, No, 0));
    assert_eq!(answered(&trials(12, 20.0, busy)), (No, CannotTell, 1));
    assert_eq!(answered(&trials(12, 2.0, busy)), (Yes, Yes, 0));
}

#[test]
fn from_unknown_origin_yes_is_open_no_stands() {
    assert_eq!(answered(&trials(12, 2.0, unknown)), (Yes, CannotTell, 1));
    assert_eq!(answered(&trials(12, 20.0, unknown)), (No, No, 0));
    let both = |sample: &mut Sample| {
        unknown(sample);
        busy(sample);
    };
    assert_eq!(answered(&trials(12, 20.0, both)), (No, CannotTell, 1));
    assert_eq!(answered(&trials(12, 2.0, both)), (Yes, CannotTell, 1));
}

#[test]
fn answer_of_undisturbed_trials_stands() {
    let mut some = trials(12, 20.0, |_| ());
    some[..4].iter_mut().for_each(|(sample, _)| busy(sample));
    assert_eq!(answered(&some), (No, No, 0));
    // The slow trials are the disturbed ones.
    let mut some = trials(24, 2.0, |_| ());
    for slow in some.iter_mut().step_by(2) {
        *slow = trial(slow.0.id, 50.0);
        busy(&mut slow.0);
    }
    assert_eq!(answered(&some), (No, CannotTell, 1));
    // Too few trials remain for an answer.
    let mut most = trials(12, 20.0, |_| ());
    most[..9].iter_mut().for_each(|(sample, _)| busy(sample));
    assert_eq!(answered(&most), (No, CannotTell, 1));
}

#[test]
fn one_trial_never_decides() {
    for change in [busy as fn(&mut Sample), unknown, |_| ()] {
        let (measured, answer, turned) = answered(&trials(1, 20.0, change));
        assert_eq!((measured, answer, turned), (CannotTell, CannotTell, 0));
    }
}
