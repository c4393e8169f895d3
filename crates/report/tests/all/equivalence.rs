//! The table of two programs side by side.

use iolab_analysis::claim::{Difference, Estimate};
use iolab_analysis::equivalence::{FirstTrials, ProgramPair, SizePoint};
use iolab_analysis::more_trials::MoreTrials;
use iolab_report::equivalence::table;

fn point(size: u64, ratio: f64, p: f64) -> SizePoint {
    let tests = FirstTrials {
        welch: p,
        student: p / 2.0,
    };
    SizePoint {
        size,
        medians_ns: Some((600_000.0, 600_000.0 * ratio)),
        ratio: Some(Estimate {
            ratio,
            interval: Some((ratio * 0.97, ratio * 1.03)),
            blocks: Some(20),
            dependent_interval: None,
            independence: 1.0,
            groups: None,
            bound: None,
        }),
        difference: Difference::NotFound,
        doubts: Vec::new(),
        first_trials: [Some(tests), None],
        equivalence: [Some(1.0 - p), None],
        against_equivalence: [Vec::new(), Vec::new()],
    }
}

fn pair() -> ProgramPair {
    ProgramPair {
        factor: "command".to_owned(),
        base: "./a {file}".to_owned(),
        new: "./b\u{1b}[31m {file}".to_owned(),
        held: vec!["cache=hot".to_owned()],
        is_one_of_several: false,
        more_trials: MoreTrials::Resume,
        points: vec![
            point(1, 1.308, 0.000_02),
            point(128 << 10, 0.9981, 0.0432),
            SizePoint {
                ratio: None,
                equivalence: [None, None],
                first_trials: [None, None],
                ..point(128 << 20, 1.0, 1.0)
            },
        ],
    }
}

#[test]
fn text_is_legible_in_80_columns() {
    insta::assert_snapshot!("equivalence_80", table(&pair()).text(80));
}

#[test]
fn text_fits_and_has_no_terminal_commands() {
    for width in [40, 60, 80] {
        let text = table(&pair()).text(width);
        let rows = text.lines().skip(3).filter(|line| !line.starts_with('('));
        for line in rows {
            assert!(
                line.chars().count() <= usize::from(width),
                "{width}: {line}"
            );
        }
        assert!(!text.contains('\u{1b}'));
    }
}
