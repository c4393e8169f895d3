//! `io.cost.model` of the kernel: one line a disk.
//!
//! Sources: `tools/cgroup/iocost_coef_gen.py`, `block/blk-iocost.c` and Documentation/admin-guide/cgroup-v2.rst of Linux.

use iolab_analysis::analysed_run::AnalysedRun;
use iolab_record::environment::{Environment, KEYS};
use iolab_report::export::Judged;
use iolab_workload::system_settings::{SystemSetting, SystemSettings};
use iolab_workload::trial::WorkloadCode;
use iolab_workload::units::format_bytes;
use iolab_workload::{Error, Result};

use crate::limit::{Measured, Point, Storage, storages};

/// The experiment with these points.
pub(crate) const EXPERIMENT: &str = "limits-iocost";

const fn rate(name: &'static str, workload: WorkloadCode) -> Point {
    Point {
        name,
        is_rate: true,
        workload,
        bs: 128 << 20,
        depth: (1, 1),
        threads: 1,
    }
}

/// The reason against requests that did not pass as they were issued.
const CHANGED: &str = "a scheduler or merges may have changed the requests; measure with --change-system --set system=scheduler:none+nomerges:1";

/// Several threads have a depth of 64 each, as jobs of the script.
const fn iops(name: &'static str, workload: WorkloadCode) -> Point {
    Point {
        name,
        is_rate: false,
        workload,
        bs: 4096,
        depth: (64, 64),
        threads: 1,
    }
}

/// The parameters, in their order in the line.
pub(crate) const POINTS: [Point; 6] = [
    rate("rbps", WorkloadCode::RS),
    iops("rseqiops", WorkloadCode::RS),
    iops("rrandiops", WorkloadCode::RR),
    rate("wbps", WorkloadCode::WS),
    iops("wseqiops", WorkloadCode::WS),
    iops("wrandiops", WorkloadCode::WR),
];

/// The lines of all disks.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a target that is not a disk with a queue, or a point without a cell.
pub(crate) fn lines(runs: &[AnalysedRun]) -> Result<Judged> {
    let (mut text, mut notes, mut is_open) = (String::new(), Vec::new(), false);
    for disk in storages(runs, number)? {
        let mut measured = Measured::of(runs, &disk, &POINTS, EXPERIMENT)?;
        for point in &POINTS {
            if let Some((_, cell)) = point.cell(&disk)?
                && !passes_requests_on(&cell.cell.spec.system)
            {
                measured.forbid(point, CHANGED.to_owned());
            }
        }
        is_open |= !measured.reasons.is_empty();
        notes.extend(measured.notes(&disk.name));
        notes.extend(share(&disk));
        let parameters = measured.limits.iter();
        let parameters = parameters.map(|limit| format!(" {}={}", limit.name, limit.value));
        text.extend([disk.name.clone()].into_iter().chain(parameters));
        text.push('\n');
    }
    Ok(Judged {
        text: (!is_open).then_some(text),
        notes,
    })
}

/// The number of the disk, as the line begins.
fn number(target: &str, environment: &Environment) -> Result<String> {
    let hint = "measure a whole disk: iolab run limits-iocost /dev/DISK --destroy-data --change-system; --format limits has the numbers of any target";
    let refused = |why: String| Err(Error::usage(why).hint(hint));
    let device = environment.get(&KEYS.device).unwrap_or_default();
    let disk = environment.get(&KEYS.device_disk).unwrap_or_default();
    match environment.get(&KEYS.device_number) {
        None => refused(format!(
            "io.cost takes limits of disks by number, and {target} has none"
        )),
        Some(_) if device != disk => refused(format!(
            "io.cost takes limits of whole disks, and {device} is a partition of {disk}"
        )),
        Some(_) if environment.get(&KEYS.device_queues).unwrap_or(0) == 0 => refused(format!(
            "io.cost controls request queues, and {disk} has none"
        )),
        Some(number) => Ok(number),
    }
}

/// Whether requests reach the device as they are issued.
fn passes_requests_on(system: &SystemSettings) -> bool {
    system.get(SystemSetting::Scheduler) == Some("none")
        && matches!(system.get(SystemSetting::NoMerges), Some("1" | "2"))
}

/// A note on the share of the disk that was measured, if it is small.
fn share(disk: &Storage<'_>) -> Option<String> {
    let all = disk.environment.get(&KEYS.device_bytes)?;
    let regions = disk.cells.iter().map(|(_, cell)| cell.cell.trial().region);
    let used = regions.max()?;
    (used < all / 2).then(|| {
        format!(
            "{}: measured on {} of {}; --size 100% measures the whole disk",
            disk.name,
            format_bytes(used as f64),
            format_bytes(all as f64)
        )
    })
}
