//! Settings: number of requests, and how they are issued.

use super::values::{
    put_active, put_batch, put_bound, put_count, put_count_or_none, put_duration, put_flag,
    put_or_none,
};
use super::{Setting, Value, rows};
use crate::group_names::ALL;
use crate::launchers;
use crate::trial::{DEPTH_MAX, THREADS_MAX};
use crate::units::parse_duration;

pub(super) const ROWS: &[Setting] = rows! { Load:
    { name: "backend", aliases: ["ioengine"], kind: Word, exported: true,
      doc: "how requests are issued, for example psync, mmap, libaio or io_uring",
      word: trial.backend }
    { name: "threads", aliases: ["numjobs"], kind: Count, exported: true,
      doc: "workers, 1 to 1024",
      value: trial.threads, put_count, [1, THREADS_MAX] }
    { name: "depth", aliases: ["iodepth"], kind: Count, exported: true,
      doc: "outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only",
      value: trial.depth, put_count, [1, DEPTH_MAX] }
    { name: "batch", kind: Word, exported: true,
      doc: "completions an asynchronous worker waits for: one, a share such as 50%, all, or auto (chosen by short probes)",
      set: put_batch,
      get: |cell| Value::word(Some(cell.batch_name())) }
    { name: "rate", aliases: ["rate_iops"], kind: Rate, unit: "1/s", exported: true,
      doc: "requests per second over all threads, or bytes per second such as 50MB/s, issued on schedule whether or not earlier ones have completed (open loop); none to issue the next when one completes; 0 for a group that does nothing",
      set_or_none: |cell, text| put_or_none(&mut cell.trial.rate, text),
      get: |cell| cell.trial.rate.map_or(Value::None, Value::Rate) }
    { name: "arrivals", kind: Word, exported: true,
      doc: "spacing of the scheduled starts of a rate: constant or poisson",
      word: trial.arrivals }
    { name: "rate_slack", kind: Time, unit: "s", column: "rate_slack_ns", exported: false,
      doc: "how late 99 % of the requests of a rate may start, up to 1ms: with 50us a thread sleeps until several are due, instead of using its CPU until the next one is",
      value: trial.rate_slack, put_duration }
    { name: "thinktime", kind: Time, unit: "s", column: "thinktime_ns", exported: true,
      doc: "pause of a thread after each request, once it has completed; none: no pause",
      value_or_none: trial.thinktime, put_bound, parse_duration }
    { name: "sqpoll", kind: Flag, exported: false,
      doc: "io_uring: a kernel thread polls the submission queue",
      value: trial.sqpoll, put_flag }
    { name: "iopoll", kind: Flag, exported: false,
      doc: "io_uring, pvsync2: poll for completions instead of taking interrupts",
      value: trial.iopoll, put_flag }
    { name: "idle", kind: Time, unit: "s", column: "idle_ns", exported: true,
      doc: "time without I/O before each trial, in which caches of a drive empty and credits return; part of the budget",
      value: idle, put_duration }
    { name: "active", kind: Word, exported: false,
      doc: "groups that run: all, or names with plus signs between: reader+writer",
      set: put_active,
      get: |cell| Value::word(Some(cell.active.as_ref().map_or(ALL.to_owned(), ToString::to_string))) }
    { name: "ranks", kind: Count, exported: false,
      doc: concat!("processes (ranks) that take part, of those that ", launchers!(), " started, spread evenly over hosts; none: all"),
      value_or_none: trial.ranks, put_count_or_none }
    { name: "hosts", kind: Count, exported: false,
      doc: concat!("hosts whose processes take part, of those that ", launchers!(), " started processes on; none: all"),
      value_or_none: trial.hosts, put_count_or_none }
};
