//! Peers (fio, IOzone) that have failed in every trial of a run.

use iolab_workload::{Error, Result};

use iolab_workload::tool::Tool;

/// For each peer, whether a trial succeeded, and the first failure.
#[derive(Default)]
pub(super) struct ToolFailures {
    worked: Vec<Tool>,
    /// Each tool that has failed, with how it did first.
    failed: Vec<(Tool, String)>,
}

impl ToolFailures {
    /// Notes a trial that succeeded.
    pub(super) fn worked(&mut self, tool: Tool) {
        if tool.is_peer() && !self.worked.contains(&tool) {
            self.worked.push(tool);
        }
    }

    /// Notes a trial that failed.
    pub(super) fn failed(&mut self, tool: Tool, why: &Error) {
        if !self.failed.iter().any(|(known, _)| *known == tool) {
            self.failed.push((tool, why.message().to_owned()));
        }
    }

    /// Checks that each peer that was tried succeeded at least once.
    ///
    /// # Errors
    /// Of kind [`Failed`](iolab_workload::Kind::Failed): the first that has not, and how it failed first.
    pub(super) fn check(&self) -> Result<()> {
        let never = self.failed.iter().find(|(t, _)| !self.worked.contains(t));
        let Some((tool, why)) = never else {
            return Ok(());
        };
        Err(
            Error::failed(format!("{tool} never worked: {why}")).hint(format!(
                "repair it and resume the run, or measure without {tool} (--set tool=iolab)"
            )),
        )
    }
}
