//! Latency recording: HDR histograms of nanoseconds with 3 significant digits.

use hdrhistogram::Histogram;

/// Latencies in nanoseconds, 3 significant digits.
pub type LatencyHistogram = Histogram<u64>;

/// Greatest latency distinguished, ns: one hour; what took longer counts as one hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// An empty histogram whose memory is already touched, so that recording never faults.
pub fn new_latency_histogram() -> LatencyHistogram {
    let mut histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("valid bounds");
    histogram.reset();
    histogram
}

/// A stand-in for a direction that a worker does not use: a few KiB instead of hundreds.
pub fn unused_latency_histogram() -> LatencyHistogram {
    Histogram::new_with_bounds(1, 2, 3).expect("valid bounds")
}
