//! Pauses of a worker after each request, and waits for a stamp.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use iolab_host::clock::Clock;
use iolab_workload::trial::TrialSpec;

/// The longest time before the end of a wait that is spent looking at the clock. More would take the CPU from those who serve the requests.
const LEAD_MAX_NS: u64 = 50_000;
/// Falling asleep and waking up takes about as much CPU time as looking at the clock for this long.
const SLEEP_MIN_NS: u64 = 10_000;
const LEAD_STEP_NS: u64 = 100;
/// Steps of [`LEAD_STEP_NS`] by which the lead grows after an oversleep.
const LATE_STEPS: u64 = 10;
/// Steps of [`LEAD_STEP_NS`] after an oversleep if requests may be late by some time: then one sleep in a hundred is later
/// still.
const LATER_STEPS: u64 = 100;
const UNSLEPT_STEP_NS: u64 = 50;
/// The longest sleep, so that a raised stop flag is seen.
pub(super) const NAP_NS: u64 = 100_000_000;

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

/// Waits until a stamp: sleeps, and spins the last 50 to 60 us. Returns early when a sleep was not long enough: cut off by a signal, or as
/// long as a sleep may be.
pub(crate) fn pause(clock: &Clock, until: u64) {
    Lead::default().pause(clock, until, until);
}

/// How long before its time a wait stops sleeping: a sleeper wakes up late, and that would count into the response time.
///
/// Learned from the sleeps of one worker. A sleep that ends in time shortens the lead by one step. An oversleep lengthens
/// it by [`LATE_STEPS`] steps for each request that it made late. In balance one sleep in [`LATE_STEPS`] ends too late
/// (stochastic approximation of a quantile: H. Robbins, S. Monro, Annals of Mathematical Statistics 22 (1951) 400-407).
pub(super) struct Lead {
    ns: u64,
    late_steps: u64,
}

impl Default for Lead {
    fn default() -> Self {
        Self::of_slack(Duration::ZERO)
    }
}

impl Lead {
    /// The lead before the time by which requests start that may be late by `slack`.
    pub(super) fn of_slack(slack: Duration) -> Self {
        Self {
            ns: LEAD_MAX_NS,
            late_steps: match slack.is_zero() {
                true => LATE_STEPS,
                false => LATER_STEPS,
            },
        }
    }

    /// How long a sleep may be when `left_ns` are left; zero if there is no time for one.
    pub(super) fn sleep_ns(&self, left_ns: u64) -> u64 {
        match left_ns.saturating_sub(self.ns) {
            ..SLEEP_MIN_NS => 0,
            length => length.min(NAP_NS),
        }
    }

    /// A request was issued, with or without a sleep before it: if there is no time for one, it is tried now and then.
    #[inline(always)]
    pub(super) fn relax(&mut self) {
        self.ns = self.ns.saturating_sub(UNSLEPT_STEP_NS);
    }

    /// A sleep ended in time, as far as the lead decides it.
    pub(super) fn shorten(&mut self) {
        self.ns = self.ns.saturating_sub(LEAD_STEP_NS);
    }

    /// Notes a sleep that ended after `late` requests were due.
    pub(super) fn lengthen(&mut self, late: u64) {
        let longer = late.saturating_mul(self.late_steps * LEAD_STEP_NS);
        self.ns = self.ns.saturating_add(longer).min(LEAD_MAX_NS);
    }

    /// Waits until a stamp, as [`pause`] does, but may sleep until `latest`. Returns the stamp at which it woke up; `None`
    /// without a sleep.
    #[inline(never)]
    pub(super) fn pause(&self, clock: &Clock, until: u64, latest: u64) -> Option<u64> {
        let left = |now| clock.ns_between(now, latest);
        let length = self.sleep_ns(left(clock.now()));
        let mut woken = None;
        if length > 0 {
            sleep(Duration::from_nanos(length));
            let now = clock.now();
            woken = Some(now);
            if left(now) > self.ns {
                return woken;
            }
        }
        spin(clock, until);
        woken
    }
}

/// Reads the clock until a stamp.
fn spin(clock: &Clock, until: u64) {
    while clock.now() < until {
        std::hint::spin_loop();
    }
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

    /// The sleeps of a worker, summed up.
    struct Slept {
        /// The lead after them, ns.
        lead: u64,
        sleeps: u64,
        /// Number of the [`REQUESTS`] that were later than allowed.
        late: u64,
    }

    /// Simulates a worker that issues a request each `gap_ns`, at most `slack_ns` late. It sleeps if there is time, and
    /// wakes up late by the values of `oversleeps`.
    fn after(mut oversleeps: impl Iterator<Item = u64>, gap_ns: u64, slack_ns: u64) -> Slept {
        let mut lead = Lead::of_slack(Duration::from_nanos(slack_ns));
        let (mut now, mut sleeps, mut late) = (0, 0, 0);
        for number in 1..=REQUESTS {
            let due = number * gap_ns;
            let latest = due + slack_ns;
            lead.relax();
            if now < due {
                let length = lead.sleep_ns(latest - now);
                if length > 0 {
                    sleeps += 1;
                    now += length + oversleeps.next().unwrap_or_default();
                    match (now + gap_ns).saturating_sub(latest) / gap_ns {
                        0 => lead.shorten(),
                        requests => lead.lengthen(requests),
                    }
                }
            }
            late += u64::from(now > latest);
            now = now.max(due);
        }
        Slept {
            lead: lead.ns,
            sleeps,
            late,
        }
    }

    const REQUESTS: u64 = 100_000;

    #[test]
    fn the_lead_approaches_the_usual_oversleep() {
        let several = |from: u64| (0..).map(move |i| from + i * 7_919 % 5_000);
        let Slept { lead, late, .. } = after(several(5_000), 100_000, 0);
        assert!((9_000..11_000).contains(&lead), "{lead}");
        assert!(late <= REQUESTS / 5, "{late}");
        // A worker that always oversleeps gains nothing from a longer lead.
        let Slept { lead, .. } = after(several(90_000), 200_000, 0);
        assert!(lead > LEAD_MAX_NS - 1_000, "{lead}");
    }

    /// A worker without time to sleep tries it now and then, so that it learns when sleeps are exact again.
    #[test]
    fn requests_without_time_to_sleep_are_seldom_late() {
        for gap_ns in [15_000, 25_000, 40_000] {
            let late = after(std::iter::repeat(45_000), gap_ns, 0).late;
            assert!((1..=REQUESTS / 15).contains(&late), "{gap_ns}: {late}");
        }
    }

    #[test]
    fn tolerant_requests_share_sleeps_and_rarely_run_late() {
        let oversleeps = (0..).map(|i| 5_000 + i * 7_919 % 5_000);
        let slept = after(oversleeps, 10_000, 40_000);
        assert!((1..=REQUESTS / 50).contains(&slept.late), "{}", slept.late);
        assert!(
            (1..=REQUESTS / 3).contains(&slept.sleeps),
            "{}",
            slept.sleeps
        );
    }

    fn cpu_ns() -> u64 {
        let used = clock_gettime(ClockId::ThreadCPUTime);
        used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
    }

    #[test]
    fn spinning_uses_the_cpu_and_pausing_does_not() {
        let clock = Clock::calibrate();
        let used = |wait: fn(&Clock, u64)| {
            let before = cpu_ns();
            wait(&clock, clock.now() + clock.ticks(LENGTH_NS));
            cpu_ns() - before
        };
        // Others can only take CPU time from the busy one, and have the pausing one start again more often: the best of several.
        let several = |wait| (0..10).map(move |_| used(wait));
        let asleep = several(pause).min().unwrap_or_default();
        let busy = several(spin).max().unwrap_or_default();
        assert!(busy > 3 * asleep, "{busy} ns against {asleep} ns");
    }
}
