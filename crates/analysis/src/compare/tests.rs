use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::judge;
use super::*;
use crate::doubt::{ComparedSide, Doubt, DoubtKind};

/// An interval that decides nothing.
const WIDE: CellVerdict = CellVerdict::CannotTell(DoubtKind::WideInterval);

fn terms() -> Criteria {
    Criteria {
        margin: 0.05,
        tests: vec![HypothesisTest::Welch],
        better: Better::Higher,
        within_run: false,
        ..Criteria::default()
    }
}

fn one(base: &[f64], new: &[f64], terms: Criteria) -> CellComparison {
    let names = ["a", "b"].map(|name| name.to_owned().into());
    let mut comparison = Comparison::of_numbers(names, base.to_vec(), new.to_vec(), terms);
    comparison.cells.pop().expect("one cell")
}

/// Lognormal trials around `median`, by the method of Box and Muller.
struct Machine(Xoshiro256PlusPlus);

impl Machine {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn normal(&mut self) -> f64 {
        let mut uniform = || (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform()).cos()
    }

    fn trials(&mut self, n: usize, median: f64, spread: f64) -> Vec<f64> {
        (0..n)
            .map(|_| median * (spread * self.normal()).exp())
            .collect()
    }

    /// Trials whose logarithms follow a first-order autoregression.
    fn drifting(&mut self, n: usize, median: f64, spread: f64, memory: f64) -> Vec<f64> {
        let mut state = self.normal();
        let fresh = (1.0 - memory * memory).sqrt();
        (0..n)
            .map(|_| {
                state = memory * state + fresh * self.normal();
                median * (spread * state).exp()
            })
            .collect()
    }
}

#[test]
fn verdicts_follow_direction_and_margin() {
    let mut machine = Machine::new(1);
    let base = machine.trials(12, 100.0, 0.01);
    let half = machine.trials(12, 50.0, 0.01);
    let same = machine.trials(12, 100.5, 0.01);
    let with = |better| Criteria { better, ..terms() };
    for (new, better, expected) in [
        (&half, Better::Higher, CellVerdict::Slower),
        (&half, Better::Lower, CellVerdict::Faster),
        (&half, Better::Unstated, CellVerdict::Lower),
        (&same, Better::Higher, CellVerdict::Equivalent),
        (&same, Better::Lower, CellVerdict::Equivalent),
    ] {
        assert_eq!(one(&base, new, with(better)).verdict, expected);
        let reversed = one(new, &base, with(better)).verdict;
        assert_eq!(
            reversed == CellVerdict::Equivalent,
            expected == CellVerdict::Equivalent
        );
        assert!(!reversed.is_open());
    }
}

#[test]
fn real_change_within_the_margin_is_no_alarm() {
    let mut machine = Machine::new(2);
    let (base, new) = (
        machine.trials(40, 100.0, 0.01),
        machine.trials(40, 97.0, 0.01),
    );
    let cell = one(&base, &new, terms());
    let (_, high) = cell.estimate.unwrap().interval.unwrap();
    assert!(high < 1.0, "{high}");
    assert_eq!(cell.verdict, CellVerdict::Equivalent);
    let strict = Criteria {
        margin: 0.01,
        ..terms()
    };
    assert_eq!(one(&base, &new, strict).verdict, CellVerdict::Slower);
}

/// Two sides whose trials overlap, with these doubts.
fn overlapping(against: SideDoubts, base: &[f64], new: &[f64]) -> CellComparison {
    let pair = Pair {
        base: base.to_vec(),
        new: new.to_vec(),
        against,
        ..Pair::default()
    };
    let mut cells = judge::compare(&[pair], &terms(), ReplicationUnit::TrialsWithinRuns);
    cells.pop().expect("one cell")
}

/// More trials never settle a doubt.
#[test]
fn more_trials_are_offered_only_for_precision() {
    let scores = [0.2, -1.0, 1.35, -0.2, 1.0, -1.35];
    let around = |median: f64| scores.map(|z| median * (0.2_f64 * z).exp());
    let (fast, slow) = (around(100.0), around(85.0));
    let disturbed = |side| {
        SideDoubts(vec![Doubt {
            side: Some(side),
            ..Doubt::of(DoubtKind::OtherTraffic, 0.4)
        }])
    };
    let none = SideDoubts::default();
    let undisturbed = overlapping(none, &fast, &slow);
    assert_eq!(undisturbed.verdict, WIDE);
    assert!(undisturbed.further.is_some());
    for (side, base, new) in [
        (ComparedSide::New, &fast, &slow),
        (ComparedSide::Base, &slow, &fast),
    ] {
        let cell = overlapping(disturbed(side), base, new);
        assert_eq!(
            cell.verdict,
            CellVerdict::CannotTell(DoubtKind::OtherTraffic)
        );
        assert_eq!((cell.further, cell.doubts.len()), (None, 1));
    }
    // A disturbance of the faster side does not make it slower, so that more trials would decide.
    for (side, base, new) in [
        (ComparedSide::Base, &fast, &slow),
        (ComparedSide::New, &slow, &fast),
    ] {
        let cell = overlapping(disturbed(side), base, new);
        assert_eq!(cell.verdict, WIDE);
        assert_eq!((cell.further, cell.doubts.len()), (undisturbed.further, 0));
    }
    // This disturbance is too small for the difference that the ratio suggests.
    let slight = SideDoubts(vec![Doubt {
        side: Some(ComparedSide::New),
        ..Doubt::of(DoubtKind::OtherTraffic, 0.06)
    }]);
    assert!(overlapping(slight, &fast, &slow).further.is_some());
    // Sides that look equal are doubted either way.
    let alike = around(101.0);
    for side in [ComparedSide::Base, ComparedSide::New] {
        let cell = overlapping(disturbed(side), &fast, &alike);
        assert_eq!(
            (cell.verdict, cell.further),
            (CellVerdict::CannotTell(DoubtKind::OtherTraffic), None)
        );
    }
}

#[test]
fn open_verdict_states_the_trials_needed() {
    // Trials with exactly the standard deviation used below.
    let scores = [0.2, -1.0, 1.35, -0.2, 1.0, -1.35];
    let around = |median: f64| scores.map(|z| median * (0.2_f64 * z).exp());
    let cell = one(&around(100.0), &around(85.0), terms());
    assert_eq!(cell.verdict, WIDE);
    let Some(Further::Trials(more)) = cell.further else {
        panic!("{:?}", cell.further)
    };
    // With this number, verdicts are about as frequent as the power says; some are doubted because they seem
    // dependent.
    let mut machine = Machine::new(33);
    let n = 6 + more;
    let mut told = |new: f64| {
        let verdicts = (0..200).map(|_| {
            let (base, new) = (machine.trials(n, 100.0, 0.2), machine.trials(n, new, 0.2));
            one(&base, &new, terms()).verdict
        });
        verdicts.filter(|v| *v == CellVerdict::Slower).count()
    };
    let slower = told(85.0);
    assert!(
        (130..185).contains(&slower),
        "{slower} with {more} more trials"
    );
    assert!(told(100.0) <= 10);
    assert_eq!(one(&[], &around(100.0), terms()).further, None);
    let empty = one(&[], &around(100.0), terms());
    let none = DoubtKind::NoValue;
    assert_eq!(empty.verdict, CellVerdict::CannotTell(none));
}

/// If many cells lack trials, each has its share of the confidence once they have them.
#[test]
fn requested_trials_make_intervals() {
    let mut machine = Machine::new(35);
    let mut compared = |n: usize| {
        let pairs: Vec<Pair> = (0..49)
            .map(|_| Pair {
                base: machine.trials(n, 100.0, 0.01),
                new: machine.trials(n, 200.0, 0.01),
                ..Pair::default()
            })
            .collect();
        let cells = judge::compare(&pairs, &terms(), ReplicationUnit::TrialsWithinRuns);
        (pairs.len(), cells)
    };
    let (comparable, cells) = compared(5);
    let needed = trials_to_compare(comparable) as usize;
    assert_eq!((comparable, needed), (49, 11));
    let more = |cell: &CellComparison| match cell.further {
        Some(Further::Trials(more)) => more,
        other => panic!("{other:?}"),
    };
    assert!(cells.iter().all(|cell| 5 + more(cell) >= needed));
    let (_, cells) = compared(needed);
    let faster = |cell: &CellComparison| cell.verdict == CellVerdict::Faster;
    assert!(cells.iter().all(faster));
}

/// The verdict on the ratios of blocks, from their logarithms.
fn in_blocks(ratios: Vec<f64>) -> CellComparison {
    let pair = Pair {
        base: vec![100.0; ratios.len()],
        new: ratios.iter().map(|r| 100.0 * r.exp()).collect(),
        within_blocks: Some((0..).zip(ratios).collect()),
        ..Pair::default()
    };
    let mut cells = judge::compare(&[pair], &terms(), ReplicationUnit::Blocks);
    cells.pop().expect("one cell")
}

#[test]
fn dependent_blocks_need_more_of_them() {
    let mut machine = Machine::new(7);
    // They rise all the time: 30 blocks worth about two.
    let noise = machine.trials(30, 1.0, 0.02);
    let ratios = (0..)
        .zip(noise)
        .map(|(block, x)| -1.2 + f64::from(block) / 15.0 + x.ln());
    let cell = in_blocks(ratios.collect());
    assert_eq!(cell.verdict, WIDE);
    match cell.further {
        Some(Further::Trials(more)) => assert!(more >= 30, "{more} more trials"),
        Some(Further::TooMany) => {}
        None => panic!("no advice"),
    }
}

/// Half of the run lower, half higher: which comes next, further trials do not tell.
#[test]
fn further_trials_are_not_offered_against_two_groups() {
    let mut machine = Machine::new(7);
    let mut shifts = |centre: f64| -> Vec<f64> {
        let noise = machine.trials(15, 1.0, 0.02);
        noise.iter().map(|x| centre + x.ln()).collect()
    };
    let cell = in_blocks([shifts(-2.8), shifts(0.4)].concat());
    assert_eq!(
        (cell.verdict, cell.further),
        (CellVerdict::CannotTell(DoubtKind::TwoGroups), None)
    );
}

#[test]
fn degenerate_sides_have_a_verdict_and_no_panic() {
    let (fives, sixes) = ([5.0; 8], [6.0; 8]);
    assert_eq!(
        one(&fives, &fives, terms()).verdict,
        CellVerdict::Equivalent
    );
    assert_eq!(one(&fives, &sixes, terms()).verdict, CellVerdict::Faster);
    assert_eq!(
        one(&[1.0], &[2.0], terms()).verdict,
        CellVerdict::CannotTell(DoubtKind::FewTrials)
    );
    // Enough of them, and no ratio.
    let zeros = [0.0; 8];
    assert_eq!(
        one(&zeros, &zeros, terms()).verdict,
        CellVerdict::CannotTell(DoubtKind::NoRatio)
    );
    // The ratio of values that are not positive is undefined, their difference is not.
    let (below, above): (Vec<f64>, Vec<f64>) = (0..8)
        .map(|i| (f64::from(i % 4) - 10.0, f64::from(i % 4) + 10.0))
        .unzip();
    let cell = one(&below, &above, terms());
    assert_eq!(cell.estimate, None);
    assert_eq!(cell.verdict, CellVerdict::Faster);
}

/// Trials that depend on earlier ones would raise far too many alarms if they were assumed to be independent.
#[test]
fn a_machine_that_drifts_raises_few_alarms() {
    let mut machine = Machine::new(6);
    let (mut naive, mut alarms) = (0, 0);
    for _ in 0..300 {
        let base = machine.drifting(20, 400.0, 0.1, 0.7);
        let new = machine.drifting(20, 400.0, 0.1, 0.7);
        let cell = one(&base, &new, terms());
        naive += usize::from(cell.p_adjusted.is_some_and(|p| p < ALPHA));
        alarms += usize::from(matches!(
            cell.verdict,
            CellVerdict::Faster | CellVerdict::Slower
        ));
    }
    assert!(naive > 75, "{naive} of 300");
    assert!(
        alarms < 45 && alarms * 2 < naive,
        "{alarms} of 300, naive {naive}"
    );
}

proptest! {
    #[test]
    fn any_numbers_are_compared(
        base in prop::collection::vec(any::<f64>(), 0..12),
        new in prop::collection::vec(any::<f64>(), 0..12),
    ) {
        let cell = one(&base, &new, terms());
        prop_assert!(cell.p_adjusted.is_none_or(|p| (0.0..=1.0).contains(&p)));
    }
}

#[test]
fn exact_simultaneous_intervals_exist_from_trials_to_compare() {
    for cells in 0..=2000 {
        let n = trials_to_compare(cells) as usize;
        let confidence = crate::claim::effect::confidence(cells);
        let of = |n: usize| iolab_stats::median_interval(&vec![1.0; n], confidence);
        assert!(of(n).is_some() && of(n - 1).is_none(), "{cells}: {n}");
    }
}
