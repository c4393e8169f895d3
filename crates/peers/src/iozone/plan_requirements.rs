//! Requirements of a plan for IOzone: one pass by each thread over a separate file, all files of the same size.

use iolab_workload::trial::{FileLayout, TrialSpec};
use iolab_workload::units::format_size;

use crate::Need;

/// Size of a pass, unless the requests are larger: it has to be short, because time cannot end it.
const PASS: u64 = 64 << 20;

/// Implementation of [`Peer::needs`](crate::Peer::needs).
pub(super) fn needs(specs: &[&TrialSpec]) -> Vec<Need> {
    let any = |of: fn(&TrialSpec) -> bool| specs.iter().any(|spec| of(spec));
    let flags = [
        (any(|s| s.limit.time.is_some()), ("time", "none")),
        (any(|s| s.limit.bytes.is_some()), ("bytes", "none")),
        (
            any(|s| s.threads > 1 && s.layout != FileLayout::Private),
            ("layout", "private"),
        ),
    ];
    let needed = flags.into_iter().filter(|(needed, _)| *needed);
    let mut needs: Vec<Need> = needed
        .map(|(_, (name, value))| (name, value.to_owned()))
        .collect();
    if let Some(region) = region(specs) {
        needs.push(("region", format_size(region)));
    }
    needs
}

/// Region for all trials: short to cover, and divided evenly by as many of them as possible; `None` if it
/// already is.
fn region(specs: &[&TrialSpec]) -> Option<u64> {
    let parts = |spec: &TrialSpec| spec.bs.saturating_mul(u64::from(spec.threads));
    let largest = specs.iter().map(|spec| spec.bs).max()?;
    let most = PASS.max(largest);
    let suits = |spec: &&TrialSpec| spec.region <= most && spec.region.is_multiple_of(parts(spec));
    if specs.iter().all(suits) {
        return None;
    }
    let mut wanted: Vec<u64> = specs.iter().map(|spec| parts(spec)).collect();
    wanted.push(largest);
    wanted.sort_unstable();
    wanted.dedup();
    let unit = wanted
        .into_iter()
        .fold(largest, |unit, parts| match common_multiple(unit, parts) {
            Some(both) if both <= most => both,
            _ => unit,
        });
    Some(most - most % unit)
}

fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).checked_mul(b)
}
