//! Other devices that share bytes with a target, from the graph of storage.

use super::*;

/// Another device that shares bytes with the target.
pub(super) struct Sharer {
    pub(super) number: Number,
    /// Chain from the target to it, for a message.
    pub(super) chain: String,
    /// Whether the target stands on it.
    pub(super) is_below: bool,
    /// Whether a driver between the two keeps the other bytes to itself (device mapper, md).
    pub(super) is_mapped: bool,
    /// Whether the target is a thin volume and this device shows its pool, to which only the volume manager
    /// writes.
    pub(super) shows_pool: bool,
    /// Whether the target is, or stands on, one of its partitions.
    pub(super) by_partition: bool,
    /// Whether both are, or stand on, paths to one disk: neither's claim keeps the other from the bytes.
    pub(super) by_path: bool,
}

impl Sharer {
    /// Command that shows the users.
    pub(super) fn hint(&self) -> &'static str {
        match self.by_path {
            true => SEE_PATHS,
            false => SEE_DEVICES,
        }
    }
}

impl Users {
    /// Every other device that shares bytes with the target.
    pub(super) fn sharers(&self, number: Number, ways: &[Way]) -> Vec<Sharer> {
        let graph = &self.inventory.graph;
        let others = graph.devices.keys().filter(|other| **other != number);
        others
            .filter_map(|other| {
                let theirs = graph.ways(graph.whole(*other));
                let meetings = ways.iter().flat_map(|way| {
                    theirs.iter().filter_map(move |their| {
                        let (at, place) = graph.meeting(way, their)?;
                        Some((way, at, &their[..place]))
                    })
                });
                // A lower layer of the target can lead to the same disk further down, as two paths to one disk
                // do.
                let (way, at, upon) = meetings.min_by_key(|(_, _, upon)| upon.len())?;
                Some(self.sharer(*other, way, at, upon))
            })
            .collect()
    }

    fn sharer(&self, number: Number, way: &Way, at: usize, upon: &[Span]) -> Sharer {
        let graph = &self.inventory.graph;
        let above = &way[..at];
        let device = |span: &Span| span.node.device();
        Sharer {
            number,
            chain: self.chain(way, at, upon),
            is_below: upon.is_empty(),
            shows_pool: way[at].node.device().is_some_and(|met| {
                let mut pools = above
                    .iter()
                    .filter_map(device)
                    .filter_map(|n| graph.pool_of(n));
                pools.any(|pool| pool == met)
            }),
            is_mapped: above.iter().filter_map(device).any(|n| graph.is_stacked(n)),
            by_partition: above
                .last()
                .and_then(device)
                .is_some_and(|n| graph.is_partition(n)),
            by_path: matches!(way[at].node, Node::Disk(_)),
        }
    }

    /// Chain in words: `/dev/loop2 -> im (bytes 16 MiB to 64 MiB) <- /dev/loop1`.
    pub(super) fn chain(&self, way: &Way, at: usize, upon: &[Span]) -> String {
        let mut text = String::new();
        for (step, span) in way.iter().take(at + 1).enumerate() {
            if step > 0 {
                text.push_str(" -> ");
            }
            text.push_str(&self.inventory.name(span.node));
            if step > 0 && !self.inventory.graph.is_whole(span) {
                let start = match span.start {
                    0 => "0".to_owned(),
                    start => human(start),
                };
                let end = human(span.end);
                text.push_str(&format!(" (bytes {start} to {end})"));
            }
        }
        for span in upon.iter().rev() {
            text.push_str(" <- ");
            text.push_str(&self.inventory.name(span.node));
        }
        text
    }
}
