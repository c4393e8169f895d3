//! The sizes at which a machine changes its behaviour, from a run's environment: what the bends of a curve are held
//! against.

/// One such size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// What it is, as a sentence names it: `L2 cache`.
    pub name: &'static str,
    /// Its size, bytes.
    pub bytes: u64,
}

/// Keys of the environment, and what their sizes are.
const KNOWN: [(&str, &str); 9] = [
    ("cache_line_bytes", "cache line"),
    ("cache_l1d_bytes", "L1d cache"),
    ("cache_l2_bytes", "L2 cache"),
    ("cache_l3_bytes", "L3 cache"),
    ("page_bytes", "page"),
    ("huge_page_bytes", "huge page"),
    ("tlb_l1d_reach_bytes", "reach of the L1 data TLB"),
    ("tlb_l2_reach_bytes", "reach of the L2 TLB"),
    ("memory_bytes", "memory"),
];

/// The thresholds that an environment tells of, in ascending order; what it does not tell is left out.
pub fn thresholds(environment: &[(String, String)]) -> Vec<Threshold> {
    let bytes = |wanted: &str| -> Option<u64> {
        let (_, value) = environment.iter().find(|(key, _)| key == wanted)?;
        value.parse().ok().filter(|bytes| *bytes > 0)
    };
    let mut found: Vec<Threshold> = KNOWN
        .into_iter()
        .filter_map(|(key, name)| {
            Some(Threshold {
                name,
                bytes: bytes(key)?,
            })
        })
        .collect();
    found.sort_by_key(|threshold| threshold.bytes);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_known_is_named_in_order_of_size() {
        let environment = environment(&[
            ("cpu_model", "x"),
            ("page_bytes", "4096"),
            ("cache_l3_bytes", "33554432"),
            ("cache_line_bytes", "64"),
        ]);
        let names: Vec<_> = thresholds(&environment)
            .iter()
            .map(|t| (t.name, t.bytes))
            .collect();
        assert_eq!(
            names,
            [("cache line", 64), ("page", 4096), ("L3 cache", 32 << 20)]
        );
    }

    #[test]
    fn a_strange_environment_is_no_threshold() {
        let environment = environment(&[
            ("page_bytes", "4k"),
            ("cache_l2_bytes", "0"),
            ("cache_l1d_bytes", "-1"),
            ("memory_bytes", "99999999999999999999999"),
        ]);
        assert!(thresholds(&environment).is_empty());
    }
}
