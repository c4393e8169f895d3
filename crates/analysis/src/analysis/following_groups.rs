//! Groups of a cell that run one after the other; the sum of their rates was never reached.

use super::{CellAnalysis, GroupAnalysis};

impl CellAnalysis {
    /// Its groups in order, where each begins no earlier than the time of the one before ends; empty where any overlap, or there are none.
    pub fn following_groups(&self) -> Vec<&GroupAnalysis> {
        let spec = &self.cell.spec;
        let mut end = std::time::Duration::ZERO;
        for group in spec.groups.iter().filter(|group| !group.is_idle()) {
            let trial = group.trial();
            let Some(time) = trial.limit.time.filter(|_| trial.start_delay >= end) else {
                return Vec::new();
            };
            end = trial.start_delay.saturating_add(time);
        }
        let own = self.groups.iter();
        let own = own.filter(|group| spec.number_of(Some(&group.name)).is_some());
        let all: Vec<&GroupAnalysis> = own.collect();
        match all.len() {
            0 | 1 => Vec::new(),
            _ => all,
        }
    }
}
