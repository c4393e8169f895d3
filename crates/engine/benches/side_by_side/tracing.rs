//! Cost of tracing: an event that is kept, with the engine's notes of a request, and an event that a filter drops.

use std::path::Path;
use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_host::tracing::{TracedPlaces, Tracer};
use iolab_storage::{Need, Target};
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{CacheState, Pattern, TrialLimit, TrialSpec};

use super::zram::Zram;
use super::{ROUNDS, SMALL_FILE, Score, ends, median, run};

/// Events of the block layer that a request of a device without a queue has.
const EVENTS: f64 = 2.0;
/// A disk that is not there: MAJOR and MINOR of the last loop device.
const NOWHERE: (u32, u32) = (7, 0xf_ffff);

/// Prints the costs; none of them is a goal, which another machine could miss.
pub(crate) fn costs(_: &Path, clock: &Clock, _: &mut Score) {
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
    let more = |than: &[f64]| -> Vec<f64> { than.iter().zip(&plain).map(|(a, b)| a - b).collect() };
    let show = |what: &str, times: &[f64], divisor: f64| {
        let (low, high) = ends(times);
        let [middle, low, high] = [median(times), low, high].map(|time| time / divisor);
        println!("  {what}: {middle:.0} ns [{low:.0} to {high:.0}]");
    };
    show("CPU time of a request that is not traced", &plain, 1.0);
    show("more CPU time of a traced one", &more(&kept), 1.0);
    show(
        "an event that is kept, with half of noting the request",
        &more(&kept),
        EVENTS,
    );
    show("an event that a filter drops", &more(&filtered), EVENTS);
}

/// CPU time per request, ns. For a device in memory that is its whole time, without the time of other programs on a busy
/// machine.
fn cpu_ns(outcome: &Outcome) -> f64 {
    let usage = outcome.counters.usage;
    (usage.user_ns + usage.system_ns) as f64 / outcome.requests() as f64
}
