//! Load of devices and the processes that caused it: the numbers of `iostat -x`, with names.

use iolab_analysis::witness::DeviceLoad;
use iolab_workload::units::{format_ns, format_percent, significant};
use iolab_workload::witness::ObservedDevice;

/// Share of the time from which a device may be working at its limit.
const BUSY_FROM: f64 = 0.95;
/// Clause for a device that completed requests although the kernel saw none in flight at a tick of its clock.
/// Any number of short requests can lie between two ticks.
pub(super) const BUSY_UNSEEN: &str =
    "busy time unknown (requests shorter than a clock tick of the kernel)";

/// Load of a device that was observed without a program, over `span_ns`.
pub(super) fn clause(device: &ObservedDevice, load: Option<DeviceLoad>, span_ns: u64) -> String {
    match load {
        Some(load) => {
            let is_idle = load.reads_per_s + load.writes_per_s == 0.0;
            let busy = match load.busy > 0.0 || is_idle {
                true => format!("busy {} of the time", format_percent(load.busy)),
                false => BUSY_UNSEEN.to_owned(),
            };
            format!(
                "{}: {} and {} over {}; {busy}",
                device.name,
                rate(load.reads_per_s, "read", load.read_mb_s),
                rate(load.writes_per_s, "write", load.write_mb_s),
                format_ns(span_ns as f64),
            )
        }
        None => format!("{}: its traffic is not counted", device.name),
    }
}

/// `120 reads/s (50.2 MB/s)`.
fn rate(per_s: f64, what: &str, mb_s: f64) -> String {
    format!(
        "{} {what}s/s ({} MB/s)",
        significant(per_s),
        significant(mb_s)
    )
}

/// The load of a device: rates, times, requests in flight, busy time.
pub(super) fn load(device: &ObservedDevice, elapsed_ns: u64) -> Option<String> {
    let load = DeviceLoad::of(device, elapsed_ns)?;
    let each = |ms: Option<f64>| {
        match ms {
            None => String::new(),
            // The kernel counts whole milliseconds of each request.
            Some(0.0) => ", below 1 ms each".to_owned(),
            Some(ms) => format!(", {} each", format_ns(ms * 1e6)),
        }
    };
    let mut parts = Vec::new();
    if load.reads_per_s > 0.0 {
        let rate = rate(load.reads_per_s, "read", load.read_mb_s);
        parts.push(rate + &each(load.read_await_ms));
    }
    if load.writes_per_s > 0.0 {
        let rate = rate(load.writes_per_s, "write", load.write_mb_s);
        parts.push(rate + &each(load.write_await_ms));
    }
    if parts.is_empty() {
        return None;
    }
    if let Some(in_flight) = load.in_flight {
        parts.push(format!(
            "{} requests in flight on average",
            significant(in_flight)
        ));
    }
    let caveat = match load.busy >= BUSY_FROM {
        true => ", which does not limit a device that serves requests in parallel",
        false => "",
    };
    if load.busy > 0.0 {
        parts.push(format!(
            "busy {} of the time{caveat}",
            format_percent(load.busy)
        ));
    }
    Some(format!("{}: {}", device.name, parts.join("; ")))
}
