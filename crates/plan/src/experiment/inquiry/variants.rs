//! The variants of both sides, each without some of the suspects.

use crate::suspect::{Intervention, Sides, Suspect};

/// The variants for this many suspects, each as the suspects it leaves out: none, each alone, all but one each, all. Equal
/// variants are listed once.
fn variants(suspects: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..suspects).collect();
    let but = |one: usize| all.iter().copied().filter(|place| *place != one).collect();
    let alone = all.iter().map(|one| vec![*one]);
    let mut variants: Vec<Vec<usize>> = vec![Vec::new()];
    for variant in alone
        .chain(all.iter().map(|one| but(*one)))
        .chain([all.clone()])
    {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

/// The variants of these suspects: the suspects that each leaves out, and its sides.
pub(super) fn variants_of(
    sides: &Sides,
    tried: &[&'static Suspect],
) -> Vec<(Vec<&'static Suspect>, Sides)> {
    let variant = |places: Vec<usize>| {
        let without: Vec<&Suspect> = places.into_iter().map(|place| tried[place]).collect();
        let sides = without_all(sides, &without);
        (without, sides)
    };
    variants(tried.len()).into_iter().map(variant).collect()
}

/// The sides with these suspects taken away, one after the other. A suspect that has no part any more after an earlier one
/// changes nothing.
pub(super) fn without_all(sides: &Sides, suspects: &[&Suspect]) -> Sides {
    let take_off = |sides: Sides, suspect: &&Suspect| match (suspect.take_off)(&sides) {
        Intervention::Settings(without) => *without,
        Intervention::Irrelevant
        | Intervention::IsTheDifference
        | Intervention::After(_)
        | Intervention::Lacks(_) => sides,
    };
    suspects.iter().fold(sides.clone(), take_off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_suspects_need_four_variants_and_five_twelve() {
        let counts = [0, 1, 2, 3, 5].map(|suspects| variants(suspects).len());
        assert_eq!(counts, [1, 2, 4, 8, 12]);
    }
}
