//! Text of `iolab why` for made-up verdicts: ten lines, whatever it tried and however long its reasons are.

use std::path::PathBuf;

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::{
    CellId, Claim, Estimate, Kind, Payload, Point, Quantity, Standing, WhyUntried, kind,
};
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_plan::experiment::{Inquiry, Untried};
use iolab_plan::suspect::{Check, Obstacle, Suspect};
use iolab_report::overview::Input;
use iolab_synthetic::{add_cell, around, record};
use iolab_why::phenomenon::{Phenomenon, PhenomenonKind};
use iolab_why::words::{CAUSE_LINES_MAX, answer, none_tried, phenomenon};
use iolab_workload::response::Response;
use proptest::prelude::*;

/// Most suspects that the property generates; two real cells have about ten.
const SUSPECTS_MAX: usize = 14;
/// Columns of the screen.
const WIDTH: u16 = 80;

fn input(target: &str) -> Input {
    let mut record = record("why", &["bs"]);
    record.run.target = target.to_owned();
    add_cell(&mut record, &["bs=4KiB"], &around(500.0));
    add_cell(&mut record, &["bs=64KiB"], &around(1000.0));
    Input::new(PathBuf::from("why.iolab"), AnalysedRun::of(record))
}

/// The first `count` doubts of a list.
fn doubts(count: usize) -> Vec<Doubt> {
    let all = [
        Doubt::of(DoubtKind::MemoryStall, 0.42),
        DoubtKind::Suspended.into(),
        Doubt::of(DoubtKind::CpuContended, 0.42),
        Doubt {
            levels: Some([(0.123, 0.123), (4.56, 4.56)]),
            ..DoubtKind::TwoGroups.into()
        },
        Doubt::of(DoubtKind::Dependent, 0.123),
        DoubtKind::RateNotHeld.into(),
    ];
    all.into_iter().take(count).collect()
}

/// Reasons of suspects that were not tried, short and long.
fn untried_because(number: usize) -> WhyUntried {
    match number % 5 {
        0 => WhyUntried::Planned(Obstacle::NeedsChangeSystem),
        1 => WhyUntried::Planned(Obstacle::NoTime {
            budget_s: 720,
            idle_ns: 1_500_000_000,
        }),
        2 => WhyUntried::Unchecked(Check::LessCpuWait, Some((0.98, 0.95))),
        3 => WhyUntried::Unchecked(Check::FewerDeviceIos, Some((2.1, 2.0))),
        _ => WhyUntried::Planned(Obstacle::KeepsState),
    }
}

/// The medians are 500 and 1000 MB/s, as on the first screen of the run.
#[test]
fn difference_has_ratio_of_medians_or_names_estimator() {
    let input = input("/data");
    let words = |ratio: f64, interval| {
        let [base, other] = [0, 1].map(|cell| CellId { run: 0, cell });
        let found = Phenomenon {
            base,
            other,
            seen: Estimate::of(ratio, Some(interval)),
            expected: 1.0,
            size: ratio.ln(),
            unclaimed: None,
            kind: PhenomenonKind::Cells,
        };
        phenomenon(input.run.analysis(), &found)
    };
    insta::assert_snapshot!(words(2.05, (1.9, 2.2)), @"throughput with 64 KiB is 2.00× higher than with 4 KiB");
    insta::assert_snapshot!(words(2.5, (2.4, 2.6)), @"throughput with 64 KiB is 2.50× higher within blocks than with 4 KiB");
}

/// Made-up results of a run.
#[derive(Debug, Clone)]
struct Found {
    phenomenon: String,
    /// The share that is not explained.
    left: f64,
    /// Number of doubts about the whole, and about each open verdict.
    doubts: usize,
    /// Verdicts on the first suspects of all.
    verdicts: Vec<Standing>,
}

impl Found {
    fn point(&self, number: usize) -> Point {
        let part = 1.0 + number as f64;
        let standing = self.verdicts[number];
        Point {
            suspects: vec![Suspect::all()[number].name.to_owned()],
            interval: Some((0.4 / part, 0.95 / part)),
            ratio: Some(Estimate::of(0.348, None)),
            of: (standing == Standing::MoreBlocks).then_some(123.0),
            doubts: match standing {
                Standing::Undecided => doubts(self.doubts),
                _ => Vec::new(),
            },
            ..Point::new(standing, Quantity::Share, 0.83 / part)
        }
    }

    /// Claims as the analysis makes them: one for each verdict, and one for each reason not to try.
    fn claims(&self) -> Vec<Claim> {
        let claim = |kind, points: Vec<Point>| {
            let mut claim = Claim::new(kind, vec![CellId { run: 0, cell: 0 }]).with_points(points);
            claim.held = vec![("phenomenon".to_owned(), self.phenomenon.clone())];
            claim
        };
        let again = Point {
            doubts: doubts(self.doubts),
            ..Point::count(Standing::Reproduced, "block", 22)
        };
        let rest = Point {
            interval: Some((self.left / 2.0, self.left)),
            ..Point::new(Standing::Unexplained, Quantity::Share, self.left)
        };
        let time = Quantity::Of(Response::Elapsed);
        let shorter = Point::new(Standing::Shorter, time, 123e6);
        let mut reproduced = claim(&kind::REPRODUCED[1], vec![again, rest, shorter]);
        reproduced.ratio = Some(Estimate::of(0.02471, Some((0.00936, 0.0580))));
        let mut claims = vec![reproduced];
        let of_kind = |kind: &'static Kind| {
            let listed = |one: &Point| kind.labels.iter().any(|(own, _)| *own == one.standing);
            let all = (0..self.verdicts.len()).map(|number| self.point(number));
            let own: Vec<Point> = all.filter(listed).collect();
            (!own.is_empty()).then(|| claim(kind, own))
        };
        let kinds = [
            &kind::CAUSE,
            &kind::JOINT_CAUSE,
            &kind::CONTRIBUTES,
            &kind::CLEARED,
            &kind::SUSPECTS_OPEN,
        ];
        claims.extend(kinds.into_iter().filter_map(of_kind));
        let all = self.verdicts.iter().enumerate();
        let untried = all.filter(|(_, verdict)| **verdict == Standing::NotTried);
        claims.extend(untried.map(|(number, _)| {
            let mut claim = claim(&kind::SUSPECTS_NOT_TRIED, vec![self.point(number)]);
            claim.payload = Some(Payload::NotTried(untried_because(number)));
            claim
        }));
        claims
    }
}

fn lines(text: &str) -> usize {
    text.lines().filter(|line| !line.is_empty()).count()
}

/// The text in one line.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A suspect in words, without the explanation of its name.
fn words(suspect: &Suspect) -> &'static str {
    let end = suspect.what.find(" (").into_iter();
    let end = end.chain(suspect.what.find(", which")).min();
    &suspect.what[..end.unwrap_or(suspect.what.len())]
}

fn any_verdict() -> impl Strategy<Value = Standing> {
    prop_oneof![
        1 => Just(Standing::Cause),
        1 => Just(Standing::Reverses),
        1 => Just(Standing::Contributes),
        1 => Just(Standing::ByItself),
        1 => Just(Standing::Joint),
        4 => Just(Standing::Cleared),
        1 => Just(Standing::Minor),
        2 => Just(Standing::Undecided),
        2 => Just(Standing::MoreBlocks),
        1 => Just(Standing::OtherSide),
        4 => Just(Standing::NotTried),
    ]
}

fn any_found() -> impl Strategy<Value = Found> {
    let sides = prop::sample::select(vec![
        "IOPS at threads=8 is 0.895 times that at threads=1, not 8.00 times (backend=sync, descriptors=shared, layout=shared)",
        "throughput at bs=16MiB is 1/82.3 of that at bs=64KiB",
    ]);
    let verdicts = prop::collection::vec(any_verdict(), 1..SUSPECTS_MAX);
    let all = (sides, 0.0..1.0, 0..=6_usize, verdicts);
    all.prop_map(|(phenomenon, left, doubts, verdicts)| Found {
        phenomenon: phenomenon.to_owned(),
        left,
        doubts,
        verdicts,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each line has the difference, its reproduction, and the part without explanation. Suspects are named or
    /// counted.
    #[test]
    fn ten_lines_have_all_that_matters(found in any_found()) {
        let text = answer(&input("/mnt/disk"), &found.claims(), WIDTH);
        prop_assert!(lines(&text) <= CAUSE_LINES_MAX, "{text}");
        let one = in_one_line(&text);
        prop_assert!(one.contains(&found.phenomenon), "{text}");
        prop_assert!(one.contains("40.5× lower (17.2 to 107×)"), "{text}");
        let left = format!("{:.0} %", 100.0 * found.left);
        prop_assert!(found.left < 0.1 || one.contains(&left), "{left}: {text}");
        let is_named = |suspect: &Suspect| one.contains(words(suspect));
        let all = Suspect::all().iter().zip(&found.verdicts);
        let unnamed = all.filter(|(suspect, _)| !is_named(suspect)).count();
        let is_shortened = one.contains(" more") || one.ends_with(" ...");
        prop_assert!(unnamed == 0 || is_shortened, "{text}");
    }

    /// A file can hold texts of any length; on a narrow screen there are more lines.
    #[test]
    fn texts_of_any_length_take_ten_lines(
        target in "\\PC{0,4000}",
        phenomenon in "\\PC{0,4000}",
        suspects in 0..Suspect::all().len(),
        width in WIDTH..200,
    ) {
        let found = Found {
            phenomenon,
            left: 0.5,
            doubts: 6,
            verdicts: vec![Standing::Contributes; suspects],
        };
        let text = answer(&input(&target), &found.claims(), width);
        prop_assert!(lines(&text) <= CAUSE_LINES_MAX, "{text}");
    }
}

#[test]
fn suspects_that_lack_time_are_not_called_irremovable() {
    let no_time = || Obstacle::NoTime {
        budget_s: 60,
        idle_ns: 0,
    };
    let of = |obstacles: Vec<Obstacle>| {
        let untried = obstacles.into_iter().map(|why| Untried {
            suspect: "write-cache".to_owned(),
            why,
        });
        none_tried(&Inquiry {
            phenomenon: String::new(),
            seen: 2.0,
            expected: 1.0,
            tried: Vec::new(),
            untried: untried.collect(),
            idle_ns: None,
            shorter_ns: None,
            between: Vec::new(),
            variants: Vec::new(),
        })
    };
    let told = [
        of(vec![]),
        of(vec![Obstacle::NeedsRoot]),
        of(vec![no_time(), no_time()]),
        of(vec![Obstacle::NeedsRoot, no_time()]),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    no suspect can be removed
    no suspect can be removed
    no suspect fits the budget
    no suspect can be removed within the budget
    ");
}
