//! Settings: processors and memory.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{CellSpec, Setting, Value, rows};
use crate::system_settings::SystemSettings;
use crate::trial::{NICE, REALTIME};
use crate::{Error, Result};

pub(super) const ROWS: &[Setting] = rows! { Processors:
    { name: "cpus", aliases: ["cpus_allowed"], kind: List, exported: true,
      doc: "CPUs that threads may run on: 0-3,8; none: all that the process may use",
      word_or_none: trial.cpus }
    { name: "placement", kind: Word, exported: true,
      doc: "which CPU a thread runs on: float (any of them), spread (one per thread, far apart: packages, then cores, then hardware threads) or packed (one per thread, close together)",
      word: trial.placement }
    { name: "buffer_init", kind: Word, exported: true,
      doc: "buffer preparation: untouched, zeroed, touched, populated, huge (huge pages), nohuge or random",
      word: trial.buffer_init }
    { name: "buffer_memory", kind: Word, exported: true,
      doc: "memory of the buffers: contiguous (in huge pages; the default with cache=direct) or kernel (mostly single small pages)",
      word: trial.buffer_memory }
    { name: "nice", kind: Word, exported: false,
      doc: "nice value of the threads: 19 (last to get a CPU) to -20 (first; below the nice value of the process as root only); none: as the process",
      set_or_none: put_nice,
      get: |cell| Value::word(cell.trial.nice) }
    { name: "realtime", kind: Word, exported: false,
      doc: "priority of the threads as real-time threads (SCHED_FIFO), 1 to 99 (first), before all ordinary programs, which may get no CPU meanwhile; needs root and --change-system; none: scheduled as the process is",
      set_or_none: put_realtime,
      get: |cell| Value::word(cell.trial.realtime) }
    { name: "system", kind: Word, exported: true,
      doc: "kernel settings during each trial, restored after it; needs root and --change-system: max_sectors_kb:N (or max), scheduler:NAME, read_ahead_kb:N, transparent_hugepage:always, madvise or never, several joined by +; none: unchanged",
      set_or_none: put_system,
      get: |cell| Value::word((!cell.system.is_none()).then_some(&cell.system)) }
};

impl CellSpec {
    /// The setting, as the user writes it, for which a trial needs `--change-system`: it affects other programs of the machine. `None`
    /// if there is none.
    pub fn needs_change_system(&self) -> Option<String> {
        match self.realtime() {
            _ if !self.system.is_none() => Some(format!("system={}", self.system)),
            realtime => realtime.map(|priority| format!("realtime={priority}")),
        }
    }

    /// The highest priority of its real-time threads; `None` if it has none.
    pub fn realtime(&self) -> Option<u8> {
        let all = self.trials_on(|_| true).into_iter();
        all.filter_map(|trial| trial.realtime).max()
    }

    /// Its real-time threads.
    pub fn realtime_threads(&self) -> u64 {
        let all = self.trials_on(|_| true).into_iter();
        let own = all.filter(|trial| trial.realtime.is_some());
        own.map(|trial| u64::from(trial.threads)).sum()
    }
}

fn put_system(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.system = match text {
        "none" => SystemSettings::default(),
        _ => text.parse()?,
    };
    Ok(())
}

fn put_realtime(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.trial.realtime = within_or_none(text, &REALTIME, "a real-time priority")?;
    Ok(())
}

fn put_nice(cell: &mut CellSpec, text: &str) -> Result<()> {
    cell.trial.nice = within_or_none(text, &NICE, "a nice value")?;
    Ok(())
}

/// Reads a number within these bounds, or `none`; `what` names it in an error.
fn within_or_none<T>(text: &str, bounds: &RangeInclusive<T>, what: &str) -> Result<Option<T>>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.parse().ok().filter(|number| bounds.contains(number));
    if number.is_none() && text != "none" {
        let (least, most) = (bounds.start(), bounds.end());
        return Err(Error::usage(format!("'{text}' is not {what}"))
            .hint(format!("choose a number from {least} to {most}")));
    }
    Ok(number)
}
