//! Results of other tools for the same workload on the same target.

mod fio;
mod iozone;

pub use fio::{fio, measure as fio_figures};
pub use iozone::{iozone, measure as iozone_mb_s};

/// Table entry for a missing tool.
const NOT_INSTALLED: &str = "not installed";

/// The results of a tool for one workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// MB/s.
    pub mb_s: f64,
    /// Median latency, ns; NaN where it reports none.
    pub p50_ns: f64,
    /// 99th percentile of the latency, ns; NaN where it reports none.
    pub p99_ns: f64,
}

/// A throughput for a table.
pub fn throughput(mb_s: f64) -> String {
    let digits = if mb_s < 10.0 {
        2
    } else {
        usize::from(mb_s < 100.0)
    };
    format!("{mb_s:.digits$} MB/s")
}

/// Two quantiles of the latency, ns, for a table.
pub fn latency(p50_ns: f64, p99_ns: f64) -> String {
    format!("p50 {}, p99 {}", time(p50_ns), time(p99_ns))
}

fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        _ if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let short = [1.234, 12.34, 1234.5].map(throughput);
        assert_eq!(short, ["1.23 MB/s", "12.3 MB/s", "1234 MB/s"]);
        assert_eq!(latency(900.0, 1500.0), "p50 900 ns, p99 2 µs");
        assert_eq!(latency(4.04e6, 2.0e9), "p50 4.0 ms, p99 2.00 s");
    }
}
