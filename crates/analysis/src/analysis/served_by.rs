//! The origin of a cell's bytes.

use std::collections::BTreeMap;

use crate::trial_values::median_of;
use iolab_record::{Sample, ServedBy};

/// The origin of a cell's bytes, over its measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct CellServed {
    /// Number of trials per verdict, in the order of [`ServedBy`]'s variants.
    pub trials: Vec<(ServedBy, usize)>,
    /// Median over the trials of the device's share; `None` where unknown.
    pub device_fraction: Option<f64>,
    /// The most frequent reason.
    pub reason: String,
    /// Whether this is one of several groups, and the origin is known only for all together.
    pub is_shared: bool,
}

impl CellServed {
    /// The verdict of all trials; `None` where they differ.
    pub fn unanimous(&self) -> Option<ServedBy> {
        match self.trials.as_slice() {
            [(only, _)] => Some(*only),
            _ => None,
        }
    }

    /// Whether every trial was served by the device; only then may a number be called the device's.
    pub fn is_device(&self) -> bool {
        self.unanimous() == Some(ServedBy::Device)
    }

    /// Whether every trial was served entirely by the target, a device or a model.
    pub fn is_target(&self) -> bool {
        matches!(self.unanimous(), Some(ServedBy::Device | ServedBy::Model))
    }

    /// The verdict for one of several groups, whose origin of bytes is known only for all together.
    #[must_use]
    pub(super) fn of_one_group(self) -> Self {
        let is_of_each = self.unanimous().is_some_and(ServedBy::holds_for_parts);
        Self {
            is_shared: !is_of_each,
            ..self
        }
    }

    /// Whether any trial had this verdict.
    pub fn any(&self, verdict: ServedBy) -> bool {
        self.trials.iter().any(|(v, _)| *v == verdict)
    }
}

/// The combined verdicts of a cell's trials.
pub(super) fn served(trials: &[&Sample]) -> Option<CellServed> {
    let count = |verdict| {
        let of = |s: &&&Sample| s.verdict.served_by == verdict;
        trials.iter().filter(of).count()
    };
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in trials {
        *reasons.entry(&sample.verdict.reason).or_default() += 1;
    }
    let reason = reasons.iter().max_by_key(|(_, n)| **n)?.0;
    Some(CellServed {
        trials: ServedBy::ALL
            .iter()
            .copied()
            .map(|verdict| (verdict, count(verdict)))
            .filter(|(_, n)| *n > 0)
            .collect(),
        device_fraction: median_of(trials, |s| s.verdict.device_fraction),
        reason: (*reason).to_owned(),
        is_shared: false,
    })
}
