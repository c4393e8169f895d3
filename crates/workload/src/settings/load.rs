//! Settings: number of requests, and how they are issued.

use super::values::{
    SOME_COUNT, parse_weight, put, put_active, put_batch, put_bound, put_count, put_duration,
    put_flag, put_number_or_none, put_or_none, put_part,
};
use super::{Setting, Value, rows};
use crate::group::ALL;
use crate::trial::{DEPTH_MAX, THREADS_MAX};
use crate::units::parse_duration;

pub(super) const ROWS: &[Setting] = rows! { Load:
    { name: "backend", aliases: ["ioengine"], kind: Word, unit: "", column: "backend", since: 5, exported: true,
      doc: "how requests are issued, for example psync, mmap, libaio or io_uring",
      set: |cell, text| put(&mut cell.trial.backend, text),
      get: |cell| Value::word(Some(cell.trial.backend)) }
    { name: "threads", aliases: ["numjobs"], kind: Count, unit: "", column: "threads", since: 5, exported: true,
      doc: "workers, 1 to 1024",
      set: |cell, text| put_count(&mut cell.trial.threads, text, [1, THREADS_MAX]),
      get: |cell| cell.trial.threads.into() }
    { name: "depth", aliases: ["iodepth"], kind: Count, unit: "", column: "depth", since: 5, exported: true,
      doc: "outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only",
      set: |cell, text| put_count(&mut cell.trial.depth, text, [1, DEPTH_MAX]),
      get: |cell| cell.trial.depth.into() }
    { name: "batch", aliases: [], kind: Word, unit: "", column: "batch", since: 5, exported: true,
      doc: "completions an asynchronous worker waits for: one, a share such as 50%, all, or auto (chosen by short probes)",
      set: put_batch,
      get: |cell| Value::word(Some(cell.batch_name())) }
    { name: "rate", aliases: ["rate_iops"], kind: Rate, unit: "1/s", column: "rate", since: 5, exported: true,
      doc: "requests per second over all threads, or bytes per second such as 50MB/s, issued on schedule whether or not earlier ones have completed (open loop); none to issue the next when one completes; 0 for a group that does nothing",
      set: |cell, text| put_or_none(&mut cell.trial.rate, text),
      get: |cell| cell.trial.rate.map_or(Value::None, Value::Rate) }
    { name: "arrivals", aliases: [], kind: Word, unit: "", column: "arrivals", since: 5, exported: true,
      doc: "spacing of the scheduled starts of a rate: constant or poisson",
      set: |cell, text| put(&mut cell.trial.arrivals, text),
      get: |cell| Value::word(Some(cell.trial.arrivals)) }
    { name: "thinktime", aliases: [], kind: Time, unit: "s", column: "thinktime_ns", since: 6, exported: true,
      doc: "pause of a thread after every thinktime_every requests, once they have completed; none: no pause",
      set: |cell, text| put_bound(&mut cell.trial.thinktime, text, parse_duration),
      get: |cell| cell.trial.thinktime.into() }
    { name: "thinktime_every", aliases: ["thinktime_blocks"], kind: Count, unit: "", column: "thinktime_every", since: 6, exported: true,
      doc: "requests of a thread between two pauses of thinktime",
      set: |cell, text| put_count(&mut cell.trial.thinktime_every, text, SOME_COUNT),
      get: |cell| cell.trial.thinktime_every.into() }
    { name: "thinktime_spin", aliases: [], kind: Time, unit: "s", column: "thinktime_spin_ns", since: 6, exported: true,
      doc: "how long a thread uses its CPU at the beginning of each pause of thinktime, before it sleeps",
      set: |cell, text| put_duration(&mut cell.trial.thinktime_spin, text),
      get: |cell| cell.trial.thinktime_spin.into() }
    { name: "bursts", aliases: [], kind: Word, unit: "", column: "bursts", since: 6, exported: true,
      doc: "time with requests and time without, in turn: 100ms/900ms; none: no pause",
      set: |cell, text| put_or_none(&mut cell.trial.bursts, text),
      get: |cell| Value::word(cell.trial.bursts) }
    { name: "registered", aliases: [], kind: Flag, unit: "", column: "registered", since: 5, exported: false,
      doc: "io_uring: register the file and the buffers",
      set: |cell, text| put_flag(&mut cell.trial.registered, text),
      get: |cell| cell.trial.registered.into() }
    { name: "sqpoll", aliases: [], kind: Flag, unit: "", column: "sqpoll", since: 5, exported: false,
      doc: "io_uring: a kernel thread polls the submission queue",
      set: |cell, text| put_flag(&mut cell.trial.sqpoll, text),
      get: |cell| cell.trial.sqpoll.into() }
    { name: "sqpoll_cpu", aliases: ["sqthread_poll_cpu"], kind: Count, unit: "", column: "sqpoll_cpu", since: 6, exported: true,
      doc: "CPU of the thread that polls the submission queue, with sqpoll=true; none: the kernel chooses",
      set: |cell, text| put_number_or_none(&mut cell.trial.sqpoll_cpu, text),
      get: |cell| cell.trial.sqpoll_cpu.into() }
    { name: "iopoll", aliases: [], kind: Flag, unit: "", column: "iopoll", since: 5, exported: false,
      doc: "io_uring, pvsync2: poll for completions instead of taking interrupts",
      set: |cell, text| put_flag(&mut cell.trial.iopoll, text),
      get: |cell| cell.trial.iopoll.into() }
    { name: "start_delay", aliases: ["startdelay"], kind: Time, unit: "s", column: "start_delay_ns", since: 6, exported: false,
      doc: "how much later than the others a group starts",
      set: |cell, text| put_duration(&mut cell.trial.start_delay, text),
      get: |cell| cell.trial.start_delay.into() }
    { name: "idle", aliases: [], kind: Time, unit: "s", column: "idle_ns", since: 6, exported: true,
      doc: "time without I/O before each trial, in which caches of a drive empty and credits return; part of the budget",
      set: |cell, text| put_duration(&mut cell.idle, text),
      get: |cell| cell.idle.into() }
    { name: "flow", aliases: [], kind: Count, unit: "", column: "flow", since: 6, exported: false,
      doc: "weight of a group: groups with a flow issue requests in the proportion of their weights; none: as many as complete",
      set: |cell, text| put_bound(&mut cell.trial.flow, text, parse_weight),
      get: |cell| cell.trial.flow.into() }
    { name: "active", aliases: [], kind: Word, unit: "", column: "active", since: 6, exported: false,
      doc: "groups that run: all, or names with plus signs between: reader+writer",
      set: put_active,
      get: |cell| Value::word(Some(cell.active.as_ref().map_or(ALL.to_owned(), ToString::to_string))) }
    { name: "ranks", aliases: [], kind: Count, unit: "", column: "ranks", since: 6, exported: false,
      doc: "processes (ranks) that take part, of those that mpirun or srun started, spread evenly over hosts; none: all",
      set: |cell, text| put_part(&mut cell.trial.ranks, text),
      get: |cell| cell.trial.ranks.into() }
    { name: "hosts", aliases: [], kind: Count, unit: "", column: "hosts", since: 6, exported: false,
      doc: "hosts whose processes take part, of those that mpirun or srun started processes on; none: all",
      set: |cell, text| put_part(&mut cell.trial.hosts, text),
      get: |cell| cell.trial.hosts.into() }
};
