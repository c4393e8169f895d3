//! Claims from the counts of drives: throttling, and the write amplification of a soak.

use iolab_record::DriveLog;
use iolab_workload::response::Response;

use super::point::{Point, Quantity, Standing};
use super::series::id;
use super::{Claim, kind};
use crate::analysis::{Analysis, CellAnalysis, CellDrives};

/// Fewest bytes of hosts for a ratio: rounding changes it by at most 2 %.
const HOST_BYTES_MIN: u64 = 100 * DriveLog::UNIT;
/// Share of the bytes of hosts from which the trial is said to have written nearly all of them.
const OWN_FROM: f64 = 0.95;

fn drives(analysis: &Analysis) -> impl Iterator<Item = (&CellAnalysis, CellDrives)> {
    let cells = analysis.cells.iter();
    cells.filter_map(|cell| Some((cell, cell.drives?)))
}

/// The longest throttling of a cell, or a cell without counts of it; `None` if no drive throttled itself.
pub(super) fn throttled(analysis: &Analysis, run: usize) -> Option<Claim> {
    let has_throttled = |drives: &CellDrives| drives.throttled_ns > 0 || drives.throttles > 0;
    let all = || drives(analysis).filter(|(_, drives)| has_throttled(drives));
    let most = all().max_by_key(|(_, drives)| (drives.throttled_ns, drives.throttles));
    let Some((cell, most)) = most else {
        let (open, _) = drives(analysis).find(|(_, drives)| drives.lacks_throttling)?;
        return Some(Claim::new(&kind::UNKNOWN_THROTTLING, vec![id(run, open)]));
    };
    let time = |ns: u64| Point::main(Quantity::Of(Response::Elapsed), ns as f64);
    let times = Point::count(Standing::Main, "time", most.throttles as usize);
    let (kind, points) = match most.throttled_ns {
        0 => (&kind::THROTTLED_AT_TIMES, vec![times]),
        ns => (&kind::THROTTLED, vec![time(ns), time(most.elapsed_ns)]),
    };
    let others = all().count() - 1;
    let others = (others > 0).then(|| Point::count(Standing::Alike, "more cell", others));
    let claim = Claim::new(kind, vec![id(run, cell)]);
    Some(claim.with_points(points.into_iter().chain(others)))
}

/// The write amplification of each cell that writes in a run without warm-ups.
pub(super) fn amplifications(analysis: &Analysis, run: usize) -> impl Iterator<Item = Claim> {
    let is_soak = analysis.timeline.is_of_beginning;
    let cells = drives(analysis).filter(move |(cell, _)| is_soak && cell.cell.trial().writes());
    cells.filter_map(move |(cell, drives)| {
        amplification(
            drives,
            Claim::new(&kind::WRITE_AMPLIFICATION, vec![id(run, cell)]),
        )
    })
}

/// The claim with the bytes written to flash memory and by hosts, and their ratio; `None` if drives do not count both.
fn amplification(drives: CellDrives, claim: Claim) -> Option<Claim> {
    let bytes = |standing, bytes: u64| Point::new(standing, Quantity::Bytes, bytes as f64);
    let both = drives.host_write_bytes.zip(drives.media_write_bytes);
    let grown = both.filter(|(host, media)| *host >= HOST_BYTES_MIN && *media > 0);
    let Some((host, media)) = grown else {
        let open = Claim::new(&kind::UNKNOWN_AMPLIFICATION, claim.cells);
        let is_open = both.is_some() || drives.lacks_writes;
        return is_open.then(|| open.with_points([bytes(Standing::Main, HOST_BYTES_MIN)]));
    };
    let both = [bytes(Standing::Main, media), bytes(Standing::Main, host)];
    let ratio = Point::main(Quantity::Times, media as f64 / host as f64);
    let own = bytes(Standing::Own, drives.written_bytes);
    let own = (own.value < OWN_FROM * host as f64).then_some(own);
    Some(claim.with_points([ratio].into_iter().chain(both).chain(own)))
}
