//! Sizes at which a machine changes its behaviour, from a run's environment; compared with the bends of curves.

use iolab_record::environment::{Cache, Environment, Holds, KEYS};
use schemars::JsonSchema;
use serde::Serialize;

/// A size at which a machine changes its behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MachineThreshold {
    /// Name of the threshold in sentences: `L2 cache`.
    pub name: &'static str,
    /// Size of the cache or memory, bytes.
    pub bytes: u64,
}

/// The thresholds in an environment, in ascending order of bytes.
pub fn machine_thresholds(environment: &Environment) -> Vec<MachineThreshold> {
    let cache = |level, holds| KEYS.cache_bytes.of(Cache { level, holds });
    let known = [
        (&KEYS.cache_line_bytes, "cache line"),
        (&cache(1, Holds::Data), "L1d cache"),
        (&cache(2, Holds::Both), "L2 cache"),
        (&cache(3, Holds::Both), "L3 cache"),
        (&KEYS.page_bytes, "page"),
        (&KEYS.huge_page_bytes, "huge page"),
        (&KEYS.tlb_l1d_reach_bytes, "reach of the L1 data TLB"),
        (&KEYS.tlb_l2_reach_bytes, "reach of the L2 TLB"),
        (&KEYS.memory_bytes, "memory"),
    ];
    let size = |key| environment.get(key).filter(|bytes| *bytes > 0);
    let sizes = known.into_iter().filter_map(|(key, name)| {
        let bytes = size(key)?;
        Some(MachineThreshold { name, bytes })
    });
    let mut found: Vec<MachineThreshold> = sizes.collect();
    found.sort_by_key(|threshold| threshold.bytes);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn known_thresholds_are_named_in_order_of_size() {
        let environment = environment(&[
            ("cpu_model", "x"),
            ("page_bytes", "4096"),
            ("cache_l3_bytes", "33554432"),
            ("cache_line_bytes", "64"),
        ]);
        let names: Vec<_> = machine_thresholds(&environment)
            .iter()
            .map(|t| (t.name, t.bytes))
            .collect();
        assert_eq!(
            names,
            [("cache line", 64), ("page", 4096), ("L3 cache", 32 << 20)]
        );
    }
}
