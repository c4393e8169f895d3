//! Several runs on one screen: the glance, the verdict on trust, the headlines.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::claim::HEADLINES_MAX;
use iolab_analysis::doubt::DoubtKind;
use iolab_analysis::headline_numbers::HeadlineNumbers;
use iolab_analysis::trust::{Trust, TrustLevel};
use iolab_record::{RunRecord, RunStatus, ServedBy};
use iolab_report::findings::digest::{Digest, Told};
use iolab_report::findings::interpretation::Interpretation;

use iolab_synthetic::{add_cell, around, record, serve};
use iolab_workload::trial::{CacheState, SyncPolicy};

/// A curve over sizes of one kind of access.
fn curve(name: &str, access: &[&str], points: &[(&str, f64)]) -> RunRecord {
    let mut record = record(name, &["bs"]);
    for (size, mb_s) in points {
        let size = format!("bs={size}");
        let levels: Vec<&str> = [size.as_str()]
            .into_iter()
            .chain(access.iter().copied())
            .collect();
        add_cell(&mut record, &levels, &around(*mb_s));
    }
    record
}

const READS: [(&str, f64); 4] = [
    ("4KiB", 40.0),
    ("64KiB", 400.0),
    ("1MiB", 1000.0),
    ("16MiB", 1010.0),
];

/// Sequential and random reads, and durable writes.
fn study() -> Vec<AnalysedRun> {
    let slower = READS.map(|(size, mb_s)| (size, if mb_s < 1000.0 { mb_s / 2.0 } else { mb_s }));
    let records = [
        curve("read-size", &["pattern=seq"], &READS),
        curve("read-random", &["pattern=rand"], &slower),
        curve(
            "write-size",
            &["pattern=seq", "read_percent=0", "sync=each"],
            &READS,
        ),
    ];
    records.map(AnalysedRun::of).into()
}

/// Trust in the output about these runs.
fn trust(runs: &[AnalysedRun]) -> Trust {
    told(runs, |digest| digest.trust.clone())
}

pub(crate) fn told<T>(runs: &[AnalysedRun], use_it: impl FnOnce(&Digest<'_>) -> T) -> T {
    let interpretations: Vec<Interpretation> = runs.iter().map(Interpretation::of).collect();
    let pairs = runs.iter().zip(&interpretations);
    let told: Vec<Told<'_>> = pairs
        .map(|(run, interpretation)| Told {
            run,
            peers: &interpretation.peers,
        })
        .collect();
    use_it(&Digest::of(&told))
}

#[test]
fn glance_takes_large_sequential_and_small_random_blocks() {
    let runs = study();
    let analyses: Vec<_> = runs.iter().map(AnalysedRun::analysis).collect();
    let glance = HeadlineNumbers::of(&analyses);
    let rows = glance.rows.iter().map(|row| {
        let (bs, unit) = (row.cell.cell.trial().bs, row.rate().unwrap().unit);
        format!("{:?} {:?} {bs} {unit}", row.order, row.operation)
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            "Sequential Read 1048576 MB/s",
            "Sequential DurableWrite 1048576 MB/s",
            "Random Read 4096 IOPS",
        ]
    );
    assert!(
        glance
            .rows
            .iter()
            .all(|row| row.rate().unwrap().precision.is_some())
    );
}

#[test]
fn glance_takes_least_and_fastest_depth() {
    let mut grid = record("grid", &["depth"]);
    for (depth, mb_s) in [(1, 10.0), (4, 35.0), (16, 90.0), (64, 80.0)] {
        let depth = format!("depth={depth}");
        add_cell(
            &mut grid,
            &[&depth, "bs=4KiB", "pattern=rand", "backend=io_uring"],
            &around(mb_s),
        );
    }
    let run = AnalysedRun::of(grid);
    let glance = HeadlineNumbers::of(&[run.analysis()]);
    let flights: Vec<u64> = glance.rows.iter().map(|row| row.in_flight()).collect();
    assert_eq!(flights, [16, 1]);
}

#[test]
fn headlines_are_few_without_repetition() {
    let runs = study();
    told(&runs, |digest| {
        let texts: Vec<&str> = digest.headlines.iter().map(|h| h.text.as_str()).collect();
        assert!(texts.len() <= HEADLINES_MAX, "{texts:?}");
        // The cost of random access comes before the best size of each kind of access.
        assert_eq!(digest.headlines[0].runs, [0, 1], "{texts:?}");
        for text in &texts {
            assert_eq!(
                texts.iter().filter(|other| *other == text).count(),
                1,
                "{texts:?}"
            );
        }
        insta::assert_snapshot!(texts.join("\n"));
    });
}

/// Cells that no finding and no main number uses do not count: here strided reads, which nothing is compared
/// with.
#[test]
fn only_what_is_shown_is_judged() {
    let runs = |disturbed: usize| {
        let mut strides = record("read-stride", &[]);
        add_cell(
            &mut strides,
            &["bs=64KiB", "pattern=strided"],
            &[100.0, 101.0],
        );
        let mut all = [curve("read-size", &["pattern=seq"], &READS), strides];
        for sample in all[disturbed].samples.iter_mut() {
            let device = sample.counters.device.as_mut().expect("counted");
            device.read_bytes +=
                2 * sample.operations.read.bytes + 2 * sample.operations.write.bytes;
        }
        trust(&all.map(AnalysedRun::of))
    };
    let (rested, other) = (runs(0), runs(1));
    assert!(other.cells < other.measured, "{other:?}");
    assert_eq!((other.doubt, other.disturbed), (None, 0), "{other:?}");
    assert_eq!(rested.doubt, Some(DoubtKind::OtherTraffic), "{rested:?}");
}

/// Each reason with its level, the worst of several first.
#[test]
fn every_level_of_trust_has_its_reason() {
    let quiet = || curve("read-size", &[], &READS);
    let of = |change: &dyn Fn(&mut RunRecord)| {
        let mut record = quiet();
        change(&mut record);
        let trust = trust(&[AnalysedRun::of(record)]);
        (trust.level, trust.doubt)
    };
    let scatter = |record: &mut RunRecord, by: u64, cells: i64| {
        let of_cells = record.samples.iter_mut().filter(|s| s.cell < cells);
        for (place, sample) in of_cells.enumerate() {
            sample.elapsed_ns += sample.elapsed_ns * by * (place as u64 * 7 % 4) / 4;
        }
    };
    assert_eq!(of(&|_| ()), (TrustLevel::Good, None));
    let poor = |reason| (TrustLevel::Poor, Some(reason));
    assert_eq!(of(&|r| r.samples.clear()), poor(DoubtKind::NoTrial));
    assert_eq!(of(&|r| r.samples[3].ok = false), poor(DoubtKind::Errors));
    let elsewhere = |count: usize| {
        move |record: &mut RunRecord| {
            for cell in 0..count {
                serve(record, cell, ServedBy::PageCache, "");
            }
        }
    };
    assert_eq!(of(&elsewhere(READS.len())), poor(DoubtKind::PageCache));
    assert_eq!(
        of(&|r| scatter(r, 40, i64::MAX)),
        poor(DoubtKind::AboveMedian)
    );
    let limited = |reason| (TrustLevel::Limited, Some(reason));
    assert_eq!(of(&elsewhere(1)), limited(DoubtKind::PageCache));
    assert_eq!(
        of(&|r| r.run.status = RunStatus::Interrupted),
        limited(DoubtKind::Unfinished)
    );
    assert_eq!(of(&|r| scatter(r, 1, 2)), limited(DoubtKind::Imprecise));
    let left = |owed: Option<u64>| {
        move |record: &mut RunRecord| {
            record.cells[0].spec.trial.read_percent = 0;
            record.cells[0].spec.trial.sync = SyncPolicy::None;
            for sample in record.samples.iter_mut().filter(|s| s.cell == 0) {
                sample.operations.write = std::mem::take(&mut sample.operations.read);
                sample.region.owed_sync_ns = owed;
            }
        }
    };
    assert_eq!(of(&left(None)), limited(DoubtKind::EarlierWrites));
    assert_eq!(of(&left(Some(1_000))), (TrustLevel::Good, None));
    let later = |r: &mut RunRecord| r.experiment.toml = "[of another version]".to_owned();
    assert_eq!(of(&later), limited(DoubtKind::NoDefinition));
    let disturbed = |cells: i64| {
        move |record: &mut RunRecord| {
            for sample in record.samples.iter_mut().filter(|s| s.cell < cells) {
                let device = sample.counters.device.as_mut().expect("counted");
                device.write_bytes = 2 * device.read_bytes;
            }
        }
    };
    assert_eq!(of(&disturbed(1)), limited(DoubtKind::OtherTraffic));
    assert_eq!(of(&disturbed(4)), limited(DoubtKind::OtherTraffic));
    let imprecise_too = |r: &mut RunRecord| {
        scatter(r, 1, i64::MAX);
        disturbed(4)(r);
    };
    assert_eq!(of(&imprecise_too), poor(DoubtKind::OtherTraffic));
    // Stopped by Ctrl-Z: nothing failed, and no data was wrong.
    let stopped = |r: &mut RunRecord| {
        r.samples[3].counters.pressure.suspended_ns = Some(3_000_000_000);
    };
    assert_eq!(of(&stopped), poor(DoubtKind::Suspended));
    let failed_too = |r: &mut RunRecord| {
        stopped(r);
        r.samples[3].errors = 1;
    };
    assert_eq!(of(&failed_too), poor(DoubtKind::Errors));
    let requested = |r: &mut RunRecord| {
        elsewhere(READS.len())(r);
        for cell in &mut r.cells {
            cell.spec.trial.cache = CacheState::Hot;
        }
    };
    assert_eq!(of(&requested), (TrustLevel::Good, None));
}

/// The cause of a number comes before the size of the difference.
#[test]
fn explanations_come_first() {
    let mut first = Vec::new();
    for record in [
        crate::concurrency::locked(),
        crate::buffer_preparation::buffers(20),
    ] {
        told(&[AnalysedRun::of(record)], |digest| {
            first.push(digest.headlines[0].text.clone());
        });
    }
    insta::assert_snapshot!(first.join("\n"), @"
    Only 1.03 of 8 requests were at the device with layout shared, 8 threads. The threads wait for a lock of the file that they share: with layout=private the same threads reach 53711 IOPS.
    Page faults: untouched buffers have 2.75× lower throughput than zeroed ones with 8 MiB, 2998 MB/s against 8249 MB/s. A trial, untouched and zeroed: 2048 page faults; 0 page faults. Time per page fault: 870 µs. Slower in: 1 of 2 settings.
    ");
}

/// One run given twice, as by a pattern of names that matches a copy.
#[test]
fn run_given_twice_has_findings_once() {
    let run = || AnalysedRun::of(crate::concurrency::locked());
    let texts = |digest: &Digest<'_>| -> Vec<String> {
        let all = digest.headlines.iter();
        all.map(|headline| headline.text.clone()).collect()
    };
    let once = told(&[run()], texts);
    let twice = told(&[run(), run()], texts);
    assert!(!once.is_empty());
    assert_eq!(once, twice);
}

/// On a page of several targets, each headline names its target, in its text or before it.
#[test]
fn headlines_of_several_targets_name_theirs() {
    let on = |target: &str, mut record: RunRecord| {
        record.run.target = target.into();
        record
    };
    let seq = |target| on(target, curve("read-size", &["pattern=seq"], &READS));
    let rand = curve("read-random", &["pattern=rand"], &READS);
    let texts = |records: Vec<RunRecord>| {
        let runs: Vec<AnalysedRun> = records.into_iter().map(AnalysedRun::of).collect();
        told(&runs, |digest| {
            let all = digest.headlines.iter();
            let all = all.map(|one| format!("{} {}", one.names_targets, one.text));
            all.collect::<Vec<_>>().join("\n")
        })
    };
    insta::assert_snapshot!(texts(vec![seq("/a"), on("/b", rand.clone())]), @"false Best throughput: 1010 MB/s with 16 MiB. Within 5 % of it: 1 MiB. Worse: 2.52× lower with 64 KiB; 25.2× lower with 4 KiB.");
    insta::assert_snapshot!(texts(vec![seq("/a"), seq("/b"), on("/b", rand)]), @"
    true No difference in throughput is shown between /b and /a. Equivalent within 5 %: 4 KiB; and 3 more.
    true /b: No difference in throughput is shown between random reads and sequential reads. Equivalent within 5 %: 4 KiB; and 3 more.
    false Best throughput: 1010 MB/s with 16 MiB. Within 5 % of it: 1 MiB. Worse: 2.52× lower with 64 KiB; 25.2× lower with 4 KiB.
    ");
}
