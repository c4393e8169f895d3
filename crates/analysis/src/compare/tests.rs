use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::judge::{self, judge};
use super::*;

fn terms() -> Criteria {
    Criteria {
        margin: 0.05,
        tests: vec![HypothesisTest::Welch],
        better: Better::Higher,
        repeats: Vec::new(),
        within_run: false,
    }
}

fn one(base: &[f64], new: &[f64], terms: Criteria) -> CellComparison {
    let names = ["a".to_owned(), "b".to_owned()];
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
        assert_ne!(reversed, CellVerdict::CannotTell);
    }
}

#[test]
fn a_change_that_is_real_but_within_the_margin_is_no_alarm() {
    let mut machine = Machine::new(2);
    let (base, new) = (
        machine.trials(40, 100.0, 0.01),
        machine.trials(40, 97.0, 0.01),
    );
    let cell = one(&base, &new, terms());
    assert!(cell.p_adjusted.unwrap() < 1e-6);
    assert_eq!(cell.verdict, CellVerdict::Equivalent);
    let strict = Criteria {
        margin: 0.01,
        ..terms()
    };
    assert_eq!(one(&base, &new, strict).verdict, CellVerdict::Slower);
}

#[test]
fn what_cannot_be_told_says_what_it_would_take() {
    let mut machine = Machine::new(33);
    let (base, new) = (machine.trials(6, 100.0, 0.2), machine.trials(6, 85.0, 0.2));
    let cell = one(&base, &new, terms());
    assert_eq!(cell.verdict, CellVerdict::CannotTell);
    let Some(Further::Trials(more)) = cell.further else {
        panic!("{:?}", cell.further)
    };
    // With so many the verdict is there at least as often as the power says, less the error of the estimates.
    let n = 6 + more;
    let told = (0..200).filter(|_| {
        let (base, new) = (machine.trials(n, 100.0, 0.2), machine.trials(n, 85.0, 0.2));
        one(&base, &new, terms()).verdict == CellVerdict::Slower
    });
    assert!(told.count() > 100, "{more} more trials");
    assert_eq!(one(&[], &base, terms()).further, None);
    assert_eq!(one(&[], &base, terms()).verdict, CellVerdict::CannotTell);
}

#[test]
fn blocks_that_depend_on_each_other_need_more_of_them() {
    let mut machine = Machine::new(7);
    // Half of the run with one shift, half with another: 30 blocks that are worth about two.
    let mut shifts = |centre: f64| -> Vec<f64> {
        let noise = machine.trials(15, 1.0, 0.02);
        noise.iter().map(|x| centre + x.ln()).collect()
    };
    let ratios = [shifts(-0.4), shifts(-2.8)].concat();
    let pair = Pair {
        base: vec![100.0; 30],
        new: ratios.iter().map(|r| 100.0 * r.exp()).collect(),
        within_blocks: Some(ratios),
        ..Pair::default()
    };
    let cells = judge::compare(&[pair], &terms(), ReplicationUnit::Blocks);
    assert_eq!(cells[0].verdict, CellVerdict::CannotTell);
    match cells[0].further {
        Some(Further::Trials(more)) => assert!(more >= 30, "{more} more trials"),
        Some(Further::TooMany) => {}
        None => panic!("no advice"),
    }
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
        CellVerdict::CannotTell
    );
    // A ratio of values that are not positive has no meaning, a difference has.
    let (below, above): (Vec<f64>, Vec<f64>) = (0..8)
        .map(|i| (f64::from(i % 4) - 10.0, f64::from(i % 4) + 10.0))
        .unzip();
    let cell = one(&below, &above, terms());
    assert_eq!(cell.ratio_of_medians, None);
    assert_eq!(cell.verdict, CellVerdict::Faster);
}

#[test]
fn the_p_values_of_the_first_trials_are_theirs() {
    let mut machine = Machine::new(4);
    let (base, new) = (
        machine.trials(20, 100.0, 0.05),
        machine.trials(20, 103.0, 0.05),
    );
    let cell = one(
        &base,
        &new,
        Criteria {
            repeats: vec![10, 20, 21],
            ..terms()
        },
    );
    let first = one(&base[..10], &new[..10], terms());
    assert_eq!(cell.repeats[0].student_p, first.p(HypothesisTest::Student));
    assert_eq!(cell.repeats[1].welch_p, cell.p(HypothesisTest::Welch));
    assert_eq!(cell.repeats[2].p(HypothesisTest::MannWhitney), None);
}

/// Of comparisons of a machine with itself at most 5 % report a difference in any of their cells.
#[test]
fn an_unchanged_machine_is_rarely_called_changed() {
    let mut machine = Machine::new(5);
    for (trials, spread) in [(6, 0.03), (9, 0.1), (12, 0.3)] {
        let mut alarms = 0;
        for _ in 0..150 {
            let pairs: Vec<Pair> = (0..8)
                .map(|_| Pair {
                    base: machine.trials(trials, 400.0, spread),
                    new: machine.trials(trials, 400.0, spread),
                    ..Pair::default()
                })
                .collect();
            let cells = judge(&pairs, &terms());
            let differs =
                |c: &CellComparison| matches!(c.verdict, CellVerdict::Faster | CellVerdict::Slower);
            alarms += usize::from(cells.iter().any(differs));
        }
        assert!(alarms <= 7, "{alarms} of 150 at {trials} trials");
    }
}

/// Trials that remember the ones before would raise the alarm far too often, were they taken for independent.
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
    fn nothing_differs_from_itself(values in prop::collection::vec(1e-3..1e12f64, 0..20)) {
        for test in [HypothesisTest::Welch, HypothesisTest::Student, HypothesisTest::MannWhitney] {
            let pair = Pair { base: values.clone(), new: values.clone(), ..Pair::default() };
            let cell = &judge(&[pair], &Criteria { tests: vec![test], ..terms() })[0];
            prop_assert!(!matches!(cell.verdict, CellVerdict::Faster | CellVerdict::Slower));
        }
    }

    #[test]
    fn any_numbers_are_compared(
        base in prop::collection::vec(any::<f64>(), 0..12),
        new in prop::collection::vec(any::<f64>(), 0..12),
    ) {
        let cell = one(&base, &new, terms());
        prop_assert!(cell.p_adjusted.is_none_or(|p| (0.0..=1.0).contains(&p)));
    }
}
