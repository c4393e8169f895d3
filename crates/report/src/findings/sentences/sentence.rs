//! The sentence of a claim: a head, then labelled lists.

/// Items that share a label.
pub(super) struct List {
    pub(super) label: String,
    pub(super) items: Vec<String>,
}

/// `Head. Lower: bs=4KiB; bs=64KiB; and 2 more. Cannot tell (other traffic): bs=1MiB.` At most `named` items of
/// each list appear; empty lists are left out.
pub(super) fn sentence(head: &str, lists: impl IntoIterator<Item = List>, named: usize) -> String {
    let lists = lists.into_iter().filter(|list| !list.items.is_empty());
    let lists = lists.map(|List { label, mut items }| {
        items.dedup();
        let more = items.len().saturating_sub(named);
        items.truncate(named);
        items.retain(|item| !item.is_empty());
        match (items.is_empty(), more) {
            (true, _) => label,
            (false, 0) => format!("{label}: {}", items.join("; ")),
            (false, more) => format!("{label}: {}; and {more} more", items.join("; ")),
        }
    });
    let parts = std::iter::once(head.to_owned()).chain(lists);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(". ") + "."
}
