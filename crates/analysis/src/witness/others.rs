//! Traffic of other processes on the devices of an observation.

use super::{Asked, Bounds, CLOSE, OWN_DATA, OtherUse, Reading};
use crate::disturbance::JOURNAL_PER_SYNC;

impl Reading<'_> {
    /// Whether another process is known to have written, or to have dirtied pages.
    fn sees_other_writers(&self) -> bool {
        let mut others = self.observed.others.active.iter();
        others.any(|one| !one.is_kernel && one.write_bytes > 0)
    }

    /// Upper bound on bytes that file systems wrote to their journals for its syncs. A sync ends with a flush.
    fn journal_most(&self) -> u64 {
        let asked = self.asked_writes();
        let flushes = self.flushes().map_or(0, |flushes| flushes.completed);
        let traced = self.observed.trace.as_ref();
        let syncs = flushes.max(traced.map_or(0, |trace| trace.syncs.syncs));
        match asked {
            Asked::Nothing => 0,
            Asked::Bytes(_) | Asked::Unknown { .. } => syncs.saturating_mul(JOURNAL_PER_SYNC),
        }
    }

    /// Traffic of other processes on the devices in question.
    pub fn others(&self) -> OtherUse {
        let (Some(traffic), Some(read), Some(written)) =
            (self.traffic(), self.carried_reads(), self.carried_writes())
        else {
            return OtherUse::Unknown;
        };
        let rest = |all: u64, twice: u64, own: Bounds| Bounds {
            least: all.saturating_sub(twice).saturating_sub(own.most),
            most: all.saturating_sub(own.least),
        };
        let read = rest(
            traffic.read_bytes,
            self.counted_twice(|stat| stat.read_bytes),
            read,
        );
        // Kernel threads may write pages that were dirty before it started, together with its own bytes in these
        // pages.
        let before = self.observed.dirty_before_bytes.unwrap_or(u64::MAX);
        let before = before.min(self.overwritten_most());
        let written = rest(
            traffic.write_bytes,
            self.counted_twice(|stat| stat.write_bytes),
            written,
        );
        // No process's account includes the file system's own data.
        let early = before.saturating_add(self.journal_most());
        let least = match self.sees_other_writers() {
            true => written.least.saturating_sub(early),
            false => 0,
        };
        let written = Bounds { least, ..written };
        let slack = |whole: u64| OWN_DATA.max((CLOSE * whole as f64) as u64);
        let is_little =
            read.most <= slack(traffic.read_bytes) && written.most <= slack(traffic.write_bytes);
        match read.most.saturating_add(written.most) {
            0 => OtherUse::None,
            most if is_little => OtherUse::Little { most },
            _ => OtherUse::Some { read, written },
        }
    }
}
