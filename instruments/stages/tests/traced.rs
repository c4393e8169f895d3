//! Traced trials on a real device: each request is joined with its events, and its stages are its time.

use std::sync::atomic::AtomicBool;

use iolab_engine::trial;
use iolab_host::clock::Clock;
use iolab_stages::TIME_BY_LAYER;
use iolab_storage::{Need as TargetNeed, Target};
use iolab_workload::operation::Operation;
use iolab_workload::stages::{CarriedBy, Stage, TraceSummary};
use iolab_workload::trial::TrialSpec;
use needs::{Need, settings};

const SIZE: u64 = 16 << 20;

/// Settings of trials that differ in how requests are issued.
const WAYS: [&str; 12] = [
    "backend=psync",
    "backend=pvsync2",
    "backend=sync",
    "backend=libaio",
    "backend=libaio depth=32",
    "backend=io_uring",
    "backend=io_uring depth=32",
    "backend=pool depth=8",
    "backend=io_uring depth=8 sqpoll=true",
    "backend=psync threads=4",
    // Sequential requests at once may be merged, large ones split.
    "backend=io_uring depth=32 pattern=seq",
    "backend=psync bs=4M bytes=80k",
];
/// Settings of trials that sync after writes, or whose writes sync themselves.
const SYNCS: [&str; 7] = [
    "sync=each",
    "sync=each sync_every=3",
    "sync=each backend=io_uring depth=8",
    "sync=fdatasync threads=2",
    "sync=osync backend=pvsync2 threads=2",
    "sync=odsync backend=pvsync2 threads=2",
    "sync=rwf_dsync backend=pvsync2 threads=2",
];

fn variants() -> Vec<TrialSpec> {
    let reads = WAYS.map(|way| format!("bytes=8000k {way}"));
    let mixed = WAYS.map(|way| format!("bytes=8000k read_percent=50 {way}"));
    let syncs = SYNCS.map(|way| format!("bytes=800k read_percent=20 {way}"));
    let all = reads.iter().chain(&mixed).chain(&syncs);
    all.map(|way| settings(&format!("region=16M pattern=rand trace=true {way}")))
        .collect()
}

#[test]
fn the_stages_of_every_request_are_its_time() {
    // In the build folder, which lies on storage; /tmp may be memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let stop = AtomicBool::new(false);
    let target = Target::open(folder.path(), &TargetNeed::writing(SIZE)).expect("a scratch file");
    target.fill(7, &stop, &mut |_| {}).expect("filled");
    let clock = Clock::calibrate();
    if let Err(why) = target.traced_disk() {
        return needs::skip(Need::BlockDevice, why);
    }
    if let Err(error) = iolab_host::tracing::check() {
        return needs::skip(Need::TraceEvents, error);
    }
    for spec in variants() {
        let meeting = &mut trial::Alone;
        let traced = Some(&TIME_BY_LAYER);
        let outcome = match trial::run_with(&spec, &target, &clock, &stop, meeting, traced) {
            Ok(outcome) => outcome,
            Err(error) => {
                needs::skip(Need::DirectIo, &error);
                continue;
            }
        };
        let name = format!(
            "{} depth {} threads {} reads {} % sync {}",
            spec.backend, spec.depth, spec.threads, spec.read_percent, spec.sync
        );
        let TraceSummary {
            counts,
            note,
            carried_by,
            journal,
            stages,
        } = outcome.traced.expect("traced");
        let done = outcome.operations.moved().requests();
        assert_eq!(counts.joined + counts.unjoined, done, "{name}");
        assert_eq!(carried_by, CarriedBy::Disk, "{name}");
        assert!(stages.device.is_some(), "{name}: {note}, {counts:?}");
        let mean = |stage| stages[stage].map_or(0.0, |of| of.mean_ns);
        let sum_of = |parts: &[Stage]| -> f64 { parts.iter().map(|stage| mean(*stage)).sum() };
        let syncs = &outcome.operations.sync;
        let written = outcome.operations.write.requests;
        match spec.sync.is_in_write() {
            // Writes that a device carries out past its cache need no sync.
            true => assert!(counts.syncs.syncs <= written, "{name}"),
            false => assert_eq!(counts.syncs.syncs, syncs.requests, "{name}"),
        }
        assert_eq!(journal.is_some(), counts.syncs.syncs > 0, "{name}");
        let sync_share = counts.syncs.syncs as f64 / done as f64;
        if syncs.requests > 0 {
            let (whole, latency) = (sum_of(&Stage::SYNC), syncs.latency.mean());
            assert!(
                (whole / latency - 1.0).abs() < 0.003,
                "{name}: {whole} {latency}"
            );
        }
        // A sync is a part of the recorded time of the write that it follows, or is within.
        let whole = sum_of(&Stage::WHOLE) + sync_share * sum_of(&Stage::SYNC);
        let timed = [Operation::Read, Operation::Write]
            .map(|operation| &outcome.operations[operation].latency)
            .into_iter()
            .filter(|latency| !latency.is_empty());
        let sum: f64 = timed
            .map(|latency| latency.mean() * latency.len() as f64)
            .sum();
        let latency = sum / done as f64;
        // Histograms have three digits.
        assert!(
            (whole / latency - 1.0).abs() < 0.003,
            "{name}: {whole} {latency}"
        );
    }
}
