//! The rows of the table of settings.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::setting::{
    ANY_SIZE, SOME_COUNT, SOME_SIZE, parse_bound, parse_count_or_none, parse_count_within,
    parse_flag, parse_percent, parse_size_within, put_active, put_batch, put_or_none, put_workload,
    rows,
};
use super::{CellSpec, Setting, Value};
use crate::names::ALL;
use crate::system_settings::SystemSettings;
use crate::trial::{BS_MAX, DEPTH_MAX, NICE, REALTIME, THREADS_MAX};
use crate::units::{parse_duration, parse_size};
use crate::{Error, Result, launchers};

/// Every setting, in the order of the columns of run files and exports. A new setting comes last: existing columns keep their places.
pub static SETTINGS: &[Setting] = rows! {
    { Load, name: "backend", aliases: ["ioengine"], kind: Word, exported: true, example: "io_uring",
      doc: "how requests are issued, for example psync, mmap, libaio or io_uring",
      word: trial.backend }
    { Requests, name: "pattern", kind: Word, exported: true, example: "zipf:1.20",
      doc: "order of the blocks: seq, strided, reverse, rand (each once per pass), rand-replace, zipf:THETA, pareto:H, normal:PERCENT or zones:50/5:30/15:20/80 (half of the requests go to the first 5 % of the region, ...)",
      word: trial.pattern }
    { Requests, name: "bs", kind: Size, unit: "bytes", column: "bs_bytes", exported: true, example: "8k",
      doc: "I/O size: bytes of one request",
      value: trial.bs, parse_size_within, [1, BS_MAX] }
    { Requests, name: "bs_mix", kind: List, exported: true, example: "4k:60,64k:30,1M:10",
      doc: "I/O sizes and their shares in percent, drawn for each request: 4k:60,64k:30,1M:10; 4k-64k for any multiple of 4 KiB up to 64 KiB; a slash separates reads from writes; requests start at multiples of bs, random ones of 64 KiB with @64k after their sizes; none: every request has bs bytes",
      word_or_none: trial.bs_mix }
    { Requests, name: "skip", kind: Size, unit: "bytes", column: "skip_bytes", exported: true, example: "1024k",
      doc: "bytes skipped after each I/O, with pattern=strided",
      value: trial.skip, parse_size_within, ANY_SIZE }
    { Region, name: "offset", kind: Size, unit: "bytes", column: "offset_bytes", exported: true, example: "4k",
      doc: "first byte of the region",
      value: trial.offset, parse_size_within, ANY_SIZE }
    { Region, name: "region", aliases: ["size"], kind: Size, unit: "bytes", column: "region_bytes", exported: true, example: "64m",
      doc: "length of the byte range that a trial may touch; truncated to the size of the target",
      value: trial.region, parse_size_within, SOME_SIZE }
    { Load, name: "threads", aliases: ["numjobs"], kind: Count, exported: true, example: " 8 ",
      doc: "workers, 1 to 1024",
      value: trial.threads, parse_count_within, [1, THREADS_MAX] }
    { Processors, name: "cpus", aliases: ["cpus_allowed"], kind: List, exported: true, example: "0,1,2,3,8",
      doc: "CPUs that threads may run on: 0-3,8; none: all that the process may use",
      word_or_none: trial.cpus }
    { Processors, name: "placement", kind: Word, exported: true, example: "spread",
      doc: "which CPU a thread runs on: float (any of them), spread (one per thread, far apart: packages, then cores, then hardware threads) or packed (one per thread, close together)",
      word: trial.placement }
    { Load, name: "depth", aliases: ["iodepth"], kind: Count, exported: true, example: "32",
      doc: "outstanding requests per worker, 1 to 4096; above 1 for asynchronous backends only",
      value: trial.depth, parse_count_within, [1, DEPTH_MAX] }
    { Load, name: "batch", kind: Word, exported: true, example: "50%",
      doc: "completions an asynchronous worker waits for: one, a share such as 50%, all, or auto (chosen by short probes)",
      set: put_batch,
      get: |cell| Value::word(Some(cell.batch_name())) }
    { Requests, name: "read_percent", aliases: ["rwmixread"], kind: Count, unit: "percent", exported: true, example: "70%",
      doc: "share of reads: 100 reads only, 0 writes only",
      value: trial.read_percent, parse_percent }
    { Requests, name: "trim_percent", kind: Count, unit: "percent", exported: true, example: "30%",
      doc: "share of the writes that trim instead of writing data, in percent",
      value: trial.trim_percent, parse_percent }
    { Requests, name: "workload", kind: Word, exported: false, example: "rs",
      doc: "pattern and read_percent in one: WS, RS, WR or RR (write or read, sequential or random); none to set them separately",
      set_or_none: put_workload,
      get: |cell| Value::word(cell.workload.as_ref()) }
    { Region, name: "layout", kind: Word, exported: true, example: "private",
      doc: "files and threads: shared (one file, a share per thread), interleaved (one file, blocks in turn), overlapping (one file, each thread uses all of it) or private (a file per thread)",
      word: trial.layout }
    { Region, name: "descriptors", kind: Word, exported: true, example: "shared",
      doc: "file descriptors: private (one per thread) or shared (one for all; backend sync then locks around lseek and read)",
      word: trial.descriptors }
    { Durability, name: "sync", kind: Word, exported: true, example: "fsync",
      doc: "when writes become durable: none, end, each (fsync after writes), fdatasync (after writes), osync, odsync (open flags) or rwf_dsync (a flag of each write)",
      word: trial.sync }
    { Durability, name: "sync_every", kind: Count, exported: true, example: "8",
      doc: "writes of a thread per sync, with sync=each and sync=fdatasync",
      value: trial.sync_every, parse_count_within, SOME_COUNT }
    { Region, name: "allocate", kind: Word, exported: true, example: "append",
      doc: "file of trials that only write: fresh (a new, empty one for each trial), append (a new one that grows), preallocated (a new one with fallocate) or recycled (its data is overwritten); none: the file as it is",
      word_or_none: trial.allocate }
    { Cache, name: "cache", kind: Word, exported: true, example: "hot",
      doc: "page cache: direct (bypassed), cold (dropped before the trial) or hot (read before the trial)",
      word: trial.cache }
    { Region, name: "first_offset", kind: Word, exported: true, example: "random",
      doc: "where seq, reverse and strided begin: random (a new block in each trial, so that the drive's cache holds none of it; the default with cache=direct) or zero",
      word: trial.first_offset }
    { Processors, name: "buffer_init", kind: Word, exported: true, example: "zeroed",
      doc: "buffer preparation: untouched, zeroed, touched, populated, huge (huge pages), nohuge or random",
      word: trial.buffer_init }
    { Processors, name: "buffer_memory", kind: Word, exported: true, example: "contiguous",
      doc: "memory of the buffers: contiguous (in huge pages; the default with cache=direct) or kernel (mostly single small pages)",
      word: trial.buffer_memory }
    { Data, name: "compressible", aliases: ["buffer_compress_percentage"], kind: Count, unit: "percent", exported: true, example: "50%",
      doc: "share of each written 4 KiB that is zeros, in percent: what a compressor saves",
      value: trial.compressible, parse_percent }
    { Data, name: "verify", kind: Flag, exported: true, example: "on",
      doc: "write blocks with offset, generation and checksum, and check them after each trial, outside its time",
      value: trial.verify, parse_flag }
    { Bounds, name: "bytes", kind: Size, unit: "bytes", exported: false, example: "1048576",
      doc: "end a trial after this many bytes over all threads; none for no limit",
      value_or_none: trial.limit.bytes, parse_bound, parse_size }
    { Bounds, name: "time", aliases: ["runtime"], kind: Time, unit: "s", column: "time_ns", exported: false, example: "0.25",
      doc: "end a trial after this time; none for no limit",
      value_or_none: trial.limit.time, parse_bound, parse_duration }
    { Load, name: "rate", aliases: ["rate_iops"], kind: Rate, unit: "1/s", exported: true, example: "5000",
      doc: "requests per second over all threads, or bytes per second such as 50MB/s, issued on schedule whether or not earlier ones have completed (open loop); none to issue the next when one completes; 0 for a group that does nothing",
      set_or_none: |cell, text| put_or_none(&mut cell.trial.rate, text),
      get: |cell| cell.trial.rate.map_or(Value::None, Value::Rate) }
    { Load, name: "arrivals", kind: Word, exported: true, example: "poisson",
      doc: "spacing of the scheduled starts of a rate: constant or poisson",
      word: trial.arrivals }
    { Load, name: "thinktime", kind: Time, unit: "s", column: "thinktime_ns", exported: true, example: "0.001",
      doc: "pause of a thread after each request, once it has completed; none: no pause",
      value_or_none: trial.thinktime, parse_bound, parse_duration }
    { Records, name: "latency", kind: Flag, exported: false, example: "off",
      doc: "record the service time of every request; false for requests that are shorter than a time stamp",
      value: trial.latency, parse_flag }
    { Records, name: "hardware_counters", kind: Flag, exported: false, example: "yes",
      doc: "count cycles, instructions, cache and TLB misses of the workers, if the machine supports it",
      value: trial.hardware_counters, parse_flag }
    { Load, name: "sqpoll", kind: Flag, exported: false, example: "true",
      doc: "io_uring: a kernel thread polls the submission queue",
      value: trial.sqpoll, parse_flag }
    { Load, name: "iopoll", kind: Flag, exported: false, example: "yes",
      doc: "io_uring, pvsync2: poll for completions instead of taking interrupts",
      value: trial.iopoll, parse_flag }
    { Cache, name: "fadvise", kind: Word, exported: true, example: "random",
      doc: "advice to the kernel on buffered reads (posix_fadvise): normal, sequential, random or noreuse; none: no advice",
      word_or_none: trial.fadvise }
    { Load, name: "active", kind: Word, exported: false, example: "reader + writer",
      doc: "groups that run: all, or names with plus signs between: reader+writer",
      set: put_active,
      get: |cell| Value::word(Some(cell.active.as_ref().map_or(ALL.to_owned(), ToString::to_string))) }
    { Programs, name: "linkage", kind: Word, exported: false, example: "static",
      doc: "time iolab's small reader as a whole program, linked static or dynamic; none for no program",
      word_or_none: linkage }
    { Programs, name: "command", kind: Word, exported: true, example: " cat  {file} ",
      doc: "time your own program; iolab fills in {file}, {size} and {bs}; none for no program",
      word_or_none: command }
    { Programs, name: "tool", aliases: ["peer"], kind: Word, exported: true, example: "fio",
      doc: "tool that measures the cell: iolab, or an installed peer such as fio with equivalent options",
      word: tool }
    { Region, name: "target", kind: Path, exported: false, example: " /mnt/a ",
      doc: "the target that is read or written, where a run has several: its path; none for the run's own",
      word_or_none: target }
    { Load, name: "ranks", kind: Count, exported: false, example: "4",
      doc: concat!("processes (ranks) that take part, of those that ", launchers!(), " started, spread evenly over hosts; none: all"),
      value_or_none: trial.ranks, parse_count_or_none }
    { Load, name: "hosts", kind: Count, exported: false, example: "2",
      doc: concat!("hosts whose processes take part, of those that ", launchers!(), " started processes on; none: all"),
      value_or_none: trial.hosts, parse_count_or_none }
    { Region, name: "shift", kind: Word, exported: false, example: "rank",
      doc: "whose part of the region a process (rank) reads, so that the writer's page cache is not measured: none (its own), rank (the next rank's) or host (the part of a rank on another host)",
      word: trial.shift }
    { Region, name: "files", kind: Count, exported: true, example: "8",
      doc: "files of each thread, with layout=private: requests go to each in turn; none: one file",
      value_or_none: trial.files, parse_count_or_none }
    { Load, name: "rate_slack", kind: Time, unit: "s", column: "rate_slack_ns", exported: false, example: "200us",
      doc: "how late requests of a rate may start so that one sleep of a thread serves several, up to 1ms; 0 for exact starts: a thread stops sleeping 50us before each and uses its CPU until then",
      value: trial.rate_slack, parse_duration }
    { Load, name: "idle", kind: Time, unit: "s", column: "idle_ns", exported: true, example: "10s",
      doc: "time without I/O before each trial, in which caches of a drive empty and credits return; part of the budget",
      value: idle, parse_duration }
    { Processors, name: "nice", kind: Word, exported: false, example: "+5",
      doc: "nice value of the threads: 19 (last to get a CPU) to -20 (first; below the nice value of the process as root only); none: as the process",
      set_or_none: |cell, text| put_within(&mut cell.trial.nice, text, &NICE, "a nice value"),
      get: |cell| Value::word(cell.trial.nice) }
    { Processors, name: "realtime", kind: Word, exported: false, example: "050",
      doc: "priority of the threads as real-time threads (SCHED_FIFO), 1 to 99 (first), before all ordinary programs, which may get no CPU meanwhile; needs root and --change-system; none: scheduled as the process is",
      set_or_none: |cell, text| put_within(&mut cell.trial.realtime, text, &REALTIME, "a real-time priority"),
      get: |cell| Value::word(cell.trial.realtime) }
    { Processors, name: "system", kind: Word, exported: true, example: "scheduler:none",
      doc: "kernel settings during each trial, restored after it; needs root and --change-system: max_sectors_kb:N (or max), scheduler:NAME, nomerges:0, 1 or 2, read_ahead_kb:N, transparent_hugepage:always, madvise or never, several joined by +; none: unchanged",
      set_or_none: put_system,
      get: |cell| Value::word((!cell.system.is_none()).then_some(&cell.system)) }
    { Records, name: "latency_over_time", kind: Flag, exported: false, example: "on",
      doc: "keep a latency histogram per interval of at least 100 ms, at most 512 of them (response times at a rate, else service times)",
      value: trial.latency_over_time, parse_flag }
    { Records, name: "trace", kind: Flag, exported: false, example: "yes",
      doc: "split each request's time by layer (file system and limits, scheduler, device, wake-up) with the kernel's trace events; needs root",
      value: trial.trace, parse_flag }
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

/// Sets a number within these bounds, or none; `what` names it in an error.
fn put_within<T>(
    place: &mut Option<T>,
    text: &str,
    bounds: &RangeInclusive<T>,
    what: &str,
) -> Result<()>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.parse().ok().filter(|number| bounds.contains(number));
    if number.is_none() && text != "none" {
        let (least, most) = (bounds.start(), bounds.end());
        return Err(Error::usage(format!("'{text}' is not {what}"))
            .hint(format!("choose a number from {least} to {most}")));
    }
    *place = number;
    Ok(())
}
