//! Nanosecond clock: the time-stamp counter where it can be trusted, else the kernel's clock.
//!
//! The counter is used only when the CPU declares it invariant, the kernel itself has not
//! given it up, and its rate measured twice against `CLOCK_MONOTONIC_RAW` agrees. Otherwise
//! every stamp is a `clock_gettime(CLOCK_MONOTONIC_RAW)`.

use rustix::time::{ClockId, clock_gettime};

/// Greatest disagreement of the two calibration windows that is accepted, parts per million.
const CALIBRATION_TOLERANCE_PPM: f64 = 200.0;
/// Length of one calibration window, ns.
const CALIBRATION_WINDOW_NS: u64 = 10_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockSource {
    Tsc,
    MonotonicRaw,
}

/// A calibrated clock. Copies are cheap and agree with each other.
#[derive(Debug, Clone)]
pub struct Clock {
    source: ClockSource,
    /// ns per tick as a fixed-point number with 32 fractional bits.
    ns_per_tick_q32: u64,
    cost_ns: f64,
    why: String,
}

/// The counter and the kernel's clock read as close together as possible.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    ticks: u64,
    raw_ns: u64,
}

impl Clock {
    /// Measures the counter against the kernel's clock and what one stamp costs; takes about 25 ms.
    pub fn calibrate() -> Self {
        let (source, ns_per_tick, why) = match tsc_rate() {
            Ok(ns_per_tick) => (ClockSource::Tsc, ns_per_tick, String::from("tsc")),
            Err(reason) => (
                ClockSource::MonotonicRaw,
                1.0,
                format!("clock_monotonic_raw ({reason})"),
            ),
        };
        let mut clock = Self {
            source,
            ns_per_tick_q32: (ns_per_tick * (1u64 << 32) as f64).round() as u64,
            cost_ns: 0.0,
            why,
        };
        clock.cost_ns = clock.measure_cost_ns();
        clock
    }

    /// A clock of the kernel's kind with this many nanoseconds a tick, for what only calculates: virtual time, tests.
    pub fn of_rate(ns_per_tick: f64) -> Self {
        Self {
            source: ClockSource::MonotonicRaw,
            ns_per_tick_q32: (ns_per_tick * (1u64 << 32) as f64) as u64,
            cost_ns: 0.0,
            why: String::new(),
        }
    }

    /// A stamp in ticks; only differences have a meaning.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.source {
            ClockSource::Tsc => read_tsc(),
            ClockSource::MonotonicRaw => raw_ns(),
        }
    }

    /// Nanoseconds between two stamps; 0 when the later one is not later.
    #[inline(always)]
    pub fn ns_between(&self, earlier: u64, later: u64) -> u64 {
        let ticks = later.saturating_sub(earlier);
        ((u128::from(ticks) * u128::from(self.ns_per_tick_q32)) >> 32) as u64
    }

    /// Ticks in this many nanoseconds.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        ((u128::from(ns) << 32) / u128::from(self.ns_per_tick_q32)) as u64
    }

    /// What one stamp costs, ns (median of repeated loops).
    pub fn cost_ns(&self) -> f64 {
        self.cost_ns
    }

    /// Which clock it is: `tsc`, or `clock_monotonic_raw` with the reason.
    pub fn source(&self) -> String {
        self.why.clone()
    }

    /// The clock of tracefs whose stamps are those of this one.
    pub fn trace_clock(&self) -> &'static str {
        match self.source {
            ClockSource::Tsc => "x86-tsc",
            ClockSource::MonotonicRaw => "mono_raw",
        }
    }

    /// Reads both clocks, to tell the drift between two moments.
    pub fn anchor(&self) -> Anchor {
        anchor(|| self.now())
    }

    /// How much this clock ran ahead of `CLOCK_MONOTONIC_RAW` since `earlier`, parts per million.
    /// 0 for spans below 1 ms, which are too short for it.
    pub fn drift_ppm(&self, earlier: Anchor) -> f64 {
        let now = self.anchor();
        let raw = now.raw_ns.saturating_sub(earlier.raw_ns);
        if raw < 1_000_000 {
            return 0.0;
        }
        let own = self.ns_between(earlier.ticks, now.ticks);
        (own as f64 / raw as f64 - 1.0) * 1e6
    }

    fn measure_cost_ns(&self) -> f64 {
        const STAMPS: u32 = 2_000;
        let mut costs: Vec<u64> = (0..15)
            .map(|_| {
                let start = raw_ns();
                for _ in 0..STAMPS {
                    std::hint::black_box(self.now());
                }
                raw_ns() - start
            })
            .collect();
        costs.sort_unstable();
        costs[costs.len() / 2] as f64 / f64::from(STAMPS)
    }
}

/// `CLOCK_MONOTONIC_RAW`: not slewed by time synchronisation.
#[inline]
fn raw_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The reading with the narrowest bracket of several, so that a preemption between the two does not count.
fn anchor(ticks: impl Fn() -> u64) -> Anchor {
    (0..8)
        .map(|_| {
            let before = raw_ns();
            let at = ticks();
            let after = raw_ns();
            (
                after - before,
                Anchor {
                    ticks: at,
                    raw_ns: before + (after - before) / 2,
                },
            )
        })
        .min_by_key(|(width, _)| *width)
        .map(|(_, anchor)| anchor)
        .expect("eight readings")
}

/// ns per tick, or why the counter is not to be used.
fn tsc_rate() -> Result<f64, &'static str> {
    if !tsc_is_invariant() {
        return Err("the CPU has no invariant time-stamp counter");
    }
    let current = std::fs::read_to_string(
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    );
    if let Ok(available) = current
        && !available.split_whitespace().any(|name| name == "tsc")
        && available.split_whitespace().any(|name| name == "hpet")
    {
        return Err("the kernel stopped using the time-stamp counter");
    }
    let start = anchor(read_tsc);
    spin_until(start.raw_ns + CALIBRATION_WINDOW_NS);
    let middle = anchor(read_tsc);
    spin_until(middle.raw_ns + CALIBRATION_WINDOW_NS);
    let end = anchor(read_tsc);
    let rate = |a: Anchor, b: Anchor| {
        (b.raw_ns - a.raw_ns) as f64 / b.ticks.saturating_sub(a.ticks).max(1) as f64
    };
    let (first, second) = (rate(start, middle), rate(middle, end));
    if ((first / second - 1.0) * 1e6).abs() > CALIBRATION_TOLERANCE_PPM {
        return Err("the time-stamp counter did not keep pace with the kernel's clock");
    }
    let whole = rate(start, end);
    // Beyond these rates (10 MHz to 100 GHz) the fixed-point conversion would lose digits.
    if (0.01..=100.0).contains(&whole) {
        Ok(whole)
    } else {
        Err("the time-stamp counter has an implausible rate")
    }
}

fn spin_until(raw: u64) {
    while raw_ns() < raw {
        std::hint::spin_loop();
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_tsc() -> u64 {
    // SAFETY: rdtsc exists on every x86-64 CPU and only reads a register.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_tsc() -> u64 {
    raw_ns()
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    // CPUID 8000_0007h, EDX bit 8 (AMD APM vol. 3, Intel SDM vol. 2A).
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_invariant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_kernel() {
        let clock = Clock::calibrate();
        let start = clock.anchor();
        spin_until(start.raw_ns + 20_000_000);
        let drift = clock.drift_ppm(start);
        assert!(drift.abs() < 2_000.0, "{} ppm, {}", drift, clock.source());
        assert!(clock.cost_ns() > 0.0 && clock.cost_ns() < 100_000.0);
    }

    #[test]
    fn fallback_counts_nanoseconds() {
        let clock = Clock::of_rate(1.0);
        let start = clock.now();
        spin_until(raw_ns() + 1_000_000);
        assert!(clock.ns_between(start, clock.now()) >= 1_000_000);
        assert_eq!(clock.ticks(12_345), 12_345);
        assert_eq!(clock.ns_between(10, 5), 0);
    }
}
