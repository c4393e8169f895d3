//! Requests in flight, and ceilings, in made-up records.

use iolab_analysis::analysis::{Analysis, DoubtKind, analyse};
use iolab_record::environment::KEYS;
use iolab_record::{FurtherTarget, RunRecord, ServedBy};
use iolab_report::{ratio, table::table};
use iolab_workload::counters::Traffic;
use iolab_workload::group::GroupSpec;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::Rate;

use crate::named;
use iolab_synthetic::{add_cell, record};

/// Cells of these threads and throughputs; 4 KiB requests.
fn grid(cells: &[(&str, f64)]) -> RunRecord {
    let mut record = record("grid", &["threads"]);
    for (threads, mb_s) in cells {
        let threads = format!("threads={threads}");
        add_cell(&mut record, &["bs=4KiB", &threads], &[*mb_s; 6]);
    }
    // The device is unknown unless a test sets it.
    for sample in &mut record.samples {
        if let Some(device) = &mut sample.counters.device {
            device.queue_ms = None;
        }
    }
    record
}

/// Sets the number of requests in flight at the device, in every trial of a cell.
fn in_flight(record: &mut RunRecord, cell: i64, requests: f64) {
    for sample in record.samples.iter_mut().filter(|s| s.cell == cell) {
        // Trials last long enough for counters in milliseconds.
        let scale = 1_000_000_000 / sample.elapsed_ns.max(1) + 1;
        sample.elapsed_ns *= scale;
        sample.operations.read.requests *= scale;
        sample.operations.read.bytes *= scale;
        let elapsed_ms = sample.elapsed_ns as f64 / 1e6;
        let (requests_done, bytes) = (
            sample.operations.read.requests,
            sample.operations.read.bytes,
        );
        let device = sample.counters.device.as_mut().expect("counted");
        device.read_ios = requests_done;
        device.read_bytes = bytes;
        device.queue_ms = Some((requests * elapsed_ms) as u64);
        let process = sample.counters.process_io.as_mut().expect("counted");
        process.read_bytes = bytes;
    }
}

fn flagged(analysis: &Analysis, flag: DoubtKind) -> Vec<usize> {
    let has =
        |(_, cell): &(usize, &iolab_analysis::analysis::CellAnalysis)| cell.flags.contains(&flag);
    let cells = analysis.cells.iter().enumerate().filter(has);
    cells.map(|(number, _)| number).collect()
}

/// Requests in flight in every trial of a cell, seen from the threads.
fn issued(record: &mut RunRecord, cell: i64, requests: f64) {
    let samples = record.samples.iter_mut().filter(|s| s.cell == cell);
    samples.for_each(|sample| sample.in_flight = Some(requests));
}

/// 128 requests of 128 MiB are requested over a region that holds eight.
#[test]
fn region_limits_the_requests_in_flight() {
    let mut record = grid(&[("1", 2000.0)]);
    let trial = &mut record.cells[0].spec.trial;
    (trial.depth, trial.bs, trial.region) = (128, 128 << 20, 1 << 30);
    issued(&mut record, 0, 8.0);
    let analysis = analyse(&record);
    assert_eq!(flagged(&analysis, DoubtKind::FewInFlight), [0]);
    assert!(table(&analysis).text(200).contains("8.0 of 128"));
    let text = &named("serialised", &analysis)[0].text;
    insta::assert_snapshot!(text, @"Only 8 of 128 requests were in flight with 1 thread. The region holds 8 requests of this size: a larger region (--size) or fewer threads times depth.");
}

/// A device at its limit with all requests in flight does not show a lock; a device that sees a single request
/// does.
#[test]
fn device_distinguishes_limit_from_lock() {
    let mut limit = grid(&[("1", 100.0), ("8", 150.0)]);
    in_flight(&mut limit, 0, 0.9);
    in_flight(&mut limit, 1, 7.8);
    let analysis = analyse(&limit);
    assert!(flagged(&analysis, DoubtKind::Serialised).is_empty());
    let of = analysis.cells[1].concurrency.expect("direct");
    assert!(of.at_device.is_some_and(|n| n > 7.0), "{of:?}");

    let mut lock = grid(&[("8", 100.0)]);
    in_flight(&mut lock, 0, 0.9);
    issued(&mut lock, 0, 8.0);
    let analysis = analyse(&lock);
    assert_eq!(flagged(&analysis, DoubtKind::Serialised), [0]);
    let text = &named("serialised", &analysis)[0].text;
    insta::assert_snapshot!(text, @"Only 0.899 of 8 requests were at the device with 8 threads. The requests waited before they reached the device; with several threads, 'iolab run why-serialised' isolates the cause.");

    let mut limited = lock.clone();
    let sample = &limited.samples[1];
    let per_second = sample.bytes() as f64 / (sample.elapsed_ns as f64 / 1e9);
    let key = KEYS.device_limit(Traffic::ReadBytes);
    limited.environment.put(key, per_second as u64);
    let text = &named("serialised", &analyse(&limited))[0].text;
    insta::assert_snapshot!(text, @"Only 0.899 of 8 requests were at the device with 8 threads. An I/O limit of the control group held them back (100 MB/s of reads).");

    // CPU time of others is not a limit of these threads.
    let mut contended = lock;
    for sample in &mut contended.samples {
        sample.counters.pressure.cpu_stall_ns = Some(sample.elapsed_ns);
    }
    let text = &named("serialised", &analyse(&contended))[0].text;
    insta::assert_snapshot!(text, @"Only 0.899 of 8 requests were at the device with 8 threads. Other programs used the CPUs at the same time, which may be the cause.");
}

/// Eight threads that wait for a lock of the file that they share.
pub(crate) fn locked() -> RunRecord {
    let mut record = record("why", &["layout", "threads"]);
    for (layout, threads, mb_s) in [
        ("shared", "1", 35.0),
        ("shared", "8", 36.0),
        ("private", "1", 35.0),
        ("private", "8", 220.0),
    ] {
        let (layout, threads) = (format!("layout={layout}"), format!("threads={threads}"));
        add_cell(&mut record, &["bs=4KiB", &layout, &threads], &[mb_s; 6]);
    }
    for cell in 0..4 {
        issued(&mut record, cell, [1.0, 8.0, 1.0, 8.0][cell as usize]);
    }
    record
}

#[test]
fn efficiency_names_its_ceiling_also_above_one() {
    let mut record = grid(&[("1", 255.0), ("2", 709.0)]);
    let of = |record: &RunRecord| {
        let analysis = analyse(record);
        let text = |cell: usize| {
            let efficiency = analysis.cells[cell].efficiency.expect("a ceiling");
            (ratio::ceiling(&efficiency), ratio::share(&efficiency))
        };
        (
            text(0),
            text(1),
            flagged(&analysis, DoubtKind::ExceedsCeiling),
            named("exceeds-ceiling", &analysis),
        )
    };
    let put = |record: &mut RunRecord, key: &str, value: &str| {
        record
            .environment
            .extend([(key.to_owned(), value.to_owned())]);
    };
    put(&mut record, "device_link_mb_s", "600.0");
    put(&mut record, "peak_stated_read_mb_s", "510");
    put(&mut record, "peak_stated_write_mb_s", "485");
    let (low, high, flags, findings) = of(&record);
    assert_eq!(low, ("510 MB/s stated".to_owned(), "50 %".to_owned()));
    assert_eq!(high.1, "139 % (exceeds ceiling)");
    assert_eq!(flags, [1]);
    insta::assert_snapshot!(findings[0].text, @"1 of 2 cells: the result exceeds the ceiling, and the evidence does not show why (139 % of 510 MB/s stated). Either the ceiling is wrong (a burst, another device, a cache in the device), or the bytes did not come from the device.");

    put(&mut record, "peak_stated_read_iops", "95000");
    let (low, ..) = of(&record);
    assert_eq!(low, ("95000 IOPS stated".to_owned(), "66 %".to_owned()));

    for sample in &mut record.samples {
        sample.verdict.served_by = ServedBy::PageCache;
    }
    let (_, high, flags, findings) = of(&record);
    insta::assert_snapshot!(high.1, @"182 % (page cache)");
    assert!(flags.is_empty() && findings.is_empty());
}

#[test]
fn ceiling_is_of_the_only_active_target() {
    let mut record = grid(&[("1", 255.0), ("2", 709.0), ("3", 709.0)]);
    record.run.target = "/sata".to_owned();
    record.further_targets = vec![FurtherTarget {
        id: 1,
        target: "/nvme".to_owned(),
        ..FurtherTarget::default()
    }];
    let links = [
        ("device_link_mb_s", "600"),
        ("target_1_device_link_mb_s", "3500"),
    ];
    let links = links.map(|(key, value)| (key.to_owned(), value.to_owned()));
    record.environment.extend(links);
    let group = |name: &str| GroupSpec {
        name: name.trim_start_matches('/').to_owned(),
        spec: CellSpec {
            target: name.parse().ok(),
            ..CellSpec::default()
        },
    };
    for (cell, active) in record
        .cells
        .iter_mut()
        .zip([[true, false], [false, true], [true; 2]])
    {
        cell.spec.groups = ["/sata", "/nvme"].map(group).to_vec();
        for (group, active) in cell.spec.groups.iter_mut().zip(active) {
            group.spec.trial.rate = (!active).then_some(Rate::ZERO);
        }
    }
    let analysis = analyse(&record);
    let ceilings = analysis.cells.iter();
    let ceilings: Vec<_> = ceilings
        .map(|cell| cell.efficiency.map(|e| e.ceiling))
        .collect();
    assert_eq!(ceilings, [Some(600.0), Some(3500.0), None]);
    assert!(flagged(&analysis, DoubtKind::ExceedsCeiling).is_empty());
}
