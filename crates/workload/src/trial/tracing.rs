//! Checks whether the requests of a trial can be split by layer.

use super::{Backend, CacheState, Others, TrialSpec};
use crate::error::{Error, Result};

impl TrialSpec {
    /// Checks that each request of a traced trial is one that the kernel's trace events can be joined with.
    pub(super) fn check_trace(&self) -> Result<()> {
        if !self.trace {
            return Ok(());
        }
        let refusals = [
            (
                self.backend == Backend::Null,
                "backend null",
                "it issues no I/O: set another backend",
            ),
            (
                self.cache != CacheState::Direct,
                "buffered I/O",
                "a request that the page cache serves reaches no device, and read-ahead reaches it for several: set cache=direct",
            ),
            (
                !self.latency,
                "latency=false",
                "the stages are parts of each request's service time: set latency=true",
            ),
            (
                self.trims(),
                "trims",
                "a file system may delay them or split them as it likes: set trim_percent=0",
            ),
            (
                self.iopoll,
                "iopoll",
                "polled completions wake no thread: leave iopoll out",
            ),
            (
                self.others != Others::default(),
                "several processes (ranks)",
                "each would trace the requests of all: trace a run of one process",
            ),
        ];
        match refusals.into_iter().find(|(applies, ..)| *applies) {
            Some((_, with, hint)) => {
                Err(Error::usage(format!("trace=true with {with}")).hint(hint))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::refused_trials::refusals;

    #[test]
    fn trials_without_request_events_are_refused() {
        let changes = ["cache=cold", "backend=null", "latency=false"];
        insta::assert_snapshot!(refusals("trace=true", &changes), @r"
        cache=cold: trace=true with buffered I/O
        backend=null: trace=true with backend null
        latency=false: trace=true with latency=false
        ");
    }
}
