//! The levels of `iolab run --slo`.

use iolab_record::RunRecord;
use iolab_record::question::Asked;
use iolab_workload::service_level::ServiceLevels;

/// The levels that a run searched the rate of; `None` if it searched none.
pub(super) fn sought(record: &RunRecord) -> Option<ServiceLevels> {
    let question = record.experiment.asked.as_ref()?;
    matches!(question.of, Asked::Limit).then(|| question.levels())
}
