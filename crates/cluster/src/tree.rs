//! Tree along which messages go: each rank exchanges messages with only a few others, however many there are.

use std::ops::Range;

/// Children per rank. Clocks are compared level by level: more children make fewer levels, whose bounds add up.
pub const FANOUT: usize = 16;

/// Ranks as a complete tree with rank 0 at the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    size: usize,
    fanout: usize,
}

impl Tree {
    /// Tree of `size` ranks, at least 1, with `fanout` children each, at least 1.
    pub fn new(size: usize, fanout: usize) -> Self {
        Self {
            size: size.max(1),
            fanout: fanout.max(1),
        }
    }

    /// Parent rank; `None` for the root.
    pub fn parent(&self, rank: usize) -> Option<usize> {
        Some(rank.checked_sub(1)? / self.fanout)
    }

    /// Child ranks.
    pub fn children(&self, rank: usize) -> Range<usize> {
        let first = rank.saturating_mul(self.fanout).saturating_add(1);
        let end = first.saturating_add(self.fanout);
        first.min(self.size)..end.min(self.size)
    }

    /// Levels below a rank.
    pub fn height(&self, rank: usize) -> u32 {
        // The first child has the most below it.
        let first = self.children(rank).next();
        first.map_or(0, |child| 1 + self.height(child))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_rank_is_its_parents_child(size in 1usize..3_000, fanout in 1usize..40) {
            let tree = Tree::new(size, fanout);
            prop_assert_eq!(tree.parent(0), None);
            let mut children = 0;
            for rank in 0..size {
                children += tree.children(rank).len();
                for child in tree.children(rank) {
                    prop_assert_eq!(tree.parent(child), Some(rank));
                    prop_assert!(tree.height(child) < tree.height(rank));
                }
            }
            prop_assert_eq!(children, size - 1);
        }
    }

    #[test]
    fn ten_thousand_ranks_are_four_levels() {
        assert_eq!(Tree::new(10_000, FANOUT).height(0), 4);
        assert_eq!(Tree::new(1, FANOUT).height(0), 0);
        assert_eq!(Tree::new(17, FANOUT).height(0), 1);
    }
}
