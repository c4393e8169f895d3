//! Disturbances of trials, in words.

use iolab_analysis::imbalance::{Disturber, Imbalance};
use iolab_workload::quantity::{digits, format_percent};

/// A description, for use within a sentence.
pub(crate) fn words(disturber: Disturber) -> &'static str {
    match disturber {
        Disturber::Steal => "CPU time taken by the hypervisor",
        Disturber::CpuPressure => "waiting for a CPU",
        Disturber::WorkerWait => "iolab's threads waiting for a CPU",
        Disturber::Preempted => "preempted by other programs",
        Disturber::MemoryPressure => "waiting for memory",
        Disturber::OtherTraffic => "other traffic on the device",
        Disturber::Quota => "waiting for the CPU quota",
        Disturber::Splitting => "device I/Os per request",
        Disturber::Fragmentation => "pieces of memory per request",
    }
}

/// A value of the disturbance, with its unit.
pub(crate) fn extent(disturber: Disturber, value: f64) -> String {
    match disturber {
        Disturber::Splitting | Disturber::Fragmentation => digits(value, 3),
        Disturber::Preempted => format!("{} times per second", digits(value, 3)),
        _ => format_percent(value),
    }
}

/// The difference between two sides with the values of each: `other traffic on the device, 0 % with it, 20 % to
/// 30 % without it`. `base` and `new` name the sides.
pub(crate) fn of_both(found: &Imbalance, base: &str, new: &str) -> String {
    let Imbalance {
        what,
        base: of_base,
        new: of_new,
    } = *found;
    let values = |(least, most): (f64, f64)| {
        let (least, most) = (extent(what, least), extent(what, most));
        match least == most {
            true => least,
            false => format!("{least} to {most}"),
        }
    };
    format!(
        "{}, {} {base}, {} {new}",
        words(what),
        values(of_base),
        values(of_new)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_range_once() {
        let found = |what, base, new| {
            let found = Imbalance { what, base, new };
            of_both(&found, "before", "after")
        };
        insta::assert_snapshot!(
            found(Disturber::OtherTraffic, (0.01, 0.37), (0.82, 0.82)),
            @"other traffic on the device, 1.0 % to 37 % before, 82 % after"
        );
        insta::assert_snapshot!(
            found(Disturber::Splitting, (1.0, 1.0), (3.87, 3.87)),
            @"device I/Os per request, 1.00 before, 3.87 after"
        );
    }
}
