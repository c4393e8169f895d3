//! Loads that were shorter than requested.

use std::time::Duration;

use super::{Measured, WorkloadResult, load_in_words};

/// Share of the requested load from which it counts as made, since trials end a little early or late.
const LOADED_AS_ASKED: f64 = 0.9;

impl WorkloadResult {
    /// Whether its run is done, and loaded the storage for less than `hold`.
    pub(super) fn is_short_of(&self, hold: Duration) -> bool {
        let load = Duration::from_nanos(self.found.load_ns);
        self.measured == Measured::Whole && load < hold.mul_f64(LOADED_AS_ASKED)
    }

    /// `w: 29 s of load instead of 10 min, because ...`, with advice. `None` if the load is as long as
    /// requested.
    pub(super) fn short_load(&self, hold: Duration) -> Option<String> {
        self.is_short_of(hold).then(|| {
            format!(
                "{}: {} of load instead of {}, because trials ended with their region before their time. A larger region in the requirement makes them longer.",
                self.workload,
                load_in_words(Duration::from_nanos(self.found.load_ns)),
                load_in_words(hold),
            )
        })
    }
}
