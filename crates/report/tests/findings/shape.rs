//! Bends, best sizes and fixed costs of curves whose truth is known.

use iolab_analysis::analysis::analyse;
use iolab_analysis::bends;
use iolab_record::RunRecord;
use iolab_report::findings::Finding;
use iolab_workload::units::format_size;

use crate::named;
use iolab_synthetic::{add_cell, around, record};

/// A curve over the powers of two from 1 KiB to 1 MiB, with the thresholds of a machine.
fn curve(mb_s: impl Fn(f64) -> f64) -> RunRecord {
    let mut record = record("x", &["bs"]);
    for power in 10..=20 {
        let size = 1u64 << power;
        let level = format!("bs={}", format_size(size));
        add_cell(&mut record, &[&level], &around(mb_s(size as f64)));
    }
    for (key, bytes) in [
        ("cache_l1d_bytes", "32768"),
        ("cache_l2_bytes", "524288"),
        ("memory_bytes", "1073741824"),
    ] {
        record
            .environment
            .extend([(key.to_owned(), bytes.to_owned())]);
    }
    record
}

fn text(findings: &[Finding]) -> String {
    let texts: Vec<&str> = findings.iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}

/// 400 ns and 10 GB/s, with half of that rate at 4000 bytes.
#[test]
fn fixed_cost_and_rate_are_separated() {
    let model = |size: f64| size * 1e3 / (400.0 + size / 10.0);
    let analysis = analyse(&curve(model));
    let curves = bends::bendable(&analysis);
    let fit = bends::fixed_cost(&analysis, &curves[0]).expect("it describes the curve");
    assert!((fit.t0 / 400.0 - 1.0).abs() < 0.02, "{fit:?}");
    assert!((fit.bandwidth / 10.0 - 1.0).abs() < 0.02, "{fit:?}");
    let sentence = text(&named("cost-of-requests", &analysis));
    insta::assert_snapshot!(sentence, @"Time per request is 400 ns + size / 10000 MB/s, to within 1.6 %. Half of that rate is reached at: 3.91 KiB.");
    // A falling curve does not follow this model, and overlapping requests have no such time.
    assert_eq!(
        named("cost-of-requests", &analyse(&curve(|size| 1e6 / size))),
        []
    );
    let mut deep = curve(model);
    deep.cells
        .iter_mut()
        .for_each(|cell| cell.spec.trial.depth = 8);
    assert_eq!(named("cost-of-requests", &analyse(&deep)), []);
}

#[test]
fn added_sizes_stand_between_their_neighbours() {
    let mut record = record("x", &["bs", "threads"]);
    for levels in [
        ["bs=4KiB", "threads=1"],
        ["bs=4KiB", "threads=2"],
        ["bs=16KiB", "threads=1"],
        ["bs=16KiB", "threads=2"],
        ["bs=8KiB", "threads=1"],
        ["bs=8KiB", "threads=2"],
    ] {
        add_cell(&mut record, &levels, &around(100.0));
    }
    let order = |record: &RunRecord| -> Vec<String> {
        let analysis = analyse(record);
        analysis
            .cells
            .iter()
            .map(|c| c.cell.levels.join(" "))
            .collect()
    };
    assert_eq!(order(&record)[4], "8KiB 1", "as the file has it");
    record.experiment.toml = "name = 'x'\nquestion = 'q'\nresponse = 'throughput'\n\
        [factors]\nbs = ['4KiB', '16KiB']\nthreads = [1, 2]\n[design]\nrefine = 1\n\
        [refined]\nblock = 7\nbs = ['8KiB']\n"
        .to_owned();
    assert_eq!(
        order(&record),
        ["4KiB 1", "4KiB 2", "8KiB 1", "8KiB 2", "16KiB 1", "16KiB 2"]
    );
}
