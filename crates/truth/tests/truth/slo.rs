//! `iolab run --slo` on servers in user space with known capacity.

#![allow(
    clippy::print_stdout,
    reason = "how close it came is part of the result"
)]

use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::fuse::{Behaviour, Ledger, Mounted, RequestContext};
use iolab_truth::iolab::told;
use iolab_truth::system::{unless_missing, warn};

use crate::stage::alone;

/// Length of a trial, s: long enough for the level by itself.
const TIME: f64 = 1.25;
/// The level, s.
const LEVEL: f64 = 25e-3;
/// Share of the requests that may take longer. On a machine that stalls for 10 ms a few times per second, the
/// slowest tenth of a busy server's requests reflects the machine more than the server.
const ALLOWED: f64 = 0.25;
/// Longest time of the way to user space and back between two requests, s.
const WAY: f64 = 150e-6;
/// Ratio of the ends of an interval beyond the uncertainty of the truth itself.
const WIDE: f64 = 1.35;
/// Excess holding time of requests on an idle machine, as a share. On busier machines trials differ by more
/// than the server does, and so the intervals are wider.
const QUIET: f64 = 0.03;
/// Trials from which the truth is computed.
const TRIALS: usize = 200;

/// A server of one request at a time, each held for `us`, and some longer.
#[derive(Clone, Copy)]
struct Server {
    delay: fn(RequestContext) -> Duration,
    us: u64,
}

macro_rules! server {
    ($us:literal) => {
        server!($us, 2, $us)
    };
    ($us:literal, $every:literal, $stall:literal) => {
        Server {
            delay: |moment| {
                let stalls = moment.request % $every == $every - 1;
                Duration::from_micros(if stalls { $stall } else { $us })
            },
            us: $us,
        }
    };
}

/// Servers without stalls; ten with the stalling ones.
const CONSTANT: [Server; 7] = [
    server!(1000),
    server!(1500),
    server!(2000),
    server!(3000),
    server!(4000),
    server!(6000),
    server!(8000),
];

const STALLING: [Server; 3] = [
    server!(1000, 40, 6000),
    server!(2000, 50, 8000),
    server!(4000, 25, 10000),
];

/// Whether a trial of evenly spaced requests meets the level, given the service times.
fn keeps(rate: f64, turns: impl Iterator<Item = f64>) -> bool {
    let (mut free, mut late, mut number) = (0.0_f64, 0_u64, 0_u64);
    for turn in turns.take((rate * TIME) as usize) {
        let at = number as f64 / rate;
        free = free.max(at) + turn;
        late += u64::from(free - at > LEVEL);
        number += 1;
    }
    late as f64 <= ALLOWED * number as f64
}

/// Greatest rate at which half of the trials meet the level on a server with this one's holding times, one
/// after another, each `factor` times as long and `way` longer.
fn limit(ledger: &Ledger, factor: f64, way: f64) -> f64 {
    let held: Vec<f64> = ledger.held.iter().map(Duration::as_secs_f64).collect();
    let capacity = held.len() as f64 / held.iter().sum::<f64>();
    let half = |rate: f64| {
        let begins = (0..TRIALS).map(|trial| trial * held.len() / TRIALS);
        let kept = begins.filter(|begin| {
            let turns = held.iter().cycle().skip(*begin);
            keeps(rate, turns.map(|held| held * factor + way))
        });
        kept.count() > TRIALS / 2
    };
    let (mut low, mut high) = (0.1 * capacity, 1.3 * capacity);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        match half(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Ends of the interval in `... (95 % interval LOW to HIGH)`.
fn interval(text: &str) -> Option<(f64, f64)> {
    let plain: Vec<&str> = text.split_whitespace().collect();
    let plain = plain.join(" ");
    let (_, rest) = plain.split_once("(95 % interval ")?;
    let (ends, _) = rest.split_once(')')?;
    let (low, high) = ends.split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[test]
fn the_limit_of_servers_lies_in_the_interval() {
    the_limit_lies_in_the_interval(&CONSTANT);
}

#[test]
fn limit_of_stalling_servers_is_in_the_interval() {
    the_limit_lies_in_the_interval(&STALLING);
}

#[track_caller]
fn the_limit_lies_in_the_interval(servers: &[Server]) {
    let _alone = alone();
    for server in servers {
        let behaviour = Behaviour {
            delay: server.delay,
            serial: true,
            ..Behaviour::default()
        };
        let Some(scene) = unless_missing(Scene::on_fuse(behaviour)) else {
            return;
        };
        let target = scene.target.display().to_string();
        let text = told(
            &scene,
            &[
                "run", "load-latency", &target, "--slo", "p75<25ms", "--set", "arrivals=constant",
                "--time", "1.25", "--seed", "7",
            ],
        );
        let ledger = scene.fuse.as_ref().map(Mounted::ledger).unwrap_or_default();
        // The server's log lacks waits for a CPU and the kernel's part of a request.
        let best = limit(&ledger, 1.0, 0.0);
        let worst = limit(&ledger, 1.0 + ledger.excess().max(0.0), WAY);
        let (low, high) = interval(&text).unwrap_or_else(|| {
            panic!(
                "{} us: no interval, {worst:.0} to {best:.0} is true: {text}",
                server.us
            )
        });
        println!(
            "{} us: {low} to {high}, true {worst:.0} to {best:.0}; requests took {:.1} % longer than they should",
            server.us,
            ledger.excess() * 100.0
        );
        assert!(
            low <= best && worst <= high,
            "{} us: {worst:.0} to {best:.0} is true: {text}",
            server.us
        );
        let is_narrow = high / low < WIDE * best / worst;
        let wide = format!("{} us: {low} to {high} is wide", server.us);
        assert!(is_narrow || ledger.excess() > QUIET, "{wide}");
        if !is_narrow {
            warn(&format!("{wide}, on a busy machine"));
        }
    }
}
