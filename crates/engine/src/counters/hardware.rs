//! What the processor counted while the workers ran.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::spec::named;

/// Events that the processor counted in the workers while they ran, user and kernel mode together unless the trial's
/// effective settings say otherwise. One that the processor does not count is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HardwareEvents {
    /// Core clock cycles.
    pub cycles: Option<u64>,
    /// Instructions retired.
    pub instructions: Option<u64>,
    /// Misses of the last-level cache, on reads.
    pub llc_misses: Option<u64>,
    /// Misses of the data TLB, on loads.
    pub dtlb_misses: Option<u64>,
}

/// Why there are no hardware events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoHardware {
    /// The trial did not ask for them.
    NotAsked,
    /// The processor, or the hypervisor above it, offers none.
    NotOffered,
    /// The kernel does not let this user count (`perf_event_paranoid`).
    NotPermitted,
    /// Another program holds the counters.
    Busy,
    /// The kernel knows no perf events.
    NoKernelSupport,
}

named!(NoHardware, "reason", {
    "not-asked" => NoHardware::NotAsked, "not-offered" => NoHardware::NotOffered,
    "not-permitted" => NoHardware::NotPermitted, "busy" => NoHardware::Busy,
    "no-kernel-support" => NoHardware::NoKernelSupport,
});

/// What the processor counted, or why it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hardware {
    /// At least one event was counted.
    Counted(HardwareEvents),
    /// None was.
    Missing(NoHardware),
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware::Missing(NoHardware::NotAsked)
    }
}

impl Hardware {
    /// The events; none where there are none.
    pub fn events(self) -> HardwareEvents {
        match self {
            Hardware::Counted(events) => events,
            Hardware::Missing(_) => HardwareEvents::default(),
        }
    }

    /// What two workers counted together; where one of them did not count, the sum is not known either.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (a, b) = match (self, other) {
            (Hardware::Counted(a), Hardware::Counted(b)) => (a, b),
            (missing @ Hardware::Missing(_), _) | (_, missing) => return missing,
        };
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        Hardware::Counted(HardwareEvents {
            cycles: sum(a.cycles, b.cycles),
            instructions: sum(a.instructions, b.instructions),
            llc_misses: sum(a.llc_misses, b.llc_misses),
            dtlb_misses: sum(a.dtlb_misses, b.dtlb_misses),
        })
    }

    /// Why there are none.
    pub fn missing(self) -> Option<NoHardware> {
        match self {
            Hardware::Counted(_) => None,
            Hardware::Missing(reason) => Some(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_known_where_every_part_is() {
        let counted = |cycles, llc_misses| {
            Hardware::Counted(HardwareEvents {
                cycles,
                llc_misses,
                ..HardwareEvents::default()
            })
        };
        let sum = counted(Some(3), Some(1)).plus(counted(Some(4), None));
        assert_eq!(sum, counted(Some(7), None));
        let busy = Hardware::Missing(NoHardware::Busy);
        assert_eq!(sum.plus(busy), busy);
        assert_eq!(busy.plus(sum), busy);
    }
}
