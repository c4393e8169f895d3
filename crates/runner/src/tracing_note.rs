//! What tracing costs where requests are so fast that it matters.

use std::path::Path;

use iolab_plan::cells::PlannedCell;
use iolab_storage::Target;
use iolab_storage::sectors::Carrier;

/// What to know before requests are traced on disks without a queue of requests, which are mostly memory (zram); `None` where no such
/// disk is traced.
pub(crate) fn note(cells: &[PlannedCell], targets: &[(&Path, &Target)]) -> Option<String> {
    let is_traced = |cell: &PlannedCell| cell.spec.trials().into_iter().any(|trial| trial.trace);
    let is_without_queue = |(_, target): &&(&Path, &Target)| {
        let carrier = target.carrier();
        matches!(carrier, Ok(Carrier::Disk { has_requests, .. }) if !has_requests)
    };
    let (named, _) = targets.iter().find(is_without_queue)?;
    cells.iter().any(is_traced).then(|| {
        format!(
            "{}: trace=true costs about 0.3 us per recorded event, with two or more per request: a large share of the time of a request on a disk in memory (zram); --set trace=false,true measures it",
            named.display()
        )
    })
}
