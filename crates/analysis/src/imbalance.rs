//! Disturbances from outside, and whether the runs of two sides differ in them. METHODS.md has the rule.

use crate::analysis::CellAnalysis;
use crate::disturbance::CellDisturbance;
use crate::json;
use schemars::JsonSchema;
use serde::Serialize;

iolab_workload::named! {
    /// Disturbance of trials from outside.
    pub enum Disturber: "disturber" {
        /// CPU time used by other guests of the hypervisor.
        Steal = "steal",
        /// Tasks that waited for a CPU.
        CpuPressure = "cpu_stall",
        /// Workers that were ready to run and waited for a CPU.
        WorkerWait = "worker_wait",
        /// Preemptions of a worker per second, where the kernel does not report pressure.
        Preempted = "preempted",
        /// Tasks that waited for memory.
        MemoryPressure = "memory_stall",
        /// Traffic of others on the device.
        OtherTraffic = "other_traffic",
        /// Time in which the CPU quota of the control group was used up.
        Quota = "cpu_quota_wait",
        /// Requests that reached the device in pieces, depending on the memory of the buffers.
        Splitting = "device_ios_per_request",
        /// Buffers in several pieces of memory, whether or not the device received them in one.
        Fragmentation = "buffer_pieces_per_request",
    }
}

/// A disturbance in which two sides differ: the lowest and the highest value among the runs of each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Imbalance {
    /// The disturber.
    #[serde(serialize_with = "json::name")]
    #[schemars(with = "String")]
    pub what: Disturber,
    /// Values of the base's runs.
    pub base: (f64, f64),
    /// Values of the new runs.
    pub new: (f64, f64),
}

impl Disturber {
    /// Disturbances of some trials by other processes that are large enough for a flag, with their values.
    pub fn taken_by_others(around: &CellDisturbance) -> impl Iterator<Item = (Self, f64)> {
        let traffic = around.others.filter(|_| around.has_other_traffic());
        let found = [
            (Self::OtherTraffic, traffic),
            (Self::CpuPressure, around.cpu_wait()),
            (Self::WorkerWait, around.workers_waited()),
            (Self::Preempted, around.preempted()),
            (Self::Steal, around.stolen()),
            (Self::Quota, around.held_by_quota()),
        ];
        found
            .into_iter()
            .filter_map(|(by, value)| Some((by, value?)))
    }

    /// Value of the disturbance in a cell; `None` where it was not counted.
    pub fn value(self, around: &CellDisturbance) -> Option<f64> {
        match self {
            Self::Steal => around.steal,
            Self::CpuPressure => around.cpu_stall_of_unseen(),
            Self::WorkerWait => around.worker_wait,
            Self::Preempted => around.preemptions,
            Self::MemoryPressure => around.memory_stall,
            Self::OtherTraffic => around.others,
            Self::Quota => around.quota_wait,
            Self::Splitting => around.ios_per_request,
            Self::Fragmentation => around.buffer_pieces,
        }
    }

    /// Whether two values differ by more than undisturbed runs of one machine do.
    pub fn differs(self, a: f64, b: f64) -> bool {
        /// Difference of two shares.
        const SHARE: f64 = 0.05;
        /// Difference for tasks that wait for a CPU, which iolab's own workers do as well.
        const CPU_SHARE: f64 = 0.25;
        /// Ratio of two numbers of I/Os.
        const PIECES: f64 = 1.2;
        /// Ratio of two numbers of pieces of memory. Smaller ratios have no effect.
        const FRAGMENTS: f64 = 2.0;
        match self {
            Self::Splitting => a.max(b) >= PIECES * a.min(b),
            Self::Fragmentation => a.max(b) >= FRAGMENTS * a.min(b),
            Self::CpuPressure | Self::WorkerWait => (a - b).abs() >= CPU_SHARE,
            // The meaning of a difference depends on the load of each side.
            Self::Preempted => false,
            _ => (a - b).abs() >= SHARE,
        }
    }
}

/// The disturbances in which the cells of two sides differ; see [`imbalances`].
pub(crate) fn between(base: &[&CellAnalysis], new: &[&CellAnalysis]) -> Vec<Imbalance> {
    fn around<'a>(cells: &[&'a CellAnalysis]) -> Vec<&'a CellDisturbance> {
        cells.iter().map(|cell| &cell.disturbance).collect()
    }
    let mut found = imbalances(&around(base), &around(new));
    // A program reads few bytes for its time: other traffic is always a multiple of them, and irrelevant.
    if new.iter().any(|cell| cell.cell.spec.runs_program()) {
        found.retain(|found| found.what != Disturber::OtherTraffic);
    }
    found
}

/// The disturbances in which the runs of two sides differ: every run of one side is above every run of the other, by enough to
/// matter. An unknown value is not a difference.
pub fn imbalances(base: &[&CellDisturbance], new: &[&CellDisturbance]) -> Vec<Imbalance> {
    let differing = |what: Disturber| {
        let (base, new) = (range(what, base)?, range(what, new)?);
        let apart = base.1 < new.0 && what.differs(base.1, new.0)
            || new.1 < base.0 && what.differs(new.1, base.0);
        apart.then_some(Imbalance { what, base, new })
    };
    Disturber::ALL
        .iter()
        .copied()
        .filter_map(differing)
        .collect()
}

/// The lowest and the highest value; `None` where no run has one.
fn range(what: Disturber, runs: &[&CellDisturbance]) -> Option<(f64, f64)> {
    let values = || runs.iter().filter_map(|around| what.value(around));
    let least = values().min_by(f64::total_cmp)?;
    let most = values().max_by(f64::total_cmp)?;
    Some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(share: f64) -> CellDisturbance {
        CellDisturbance {
            others: Some(share),
            ..CellDisturbance::default()
        }
    }

    #[test]
    fn only_disturbance_beyond_the_base_is_a_difference() {
        let (quiet, busy, busier) = (others(0.01), others(0.37), others(0.82));
        let found = imbalances(&[&quiet, &busy], &[&busier]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, Disturber::OtherTraffic);
        assert_eq!(found[0].base, (0.01, 0.37));
        assert_eq!(found[0].new, (0.82, 0.82));
        // One run of the base has the same load.
        assert_eq!(imbalances(&[&quiet, &busier], &[&busy]), []);
        // A disturbed base is an imbalance too.
        assert_eq!(imbalances(&[&busy], &[&quiet]).len(), 1);
    }

    #[test]
    fn small_differences_and_unknown_values_are_none() {
        assert_eq!(imbalances(&[&others(0.01)], &[&others(0.05)]), []);
        let unknown = CellDisturbance::default();
        assert_eq!(imbalances(&[&unknown], &[&others(4.0)]), []);
        assert_eq!(imbalances(&[], &[&others(4.0)]), []);
        let stalled = |share| CellDisturbance {
            cpu_stall: Some(share),
            ..CellDisturbance::default()
        };
        assert_eq!(imbalances(&[&stalled(0.1)], &[&stalled(0.3)]), []);
        assert_eq!(imbalances(&[&stalled(0.1)], &[&stalled(0.4)]).len(), 1);
    }

    #[test]
    fn pieces_differ_by_their_ratio() {
        let pieces = |ios| CellDisturbance {
            ios_per_request: Some(ios),
            ..CellDisturbance::default()
        };
        assert_eq!(imbalances(&[&pieces(1.0)], &[&pieces(1.1)]), []);
        let found = imbalances(&[&pieces(1.0)], &[&pieces(3.87)]);
        assert_eq!(found[0].new, (3.87, 3.87));
    }
}
