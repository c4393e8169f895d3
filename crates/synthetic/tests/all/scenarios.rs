//! Records that contain everything their scenario asks for.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_analysis::timeline::{over_run, within_trials};
use iolab_record::{RunRecord, ServedBy, ShownLatency};
use iolab_stats::{median, two_modes};
use iolab_synthetic::{
    At, Change, Common, Curve, Disturbance, Disturber, Evidence, Noise, OverTime, Scenario, WarmUp,
};
use iolab_workload::response::Response;

/// Throughput of all measured trials of a cell in time order, MB/s.
fn values(record: &RunRecord, cell: usize) -> Vec<f64> {
    let (_, trials) = record.measured().nth(cell).expect("the cell");
    trials.iter().map(|s| s.throughput_mb_s()).collect()
}

fn quiet(experiment: &str, changes: &[&str]) -> Scenario {
    Scenario {
        noise: Noise::None,
        ..Scenario::of(experiment, changes)
    }
}

#[test]
fn every_builtin_grid_can_be_made() {
    for (experiment, changes, cells) in [
        ("read-size", &["bs=4k,64k,1M"][..], 3),
        ("disk-grid", &["bs=4k,64k", "threads=1,4"], 16),
        ("write-stride", &["bs=128k"], 16),
        ("read-random", &["bs=4k", "threads=1,2,4"], 3),
        (
            "write-random",
            &["bs=4k", "backend=io_uring", "depth=1,32,128"],
            3,
        ),
        ("write-size", &["bs=4k,1M", "sync=none,end,each"], 6),
        ("read-random", &["bs=4k", "read_percent=0,50,100"], 3),
    ] {
        let (record, truth) = Scenario::of(experiment, changes).run(1);
        assert_eq!(record.cells.len(), cells, "{experiment} {changes:?}");
        assert_eq!(truth.cells.len(), cells);
        assert_eq!(record.samples.len(), cells * 11);
        let run = AnalysedRun::of(record);
        for (cell, truth) in run.analysis().cells.iter().zip(&truth.cells) {
            assert_eq!(cell.n, 10);
            let median = cell.median(Response::Throughput).expect("trials");
            assert!(
                (median / truth.mb_s).ln().abs() < 0.06,
                "{median} {truth:?}"
            );
            assert_eq!(
                cell.served.as_ref().and_then(|s| s.unanimous()),
                Some(ServedBy::Device)
            );
        }
    }
}

#[test]
fn without_noise_the_record_has_the_truth() {
    let scenario = Scenario {
        curves: vec![
            ("bs", Curve::Amortised { half: 65536.0 }),
            ("threads", Curve::Plateau { from: 4.0 }),
        ],
        effects: vec![(At::levels("bs=1M,threads=2"), 1.4)],
        ..quiet("read-random", &["bs=64k,1M", "threads=1,2,8"])
    };
    let (record, truth) = scenario.run(3);
    let level = |levels| truth.cells[At::levels(levels).of(&record)[0]].mb_s;
    assert!((level("bs=64k,threads=1") - 12.5).abs() < 1e-9);
    assert!((level("bs=64k,threads=8") - 50.0).abs() < 1e-9);
    assert!((level("bs=1M,threads=2") - 50.0 * 16.0 / 17.0 * 1.4).abs() < 1e-9);
    for cell in 0..record.cells.len() {
        for value in values(&record, cell) {
            assert!((value / truth.cells[cell].mb_s - 1.0).abs() < 1e-6);
        }
    }
    let curve = Curve::Cliff {
        from: 4.0,
        ratio: 0.5,
    };
    assert_eq!([2.0, 4.0, 8.0].map(|x| curve.factor(x)), [1.0, 0.5, 0.5]);
    let curve = Curve::Dip {
        at: 4.0,
        ratio: 0.5,
    };
    assert_eq!([2.0, 4.0, 8.0].map(|x| curve.factor(x)), [1.0, 0.5, 1.0]);
}

#[test]
fn blocks_are_complete_shuffled_and_consecutive() {
    let (record, _) = Scenario::of("read-size", &["bs=4k,16k,64k,1M"]).run(9);
    let started: Vec<&str> = record
        .samples
        .iter()
        .map(|s| s.started_utc.as_str())
        .collect();
    assert!(started.is_sorted() && started[0] < started[1]);
    let orders: Vec<Vec<i64>> = record
        .samples
        .chunks(4)
        .zip(0..)
        .map(|(block, number)| {
            assert!(
                block
                    .iter()
                    .all(|s| s.block == number && s.warmup == (number == 0))
            );
            assert!(block.iter().zip(0..).all(|(s, place)| s.position == place));
            block.iter().map(|s| s.cell).collect()
        })
        .collect();
    assert!(orders.windows(2).any(|pair| pair[0] != pair[1]));
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3]);
    }
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let scenario = Scenario::of("read-size", &["bs=4k,1M"]);
    assert_eq!(scenario.run(5), scenario.run(5));
    let (one, other) = (scenario.run(5).0, scenario.run(6).0);
    assert_ne!(values(&one, 0), values(&other, 0));
    let (elsewhere, later) = (scenario.on("/other").run(5).0, scenario.later().run(5).0);
    assert!(!one.is_same_run(&later) && !one.has_same_samples(&elsewhere));
    assert!(one.has_same_samples(&later) && !one.has_same_samples(&other));
    assert_eq!(elsewhere.run.target, "/other");
}

#[test]
fn what_blocks_share_falls_out_of_ratios() {
    let scenario = Scenario {
        common: Common {
            block_sigma: 0.3,
            trend: 0.5,
            ..Common::default()
        },
        ..quiet("read-size", &["bs=4k,1M"])
    };
    let (record, _) = scenario.run(2);
    let (base, new) = (values(&record, 0), values(&record, 1));
    assert!(base[0] / base[5] < 0.9 || base[0] / base[5] > 1.1);
    for (base, new) in base.iter().zip(&new) {
        assert!((base / new - 1.0).abs() < 1e-6, "{base} {new}");
    }
}

#[test]
fn wandering_correlates_neighbouring_blocks_as_asked() {
    let scenario = Scenario {
        common: Common {
            wander_sigma: 0.2,
            wander_correlation: 0.8,
            ..Common::default()
        },
        trials: 100,
        ..quiet("read-size", &["bs=4k,16k,64k"])
    };
    let correlation: Vec<f64> = (0..40)
        .map(|seed| {
            let logs: Vec<f64> = values(&scenario.run(seed).0, 1)
                .iter()
                .map(|x| x.ln())
                .collect();
            iolab_stats::autocorrelation(&logs, 1).expect("values that vary")
        })
        .collect();
    let middle = median(&correlation).expect("some");
    // Short series show a little less.
    assert!((0.7..0.82).contains(&middle), "{middle}");
}

#[test]
fn levels_change_where_the_truth_says() {
    let scenario = Scenario {
        changes: vec![Change {
            at: At::all(),
            after: 0.5,
            ratio: 0.3,
        }],
        trials: 20,
        ..Scenario::of("write-size", &["bs=4k,1M"])
    };
    let (record, truth) = scenario.run(4);
    let change = truth.cells[0].changes[0];
    assert_eq!((change.block, change.ratio), (11, 0.3));
    assert_eq!(truth.cells[0].median_mb_s(), None);
    let values = values(&record, 0);
    let near = |value: f64, wanted: f64| (value / wanted).ln().abs() < 0.15;
    assert!(near(values[9], 100.0) && near(values[10], 30.0));
    let found = over_run(&record, &|_| false);
    assert!(
        found.iter().any(|shift| near(shift.factor, 0.3)),
        "{found:?}"
    );
}

#[test]
fn every_response_has_its_truth() {
    let scenario = Scenario {
        tails: vec![(At::levels("depth=8"), 4.0)],
        ..quiet(
            "read-random",
            &["bs=4k", "backend=io_uring", "depth=1,8", "time=2s"],
        )
    };
    let (record, truth) = scenario.run(6);
    for ((_, trials), cell) in record.measured().zip(&truth.cells) {
        for response in [Response::Throughput, Response::Iops, Response::Latency] {
            let wanted = cell.value(response).expect("a truth");
            let found = trials[0]
                .value(response, ShownLatency::Own)
                .expect("a value");
            assert!(
                (found / wanted - 1.0).abs() < 1e-3,
                "{response:?} {found} {wanted}"
            );
        }
        let p99: Vec<f64> = trials
            .iter()
            .filter_map(|s| s.value(Response::P99, ShownLatency::Own))
            .collect();
        let ratio = median(&p99).expect("ten") / cell.value(Response::P99).expect("a truth");
        assert!((ratio - 1.0).abs() < 0.08, "{ratio}");
    }
    assert_eq!(
        truth
            .cells
            .iter()
            .map(|c| c.p99_over_p50)
            .collect::<Vec<_>>(),
        [3.0, 12.0]
    );
}

#[test]
fn cells_can_scatter_in_their_own_way() {
    let groups = Noise::TwoGroups {
        upper: 0.5,
        ratio: 1.5,
        sigma: 0.01,
    };
    let scenario = Scenario {
        noises: vec![(At::levels("bs=1M"), groups)],
        trials: 40,
        ..quiet("read-size", &["bs=4k,1M"])
    };
    let (record, truth) = scenario.run(2);
    assert_eq!(
        [truth.cells[0].noise, truth.cells[1].noise],
        [Noise::None, groups]
    );
    let found = [0, 1].map(|cell| two_modes(&values(&record, cell)).is_some());
    assert_eq!(found, [false, true]);
}

#[test]
fn course_of_trials_changes_at_the_true_place() {
    let scenario = Scenario {
        over_time: Some(OverTime {
            sigma: 0.03,
            at: At::levels("bs=1M"),
            after: 0.4,
            ratio: 0.25,
            slope: 0.0,
            once_in: None,
        }),
        ..Scenario::of("write-size", &["bs=64k,1M", "time=20s", "bytes=none"])
    };
    let (record, truth) = scenario.run(8);
    assert_eq!(
        truth
            .cells
            .iter()
            .map(|c| c.within_trials)
            .collect::<Vec<_>>(),
        [1.0, 0.25]
    );
    for (sample, own) in record.samples.iter().zip(&record.series) {
        assert_eq!(own.series.total(), sample.operations.moved());
    }
    let [shift] = &within_trials(&record)[..] else {
        panic!("one cell");
    };
    assert_eq!(shift.cell, 1);
    assert!((shift.factor() / 0.25).ln().abs() < 0.1, "{shift:?}");
    assert!((shift.after_ns as f64 / 8e9).ln().abs() < 0.1, "{shift:?}");
}

#[test]
fn warm_ups_reach_as_far_as_asked() {
    let scenario = Scenario {
        warm_up: WarmUp {
            blocks: 3,
            ratio: 0.5,
        },
        ..quiet("read-size", &["bs=4k,1M"])
    };
    let (record, truth) = scenario.run(4);
    assert_eq!(
        (truth.cells[0].warming, truth.cells[0].median_mb_s()),
        (2, None)
    );
    let shares: Vec<f64> = values(&record, 0)
        .iter()
        .map(|x| (x / 10.0).round())
        .collect();
    assert_eq!(
        shares,
        [5.0, 5.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]
    );
    assert!((record.samples[0].throughput_mb_s() - 50.0).abs() < 1e-3);
}

#[test]
fn disturbances_show_as_far_as_their_evidence() {
    let disturbed = |by, evidence| {
        let scenario = Scenario {
            disturbances: vec![Disturbance {
                by,
                at: At::levels("bs=1M"),
                share: 1.0,
                ratio: 0.5,
                evidence,
            }],
            ..quiet("read-random", &["bs=4k,1M"])
        };
        let (record, truth) = scenario.run(1);
        assert_eq!(
            (truth.cells[0].disturbed, truth.cells[1].disturbed),
            (0, 10)
        );
        assert!(
            values(&record, 1)
                .iter()
                .all(|x| (x / 50.0 - 1.0).abs() < 1e-6)
        );
        let run = AnalysedRun::of(record);
        let [clean, cell] = &run.analysis().cells[..] else {
            panic!("two cells");
        };
        let seen = |cell: &iolab_analysis::analysis::CellAnalysis| {
            (
                cell.disturbance.traffic_of_others().is_some(),
                cell.disturbance.cpus_taken().is_some(),
                cell.disturbance.suspended_ns > 0,
                cell.served.as_ref().and_then(|s| s.unanimous()),
            )
        };
        assert_eq!(seen(clean), (false, false, false, Some(ServedBy::Device)));
        seen(cell)
    };
    let device = Some(ServedBy::Device);
    let shown = |by| disturbed(by, Evidence::Shown);
    assert_eq!(shown(Disturber::Traffic), (true, false, false, device));
    assert_eq!(shown(Disturber::Cpu), (false, true, false, device));
    assert_eq!(
        shown(Disturber::PageCache),
        (false, false, false, Some(ServedBy::PageCache))
    );
    assert_eq!(shown(Disturber::Sleep), (false, false, true, device));
    for by in [
        Disturber::Traffic,
        Disturber::Cpu,
        Disturber::PageCache,
        Disturber::Sleep,
    ] {
        let nothing = |served_by| (false, false, false, Some(served_by));
        assert_eq!(disturbed(by, Evidence::Hidden), nothing(ServedBy::Device));
        assert_eq!(
            disturbed(by, Evidence::NotCounted),
            nothing(ServedBy::Unknown)
        );
    }
}

#[test]
fn median_of_a_run_includes_shared_variation() {
    let scenario = Scenario {
        common: Common {
            block_sigma: 0.5,
            ..Common::default()
        },
        noise: Noise::Exponential,
        trials: 1,
        ..Scenario::of("read-size", &["bs=4k,1M"])
    };
    let truth = scenario.run(0).1.cells[0]
        .median_mb_s()
        .expect("a steady cell");
    let below = (0..4000).filter(|seed| values(&scenario.run(*seed).0, 0)[0] < truth);
    // Four standard deviations of the binomial.
    let below = below.count() as f64;
    assert!((below - 2000.0).abs() < 127.0, "{below}");
    assert!(truth != 100.0);
}
