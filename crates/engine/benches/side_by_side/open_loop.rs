//! Cost and lateness of requests at a rate.

use std::path::Path;
use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_host::tracing::{TracedPlaces, Tracer, disk_requests};
use iolab_storage::{Need, Target};
use iolab_workload::outcome::Outcome;
use iolab_workload::trial::{Backend, CacheState, Pattern, Rate, TrialLimit, TrialSpec};

use super::zram::Zram;
use super::{HOT_FILE, Score, ends, fio, median, run};

/// Requests per second.
const RATES: [u64; 2] = [10_000, 40_000];
/// How late requests may start; first the default.
const SLACKS_US: [u64; 4] = [50, 0, 25, 200];
const TIME: Duration = Duration::from_millis(300);
/// The fewest that have an interval of 95 %.
const ROUNDS: usize = 6;
/// iolab takes at most 1.2 times the CPU time of fio.
const CPU_GOAL: f64 = 1.0 / 1.2;

/// Rounds of one contender.
#[derive(Default)]
struct Rounds {
    /// CPU time per request, us.
    cpu: Vec<f64>,
    /// Median and 99th percentile of the lateness by the kernel's trace, us.
    traced: Vec<[f64; 2]>,
    /// Lateness by iolab's stamps.
    stamped: Vec<[f64; 2]>,
}

impl Rounds {
    fn show(&self, name: &str) {
        let (low, high) = ends(&self.cpu);
        print!(
            "  {name:<24} {:>5.1} \u{b5}s of CPU time per request [{low:.1} to {high:.1}]",
            median(&self.cpu)
        );
        print_quantiles("traced, after the earliest", &self.traced);
        print_quantiles("lateness", &self.stamped);
        println!();
    }
}

/// Prints the medians over the rounds of both quantiles.
fn print_quantiles(what: &str, rounds: &[[f64; 2]]) {
    if !rounds.is_empty() {
        let of = |place: usize| median(&rounds.iter().map(|one| one[place]).collect::<Vec<_>>());
        print!(
            "; {what}: p50 {:.1} \u{b5}s, p99 {:.1} \u{b5}s",
            of(0),
            of(1)
        );
    }
}

/// Prints the costs. Low lateness is bought with CPU time, which `rate_slack` saves (METHODS.md, "Service time and response time").
pub(crate) fn costs(_: &Path, clock: &Clock, score: &mut Score) {
    println!("4 KiB O_DIRECT random reads at a rate, io_uring, depth 32, on a zram device");
    let zram = match Zram::create(HOT_FILE) {
        Ok(zram) => zram,
        Err(why) => return println!("  skipped: no zram: {why}"),
    };
    let target = Target::open(zram.path(), &Need::reading(HOT_FILE)).expect("the device opens");
    let traces = iolab_host::tracing::check();
    if let Err(why) = &traces {
        println!("  no lateness by the kernel's trace: {why}");
    }
    let traced = |rate, trial: &mut dyn FnMut()| {
        let late = traces.is_ok().then(|| traced(&target, rate, clock, trial));
        late.into_iter()
    };
    // What fio takes for itself.
    let itself = fio::whole_cpu(zram.path(), 1);
    for rate in RATES {
        println!("  at {rate} requests per second");
        let (mut own, mut theirs) = (SLACKS_US.map(|_| Rounds::default()), Rounds::default());
        for _ in 0..ROUNDS {
            for (slack, rounds) in SLACKS_US.into_iter().zip(&mut own) {
                let spec = spec(rate, Duration::from_micros(slack));
                let outcome = run(&spec, &target, clock);
                rounds.cpu.push(cpu_us(&outcome));
                rounds.stamped.push(quantiles(&outcome));
                let again = &mut || _ = run(&spec, &target, clock);
                rounds.traced.extend(traced(rate, again));
            }
            if let Some((one, itself)) = itself
                && let Some((requests, cpu)) = fio::whole_cpu(zram.path(), rate)
            {
                theirs.cpu.push((cpu - itself) / (requests - one) / 1e3);
                let again = &mut || _ = fio::whole_cpu(zram.path(), rate);
                theirs.traced.extend(traced(rate, again));
            }
        }
        for (slack, rounds) in SLACKS_US.iter().zip(&own) {
            rounds.show(&format!("iolab, rate_slack={slack}us"));
        }
        if theirs.cpu.is_empty() {
            println!("  skipped: fio is not installed");
            continue;
        }
        theirs.show("fio");
        let ratios = theirs.cpu.iter().zip(&own[0].cpu);
        let ratios: Vec<f64> = ratios.map(|(theirs, own)| theirs / own).collect();
        score.goal("CPU time, fio over iolab", &ratios, CPU_GOAL);
    }
}

fn spec(rate: u64, slack: Duration) -> TrialSpec {
    TrialSpec {
        backend: Backend::IoUring,
        pattern: Pattern::Rand,
        region: HOT_FILE,
        cache: CacheState::Direct,
        depth: 32,
        rate: Some(Rate::Requests(rate)),
        rate_slack: slack,
        limit: TrialLimit {
            time: Some(TIME),
            ..TrialLimit::default()
        },
        ..TrialSpec::default()
    }
}

fn cpu_us(outcome: &Outcome) -> f64 {
    let usage = outcome.counters.usage;
    (usage.user_ns + usage.system_ns) as f64 / outcome.requests() as f64 / 1e3
}

/// Median and 99th percentile of the lateness, us.
fn quantiles(outcome: &Outcome) -> [f64; 2] {
    let waits = outcome.operations.read.waits.as_ref();
    let lateness = &waits.expect("a rate has waits").lateness;
    [0.5, 0.99].map(|share| lateness.value_at_quantile(share) as f64 / 1e3)
}

/// Median and 99th percentile of the time by which requests reach the device late, against evenly spaced starts from the earliest
/// request on, us. Lower bounds: the lateness of the earliest request itself is unknown.
fn traced(target: &Target, rate: u64, clock: &Clock, trial: &mut dyn FnMut()) -> [f64; 2] {
    let disk = target.traced_disk().expect("a device");
    let places = TracedPlaces {
        disks: vec![(disk.number, disk.has_requests)],
        ..TracedPlaces::default()
    };
    let mut tracer = Tracer::new(&places, clock).expect("it can trace");
    tracer.start().expect("it begins");
    trial();
    tracer.stop();
    let events = tracer.finish(&[]).expect("it can be read").events;
    let requests = disk_requests(&events);
    let first = requests.first().expect("requests").start;
    let late = requests.iter().enumerate().map(|(number, request)| {
        clock.ns_between(first, request.start) as f64 / 1e3 - number as f64 * 1e6 / rate as f64
    });
    let mut late: Vec<f64> = late.collect();
    late.sort_by(f64::total_cmp);
    [50, 99].map(|percent| late[(late.len() - 1) * percent / 100] - late[0])
}
