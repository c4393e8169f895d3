//! Counts of the requests served, and how late the answers were.

use iolab_diskmodel::{Ns, Op};
use iolab_workload::histogram::{LatencyHistogram, new_latency_histogram};

/// Share of the median service time that the 99th percentile of lateness may reach.
const SHARE: f64 = 0.02;
/// Lateness that is always small enough, ns.
const SMALL: u64 = 50_000;

/// Requests of one kind. All times are real, in ns.
#[derive(Debug, Clone)]
pub struct OpTally {
    /// Number of requests.
    pub requests: u64,
    /// Bytes of all requests of the kind.
    pub bytes: u64,
    /// Times from arrival to the time at which the answer was due.
    pub service: LatencyHistogram,
    /// Times from when the answer was due to the end of answering.
    pub lateness: LatencyHistogram,
}

impl OpTally {
    fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            service: new_latency_histogram(),
            lateness: new_latency_histogram(),
        }
    }

    fn add(&mut self, bytes: u64, service: Ns, lateness: Ns) {
        self.requests += 1;
        self.bytes += bytes;
        self.service.saturating_record(service);
        self.lateness.saturating_record(lateness);
    }
}

/// Whether the answers came when they were due. Times are real, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Punctuality {
    /// Median time from arrival to the time at which the answer was due.
    pub service_p50: u64,
    /// 99th percentile of lateness.
    pub lateness_p99: u64,
    /// Greatest lateness that does not change what a tool concludes: 2 % of the median service time, or 50 us.
    pub limit: u64,
}

impl Punctuality {
    /// Whether lateness stayed within the limit.
    pub fn kept(&self) -> bool {
        self.lateness_p99 <= self.limit
    }
}

/// All requests, together and by kind.
#[derive(Debug, Clone)]
pub struct ServeStatistics {
    all: OpTally,
    kinds: [(Op, OpTally); 4],
}

impl Default for ServeStatistics {
    fn default() -> Self {
        let kind = |op| (op, OpTally::new());
        Self {
            all: OpTally::new(),
            kinds: [Op::Read, Op::Write, Op::Flush, Op::Trim].map(kind),
        }
    }
}

impl ServeStatistics {
    /// Counts a request that arrived, was due and was answered at these times.
    pub fn add(&mut self, op: Op, bytes: u64, arrived: Ns, due: Ns, done: Ns) {
        let (service, lateness) = (due.saturating_sub(arrived), done.saturating_sub(due));
        self.all.add(bytes, service, lateness);
        for (_, kind) in self.kinds.iter_mut().filter(|(kind, _)| *kind == op) {
            kind.add(bytes, service, lateness);
        }
    }

    /// All requests together.
    pub fn all(&self) -> &OpTally {
        &self.all
    }

    /// The kinds of which there was a request.
    pub fn kinds(&self) -> impl Iterator<Item = (Op, &OpTally)> {
        let kinds = self.kinds.iter().map(|(op, kind)| (*op, kind));
        kinds.filter(|(_, kind)| kind.requests > 0)
    }

    /// Whether the answers came when they were due; `None` without requests.
    pub fn punctuality(&self) -> Option<Punctuality> {
        (self.all.requests > 0).then(|| {
            let service_p50 = self.all.service.value_at_quantile(0.5);
            Punctuality {
                service_p50,
                lateness_p99: self.all.lateness.value_at_quantile(0.99),
                limit: ((service_p50 as f64 * SHARE) as u64).max(SMALL),
            }
        })
    }
}
