//! The cost of tracing requests so fast that it matters.

use std::path::Path;

use iolab_host::device::Device;
use iolab_plan::cells::PlannedCell;
use iolab_storage::Target;

/// Warning about tracing requests on disks in memory (zram, brd), which are that fast; `None` if no such disk is traced.
pub(crate) fn note(cells: &[PlannedCell], targets: &[(&Path, &Target)]) -> Option<String> {
    let is_traced = |cell: &PlannedCell| cell.spec.trials().into_iter().any(|trial| trial.trace);
    let is_memory = |(_, target): &&(&Path, &Target)| {
        let disk = target.traced_disk().ok();
        let device = disk.and_then(|disk| Device::read(Path::new("/sys"), disk.number));
        device.is_some_and(|device| device.transport.is_memory())
    };
    if !cells.iter().any(is_traced) {
        return None;
    }
    let (named, _) = targets.iter().find(is_memory)?;
    Some(format!(
        "{}: trace=true costs about 0.3 us per recorded event, with two or more per request: a large share of the time of a request on a disk in memory; --set trace=false,true measures it",
        named.display()
    ))
}
