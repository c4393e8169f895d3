//! Choice of the simplest among equally good settings.

use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::Pattern;

use crate::analysis::CellAnalysis;

/// Settings that are compared by their values.
const COMPARED: [&str; 5] = ["pattern", "bs", "threads", "depth", "skip"];

/// Effort that a setting takes in the program that uses it, in ascending order: sequential before other
/// patterns, default before other settings, fewer requests in flight, smaller requests, a smaller skip.
pub(super) fn effort(cell: &CellAnalysis) -> impl Ord + use<> {
    let spec = &cell.cell.spec;
    let trial = cell.cell.trial();
    let is_sequential = spec.shared(|trial| trial.pattern) == Some(Pattern::Seq);
    let default = CellSpec::default();
    let others = SETTINGS
        .iter()
        .filter(|setting| !COMPARED.contains(&setting.name));
    let changed = others.filter(|setting| setting.value(spec) != setting.value(&default));
    (
        !is_sequential,
        changed.count(),
        trial.in_flight_of_all(),
        trial.bs,
        trial.skip,
    )
}
