//! The barrier between the processes (ranks) that take part in the same trial.

use iolab_workload::Result;

/// A barrier that all ranks of a trial pass three times, and a moment that they agree on. Each method is called once per trial, in this
/// order, by the thread that coordinates it.
pub trait RankBarrier {
    /// Reports that own workers are set up. Returns when the workers of all processes are.
    ///
    /// # Errors
    /// When another process cannot take part: the trial is given up.
    fn ready(&mut self) -> Result<()>;

    /// Reports that the page cache has been examined. Returns when the moment of the start is known, some time before it.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn announced(&mut self) -> Result<()>;

    /// Reports that own counters are read. Returns at the moment of the start.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn start(&mut self) -> Result<()>;

    /// Reports that own workers have ended and own usage is counted. Returns when this holds for all processes, so that
    /// counters of the host cover all of them.
    ///
    /// # Errors
    /// When another process is lost.
    fn ended(&mut self) -> Result<()>;

    /// Reports when each own worker started and ended, in ticks of the trial's clock.
    fn worked(&mut self, workers: Vec<(u64, u64)>);
}

/// Without other processes.
pub(super) struct Alone;

impl RankBarrier for Alone {
    fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    fn announced(&mut self) -> Result<()> {
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn ended(&mut self) -> Result<()> {
        Ok(())
    }

    fn worked(&mut self, _workers: Vec<(u64, u64)>) {}
}
