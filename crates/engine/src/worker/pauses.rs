//! Pauses of a worker: after so many requests, or at the end of a burst.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use iolab_host::clock::Clock;
use iolab_workload::trial::TrialSpec;

/// The last of a wait is spent looking at the clock: a sleeper wakes up to so much late, which would count into the
/// response time. More than this would take the CPU from those who serve the requests.
pub(super) const SPIN_NS: u64 = 50_000;
/// The longest sleep, so that a raised stop flag is seen.
pub(super) const NAP_NS: u64 = 100_000_000;

/// A pause, in stamps.
pub(crate) struct Rest {
    /// Until when the worker uses its CPU; before the pause where it does not.
    pub(crate) busy_until: u64,
    /// Its end.
    pub(crate) until: u64,
}

impl Rest {
    /// One in which the worker only sleeps.
    pub(super) fn asleep(until: u64) -> Self {
        Self {
            busy_until: 0,
            until,
        }
    }
}

/// When a worker pauses; times are ticks.
pub(super) enum Pauses {
    /// After so many requests.
    Think {
        every: u32,
        /// Requests until the next pause.
        left: u32,
        length: u64,
        /// How much of it the worker uses its CPU for.
        busy: u64,
    },
    /// At the end of each burst.
    Bursts {
        on: u64,
        off: u64,
        /// When the burst under way ends, a stamp.
        ends: Option<u64>,
    },
}

impl Pauses {
    /// Those that a trial asks for.
    pub(super) fn of(spec: &TrialSpec, clock: &Clock) -> Option<Self> {
        let ticks = |time: Duration| clock.ticks(time.as_nanos() as u64);
        let think = spec.thinktime.map(|time| Self::Think {
            every: spec.thinktime_every,
            left: spec.thinktime_every,
            length: ticks(time),
            busy: ticks(spec.thinktime_spin),
        });
        think.or_else(|| {
            spec.bursts.map(|bursts| Self::Bursts {
                on: ticks(bursts.on),
                off: ticks(bursts.off),
                ends: None,
            })
        })
    }

    /// Whether a request may be issued at `now`.
    pub(super) fn allow(&mut self, now: u64) -> bool {
        match self {
            Self::Think { left, .. } => *left > 0,
            Self::Bursts { on, ends, .. } => now < *ends.get_or_insert(now.saturating_add(*on)),
        }
    }

    /// A request was issued.
    pub(super) fn issued(&mut self) {
        if let Self::Think { left, .. } = self {
            *left = left.saturating_sub(1);
        }
    }

    /// Begins a pause at `now`.
    pub(super) fn begin(&mut self, now: u64) -> Rest {
        match self {
            Self::Think {
                every,
                left,
                length,
                busy,
            } => {
                *left = *every;
                Rest {
                    busy_until: now.saturating_add(*busy),
                    until: now.saturating_add(*length),
                }
            }
            Self::Bursts { off, ends, .. } => {
                *ends = None;
                Rest::asleep(now.saturating_add(*off))
            }
        }
    }
}

/// Waits until a stamp: sleeps, and spins the last [`SPIN_NS`]. Returns early when a sleep was not long enough: cut
/// off by a signal, or as long as a sleep may be.
#[inline(never)]
pub(crate) fn pause(clock: &Clock, until: u64) {
    let left = |clock: &Clock| clock.ns_between(clock.now(), until);
    let before = left(clock);
    if before > SPIN_NS {
        sleep(Duration::from_nanos((before - SPIN_NS).min(NAP_NS)));
        if left(clock) > SPIN_NS {
            return;
        }
    }
    spin(clock, until);
}

/// Reads the clock until a stamp.
fn spin(clock: &Clock, until: u64) {
    while clock.now() < until {
        std::hint::spin_loop();
    }
}

/// Uses the CPU until a stamp, or for as long as a sleep may last.
#[inline(never)]
pub(super) fn keep_busy(clock: &Clock, until: u64) {
    let longest = clock.now().saturating_add(clock.ticks(NAP_NS));
    spin(clock, until.min(longest));
}

/// Sleeps to a point in time, so that what comes between reading the clock and sleeping does not add up.
fn sleep(length: Duration) {
    let length = Timespec::try_from(length).unwrap_or_default();
    let end = clock_gettime(ClockId::Monotonic) + length;
    // A signal ends it early; the caller looks at the clock anyway.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &end);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH_NS: u64 = 20_000_000;

    fn cpu_ns() -> u64 {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    }

    #[test]
    fn a_pause_begins_with_the_time_on_the_cpu_that_was_asked_for() {
        let clock = Clock::of_rate(1.0);
        let spec = TrialSpec {
            thinktime: Some(Duration::from_millis(20)),
            thinktime_spin: Duration::from_millis(5),
            ..TrialSpec::default()
        };
        let mut pauses = Pauses::of(&spec, &clock).expect("pauses");
        let rest = pauses.begin(1_000);
        assert_eq!(clock.ns_between(1_000, rest.busy_until), 5_000_000);
        assert_eq!(clock.ns_between(1_000, rest.until), LENGTH_NS);
    }

    #[test]
    fn a_busy_thread_uses_its_cpu_and_a_pausing_one_does_not() {
        let clock = Clock::calibrate();
        let used = |wait: fn(&Clock, u64)| {
            let before = cpu_ns();
            wait(&clock, clock.now() + clock.ticks(LENGTH_NS));
            cpu_ns() - before
        };
        // Others can only take CPU time from the busy one, and have the pausing one start again more often: the best of several.
        let several = |wait| (0..10).map(move |_| used(wait));
        let asleep = several(pause).min().unwrap_or_default();
        let busy = several(keep_busy).max().unwrap_or_default();
        assert!(busy > 3 * asleep, "{busy} ns against {asleep} ns");
    }
}
