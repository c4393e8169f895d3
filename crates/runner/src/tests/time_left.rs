//! Estimates of the time left, compared with the time that was left, on a clock that the trials advance.

use super::*;

/// The forecast at the start, and after each trial.
#[derive(Default)]
struct Watch(Vec<Progress>, Option<Progress>);

impl Observer for Watch {
    fn run_starts(&mut self, start: &RunStart<'_>) {
        self.1 = Some(start.progress);
    }

    fn trial_done(&mut self, trial: &TrialDone<'_>) {
        self.0.push(trial.progress);
    }
}

/// Greatest error since the first estimate that is more than a bound, as a share of the time left then.
fn worst(sets: &[&str], elapsed_ns: &dyn Fn(&TrialSpec, u64) -> u64) -> f64 {
    let bench = bench(sets);
    let settle = bench.experiment.design.settle;
    let mut watch = Watch::default();
    let mut mock = mock(elapsed_ns);
    bench.watched(&mut mock, &mut watch).expect("done");
    let record = bench.record();
    assert_eq!(watch.0.len(), record.samples.len());
    let mut ends = Vec::new();
    let mut now = Duration::ZERO;
    for (index, sample) in record.samples.iter().enumerate() {
        let is_first = index > 0 && record.samples[index - 1].block != sample.block;
        now += Duration::from_nanos(sample.wall_ns) + settle.mul_f64(f64::from(is_first));
        ends.push(now);
    }
    let known = |seen: &&Progress| seen.basis != Basis::Budget;
    let left: Vec<Duration> = watch.0.iter().filter(known).map(|seen| seen.left).collect();
    assert!(left.is_sorted_by(|a, b| a >= b), "runs backwards: {left:?}");
    assert_eq!(left.last(), Some(&Duration::ZERO));
    let foreseen = watch.0.iter().zip(&ends);
    let mut foreseen = foreseen
        .filter(|(seen, _)| known(seen))
        .map(|(seen, at)| (seen.left, seen.basis == Basis::AtMost, now - *at));
    let mut cells = record.cells.iter();
    let precise = cells.all(|cell| cell.ended_by == Some(EndedBy::Precision));
    let (first, _, first_left) = foreseen
        .find(|(_, is_bound, _)| !precise || !is_bound)
        .expect("an estimate");
    let error = |foreseen: Duration, left: Duration| {
        (foreseen.as_secs_f64() - left.as_secs_f64()).abs() / first_left.as_secs_f64()
    };
    foreseen.fold(error(first, first_left), |worst, (seen, _, left)| {
        worst.max(error(seen, left))
    })
}

/// A number from 0 to 1 that differs from trial to trial.
fn chance(number: u64) -> f64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1u64 << 24) as f64
}

/// Sizes take from 0.1 s to 25.6 s, and each trial up to an eighth more or less than that.
fn uneven(spec: &TrialSpec, number: u64) -> u64 {
    (spec.bs as f64 * 24_400.0 * (0.875 + 0.25 * chance(number))) as u64
}

#[test]
fn every_end_is_foreseen_within_a_fifth() {
    let stalls = |spec: &TrialSpec, number: u64| match number {
        17 => 60_000_000_000,
        _ => uneven(spec, number),
    };
    let narrow = |spec: &TrialSpec, number: u64| {
        (spec.bs as f64 * 24_400.0 * (0.995 + 0.01 * chance(number))) as u64
    };
    const SIZES: &str = "bs=4k,16k,64k,256k,1M";
    const IMPRECISE: [&str; 2] = ["trials_max=1000", "precision=0.001"];
    type Elapsed<'a> = &'a dyn Fn(&TrialSpec, u64) -> u64;
    let rows: [(&[&str], Elapsed<'_>); 6] = [
        (&[SIZES, "budget=8min"], &uneven),
        (&[SIZES, "budget=30min"], &uneven),
        (&["settle=20s", "budget=8min"], &uneven),
        // A single stall is not foreseen a second time.
        (&["budget=20min"], &stalls),
        // The end is by the number of trials, or by precision.
        (&["budget=10h", "trials_max=20"], &uneven),
        (&["budget=10h", "precision=0.05"], &narrow),
    ];
    for (sets, elapsed) in rows {
        let most = worst(&[&IMPRECISE, sets].concat(), elapsed);
        assert!(most <= 0.2, "{sets:?}: {most}");
    }
}

#[test]
fn time_granted_beyond_the_budget_is_foreseen_immediately() {
    for (budget, left) in [("budget=1h", 3600), ("budget=20s", 30)] {
        let mut watch = Watch::default();
        let bench = bench(&["time=5s", budget]);
        bench.watched(&mut mock(&steady), &mut watch).expect("done");
        let seen = watch.1.expect("it starts");
        assert_eq!(seen.basis, Basis::Budget);
        assert_eq!(seen.left, Duration::from_secs(left), "{budget}");
    }
}
