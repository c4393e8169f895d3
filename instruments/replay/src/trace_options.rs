//! Options of commands that read a trace.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iolab_workload::Result;
use iolab_workload::units::parse_duration;

use crate::trace::survey::Survey;
use crate::trace::{Format, Reading, TimeUnit, Trace};

/// Options for the reading of a trace.
#[derive(Debug, Args)]
pub(crate) struct TraceOptions {
    /// Trace: fio iolog 2 or 3, text of blkparse, MSR Cambridge, Alibaba, SYSTOR '17, or CSV with a header
    /// (time_us,op,offset,bytes)
    pub(crate) trace: PathBuf,
    /// Format of the trace; default: by its first line
    #[arg(long = "trace-format", value_enum)]
    pub(crate) trace_format: Option<Format>,
    /// Unit of its time stamps; default: the unit of the format
    #[arg(long, value_enum)]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Device, volume or file of the trace, if it has several
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Leave out the requests after this time of the trace; default: none
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) window: Option<Duration>,
}

impl TraceOptions {
    /// The trace, and what it holds.
    pub(crate) fn read(&self) -> Result<(Trace, Survey)> {
        let reading = Reading {
            format: self.trace_format,
            unit: self.time_unit,
            device: self.device.clone(),
            window: self.window,
        };
        let trace = Trace::open(&self.trace, reading)?;
        let survey = Survey::of(&trace)?;
        Ok((trace, survey))
    }
}
