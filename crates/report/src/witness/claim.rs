//! What a program says of itself, beside what devices carried.

use iolab_analysis::witness::{Direction, Evidence};
use iolab_record::witness::Claimed;
use iolab_workload::quantity::{format_bytes, significant};

/// The claims that devices cannot have carried, for the first line: `fio says 5712 MB/s; vda carried at most 31 MB/s`.
pub(super) fn contradictions(evidence: &Evidence, device: &str) -> Option<String> {
    let claim = evidence.claim.as_ref()?;
    let clauses: Vec<String> = directions(evidence)
        .into_iter()
        .filter_map(|(verb, claimed, direction)| {
            let carried = direction
                .carried
                .filter(|carried| carried.is_exceeded_by(claimed))?;
            let most = carried.most_of(claimed);
            Some(match (claimed.rate, carried.mb_s_most_of(claimed)) {
                (Some((rate, _)), Some(mb_s)) => format!(
                    "{} says that it {verb} at {} MB/s, of which {device} carried at most {} MB/s",
                    claim.tool,
                    significant(rate),
                    significant(mb_s)
                ),
                _ => format!(
                    "{} says that it {verb} {}, of which {device} carried at most {}",
                    claim.tool,
                    format_bytes(claimed.bytes as f64),
                    format_bytes(most as f64)
                ),
            })
        })
        .collect();
    (!clauses.is_empty()).then(|| clauses.join("; "))
}

/// All that it says.
pub(super) fn told(evidence: &Evidence) -> Vec<String> {
    let Some(claim) = &evidence.claim else {
        return Vec::new();
    };
    let told = directions(evidence)
        .into_iter()
        .map(|(verb, claimed, direction)| {
            let rate = claimed.rate.map_or(String::new(), |(rate, _)| {
                format!(" at {} MB/s", significant(rate))
            });
            let says = format!(
                "{} says that it {verb} {}{rate}",
                claim.tool,
                format_bytes(claimed.bytes as f64)
            );
            let Some(carried) = direction.carried else {
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
        });
    told.collect()
}

fn directions(evidence: &Evidence) -> Vec<(&'static str, Claimed, &Direction)> {
    let Some(claim) = &evidence.claim else {
        return Vec::new();
    };
    let reads = claim
        .reads
        .map(|claimed| ("read", claimed, &evidence.reads));
    let writes = claim
        .writes
        .map(|claimed| ("wrote", claimed, &evidence.writes));
    reads.into_iter().chain(writes).collect()
}
