//! Nanosecond clock: the counter of the processor where it can be trusted, else the kernel's clock.
//!
//! The counter is used only when its rate is constant, the kernel itself has not
//! given it up, and its rate measured twice against `CLOCK_MONOTONIC_RAW` agrees. Otherwise
//! every stamp is a `clock_gettime(CLOCK_MONOTONIC_RAW)`.
//!
//! The processor's counter that a program reads without the kernel: the time-stamp counter of x86-64, the
//! virtual count of ARM's generic timer.
//! Sources: Intel SDM vol. 2A and 3B, AMD APM vol. 3, Arm Architecture Reference Manual (CNTVCT_EL0, CNTFRQ_EL0).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

#[cfg(target_arch = "aarch64")]
use arm::*;
#[cfg(target_arch = "x86_64")]
use x86::*;

/// Largest accepted difference between the two calibration windows, parts per million.
const CALIBRATION_TOLERANCE_PPM: f64 = 200.0;

/// Length of one calibration window, ns.
const CALIBRATION_WINDOW_NS: u64 = 10_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockSource {
    Counter,
    MonotonicRaw,
    Virtual,
}

/// A calibrated clock. Copies are cheap and agree with each other.
#[derive(Debug, Clone)]
pub struct Clock {
    source: ClockSource,
    /// ns per tick as a fixed-point number with 32 fractional bits.
    ns_per_tick_q32: u64,
    cost_ns: f64,
    resolution_ns: f64,
    why: String,
    /// The stamp in virtual time.
    set_to: Arc<AtomicU64>,
}

/// A reading of the counter and one of the kernel's clock, taken as close together as possible.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    ticks: u64,
    raw_ns: u64,
}

impl Clock {
    /// Measures the counter against the kernel's clock, the cost of a stamp and its resolution. Takes about 25
    /// ms.
    pub fn calibrate() -> Self {
        let (source, ns_per_tick, why) = match counter_rate() {
            Ok(ns_per_tick) => (ClockSource::Counter, ns_per_tick, String::from(NAME)),
            Err(reason) => (
                ClockSource::MonotonicRaw,
                1.0,
                format!("clock_monotonic_raw ({reason})"),
            ),
        };
        let mut clock = Self {
            source,
            why,
            ..Self::of_rate(ns_per_tick)
        };
        clock.cost_ns = clock.measure_cost_ns();
        clock.resolution_ns = clock.measure_resolution_ns();
        clock
    }

    /// A clock with this many nanoseconds per tick, without calibration.
    pub fn of_rate(ns_per_tick: f64) -> Self {
        Self {
            source: ClockSource::MonotonicRaw,
            ns_per_tick_q32: (ns_per_tick * (1u64 << 32) as f64).round() as u64,
            cost_ns: 0.0,
            resolution_ns: 0.0,
            why: String::new(),
            set_to: Arc::default(),
        }
    }

    /// A clock of virtual time, one nanosecond per tick: it stands still at the last stamp that it was [set](Self::set) to.
    pub fn in_virtual_time() -> Self {
        Self {
            source: ClockSource::Virtual,
            ..Self::of_rate(1.0)
        }
    }

    /// Sets a clock of virtual time to a stamp.
    pub fn set(&self, stamp: u64) {
        self.set_to.store(stamp, Ordering::Relaxed);
    }

    /// Current stamp, ticks. Only differences of stamps have a meaning.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self.source {
            ClockSource::Counter => read(),
            ClockSource::MonotonicRaw => raw_ns(),
            ClockSource::Virtual => self.set_to.load(Ordering::Relaxed),
        }
    }

    /// Time between two stamps, ns; 0 when the later one is not later.
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

    /// Cost of one stamp, ns; median of repeated loops.
    pub fn cost_ns(&self) -> f64 {
        self.cost_ns
    }

    /// Resolution of a stamp, ns: no difference of two stamps is known better.
    pub fn resolution_ns(&self) -> f64 {
        self.resolution_ns
    }

    /// Whether a stamp reads the processor's counter, without a system call.
    pub fn is_counter(&self) -> bool {
        self.source == ClockSource::Counter
    }

    /// Name of the clock: `tsc` (x86-64), `cntvct` (ARM), or `clock_monotonic_raw` with the reason.
    pub fn source(&self) -> String {
        self.why.clone()
    }

    /// The tracefs clock whose time stamps match this clock; `None` where the kernel has none.
    pub fn trace_clock(&self) -> Option<&'static str> {
        match self.source {
            ClockSource::Counter => TRACE_CLOCK,
            ClockSource::MonotonicRaw => Some("mono_raw"),
            ClockSource::Virtual => None,
        }
    }

    /// Reads both clocks. Two anchors give the drift between them.
    pub fn anchor(&self) -> Anchor {
        anchor(|| self.now())
    }

    /// Gain of this clock over `CLOCK_MONOTONIC_RAW` since `earlier`, parts per million; 0 for spans below 1
    /// ms, which are too short to measure.
    pub fn drift_ppm(&self, earlier: Anchor) -> f64 {
        let now = self.anchor();
        let raw = now.raw_ns.saturating_sub(earlier.raw_ns);
        if raw < 1_000_000 {
            return 0.0;
        }
        let own = self.ns_between(earlier.ticks, now.ticks);
        (own as f64 / raw as f64 - 1.0) * 1e6
    }

    /// Cost of one stamp, ns, in the fastest of several rounds: disturbances only add time.
    fn measure_cost_ns(&self) -> f64 {
        const STAMPS: u32 = 2_000;
        let rounds = (0..15).map(|_| {
            let start = raw_ns();
            for _ in 0..STAMPS {
                std::hint::black_box(self.now());
            }
            raw_ns() - start
        });
        rounds.min().unwrap_or(0) as f64 / f64::from(STAMPS)
    }

    fn measure_resolution_ns(&self) -> f64 {
        const STAMPS: usize = 2_000;
        let mut stamps = [0_u64; STAMPS];
        for stamp in &mut stamps {
            *stamp = self.now();
        }
        step(&stamps) as f64 * self.ns_per_tick_q32 as f64 / (1u64 << 32) as f64
    }
}

/// `CLOCK_MONOTONIC_RAW`: not slewed by time synchronisation.
#[inline]
fn raw_ns() -> u64 {
    let now = clock_gettime(ClockId::MonotonicRaw);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The reading with the narrowest bracket among several, so that a preemption between the two clocks does not
/// count.
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

/// Step by which consecutive stamps grow, ticks; at least 1. A clock that steps more slowly than it is read
/// repeats stamps; its smallest difference is one step. A faster clock shows multiples of its step. The
/// kernel's clock rounds those to whole ns, so 1 ns stands for every step shorter than the time of a reading.
fn step(stamps: &[u64]) -> u64 {
    let differences = stamps
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]));
    let repeats = differences.clone().any(|difference| difference == 0);
    let grown = differences.filter(|difference| *difference > 0);
    let step = match repeats {
        true => grown.min(),
        false => grown.reduce(greatest_common_divisor),
    };
    step.unwrap_or(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// Counter rate, ns per tick, or the reason why the counter is unusable.
fn counter_rate() -> Result<f64, String> {
    check()?;
    let current = std::fs::read_to_string(
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    );
    if let Ok(available) = current
        && is_given_up(&available.split_whitespace().collect::<Vec<_>>())
    {
        return Err(format!("the kernel does not use the {}", TITLE));
    }
    let start = anchor(read);
    spin_until(start.raw_ns + CALIBRATION_WINDOW_NS);
    let middle = anchor(read);
    spin_until(middle.raw_ns + CALIBRATION_WINDOW_NS);
    let end = anchor(read);
    let rate = |a: Anchor, b: Anchor| {
        (b.raw_ns - a.raw_ns) as f64 / b.ticks.saturating_sub(a.ticks).max(1) as f64
    };
    let (first, second) = (rate(start, middle), rate(middle, end));
    if !agree(first, second) {
        return Err(format!(
            "the {} did not keep pace with the kernel's clock",
            TITLE
        ));
    }
    let whole = rate(start, end);
    // Beyond these rates (1 MHz to 100 GHz) the fixed-point conversion would lose digits.
    if !(0.01..=1_000.0).contains(&whole) {
        return Err(format!("the {} has an implausible rate", TITLE));
    }
    // A rate stated by the firmware is exact, unless the measurement contradicts it.
    let stated = stated_hz().map(|hz| 1e9 / hz);
    Ok(stated
        .filter(|stated| agree(*stated, whole))
        .unwrap_or(whole))
}

/// Whether two rates are equal within the error of calibration.
fn agree(a: f64, b: f64) -> bool {
    ((a / b - 1.0) * 1e6).abs() <= CALIBRATION_TOLERANCE_PPM
}

fn spin_until(raw: u64) {
    while raw_ns() < raw {
        std::hint::spin_loop();
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    /// Short name.
    pub(super) const NAME: &str = "tsc";
    /// Name within a sentence.
    pub(super) const TITLE: &str = "time-stamp counter";
    /// The tracefs clock that counts the same ticks; `None` where the kernel has none.
    pub(super) const TRACE_CLOCK: Option<&str> = Some("x86-tsc");

    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: rdtsc exists on every x86-64 CPU and only reads a register.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Whether the counter runs at a constant rate.
    ///
    /// # Errors
    /// The reason why the rate may vary.
    pub(super) fn check() -> Result<(), &'static str> {
        use std::arch::x86_64::__cpuid;
        // CPUID 8000_0007h, EDX bit 8 (AMD APM vol. 3, Intel SDM vol. 2A).
        let is_invariant =
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
        if is_invariant {
            Ok(())
        } else {
            Err("the CPU has no invariant time-stamp counter")
        }
    }

    /// Whether the kernel has stopped trusting the counter, judged by the clock sources that it offers. Without
    /// `hpet` the reason can be another one: a hypervisor's clock makes the kernel leave the counter out.
    pub(super) fn is_given_up(available: &[&str]) -> bool {
        !available.contains(&NAME) && available.contains(&"hpet")
    }

    /// Counter rate that the processor states, Hz: not available on all x86-64 processors.
    pub(super) fn stated_hz() -> Option<f64> {
        None
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::asm;

    /// Short name.
    pub(super) const NAME: &str = "cntvct";
    /// Name within a sentence.
    pub(super) const TITLE: &str = "generic timer";
    /// The tracefs clock that counts the same ticks; `None` where the kernel has none.
    pub(super) const TRACE_CLOCK: Option<&str> = None;

    /// Current count. The barrier keeps the processor from reading the count before earlier instructions
    /// finish, as in the kernel's own reader. Where a flaw of the timer needs a workaround, the kernel traps
    /// the instruction and answers it.
    #[inline(always)]
    pub(super) fn read() -> u64 {
        let count: u64;
        // SAFETY: Linux lets programs read this register on every ARM64 CPU, and reading it changes nothing.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack)) };
        count
    }

    /// Whether the counter runs at a constant rate: the architecture promises it, whatever the frequency of the
    /// cores.
    ///
    /// # Errors
    /// None.
    pub(super) fn check() -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether the kernel does not use the timer, judged by the clock sources that it offers.
    pub(super) fn is_given_up(available: &[&str]) -> bool {
        !available.contains(&"arch_sys_counter")
    }

    /// Counter rate that the firmware states, Hz.
    pub(super) fn stated_hz() -> Option<f64> {
        let hz: u64;
        // SAFETY: as for the count; firmware has written the register, or left it at 0.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags))
        };
        (hz > 0).then_some(hz as f64)
    }
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
        let resolution = clock.resolution_ns();
        assert!(resolution > 0.0 && resolution < 100_000.0, "{resolution}");
    }

    /// Stamps of a clock that steps every `step` ticks and is read every `cost` ticks, or slightly later.
    fn stamps(step: u64, cost: u64) -> Vec<u64> {
        let read = |n: u64| 7 + (n * cost + n * n % 7) / step * step;
        (0..500).map(read).collect()
    }

    #[test]
    fn step_is_found_in_distinct_and_repeated_stamps() {
        // Apple's timer, 24 MHz; one of 1 GHz that is scaled from 25 MHz; counters that step in ones and in 37s.
        for (of, cost) in [(1, 1), (40, 13), (1, 29), (37, 41)] {
            assert_eq!(step(&stamps(of, cost)), of, "{of} read every {cost}");
        }
        let repeated: Vec<u64> = (0..500_u64).map(|n| n / 5).collect();
        assert_eq!(step(&repeated), 1);
        // 24 MHz in whole ns, read every 20 ns.
        let rounded: Vec<u64> = (0..500_u64)
            .map(|n| n * 20 * 24 / 1_000 * 1_000 / 24)
            .collect();
        assert_eq!(step(&rounded), 41);
        assert_eq!(step(&[5, 5, 5]), 1);
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
