//! Rules about what to choose and what not to conclude, each once where it speaks and once where it keeps silent.

use iolab_analysis::analysis::{Analysis, analyse};
use iolab_record::{RunRecord, ServedBy};
use iolab_report::findings::{
    cost_of_sync, limits, no_given_load, one_cache_state, one_place, optimal_pattern, scaling,
    tail, tail_unknown, untouched,
};
use iolab_workload::response::Response;
use iolab_workload::trial::CacheState;

use crate::text;
use iolab_synthetic::{add_cell, around, rate_report, record, serve, size_curve};

fn policies(throughputs: &[(&str, &str, f64)]) -> Analysis {
    let mut record = record("durable", &["sync", "bs"]);
    for (sync, bs, mb_s) in throughputs {
        let levels = [
            format!("sync={sync}"),
            format!("bs={bs}"),
            "read_percent=0".to_owned(),
        ];
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        let cell = add_cell(&mut record, &levels, &around(*mb_s));
        record.cells[cell].spec.trial.sync = sync.parse().expect("a value");
    }
    analyse(&record)
}

#[test]
fn each_policy_has_its_cost() {
    let found = cost_of_sync(&policies(&[
        ("each", "4KiB", 10.0),
        ("none", "4KiB", 100.0),
        ("end", "4KiB", 100.0),
        ("each", "1MiB", 400.0),
        ("none", "1MiB", 500.0),
        ("end", "1MiB", 499.0),
    ]));
    let found: Vec<&str> = found.iter().map(|f| f.text.as_str()).collect();
    let [end, each] = found[..] else {
        panic!("{found:?}")
    };
    assert!(
        end.starts_with("Throughput with sync=end over that with sync=none: 1.00 "),
        "{end}"
    );
    assert!(
        end.ends_with("No cost is shown at any of the 2 settings compared."),
        "{end}"
    );
    assert!(each.contains("0.100 (95 % interval"), "{each}");
    assert!(
        each.contains("with bs=1MiB (400 MB/s against 500 MB/s)"),
        "{each}"
    );
    assert!(
        each.ends_with("The stricter policy costs at all of the 2 settings compared."),
        "{each}"
    );
}

#[test]
fn one_policy_has_no_cost() {
    let all_each = policies(&[("each", "4KiB", 10.0), ("each", "1MiB", 400.0)]);
    assert!(cost_of_sync(&all_each).is_empty());
    assert!(cost_of_sync(&analyse(&size_curve("x", &[("4KiB", 1.0), ("8KiB", 2.0)]))).is_empty());
}

fn threads(throughputs: &[(u32, f64)]) -> RunRecord {
    let mut record = record("threads", &["threads"]);
    for (threads, mb_s) in throughputs {
        add_cell(
            &mut record,
            &[&format!("threads={threads}")],
            &around(*mb_s),
        );
    }
    record
}

#[test]
fn growth_is_told_with_its_end() {
    let found = text(&scaling(&analyse(&threads(&[
        (1, 100.0),
        (2, 190.0),
        (4, 300.0),
        (8, 301.0),
    ]))));
    assert!(
        found.starts_with("Throughput grows with threads: 3.00 times (95 % interval"),
        "{found}"
    );
    assert!(found.contains("from 1 to 4"), "{found}");
    assert!(
        found.contains("that is 75 % of growth in proportion"),
        "{found}"
    );
    assert!(
        found.contains("Beyond, no gain is shown: with 8 it is 1.00"),
        "{found}"
    );
}

#[test]
fn growth_ends_where_it_is_shown() {
    let mut record = threads(&[(1, 100.0)]);
    // Not shown to be faster than one thread, nor slower than four.
    let unsure = [90.0, 95.0, 98.0, 103.0, 105.0, 110.0, 118.0, 125.0];
    add_cell(&mut record, &["threads=2"], &unsure);
    add_cell(&mut record, &["threads=4"], &around(106.0));
    let found = text(&scaling(&analyse(&record)));
    assert!(found.contains("from 1 to 4"), "{found}");
}

#[test]
fn growth_may_go_on_or_never_begin() {
    let on = text(&scaling(&analyse(&threads(&[(1, 100.0), (2, 190.0)]))));
    assert!(
        on.ends_with("Growth had not ended at the largest count measured."),
        "{on}"
    );
    let never = text(&scaling(&analyse(&threads(&[(1, 100.0), (2, 100.0)]))));
    assert!(
        never.starts_with("Throughput is not shown to grow with threads: with 2 it is 1.00"),
        "{never}"
    );
    let worse = text(&scaling(&analyse(&threads(&[
        (1, 100.0),
        (2, 200.0),
        (4, 90.0),
    ]))));
    assert!(
        worse.contains("Beyond, it falls: with 4 it is 0.450"),
        "{worse}"
    );
    let falls = text(&scaling(&analyse(&threads(&[(1, 100.0), (2, 90.0)]))));
    assert!(
        falls.starts_with("Throughput falls with more threads"),
        "{falls}"
    );
}

#[test]
fn curves_without_intervals_share_one_sentence() {
    let mut record = record("grid", &["bs", "threads"]);
    for (bs, threads, mb_s) in [
        ("4KiB", 1, 100.0),
        ("4KiB", 4, 300.0),
        ("1MiB", 1, 500.0),
        ("1MiB", 4, 450.0),
    ] {
        let levels = [format!("bs={bs}"), format!("threads={threads}")];
        let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
        add_cell(&mut record, &levels, &[mb_s; 3]);
    }
    let found = scaling(&analyse(&record));
    assert_eq!(
        text(&found),
        "Too few trials to tell whether throughput grows with threads on any of 2 curves: the ratios of their medians \
         range from 0.900 with bs=1MiB (4 over 1) to 3.00 with bs=4KiB (4 over 1), without an interval."
    );
}

#[test]
fn a_count_that_does_not_vary_does_not_scale() {
    assert!(scaling(&analyse(&threads(&[(4, 100.0)]))).is_empty());
    let mut latency = threads(&[(1, 100.0), (2, 190.0)]);
    latency.experiment.response = Response::Latency;
    assert!(scaling(&analyse(&latency)).is_empty());
}

#[test]
fn the_tail_is_told_of_the_worst_and_the_best() {
    let mut record = size_curve("x", &[("4KiB", 40.0), ("8KiB", 80.0)]);
    for sample in record.samples.iter_mut().filter(|s| s.cell == 1) {
        let latency = sample.operations.read.latency.as_mut().unwrap();
        latency.p99_ns = latency.p50_ns * 20;
    }
    let found = text(&tail(&analyse(&record)));
    assert!(
        found.contains("at most 20.0 times the median (95 % interval 20.0 to 20.0) at bs=8KiB"),
        "{found}"
    );
    assert!(found.contains("at least 3.00 times the median"), "{found}");
    assert!(tail_unknown(&analyse(&record)).is_empty());
}

#[test]
fn few_requests_have_no_tail() {
    let mut record = size_curve("x", &[("4KiB", 40.0), ("8KiB", 80.0)]);
    for sample in &mut record.samples {
        sample.operations.read.requests = 367;
    }
    assert!(tail(&analyse(&record)).is_empty());
    let found = text(&tail_unknown(&analyse(&record)));
    assert!(
        found.starts_with("All cells had too few requests"),
        "{found}"
    );
}

#[test]
fn the_optimal_pattern_names_the_simpler_one_and_its_price() {
    let reads = [
        ("4KiB", 60.0),
        ("256KiB", 490.0),
        ("1MiB", 500.0),
        ("4MiB", 502.0),
    ];
    let found = text(&optimal_pattern(&[&analyse(&size_curve(
        "read-size",
        &reads,
    ))]));
    let expected = "Best for the throughput of reads (cache=direct) on /data: seq, bs=4MiB, 502 MB/s \
                    (95 % interval 497 MB/s to 507 MB/s). The simplest setting close to it: seq, bs=256KiB, with 0.976 of \
                    that throughput (95 % interval";
    assert!(found.starts_with(expected), "{found}");
    assert!(
        found.contains(
            "Best for the latency of reads (cache=direct) on /data: seq, bs=4KiB, median 68.3 us"
        ),
        "{found}"
    );
    assert!(
        found.ends_with("Throughput there is 12 % of the best."),
        "{found}"
    );
}

#[test]
fn nothing_simpler_is_made_up() {
    let curve = [("4KiB", 100.0), ("8KiB", 60.0)];
    let found = text(&optimal_pattern(&[&analyse(&size_curve("x", &curve))]));
    assert!(
        found.contains("No simpler setting is close to it."),
        "{found}"
    );
}

#[test]
fn what_differs_in_promise_is_not_compared() {
    let found = optimal_pattern(&[&policies(&[
        ("none", "4KiB", 100.0),
        ("each", "4KiB", 10.0),
        ("each", "1MiB", 400.0),
    ])]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .all(|f| f.text.contains("writes (sync=each, cache=direct)")),
        "{found:?}"
    );
}

#[test]
fn no_optimum_is_found_in_memory_or_in_one_cell() {
    let mut cached = size_curve("x", &[("4KiB", 100.0), ("8KiB", 60.0)]);
    for cell in 0..2 {
        serve(&mut cached, cell, ServedBy::PageCache, "memory");
    }
    assert!(optimal_pattern(&[&analyse(&cached)]).is_empty());
    assert!(optimal_pattern(&[&analyse(&threads(&[(1, 100.0)]))]).is_empty());
}

#[test]
fn limits_name_what_was_not_asked() {
    let run = analyse(&size_curve("x", &[("4KiB", 100.0)]));
    let found = text(&limits(&[&run, &run]));
    for part in [
        "One target was measured, in its state at that time",
        "Regions larger than 1GiB were not measured",
        "in a closed loop",
        "with cache=direct: programs that use the page cache",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn limits_that_were_overcome_are_silent() {
    let mut direct = size_curve("x", &[("4KiB", 100.0)]);
    rate_report(&mut direct, 0, 1000, 0);
    let mut hot = size_curve("y", &[("4KiB", 100.0)]);
    hot.cells[0].spec.trial.cache = CacheState::Hot;
    let both = [&analyse(&direct), &analyse(&hot)];
    assert_eq!(no_given_load(&both), None);
    assert_eq!(one_cache_state(&both), None);
    let nothing = [&analyse(&record("x", &[]))];
    assert_eq!(one_place(&nothing), None);
    assert_eq!(untouched(&nothing), None);
    assert!(limits(&nothing).is_empty());
}
