//! `iolab run --slo` on servers in user space whose capacity is known.

use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::fuse::{Behaviour, Mounted, RequestContext};
use iolab_truth::iolab::told;
use iolab_truth::system::{Made, warn};

use crate::stage::alone;

/// Length of a trial, s.
const TIME: f64 = 0.5;
/// The level, s.
const LEVEL: f64 = 10e-3;
/// Share of the requests that may take longer.
const ALLOWED: f64 = 0.01;
/// Share by which the target may hold requests longer than it should, because the machine is busy.
const EXCESS_MAX: f64 = 0.25;
/// What the way to user space and back takes between two requests at most, s.
const WAY: f64 = 150e-6;

/// One request at a time, each held for `us`; every so many for `stall_us`.
#[derive(Clone, Copy)]
struct Server {
    delay: fn(RequestContext) -> Duration,
    us: u64,
    stall_every: u64,
    stall_us: u64,
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
            stall_every: $every,
            stall_us: $stall,
        }
    };
}

const SERVERS: [Server; 10] = [
    server!(500),
    server!(700),
    server!(1000),
    server!(1500),
    server!(2000),
    server!(3000),
    server!(1000, 50, 4000),
    server!(500, 40, 3000),
    server!(2000, 100, 6000),
    server!(800, 25, 2000),
];

impl Server {
    /// The greatest rate at which a trial of requests that come evenly keeps the level, where each request takes `factor` as
    /// long and `way` more.
    fn limit(&self, factor: f64, way: f64) -> f64 {
        let keeps = |rate: f64| {
            let (mut free, mut late, mut number) = (0.0_f64, 0_u64, 0_u64);
            while (number as f64) < rate * TIME {
                let at = number as f64 / rate;
                let us = match number % self.stall_every == self.stall_every - 1 {
                    true => self.stall_us,
                    false => self.us,
                };
                free = free.max(at) + us as f64 * 1e-6 * factor + way;
                late += u64::from(free - at > LEVEL);
                number += 1;
            }
            late as f64 <= ALLOWED * number as f64
        };
        let (mut low, mut high) = (1.0_f64, 1e5_f64);
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            match keeps(middle) {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }
}

fn scene(behaviour: Behaviour) -> Made<Scene> {
    let mut scene = Scene::new()?;
    let at = scene.subfolder("mount")?;
    let mounted = Mounted::new(&scene.keeper, &at, behaviour)?;
    let file = mounted.file();
    scene.fuse = Some(mounted);
    Ok(scene.on(file))
}

/// The ends of the interval in `... (95 % interval LOW to HIGH)`.
fn interval(text: &str) -> Option<(f64, f64)> {
    let (_, rest) = text.split_once("(95 % interval ")?;
    let (ends, _) = rest.split_once(')')?;
    let (low, high) = ends.split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[test]
fn the_limit_of_ten_servers_lies_in_the_interval() {
    let _alone = alone();
    for server in SERVERS {
        let behaviour = Behaviour {
            delay: server.delay,
            serial: true,
            ..Behaviour::default()
        };
        let scene = match scene(behaviour) {
            Ok(scene) => scene,
            Err(why) => return warn(&format!("skipped: {why}")),
        };
        let target = scene.target.display().to_string();
        let text = told(
            &scene,
            &[
                "run",
                "load-latency",
                &target,
                "--slo",
                "p99<10ms",
                "--set",
                "arrivals=constant",
                "--set",
                "depth=64",
                "--time",
                "0.5",
                "--budget",
                "25s",
                "--seed",
                "7",
            ],
        );
        let ledger = scene.fuse.as_ref().map(Mounted::ledger).unwrap_or_default();
        let excess = ledger.excess();
        if excess > EXCESS_MAX {
            warn(&format!(
                "skipped: {} us: this machine was so busy that the target held requests {:.0} % longer than it should",
                server.us,
                excess * 100.0
            ));
            continue;
        }
        let Some((low, high)) = interval(&text) else {
            assert!(excess > 0.02, "no interval on a quiet machine: {text}");
            warn(&format!(
                "skipped: {} us: no interval on a busy machine, where requests took {:.0} % longer than they should: {text}",
                server.us,
                excess * 100.0
            ));
            continue;
        };
        // Between what the server does at worst and at best the truth is not known.
        let (worst, best) = (
            server.limit(1.0 + excess.max(0.0), WAY),
            server.limit(1.0, 0.0),
        );
        assert!(
            low <= best && worst <= high,
            "{} us: {worst:.0} to {best:.0} is true: {text}",
            server.us
        );
        assert!(
            high / low < 1.35,
            "{} us: {low} to {high} is wide",
            server.us
        );
    }
}
