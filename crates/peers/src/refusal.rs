//! Why a peer does not carry out a cell.

/// Whether something holds that a peer does not have, or does otherwise; and what, about the peer (`it has no such engine`).
pub(crate) type Refusal = (bool, &'static str);

/// The first of these that holds, by topic.
pub(crate) fn first_refusal(topics: &[&[Refusal]]) -> Result<(), String> {
    let mut all = topics.iter().copied().flatten();
    match all.find(|(holds, _)| *holds) {
        Some((_, why)) => Err((*why).to_owned()),
        None => Ok(()),
    }
}
