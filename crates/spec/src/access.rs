//! What a trial asks of storage, in words: `sequential reads`, `random durable writes`.

use crate::trial::{Pattern, SyncPolicy, TrialSpec};

/// The accesses of a trial as a plural noun, without sizes and concurrency.
pub fn in_words(trial: &TrialSpec) -> String {
    let order = match trial.pattern {
        Pattern::Seq => "sequential",
        Pattern::Strided => "strided",
        Pattern::Reverse => "backward",
        Pattern::Rand | Pattern::RandReplace => "random",
        Pattern::Zipf(_) => "Zipf-distributed",
        Pattern::Zoned(_) => "unevenly random",
    };
    let writes = match trial.sync {
        SyncPolicy::None => "writes",
        SyncPolicy::End => "writes with a final fsync",
        _ => "durable writes",
    };
    match trial.read_percent {
        100 => format!("{order} reads"),
        0 => format!("{order} {writes}"),
        reads => format!(
            "{order} accesses ({reads} % reads, {} % {writes})",
            100 - reads
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_pattern_direction_and_durability() {
        let spec = |pattern, read_percent, sync| TrialSpec {
            pattern,
            read_percent,
            sync,
            ..TrialSpec::default()
        };
        for (spec, words) in [
            (
                spec(Pattern::Seq, 100, SyncPolicy::Each),
                "sequential reads",
            ),
            (
                spec(Pattern::Rand, 0, SyncPolicy::Each),
                "random durable writes",
            ),
            (
                spec(Pattern::Strided, 0, SyncPolicy::None),
                "strided writes",
            ),
            (
                spec(Pattern::Rand, 70, SyncPolicy::Odsync),
                "random accesses (70 % reads, 30 % durable writes)",
            ),
        ] {
            assert_eq!(in_words(&spec), words);
        }
    }
}
