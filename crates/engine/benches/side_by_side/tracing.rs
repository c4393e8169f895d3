//! Cost of tracing: an event that is kept, with the engine's notes of a request, and an event that a filter drops.

use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_host::tracing::{TracedPlaces, Tracer};
use iolab_storage::{Need, Target};
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};

use super::zram::Zram;
use super::{ROUNDS, SMALL_FILE, median, run};

/// Events of the block layer that a request of a device without a queue has.
const EVENTS: f64 = 2.0;
/// A disk that is not there: MAJOR and MINOR of the last loop device.
const NOWHERE: (u32, u32) = (7, 0xf_ffff);

/// Prints the costs; none of them is a goal, which another machine could miss.
pub(crate) fn costs(clock: &Clock) {
    println!("4 KiB O_DIRECT reads of a zram device, one at a time, traced and not");
    let zram = match Zram::create(SMALL_FILE) {
        Ok(zram) => zram,
        Err(why) => return println!("  skipped: no zram: {why}"),
    };
    let target = Target::open(zram.path(), &Need::reading(SMALL_FILE)).expect("the device opens");
    if let Err(why) = iolab_host::tracing::check() {
        return println!("  skipped: {why}");
    }
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
        ..TracedPlaces::default()
    };
    let (mut plain, mut filtered, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(cpu_ns(&run(&spec(false), &target, clock)));
        let mut tracer = Tracer::new(&elsewhere, clock).expect("it can trace");
        tracer.start().expect("it begins");
        filtered.push(cpu_ns(&run(&spec(false), &target, clock)));
        drop(tracer);
        kept.push(cpu_ns(&run(&spec(true), &target, clock)));
    }
    let more =
        |than: &[f64]| -> f64 { median(than.iter().zip(&plain).map(|(a, b)| a - b).collect()) };
    let (request, all) = (median(plain.clone()), more(&kept));
    println!("  CPU time of a request that is not traced: {request:.0} ns");
    println!(
        "  a traced one takes {all:.0} ns more ({:.0} %)",
        100.0 * all / request
    );
    println!(
        "  an event that is kept, with half of noting the request: {:.0} ns",
        all / EVENTS
    );
    println!(
        "  an event that a filter drops: {:.0} ns",
        more(&filtered) / EVENTS
    );
}

/// CPU time per request, ns. For a device in memory that is its whole time, without the time of other programs on a busy
/// machine.
fn cpu_ns(outcome: &Outcome) -> f64 {
    let usage = outcome.counters.usage;
    (usage.user_ns + usage.system_ns) as f64 / outcome.requests() as f64
}
