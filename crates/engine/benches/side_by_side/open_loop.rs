//! Cost and lateness of requests at a rate.

use std::time::Duration;

use iolab_host::clock::Clock;
use iolab_storage::{Need, Target};
use iolab_workload::trial::{Backend, CacheState, Pattern, Rate, TrialLimit, TrialSpec};

use super::zram::Zram;
use super::{HOT_FILE, fio, median, run};

/// Requests per second.
const RATES: [u64; 2] = [10_000, 40_000];
/// How late requests may start.
const SLACKS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(40)];
/// Odd, so that the median is one of them.
const ROUNDS: usize = 3;

/// Prints the costs. Low lateness is bought with CPU time, which `rate_slack` saves (METHODS.md, "Service time and response time").
pub(crate) fn costs(clock: &Clock) {
    println!("4 KiB O_DIRECT random reads at a rate, io_uring, depth 32, on a zram device");
    let zram = match Zram::create(HOT_FILE) {
        Ok(zram) => zram,
        Err(why) => return println!("  skipped: no zram: {why}"),
    };
    let target = Target::open(zram.path(), &Need::reading(HOT_FILE)).expect("the device opens");
    for (rate, slack) in RATES
        .into_iter()
        .flat_map(|rate| SLACKS.map(|slack| (rate, slack)))
    {
        let spec = TrialSpec {
            backend: Backend::IoUring,
            pattern: Pattern::Rand,
            region: HOT_FILE,
            cache: CacheState::Direct,
            depth: 32,
            rate: Some(Rate::Requests(rate)),
            rate_slack: slack,
            limit: TrialLimit {
                time: Some(Duration::from_secs(1)),
                ..TrialLimit::default()
            },
            ..TrialSpec::default()
        };
        let [mut own, mut late, mut responses, mut theirs] = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            let outcome = run(&spec, &target, clock);
            let usage = outcome.counters.usage;
            own.push((usage.user_ns + usage.system_ns) as f64 / outcome.requests() as f64);
            let waits = outcome.operations.read.waits.as_ref();
            let waits = waits.expect("a rate has waits");
            late.push(waits.lateness.value_at_quantile(0.99) as f64);
            responses.push(waits.response.value_at_quantile(0.5) as f64);
            let limit = format!("--rate_iops={rate}");
            let options = [&fio::AT_RATE[..], &[&limit]].concat();
            theirs.extend(fio::whole_cpu_ns(zram.path(), &options));
        }
        let [own, late, response] = [own, late, responses].map(|times| median(times) / 1e3);
        print!(
            "  {rate}/s, rate_slack={slack:?}: iolab {own:.1} \u{b5}s of CPU time per request, p99 of lateness {late:.1} \u{b5}s, median response {response:.1} \u{b5}s"
        );
        match theirs.is_empty() {
            true => println!("; fio is not installed"),
            false => {
                let theirs = median(theirs) / 1e3;
                println!(
                    "; fio {theirs:.1} \u{b5}s; iolab over fio {:.2}",
                    own / theirs
                );
            }
        }
    }
}
