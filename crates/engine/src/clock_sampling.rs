//! Rate at which an untimed trial looks at the clock.

use iolab_host::clock::Clock;

/// Decides when a worker with untimed requests looks at the clock, for its time bound and for its current interval.
/// Requests that finish faster than the clock can be read are grouped in growing groups, so that the clock takes a
/// negligible share of their time. After a slow request the worker looks each time.
#[derive(Debug)]
pub(crate) struct ClockSampling {
    /// Turns until the next look.
    left: u32,
    every: u32,
    last: u64,
    /// Looks closer together than this come too often, in ticks.
    gap: u64,
}

impl ClockSampling {
    /// A stamp is 10 to 30 ns: once in 10 us it costs at most 0.3 %.
    const GAP_NS: u64 = 10_000;
    /// Limits the delay that a sudden slowness of the target can add to a trial.
    const TURNS_MAX: u32 = 64;

    pub(crate) fn new(clock: &Clock) -> Self {
        Self {
            left: 1,
            every: 1,
            last: 0,
            gap: clock.ticks(Self::GAP_NS),
        }
    }

    /// Whether to look after this turn.
    #[inline(always)]
    pub(crate) fn is_due(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Decides from the stamp just taken when to look again.
    pub(crate) fn taken(&mut self, now: u64) {
        self.every = if now.saturating_sub(self.last) < self.gap {
            (self.every * 2).min(Self::TURNS_MAX)
        } else {
            (self.every / 2).max(1)
        };
        self.last = now;
        self.left = self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns until the next look.
    fn turns(sampling: &mut ClockSampling) -> u32 {
        (1..)
            .find(|_| sampling.is_due())
            .expect("a look is due some time")
    }

    #[test]
    fn samples_fast_requests_in_groups_slow_ones_singly() {
        let clock = Clock::calibrate();
        let mut sampling = ClockSampling::new(&clock);
        let gap = clock.ticks(ClockSampling::GAP_NS);
        let mut now = 10 * gap;
        assert_eq!(turns(&mut sampling), 1, "the first turn shows the pace");
        sampling.taken(now);
        for _ in 0..10 {
            turns(&mut sampling);
            now += gap / 2;
            sampling.taken(now);
        }
        assert_eq!(turns(&mut sampling), ClockSampling::TURNS_MAX);
        for _ in 0..10 {
            now += 2 * gap;
            sampling.taken(now);
        }
        assert_eq!(turns(&mut sampling), 1);
    }
}
