//! Claims of particular experiments, in words.

use iolab_analysis::analysis::{Analysis, CellVerified};
use iolab_analysis::claim::Verified;
use iolab_workload::quantity::{counted, format_bytes};

use super::sentence::{List, sentence};
use crate::findings::cells_of;

/// Data that was read back.
pub(super) fn of_verified(verified: &Verified, run: &Analysis) -> String {
    let all = &verified.all;
    if all.failed > 0 {
        return wrong(verified.wrong, all, run);
    }
    let bytes = format_bytes(all.bytes as f64);
    let head = match verified.in_part + verified.unread {
        0 => format!(
            "All data that {} wrote was read back and is correct: {bytes}",
            counted(all.trials, "trial")
        ),
        _ => format!("The data that was read back is correct: {bytes}"),
    };
    let count = |label: &str, n: u64, of: &str| List {
        label: label.to_owned(),
        items: (n > 0).then(|| counted(n, of)).into_iter().collect(),
    };
    let cached = (all.cached_bytes > 0).then(|| format_bytes(all.cached_bytes as f64));
    let lists = [
        count("Read back in part", verified.in_part, "trial"),
        count("Not read back", verified.unread, "trial"),
        List {
            label: "At most so much came from the page cache, which does not verify storage"
                .to_owned(),
            items: cached.into_iter().collect(),
        },
        count(
            "Share of the page cache unknown",
            all.cache_unknown,
            "trial",
        ),
    ];
    sentence(&head, lists, usize::MAX)
}

fn wrong(cells: usize, all: &CellVerified, run: &Analysis) -> String {
    let kinds: Vec<String> = all
        .kinds()
        .map(|(kind, blocks)| format!("{blocks} {}", kind.name()))
        .collect();
    format!(
        "{}: this storage did NOT keep what was written to it. Of {} blocks read back in {} trials these were wrong: {}. The first places are in the run file. Do not use any result before the cause is found.",
        cells_of(cells, run),
        all.blocks,
        all.trials,
        kinds.join(", "),
    )
}
