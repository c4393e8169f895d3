//! Results that a program reports itself, compared with what devices carried.

use iolab_analysis::witness::{Bounds, Evidence, Transfer};
use iolab_record::witness::Claimed;
use iolab_workload::units::{format_bytes, significant};

/// Claim that devices cannot have carried: `fio says that it read at 5712 MB/s, of which vda carried at most 31
/// MB/s`.
pub(super) fn contradiction(
    tool: &str,
    transfer: Transfer,
    claimed: Claimed,
    carried: Bounds,
    device: &str,
) -> String {
    let verb = verb(transfer);
    match (claimed.rate, carried.mb_s_most_of(claimed)) {
        (Some((rate, _)), Some(mb_s)) => format!(
            "{tool} says that it {verb} at {} MB/s, of which {device} carried at most {} MB/s",
            significant(rate),
            significant(mb_s)
        ),
        _ => format!(
            "{tool} says that it {verb} {}, of which {device} carried at most {}",
            format_bytes(claimed.bytes as f64),
            format_bytes(carried.most_of(claimed) as f64)
        ),
    }
}

/// Sentences on all that the program reports.
pub(super) fn told(evidence: &Evidence) -> Vec<String> {
    let Some(claim) = &evidence.claim else {
        return Vec::new();
    };
    let told = |(transfer, claimed, carried): (Transfer, Claimed, Option<Bounds>)| {
        let rate = claimed.rate.map_or(String::new(), |(rate, _)| {
            format!(" at {} MB/s", significant(rate))
        });
        let says = format!(
            "{} says that it {} {}{rate}",
            claim.tool,
            verb(transfer),
            format_bytes(claimed.bytes as f64)
        );
        let Some(carried) = carried else {
            return format!("{says}; what devices carried of it is unknown");
        };
        let most = format_bytes(carried.most_of(claimed) as f64);
        match (
            carried.is_exceeded_by(claimed),
            carried.mb_s_most_of(claimed),
        ) {
            (true, Some(mb_s)) => format!(
                "{says}; devices carried at most {most} of it, {} MB/s in the same time",
                significant(mb_s)
            ),
            (true, None) => format!("{says}; devices carried at most {most} of it"),
            (false, _) if carried.is_all_of(claimed.bytes) => {
                format!("{says}; devices carried all of it")
            }
            (false, _) => format!("{says}; devices can have carried all of it"),
        }
    };
    let reads = claim.reads.into_iter();
    let reads = reads.map(|claimed| (Transfer::Read, claimed, evidence.reads.carried));
    let writes = claim.writes.into_iter();
    let writes = writes.map(|claimed| (Transfer::Write, claimed, evidence.writes.carried));
    reads.chain(writes).map(told).collect()
}

fn verb(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::Read => "read",
        Transfer::Write => "wrote",
    }
}
