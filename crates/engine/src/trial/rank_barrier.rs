//! The barrier between the processes (ranks) that take part in the same trial.

use iolab_workload::Result;

/// A barrier that all ranks of a trial pass three times, and a moment that they agree on. Each method is called once per trial, in this
/// order, by the thread that coordinates it.
pub trait RankBarrier {
    /// Own workers are set up. Returns when those of all processes are.
    ///
    /// # Errors
    /// When another process cannot take part: the trial is given up.
    fn ready(&mut self) -> Result<()>;

    /// The page cache has been looked at. Returns when this process knows at which moment the trial starts, some time before it.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn announced(&mut self) -> Result<()>;

    /// Own counters are read. Returns at that moment.
    ///
    /// # Errors
    /// As [`RankBarrier::ready`].
    fn start(&mut self) -> Result<()>;

    /// Own workers have ended, and this process has counted what it used. Returns when those of all processes have, so that counters of the host hold what all did.
    ///
    /// # Errors
    /// When another process is lost.
    fn ended(&mut self) -> Result<()>;

    /// When each own worker started and ended, in ticks of the trial's clock.
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
