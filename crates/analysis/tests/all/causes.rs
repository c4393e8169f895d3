//! Verdicts on suspects if there are doubts about the evidence of the cells.

use iolab_analysis::analysis::{Analysis, CellServed, Response, analyse};
use iolab_analysis::claim::{
    Payload, Point, Standing, WhyUntried, claims, is_answered, remainders,
};
use iolab_analysis::timeline::{Access, DisturbedTrials, Levels, RunShift};
use iolab_plan::experiment::{Inquiry, Variant};
use iolab_record::ServedBy;
use iolab_record::environment::KEYS;
use iolab_synthetic::{add_cell, around, record, size_curve};
use iolab_workload::units::parse_size;

/// Cells in this order: base, other, base without the suspect, and other without it, which is then as fast as
/// the base.
const CELLS: [(&str, f64); 4] = [
    ("4KiB", 1000.0),
    ("64KiB", 500.0),
    ("1MiB", 1000.0),
    ("16MiB", 990.0),
];

/// Cells in which the difference goes because the better side falls.
const BETTER_FALLS: [(&str, f64); 4] = [
    ("4KiB", 100.0),
    ("64KiB", 50.0),
    ("1MiB", 50.0),
    ("16MiB", 50.0),
];

fn explained() -> Analysis {
    explained_in(&CELLS)
}

fn explained_in(cells: &[(&str, f64)]) -> Analysis {
    let mut analysis = analyse(&size_curve("read-size", cells));
    let variant = |without: &[&str], base: &str, other: &str| Variant {
        without: without.iter().map(|one| (*one).to_owned()).collect(),
        base: format!("bs={base}"),
        other: format!("bs={other}"),
    };
    analysis.inquiry = Some(Inquiry {
        phenomenon: "throughput at bs=64KiB is 0.5 times that at bs=4KiB".to_owned(),
        seen: 0.5,
        expected: 1.0,
        tried: vec!["reach".to_owned()],
        untried: Vec::new(),
        idle_ns: None,
        shorter_ns: None,
        between: Vec::new(),
        variants: vec![
            variant(&[], "4KiB", "64KiB"),
            variant(&["reach"], "1MiB", "16MiB"),
        ],
    });
    analysis
}

/// Throughput follows from the ns that a request of each size takes; both ends are compared, with the others between.
fn of_sizes(ns: &dyn Fn(f64) -> f64) -> Analysis {
    const SIZES: [&str; 6] = ["4KiB", "32KiB", "256KiB", "1MiB", "8MiB", "64MiB"];
    let mb_s = |size: &str| {
        let bytes = parse_size(size).expect("a size") as f64;
        bytes * 1e3 / ns(bytes)
    };
    let cells = SIZES.map(|size| (size, mb_s(size)));
    let mut analysis = explained_in(&cells);
    let inquiry = analysis.inquiry.as_mut().expect("an inquiry");
    inquiry.seen = cells[5].1 / cells[0].1;
    inquiry.tried.clear();
    inquiry.variants.truncate(1);
    inquiry.variants[0].other = "bs=64MiB".to_owned();
    let between = SIZES[1..5].iter().map(|size| format!("bs={size}"));
    inquiry.between = between.collect();
    analysis
}

#[test]
fn a_disturbed_size_between_opens_the_verdict() {
    for (place, taken, expected) in [
        (0, 0.3, Standing::Undecided),
        (2, 0.3, Standing::Undecided),
        (2, 0.02, Standing::Main),
        (5, 0.3, Standing::Undecided),
    ] {
        let mut analysis = of_sizes(&|bytes| 5e6 + bytes / 0.2);
        analysis.cells[place].disturbance.steal = Some(taken);
        let (verdict, doubts) = verdict(&analysis);
        assert_eq!(verdict, expected, "{place}");
        assert_eq!(doubts == 0, verdict == Standing::Main);
    }
}

#[test]
fn limits_are_no_fixed_time_of_requests() {
    let told = |ns: &dyn Fn(f64) -> f64| claims(&[&of_sizes(ns)]);
    let all = told(&|bytes| 5e6 + bytes / 0.2);
    let fit = all.iter().find(|claim| claim.kind.name == "explains");
    let fit = fit.expect("a fit");
    let [fixed, rate] = [0, 1].map(|place| fit.points[place].value);
    assert!((fixed / 5e6 - 1.0).abs() < 0.01 && (rate / 200.0 - 1.0).abs() < 0.01);
    let ratio = (5e6 / 4096.0 + 5.0) / (5e6 / f64::from(64 << 20) + 5.0);
    let predicted = fit.ratio.expect("a ratio").ratio;
    assert!((predicted / ratio - 1.0).abs() < 0.01, "{predicted}");
    let others: [(&str, &dyn Fn(f64) -> f64); 4] = [
        ("a limit of requests", &|_| 3.3e6),
        ("a limit of requests and one of bytes", &|bytes| {
            (bytes / 0.2_f64).max(3.3e6)
        }),
        ("a limit of bytes", &|bytes| (bytes / 0.2_f64).max(2e5)),
        ("a cache that small requests fit", &|bytes| {
            if bytes < 1e5 { 1e4 } else { 5e6 + bytes / 0.2 }
        }),
    ];
    for (name, ns) in others {
        assert_eq!(verdict(&of_sizes(ns)).0, Standing::Undecided, "{name}");
    }
}

/// The verdict on the only suspect, and the number of its doubts.
fn verdict(analysis: &Analysis) -> (Standing, usize) {
    let found = suspected(analysis).expect("a verdict");
    (found.standing, found.doubts.len())
}

/// The point of the only suspect.
fn suspected(analysis: &Analysis) -> Option<Point> {
    let all = claims(&[analysis]).into_iter().skip(1);
    let mut points = all.flat_map(|claim| claim.points);
    points.find(|point| !point.suspects.is_empty())
}

/// Tasks wait for a CPU for nearly all of the time of this cell, and for little of the other cells' time.
fn waits(analysis: &mut Analysis, place: usize) {
    for (number, cell) in analysis.cells.iter_mut().enumerate() {
        cell.disturbance.cpu_stall = Some(if number == place { 0.9 } else { 0.02 });
    }
}

#[test]
fn cpu_wait_of_worse_cell_alone_opens_verdict() {
    assert_eq!(verdict(&explained()), (Standing::Cause, 0));
    for (place, expected) in [(1, (Standing::Undecided, 1)), (3, (Standing::Cause, 0))] {
        let mut analysis = explained();
        waits(&mut analysis, place);
        assert_eq!(verdict(&analysis), expected, "{place}");
    }
}

/// Waiting for a tenth of the time does not make a cell half as fast.
#[test]
fn wait_too_short_for_the_change_is_ignored() {
    let with = |share: f64| {
        let mut analysis = explained();
        for (number, cell) in analysis.cells.iter_mut().enumerate() {
            cell.disturbance.memory_stall = Some(if number == 1 { share } else { 0.0 });
        }
        verdict(&analysis)
    };
    assert_eq!(with(0.1), (Standing::Cause, 0));
    assert_eq!(with(0.6), (Standing::Undecided, 1));
}

#[test]
fn open_verdict_does_not_report_a_reversal() {
    let mut analysis = explained_in(&[CELLS[0], CELLS[1], CELLS[2], ("16MiB", 1500.0)]);
    assert_eq!(verdict(&analysis).0, Standing::Reverses);
    waits(&mut analysis, 1);
    assert_eq!(verdict(&analysis).0, Standing::Undecided);
}

#[test]
fn a_suspended_machine_leaves_all_open() {
    let mut analysis = explained();
    analysis.cells[1].disturbance.suspended_ns = 1_000_000_000;
    assert_eq!(suspected(&analysis), None);
}

/// The suspect is the limit of requests, whose check is the I/Os of the device for a request.
fn limited(ios: [Option<f64>; 4]) -> Analysis {
    let mut analysis = explained();
    let inquiry = analysis.inquiry.as_mut().expect("one");
    inquiry.tried = vec!["request-limit".to_owned()];
    inquiry.variants[1].without = inquiry.tried.clone();
    for (cell, ios) in analysis.cells.iter_mut().zip(ios) {
        cell.disturbance.ios_per_request = ios;
    }
    analysis
}

#[test]
fn request_limit_is_removed_if_device_counts_fewer() {
    let of = |ios: [Option<f64>; 4]| verdict(&limited(ios)).0;
    let split = [Some(1.0), Some(2.0), Some(1.0)];
    let fewer = [split[0], split[1], split[2], Some(1.0)];
    assert_eq!(of(fewer), Standing::Cause);
    let as_many = [split[0], split[1], split[2], Some(2.0)];
    assert_eq!(of(as_many), Standing::NotTried);
    assert_eq!(of([None; 4]), Standing::NotTried);
}

#[test]
fn cpu_waiting_is_removed_if_threads_wait_half() {
    let of = |left: f64| {
        let mut analysis = explained();
        let inquiry = analysis.inquiry.as_mut().expect("one");
        inquiry.tried = vec!["cpu-waiting".to_owned()];
        inquiry.variants[1].without = inquiry.tried.clone();
        for (cell, wait) in analysis.cells.iter_mut().zip([0.0, 0.5, 0.0, left]) {
            cell.disturbance.wait_for_others = Some(wait);
        }
        verdict(&analysis).0
    };
    assert_eq!(of(0.1), Standing::Cause);
    assert_eq!(of(0.4), Standing::NotTried);
}

/// A larger region gives the worse side what it lacks. If the better side falls instead, the intervention caused
/// that.
#[test]
fn change_of_other_side_is_not_a_cause() {
    assert_eq!(verdict(&explained()).0, Standing::Cause);
    let of_other_side = explained_in(&BETTER_FALLS);
    assert_eq!(verdict(&of_other_side).0, Standing::OtherSide);
}

/// The suspect is the page cache that takes writes. Without it bytes must come from storage, so that the
/// different source is not a doubt, as it would be for other suspects.
#[test]
fn writeback_is_removed_if_bytes_come_from_storage() {
    let of = |suspect: &str, without: ServedBy| {
        let mut analysis = explained_in(&BETTER_FALLS);
        let inquiry = analysis.inquiry.as_mut().expect("one");
        inquiry.tried = vec![suspect.to_owned()];
        inquiry.variants[1].without = inquiry.tried.clone();
        let sources = [
            ServedBy::PageCache,
            ServedBy::Device,
            without,
            ServedBy::Device,
        ];
        for (cell, source) in analysis.cells.iter_mut().zip(sources) {
            cell.served = Some(CellServed {
                is_shared: false,
                trials: vec![(source, cell.values.len())],
                device_fraction: None,
                reason: String::new(),
            });
        }
        suspected(&analysis).map(|one| one.standing)
    };
    assert_eq!(of("write-back", ServedBy::Device), Some(Standing::Cause));
    assert_eq!(
        of("write-back", ServedBy::PageCache),
        Some(Standing::NotTried)
    );
    assert_eq!(of("reach", ServedBy::Device), None);
}

/// Three threads on two CPUs wait for each other, however idle the machine is.
#[test]
fn waiting_among_own_threads_is_not_disturbance() {
    let of = |used: f64, waited: f64, cpus: Option<&str>| {
        let mut record = size_curve("read-size", &CELLS[..1]);
        record.environment.put(&KEYS.cpu_usable_count, 2);
        let trial = &mut record.cells[0].spec.trial;
        trial.threads = 3;
        trial.cpus = cpus.map(|cpus| cpus.parse().expect("valid"));
        for sample in &mut record.samples {
            let part = |share: f64| (share * sample.elapsed_ns as f64) as u64;
            sample.run_delay_ns = Some(part(waited));
            sample.counters.usage.user_ns = part(used / 2.0);
            sample.counters.usage.system_ns = part(used / 2.0);
        }
        let share = analyse(&record).cells[0].disturbance.wait_for_others;
        (300.0 * share.expect("counted")).round()
    };
    assert_eq!(of(2.0, 1.0, None), 0.0);
    // Others had one of the CPUs all the time.
    assert_eq!(of(1.0, 2.0, None), 100.0);
    // One CPU is all that the threads may use.
    assert_eq!(of(1.0, 2.0, Some("1")), 0.0);
    // A CPU was idle, and threads that it served waited until it woke up.
    assert_eq!(of(0.5, 0.25, None), 25.0);
}

/// A fall or a rise of reads over a run, at its cell 0.
fn shift(of: Access, factor: f64) -> RunShift {
    let undisturbed = DisturbedTrials {
        disturbed: 0,
        suspended: 0,
        all: 10,
    };
    RunShift {
        of,
        moved_bytes: 1 << 30,
        after_ns: 1_000_000_000,
        factor,
        cells: vec![0],
        levels: Levels::Trials {
            before: 10,
            after: 10,
        },
        disturbed_before: undisturbed,
        disturbed_after: undisturbed,
        cell: 0,
        before_mb_s: 100.0,
        after_mb_s: 100.0 * factor,
    }
}

#[test]
fn change_despite_idle_time_leaves_suspects_untried() {
    let mut analysis = explained();
    analysis.timeline.over_run = vec![shift(Access::Reads, 0.5)];
    assert_ne!(verdict(&analysis).0, Standing::NotTried);
    let inquiry = analysis.inquiry.as_mut().expect("one");
    inquiry.idle_ns = Some(1_500_000_000);
    assert_eq!(verdict(&analysis).0, Standing::NotTried);
    let why = WhyUntried::LevelChanged(1_500_000_000);
    let all = claims(&[&analysis]);
    assert_eq!(all[1].payload, Some(Payload::NotTried(why)));
}

/// All trials but the first ones may have run at the lower level.
#[test]
fn change_despite_idle_time_leaves_reproduction_open() {
    let mut analysis = explained_in(&CELLS.map(|(size, _)| (size, 500.0)));
    let again = |analysis: &Analysis| {
        let all = claims(&[analysis]);
        (all[0].points[0].standing, is_answered(&all))
    };
    let gone = (Standing::NotReproduced, true);
    analysis.inquiry.as_mut().expect("one").idle_ns = Some(1_500_000_000);
    assert_eq!(again(&analysis), gone);
    analysis.timeline.over_run = vec![shift(Access::Reads, 0.5)];
    assert_eq!(again(&analysis), (Standing::Undecided, false));
    // Without idle time, no level was to be restored.
    analysis.inquiry.as_mut().expect("one").idle_ns = None;
    assert_eq!(again(&analysis), gone);
}

/// Credits that only one side uses up. The other side is below the limit anyway, and no level of the run as a
/// whole changes.
fn drained() -> Analysis {
    let fast = [
        174.0, 178.0, 190.0, 178.0, 170.0, 78.0, 113.0, 86.0, 63.0, 120.0, 62.0, 89.0, 114.0, 58.0,
        109.0, 79.0, 55.0, 81.0, 110.0, 86.0,
    ];
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &fast);
    let slow = [around(31.0), around(31.0), around(31.0)].concat();
    add_cell(&mut record, &["bs=64KiB"], &slow[..fast.len()]);
    analyse(&record)
}

#[test]
fn falling_side_leaves_suspects_untried() {
    let mut analysis = drained();
    let falling = analysis.cells.remove(0);
    let mut explained = explained();
    explained.inquiry.as_mut().expect("one").idle_ns = Some(1_500_000_000);
    assert_ne!(verdict(&explained).0, Standing::NotTried);
    explained.cells[1].series_tests = falling.series_tests;
    explained.cells[1].values = falling.values;
    assert_eq!(verdict(&explained).0, Standing::NotTried);
}

/// Noise takes single blocks below zero, and above the whole.
#[test]
fn left_and_gone_shares_add_up_with_noise() {
    let mut record = record("read-size", &["bs"]);
    let noisy = |mb_s: f64, turn: usize| -> Vec<f64> {
        let noise = |n: usize| 0.4 * ((n * turn % 11) as f64 / 5.0 - 1.0);
        (0..30).map(|n| mb_s * noise(n).exp()).collect()
    };
    for ((size, mb_s), turn) in CELLS.iter().zip([3, 5, 7, 9]) {
        add_cell(&mut record, &[&format!("bs={size}")], &noisy(*mb_s, turn));
    }
    let mut analysis = analyse(&record);
    analysis.inquiry = explained().inquiry;
    let gone = suspected(&analysis).expect("a verdict");
    assert_eq!(gone.standing, Standing::Cause);
    let all = remainders(&analysis);
    let without: Vec<_> = all.iter().filter(|one| !one.suspects.is_empty()).collect();
    let [left] = without.as_slice() else {
        panic!("{all:?}");
    };
    let is_whole = |left: f64, gone: f64| (left + gone - 1.0).abs() < 1e-6;
    assert!(is_whole(left.value, gone.value), "{left:?} {gone:?}");
    let ((low, high), (least, most)) = left.interval.zip(gone.interval).expect("enough blocks");
    assert!(
        is_whole(low, most) && is_whole(high, least),
        "{left:?} {gone:?}"
    );
    assert!(most - least > 0.05, "{gone:?}");
}

/// Loads that take these times, ns: base and other with the suspect, then without it.
fn loads(elapsed: [f64; 4]) -> Analysis {
    let mut analysis = explained();
    let inquiry = analysis.inquiry.as_mut().expect("one");
    inquiry.tried = vec!["written-data".to_owned()];
    inquiry.variants[1].without = inquiry.tried.clone();
    for (cell, mean) in analysis.cells.iter_mut().zip(elapsed) {
        for value in cell.of[Response::Elapsed].iter_mut() {
            value.median = mean;
        }
    }
    analysis
}

/// The cells move 1000, 500, 1000 and 990 MB/s.
#[test]
fn loads_of_different_bytes_decide_no_fall() {
    let of = |elapsed| verdict(&loads(elapsed)).0;
    assert_eq!(of([1e9, 8e9, 1e9, 8e9]), Standing::Cause);
    // The longer load moved less.
    assert_eq!(of([1e9, 8e9, 1e9, 3e9]), Standing::NotTried);
    // The shorter load moved more, and may reach beyond the fall.
    assert_eq!(of([1e9, 8e9, 2e9, 8e9]), Standing::NotTried);
}
