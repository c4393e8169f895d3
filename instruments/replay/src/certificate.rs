//! The certificate of a replay by time: how far its requests kept to the times and the order of the trace.
//!
//! Pure functions of the times at which requests were due and were issued. Memory does not grow with requests.

use iolab_latency::{LatencyHistogram, counts, new_latency_histogram};
use schemars::JsonSchema;
use serde::Serialize;

/// Bounds of the lateness that is allowed, ns.
const LATE_MIN_NS: u64 = 200_000;
const LATE_MAX_NS: u64 = 5_000_000;
/// Part of the median gap that a request may be late.
const LATE_OF_GAP: u64 = 10;
/// One request in this many may be later.
const LATE_ONE_IN: u64 = 100;
/// Least share of requests issued in order.
const ORDER_MIN: f64 = 0.99;
/// Greatest distance of the distributions of gaps.
const GAPS_MAX: f64 = 0.05;
/// Difference of two gaps that does not count, ns; and one in this many ns of the gap.
const GAP_NS: u64 = 20_000;
const GAP_PART: u64 = 10;
/// Shortest window.
const WINDOW_NS: u64 = 1_000_000_000;
const WINDOW_REQUESTS: u64 = 1_000;
/// Most intervals of the depth over time: an even number.
const INTERVALS: usize = 48;
/// First length of such an interval, ns.
const INTERVAL_NS: u64 = 100_000_000;

/// Lateness up to which requests count as on time in a trace with this median gap, ns.
pub fn lateness_limit_ns(median_gap_ns: u64) -> u64 {
    (median_gap_ns / LATE_OF_GAP).clamp(LATE_MIN_NS, LATE_MAX_NS)
}

/// A request that was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Issued {
    /// Time at which it was due, ns since the start.
    pub due_ns: u64,
    /// Time at which it was issued, ns since the start.
    pub at_ns: u64,
    /// Part of the lateness in which all slots were taken, ns.
    pub queue_ns: u64,
    /// Requests in flight in the trace; `None` if the trace does not tell.
    pub depth_asked: Option<u32>,
    /// Requests in flight in the replay.
    pub depth_done: u32,
}

/// Quantiles of a lateness, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lateness {
    /// Half of the requests are at most as late.
    pub p50_ns: u64,
    /// 99 % of the requests are at most as late.
    pub p99_ns: u64,
    /// The latest request.
    pub max_ns: u64,
}

impl Lateness {
    fn of(histogram: &LatencyHistogram) -> Self {
        Self {
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }
    }
}

/// The requests in flight in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Depth {
    /// Begin of the interval, ns since the start.
    pub from_ns: u64,
    /// Mean at arrivals in the trace; `None` if the trace does not tell.
    pub asked: Option<f64>,
    /// Mean at arrivals in the replay.
    pub done: f64,
}

/// Something that a replay did not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Broken {
    /// The client issued requests late.
    LateClient,
    /// Requests waited because all slots were taken.
    FullQueue,
    /// Requests were issued in another order.
    Order,
    /// The gaps between requests were others.
    Gaps,
}

/// How far a replay kept to its trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Certificate {
    /// Requests that were issued.
    pub requests: u64,
    /// Lateness up to which a request is on time, ns.
    pub limit_ns: u64,
    /// Lateness of all requests.
    pub lateness: Lateness,
    /// Part of the lateness that the client caused.
    pub by_client: Lateness,
    /// Part of the lateness in which all slots were taken.
    pub by_queue: Lateness,
    /// Windows of at least one second and 1000 requests.
    pub windows: u64,
    /// Windows in which more than 1 % of the requests were late.
    pub late_windows: u64,
    /// Begin of the window with the greatest share of late requests, ns since the start.
    pub worst_window_ns: u64,
    /// Share of late requests in it.
    pub worst_window_late: f64,
    /// Share of requests that were issued in the order of the trace.
    pub in_order: f64,
    /// Distance of the distributions of gaps (Kolmogorov and Smirnov).
    pub gap_distance: f64,
    /// Requests in flight over time.
    pub depth: Vec<Depth>,
    /// Everything that was not kept; empty if the replay stands for the trace.
    pub broken: Vec<Broken>,
}

impl Certificate {
    /// Whether the replay stands for the trace.
    pub fn is_kept(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Requests of a window, and how many of them were late.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    from_ns: u64,
    requests: u64,
    late: u64,
    late_by_client: u64,
}

impl Window {
    fn is_late(&self) -> bool {
        self.late * LATE_ONE_IN > self.requests
    }

    fn plus(self, later: Self) -> Self {
        Self {
            from_ns: self.from_ns,
            requests: self.requests + later.requests,
            late: self.late + later.late,
            late_by_client: self.late_by_client + later.late_by_client,
        }
    }

    fn late_share(&self) -> f64 {
        self.late as f64 / self.requests.max(1) as f64
    }
}

/// Judged windows.
#[derive(Debug, Clone, Default)]
struct Windows {
    count: u64,
    late: u64,
    late_by_client: u64,
    worst: Window,
}

impl Windows {
    fn add(&mut self, window: Window) {
        self.count += 1;
        self.late += u64::from(window.is_late());
        let by_client = window.late_by_client * LATE_ONE_IN > window.requests;
        self.late_by_client += u64::from(by_client);
        if self.worst.requests == 0 || window.late_share() > self.worst.late_share() {
            self.worst = window;
        }
    }
}

/// Sums of the requests in flight in one interval.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    requests: u64,
    done: u64,
    asked: u64,
    told: u64,
}

/// The requests in flight over time; two intervals become one when there are too many.
#[derive(Debug, Clone)]
struct DepthOverTime {
    width_ns: u64,
    intervals: Vec<InFlight>,
}

impl DepthOverTime {
    fn note(&mut self, issued: &Issued) {
        while issued.due_ns / self.width_ns >= INTERVALS as u64 {
            for place in 0..INTERVALS / 2 {
                let [one, other] = [0, 1].map(|next| self.intervals[2 * place + next]);
                self.intervals[place] = InFlight {
                    requests: one.requests + other.requests,
                    done: one.done + other.done,
                    asked: one.asked + other.asked,
                    told: one.told + other.told,
                };
            }
            self.intervals[INTERVALS / 2..].fill(InFlight::default());
            self.width_ns *= 2;
        }
        let interval = &mut self.intervals[(issued.due_ns / self.width_ns) as usize];
        interval.requests += 1;
        interval.done += u64::from(issued.depth_done);
        interval.asked += u64::from(issued.depth_asked.unwrap_or(0));
        interval.told += u64::from(issued.depth_asked.is_some());
    }

    fn rows(&self) -> Vec<Depth> {
        let starts = (0..).map(|number| number * self.width_ns);
        let busy = starts
            .zip(&self.intervals)
            .filter(|(_, own)| own.requests > 0);
        let row = |(from_ns, own): (u64, &InFlight)| Depth {
            from_ns,
            asked: (own.told > 0).then(|| own.asked as f64 / own.told as f64),
            done: own.done as f64 / own.requests as f64,
        };
        busy.map(row).collect()
    }
}

/// Watches a replay, request by request in the order in which they are issued.
#[derive(Debug, Clone)]
pub struct Meter {
    limit_ns: u64,
    total: LatencyHistogram,
    client: LatencyHistogram,
    queue: LatencyHistogram,
    gaps_asked: LatencyHistogram,
    gaps_done: LatencyHistogram,
    last: Option<Issued>,
    latest_due_ns: u64,
    out_of_order: u64,
    requests: u64,
    windows: Windows,
    /// The last whole window, which an incomplete one at the end joins.
    whole: Option<Window>,
    window: Window,
    depth: DepthOverTime,
}

impl Meter {
    /// A meter of a trace with this median gap, ns.
    pub fn new(median_gap_ns: u64) -> Self {
        Self {
            limit_ns: lateness_limit_ns(median_gap_ns),
            total: new_latency_histogram(),
            client: new_latency_histogram(),
            queue: new_latency_histogram(),
            gaps_asked: new_latency_histogram(),
            gaps_done: new_latency_histogram(),
            last: None,
            latest_due_ns: 0,
            out_of_order: 0,
            requests: 0,
            windows: Windows::default(),
            whole: None,
            window: Window::default(),
            depth: DepthOverTime {
                width_ns: INTERVAL_NS,
                intervals: vec![InFlight::default(); INTERVALS],
            },
        }
    }

    /// Takes note of the next request that was issued. One that the trace has out of order is due with the request before it.
    pub fn note(&mut self, issued: Issued) {
        self.out_of_order += u64::from(issued.due_ns < self.latest_due_ns);
        self.latest_due_ns = self.latest_due_ns.max(issued.due_ns);
        let issued = Issued {
            due_ns: self.latest_due_ns,
            ..issued
        };
        let late = issued.at_ns.saturating_sub(issued.due_ns);
        let by_queue = issued.queue_ns.min(late);
        let by_client = late - by_queue;
        self.requests += 1;
        self.total.saturating_record(late);
        self.client.saturating_record(by_client);
        self.queue.saturating_record(by_queue);
        if let Some(last) = self.last.replace(issued) {
            let gap = |from: u64, to: u64| to.saturating_sub(from);
            self.gaps_asked
                .saturating_record(gap(last.due_ns, issued.due_ns));
            self.gaps_done
                .saturating_record(gap(last.at_ns, issued.at_ns));
        }
        let age = self.latest_due_ns.saturating_sub(self.window.from_ns);
        if self.window.requests >= WINDOW_REQUESTS && age >= WINDOW_NS {
            if let Some(whole) = self.whole.replace(self.window) {
                self.windows.add(whole);
            }
            self.window = Window {
                from_ns: self.latest_due_ns,
                ..Window::default()
            };
        }
        self.window.requests += 1;
        self.window.late += u64::from(late > self.limit_ns);
        self.window.late_by_client += u64::from(by_client > self.limit_ns);
        self.depth.note(&issued);
    }

    /// The certificate of all requests that were noted.
    pub fn certificate(mut self) -> Certificate {
        let rest = self.window;
        match self.whole.take() {
            None => self.windows.add(rest),
            Some(whole) if rest.requests >= WINDOW_REQUESTS => {
                self.windows.add(whole);
                self.windows.add(rest);
            }
            Some(whole) => self.windows.add(whole.plus(rest)),
        }
        let (lateness, by_client) = (Lateness::of(&self.total), Lateness::of(&self.client));
        let in_order = 1.0 - self.out_of_order as f64 / self.requests.max(1) as f64;
        let gap_distance = distance(&self.gaps_asked, &self.gaps_done);
        let limit = self.limit_ns;
        let is_late = lateness.p99_ns > limit || self.windows.late > 0;
        let is_clients = by_client.p99_ns > limit || self.windows.late_by_client > 0;
        let broken = [
            (Broken::LateClient, is_late && is_clients),
            (Broken::FullQueue, is_late && !is_clients),
            (Broken::Order, in_order < ORDER_MIN),
            (Broken::Gaps, gap_distance > GAPS_MAX),
        ];
        Certificate {
            requests: self.requests,
            limit_ns: limit,
            lateness,
            by_client,
            by_queue: Lateness::of(&self.queue),
            windows: self.windows.count,
            late_windows: self.windows.late,
            worst_window_ns: self.windows.worst.from_ns,
            worst_window_late: self.windows.worst.late_share(),
            in_order,
            gap_distance,
            depth: self.depth.rows(),
            broken: broken.iter().filter(|one| one.1).map(|one| one.0).collect(),
        }
    }
}

/// Greatest difference of two distribution functions of gaps. Gaps count as equal that differ by less than 20 us and 10 %: equal gaps, as
/// of a timer, would otherwise be at the greatest distance from the same with any noise.
fn distance(asked: &LatencyHistogram, done: &LatencyHistogram) -> f64 {
    above(asked, done).max(above(done, asked))
}

/// Greatest excess of the distribution function of `one` over the one of `other`, at gaps that are a little longer.
fn above(one: &LatencyHistogram, other: &LatencyHistogram) -> f64 {
    let (ones, others) = (counts(one), counts(other));
    let (all, all_others) = (one.len().max(1) as f64, other.len().max(1) as f64);
    let mut rest = others.iter().peekable();
    let (mut below, mut below_other, mut most) = (0, 0, 0.0f64);
    for (gap, count) in &ones {
        below += count;
        let longer = gap + gap / GAP_PART + GAP_NS;
        while let Some((_, count)) = rest.next_if(|(gap, _)| *gap <= longer) {
            below_other += count;
        }
        most = most.max(below as f64 / all - below_other as f64 / all_others);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// The certificate of requests each `gap` ns, `late` ns late of which the client causes all but the time in the queue.
    fn replayed(gap: u64, count: u64, late: impl Fn(u64) -> (u64, u64)) -> Certificate {
        let mut meter = Meter::new(gap);
        let mut at_ns = 0;
        for number in 0..count {
            let due_ns = number * gap;
            let (late, queue_ns) = late(number);
            at_ns = at_ns.max(due_ns + late);
            meter.note(Issued {
                due_ns,
                at_ns,
                queue_ns,
                depth_asked: Some(2),
                depth_done: 1,
            });
        }
        meter.certificate()
    }

    #[test]
    fn limit_follows_the_median_gap_in_bounds() {
        let limits = [0, 3 * MS, 200 * MS].map(lateness_limit_ns);
        assert_eq!(limits, [200 * US, 300 * US, 5 * MS]);
    }

    #[test]
    fn punctual_replay_keeps_everything() {
        let certificate = replayed(100 * US, 50_000, |number| (number * 7919 % 20_000, 0));
        assert!(certificate.is_kept(), "{certificate:?}");
        assert_eq!((certificate.requests, certificate.windows), (50_000, 5));
        assert_eq!(certificate.in_order, 1.0);
        let depth = certificate.depth;
        assert!(
            depth
                .iter()
                .all(|row| row.asked == Some(2.0) && row.done == 1.0)
        );
        assert_eq!(depth.len(), 25);
    }

    /// Late by 3 ms in a twentieth of one second of a hundred: the whole has a p99 below the limit.
    #[test]
    fn client_late_in_one_window_is_found() {
        let late = |number: u64| match number / 5_000 {
            3 if number.is_multiple_of(20) => (3 * MS, 0),
            _ => (0, 0),
        };
        let certificate = replayed(200 * US, 500_000, late);
        assert!(certificate.lateness.p99_ns < certificate.limit_ns);
        assert_eq!(certificate.broken, [Broken::LateClient]);
        let Certificate {
            windows,
            late_windows,
            worst_window_ns,
            ..
        } = certificate;
        assert_eq!(
            (windows, late_windows, worst_window_ns),
            (100, 1, 3_000 * MS)
        );
    }

    #[test]
    fn waits_for_slots_are_not_the_clients() {
        let certificate = replayed(MS, 5_000, |_| (40 * MS, 40 * MS));
        assert_eq!(certificate.broken, [Broken::FullQueue]);
        let certificate = replayed(MS, 5_000, |_| (40 * MS, 10 * MS));
        assert_eq!(certificate.broken, [Broken::LateClient]);
        assert_eq!(certificate.by_client.max_ns / MS, 30);
    }

    /// Late at most by what is allowed, but in bursts of five.
    #[test]
    fn bursts_within_the_limit_break_the_gaps() {
        let certificate = replayed(40 * US, 20_000, |number| ((4 - number % 5) * 40 * US, 0));
        assert_eq!(certificate.broken, [Broken::Gaps], "{certificate:?}");
        assert!(certificate.gap_distance > 0.1);
    }

    #[test]
    fn ties_are_in_order_and_overtaking_is_not() {
        let of = |due: &[u64]| {
            let mut meter = Meter::new(MS);
            for due_ns in due {
                meter.note(Issued {
                    due_ns: *due_ns,
                    at_ns: 9 * MS,
                    queue_ns: 0,
                    depth_asked: None,
                    depth_done: 1,
                });
            }
            meter.certificate().in_order
        };
        assert_eq!(of(&[1, 1, 2, 2]), 1.0);
        assert_eq!(of(&[1, 3, 2, 4]), 0.75);
    }
}
