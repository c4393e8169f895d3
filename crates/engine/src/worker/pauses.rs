//! Pauses of a worker after each request, and sleeps until a stamp.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use iolab_host::clock::Clock;
use iolab_workload::trial::TrialSpec;

/// Time before an exact end at which sleeping stops and looking at the clock begins: a sleeper wakes up late.
pub(super) const LEAD_NS: u64 = 50_000;
/// The longest sleep, so that a raised stop flag is seen.
const NAP_NS: u64 = 100_000_000;

/// When a worker pauses: after each request.
pub(super) struct Pauses {
    /// Whether one was issued since the last pause.
    is_due: bool,
    /// Their length, ticks.
    length: u64,
}

impl Pauses {
    /// The pauses that a trial asks for.
    pub(super) fn of(spec: &TrialSpec, clock: &Clock) -> Option<Self> {
        spec.thinktime.map(|time| Self {
            is_due: false,
            length: clock.ticks(time.as_nanos() as u64),
        })
    }

    /// Whether a request may be issued.
    pub(super) fn allow(&self) -> bool {
        !self.is_due
    }

    /// A request was issued.
    pub(super) fn issued(&mut self) {
        self.is_due = true;
    }

    /// Begins a pause at `now`; gives its end, a stamp.
    pub(super) fn begin(&mut self, now: u64) -> u64 {
        self.is_due = false;
        now.saturating_add(self.length)
    }
}

/// Time to sleep until a stamp, at most [`NAP_NS`].
pub(super) fn time_until(clock: &Clock, until: u64) -> Duration {
    let left = clock.ns_between(clock.now(), until);
    Duration::from_nanos(left.min(NAP_NS))
}

/// Sleeps until a stamp. Returns early after a signal and after [`NAP_NS`].
#[inline(never)]
pub(super) fn sleep_until(clock: &Clock, until: u64) {
    let length = time_until(clock, until);
    if length.is_zero() {
        return std::hint::spin_loop();
    }
    // To a point in time, so that what comes between reading the clock and sleeping does not add up.
    let length = Timespec::try_from(length).unwrap_or_default();
    let end = clock_gettime(ClockId::Monotonic) + length;
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &end);
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn cpu_ns() -> u64 {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    }

    #[test]
    fn sleeping_leaves_the_cpu_to_others() {
        let clock = Clock::calibrate();
        let until = clock.now() + clock.ticks(200_000_000);
        let (before, mut naps) = (cpu_ns(), 0);
        while clock.now() < until {
            sleep_until(&clock, until);
            naps += 1;
        }
        let used = cpu_ns() - before;
        assert!(used < 100_000_000 && naps <= 100, "{used} ns, {naps}");
    }

    #[test]
    fn a_long_sleep_comes_back_to_look_around() {
        let clock = Clock::calibrate();
        let far = clock.now() + clock.ticks(3_600_000_000_000);
        let before = Instant::now();
        sleep_until(&clock, far);
        assert!(before.elapsed() < Duration::from_secs(60));
    }
}
