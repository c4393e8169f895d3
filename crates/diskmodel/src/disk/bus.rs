//! A bus shared by commands and data.

use crate::model::Ns;

/// The times at which the bus is in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Timetable {
    /// Used spans in order; none had ended at the last call.
    taken: Vec<(Ns, Ns)>,
}

impl Timetable {
    /// Removes spans that ended by `now`.
    pub(super) fn forget(&mut self, now: Ns) {
        self.taken.retain(|span| span.1 > now);
    }

    /// The first time from `at` on at which the bus is free for `length`.
    pub(super) fn fit(&self, at: Ns, length: Ns) -> Ns {
        let mut start = at;
        for &(from, until) in &self.taken {
            if from < start + length.max(1) && until > start {
                start = until;
            }
        }
        start
    }

    /// Uses the bus from `from` to `until`.
    pub(super) fn take(&mut self, from: Ns, until: Ns) {
        if until > from {
            let at = self.taken.partition_point(|span| span.0 <= from);
            self.taken.insert(at, (from, until));
        }
    }
}
