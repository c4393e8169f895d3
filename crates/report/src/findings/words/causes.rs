//! What interventions show, in words.

use iolab_analysis::claim::{Again, Reproduction, Share, Suspected, Suspects, Verdict};
use iolab_analysis::doubt::SideDoubt;
use iolab_plan::suspect::Suspect;
use iolab_workload::quantity::significant;

/// Below this share nothing is left to be explained.
const REST: f64 = 0.1;

/// Whether a phenomenon is there again, and what of it no suspect explains.
pub(super) fn of_reproduction(found: &Reproduction) -> String {
    let here = match (found.ratio, found.interval) {
        (Some(ratio), Some((low, high))) => format!(
            "{} times ({} to {}) in {} blocks",
            significant(ratio),
            significant(low),
            significant(high),
            found.blocks
        ),
        (Some(ratio), None) => format!("{} times in {} blocks", significant(ratio), found.blocks),
        (None, _) => "no block with both sides".to_owned(),
    };
    let phenomenon = &found.phenomenon;
    match found.again {
        Again::Reproduced => {
            format!(
                "Reproduced: {phenomenon}; here {here}.{}",
                match found.is_explained {
                    true => String::new(),
                    false => rest(found.unexplained.as_ref(), &found.doubts),
                }
            )
        }
        Again::NotReproduced => {
            format!("Not reproduced: {phenomenon}; here {here}. There is nothing to explain.")
        }
        Again::CannotTell if !found.doubts.is_empty() => format!(
            "Cannot tell whether it is there again: {phenomenon}; here {here}, but {}.",
            doubts(&found.doubts)
        ),
        Again::CannotTell => format!(
            "Cannot tell whether it is there again: {phenomenon}; here {here}. Increase --budget."
        ),
    }
}

/// What could turn it, in words.
fn doubts(all: &[SideDoubt]) -> String {
    let words: Vec<String> = all.iter().map(super::doubt).collect();
    words.join("; ")
}

/// What is left without all suspects, and what else could make it.
fn rest(unexplained: Option<&Share>, others: &[SideDoubt]) -> String {
    let others = match others {
        [] => String::new(),
        all => format!("; it could also come from {}", doubts(all)),
    };
    match unexplained {
        None => format!(" What remains of it without all suspects is not known{others}."),
        Some(share) if share.share < REST => String::new(),
        Some(share) => format!(
            " Not explained: without all suspects {} of it remains{others}.",
            of_share(share)
        ),
    }
}

/// What interventions show of suspects.
pub(super) fn of_suspects(found: &Suspects) -> String {
    let names = || {
        let names = found.suspects.iter().map(|one| what(&one.suspect));
        names.collect::<Vec<_>>()
    };
    let of_one = |verb: &str| match found.suspects.first() {
        Some(one) => accused(verb, one),
        None => String::new(),
    };
    match found.verdict {
        Verdict::Cause => of_one("Cause"),
        Verdict::Contributes => of_one("Contributes"),
        Verdict::Joint => {
            let share = found.suspects.iter().find_map(|one| one.share);
            let share = share.map_or_else(String::new, |share| {
                format!(": without all of them {} of it is gone", of_share(&share))
            });
            format!(
                "Joint cause: {}. The difference remains without one of them{share}.",
                names().join("; ")
            )
        }
        Verdict::Cleared => format!("Cleared: {}.", names().join("; ")),
        Verdict::CannotTell => {
            let needed = found.suspects.iter().filter_map(|one| one.blocks_needed);
            let needed = needed.max().map_or_else(String::new, |blocks| {
                format!(
                    " (about {blocks} blocks, here {}: increase --budget)",
                    found.blocks
                )
            });
            let each = found
                .suspects
                .iter()
                .map(|one| match one.doubts.is_empty() {
                    true => what(&one.suspect),
                    false => format!("{} (but {})", what(&one.suspect), doubts(&one.doubts)),
                });
            let each: Vec<String> = each.collect();
            format!("Cannot tell{needed}: {}.", each.join("; "))
        }
        Verdict::NotTried => {
            let reasons = found.suspects.iter().map(|one| {
                let why = one.why.as_deref().unwrap_or_default();
                format!("{} ({why})", what(&one.suspect))
            });
            format!("Not tried: {}.", reasons.collect::<Vec<_>>().join("; "))
        }
    }
}

/// `Cause: read-ahead of sequential reads: 84 % (80 to 88 %) of the difference is gone with sequential reads in reverse order (0.9 times).`
fn accused(verb: &str, one: &Suspected) -> String {
    let change = Suspect::find(&one.suspect).map_or("", |suspect| suspect.change);
    let share = one.share.as_ref().map_or_else(String::new, of_share);
    let what = what(&one.suspect);
    if one.by_itself {
        return format!(
            "{verb}: {what}: without the other suspects it makes {share} of the difference."
        );
    }
    let without = one.ratio_without.map_or_else(String::new, |ratio| {
        format!(" ({} times)", significant(ratio))
    });
    format!("{verb}: {what}: {share} of the difference is gone with {change}{without}.")
}

fn what(name: &str) -> String {
    Suspect::find(name).map_or_else(|| name.to_owned(), |suspect| suspect.what.to_owned())
}

/// `83 % (75 to 90 %)`; estimates beyond the whole are all of it, and those below 0 nothing.
fn of_share(share: &Share) -> String {
    let percent = |share: f64| format!("{:.0}", (100.0 * share).clamp(0.0, 100.0));
    let interval = share
        .interval
        .map(|(low, high)| (percent(low), percent(high)));
    let interval = interval.filter(|(low, high)| low != high);
    let interval = interval.map_or_else(String::new, |(low, high)| format!(" ({low} to {high} %)"));
    format!("{} %{interval}", percent(share.share))
}
