//! What tracing costs: an event that is kept, one that a filter drops, and what the engine notes of a request.

use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_host::tracing::{TracedPlaces, Tracer};
use iolab_storage::{Need, Target};
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};

use super::zram::Zram;
use super::{ROUNDS, Reached, SMALL_FILE, median, run, user_ns};

/// Events of the block layer that a request of a device without a queue has.
const EVENTS: f64 = 2.0;
/// A disk that is not there: MAJOR and MINOR of the last loop device.
const NOWHERE: (u32, u32) = (7, 0xf_ffff);

/// Prints the costs; none of them is a goal, which another machine could miss.
pub(crate) fn costs(clock: &Clock) {
    println!("4 KiB O_DIRECT reads of a zram device, one at a time, traced and not");
    if let Err(why) = iolab_host::tracing::check() {
        return println!("  skipped: {why}");
    }
    let zram = match Zram::create(SMALL_FILE) {
        Ok(zram) => zram,
        Err(why) => return println!("  skipped: no zram: {why}"),
    };
    let target = Target::open(zram.path(), &Need::reading(SMALL_FILE)).expect("the device opens");
    let spec = |trace| TrialSpec {
        pattern: Pattern::Rand,
        region: SMALL_FILE,
        cache: CacheState::Direct,
        trace,
        limit: TrialLimit {
            time: Some(Duration::from_millis(200)),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    };
    let elsewhere = TracedPlaces {
        disks: vec![(NOWHERE, false)],
        file_systems: Vec::new(),
    };
    let (mut plain, mut filtered, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(Reached::from(&run(&spec(false), &target, clock)));
        let mut tracer = Tracer::new(&elsewhere, clock).expect("it can trace");
        tracer.start().expect("it begins");
        filtered.push(Reached::from(&run(&spec(false), &target, clock)));
        drop(tracer);
        kept.push(Reached::from(&run(&spec(true), &target, clock)));
    }
    let ns = |one: &Reached| 1e9 / one.iops;
    let more = |than: &[Reached]| {
        median(
            than.iter()
                .zip(&plain)
                .map(|(a, b)| ns(a) - ns(b))
                .collect(),
        )
    };
    let request = median(plain.iter().map(ns).collect());
    let note = user_ns(&kept) - user_ns(&plain);
    println!("  a request, not traced:            {request:>7.0} ns");
    println!(
        "  a traced one takes longer by      {:>7.0} ns ({:.0} %)",
        more(&kept),
        100.0 * more(&kept) / request
    );
    println!(
        "  an event that is kept:            {:>7.0} ns",
        (more(&kept) - note) / EVENTS
    );
    println!(
        "  an event that a filter drops:     {:>7.0} ns",
        more(&filtered) / EVENTS
    );
    println!("  noting a request (user CPU):      {note:>7.0} ns");
}
