//! Options of other tools: their counterparts in iolab, and the effect of fio job options on a cell.

use crate::Error;
use crate::names::{nearest, unknown};
use crate::settings::{CellSpec, SETTINGS, Setting};

/// iolab's counterpart of another tool's option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// How to do it with iolab.
    Way(&'static str),
    /// There is nothing; why.
    None(&'static str),
}

/// The effect of a fio job's option on the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Sets these settings.
    Decides(&'static [&'static str]),
    /// Requests something of the run, which this names.
    Asks(&'static str),
    /// Names the target of the job.
    Target,
    /// Changes nothing that is measured, or iolab always does it; the reason.
    Idle(&'static str),
}

impl Effect {
    /// The settings that the option decides.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Decides(settings) => settings,
            Self::Asks(_) | Self::Target | Self::Idle(_) => &[],
        }
    }
}

/// Reading of an option in a fio job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InJob {
    /// Whether it is valid without a value.
    pub is_flag: bool,
    /// The accepted values, if iolab supports only these; empty if all are, or its reader checks.
    pub only: &'static [&'static str],
    /// Effect of the option on a cell.
    pub effect: Effect,
}

/// Options with the same effect.
#[derive(Debug)]
pub struct Named {
    /// Their names, without leading hyphens, separated by blanks.
    names: &'static str,
    in_job: Option<InJob>,
}

/// Options with the same answer.
#[derive(Debug)]
pub struct Foreign {
    /// One answer for all options; `None` if iolab has settings of the same names.
    pub answer: Option<Answer>,
    options: &'static [Named],
}

impl Foreign {
    /// Their names, without leading hyphens.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(Named::names)
    }
}

impl Named {
    fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.names.split_whitespace()
    }

    const fn does(self, effect: Effect, is_flag: bool, only: &'static [&'static str]) -> Self {
        Self {
            names: self.names,
            in_job: Some(InJob {
                is_flag,
                only,
                effect,
            }),
        }
    }

    const fn decides(self, settings: &'static [&'static str]) -> Self {
        self.does(Effect::Decides(settings), false, &[])
    }

    const fn flag(self, settings: &'static [&'static str]) -> Self {
        self.does(Effect::Decides(settings), true, &[])
    }

    const fn target(self) -> Self {
        self.does(Effect::Target, false, &[])
    }

    const fn asks(self, what: &'static str) -> Self {
        self.does(Effect::Asks(what), false, &[])
    }

    const fn idle(self, why: &'static str) -> Self {
        self.does(Effect::Idle(why), true, &[])
    }

    const fn only(self, values: &'static [&'static str], why: &'static str) -> Self {
        self.does(Effect::Idle(why), true, values)
    }
}

const fn named(names: &'static str) -> Named {
    Named {
        names,
        in_job: None,
    }
}

const fn way(way: &'static str, options: &'static [Named]) -> Foreign {
    Foreign {
        answer: Some(Answer::Way(way)),
        options,
    }
}

const fn none(why: &'static str, options: &'static [Named]) -> Foreign {
    Foreign {
        answer: Some(Answer::None(why)),
        options,
    }
}

const LOGGED: &str = "each trial is kept over time: iolab export --series";
const INTERVALS: &str = "iolab keeps intervals of 100 ms, or longer in long trials, with p50, p99 and the greatest latency of each";
const NO_LOG: &str = "iolab keeps no entry per request, but intervals: iolab export --series";
const LATENCIES: &str = "all latencies are kept: iolab export --histogram";
const SCRATCH: &str = "iolab makes its scratch file before the trials and removes it after them";
const WHOLE: &str = "a cell is always reported as a whole";
const OUTSIDE: &str = "iolab counts outside the timed loop";
const AT_ONCE: &str =
    "iolab takes all completions there are, and submits all requests that are ready, at once";

const fn unanswered(options: &'static [Named]) -> Foreign {
    Foreign {
        answer: None,
        options,
    }
}

/// Rows of answers, each with the options that it answers and their effect in a job.
macro_rules! foreign {
    ($($kind:ident $($answer:literal)?: $($names:literal $(=> $does:ident($($with:expr),*))?),+;)+) => {
        &[$($kind($($answer,)? &[$(named($names)$(.$does($($with),*))?),+])),+]
    };
}

/// All options, by topic. Most are fio's; others belong to vdbench, diskspd, elbencho, hyperfine, ioping, dd and sysbench.
pub static FOREIGN: &[Foreign] = foreign! {
    // The form of a request.
    way "--set workload=RR (or WR, RS, WS), or --set pattern=rand --set read_percent=70":
        "rw readwrite"
            => decides(&["pattern", "read_percent", "skip", "trim_percent"]);
    way "--set read_percent=70": "rwmixwrite" => decides(&["read_percent"]), "rdpct read_pct write_pct readpercent";
    way "--set bs=4k": "blocksize" => decides(&["bs", "bs_mix"]), "block_size xfersize record_size reclen recsize";
    way "--set bs_mix=4k:60,64k:30,1M:10": "bssplit" => decides(&["bs", "bs_mix"]);
    way "--set bs_mix=4k-64k, any multiple of 4 KiB up to 64 KiB": "bsrange blocksize_range" => decides(&["bs", "bs_mix"]);
    none "requests have one I/O size, or several with shares: --set bs_mix=4k:50,64k:50; --set bs=4k,64k,1M measures \
        several sizes in cells of their own":
        "bs_unaligned blocksize_unaligned bs_is_seq_rand";
    none "blocks are aligned to their own size from --set offset on":
        "ba blockalign" => decides(&["bs", "bs_mix", "pattern"]),
        "offset_align";
    way "--set pattern=rand, rand-replace, zipf:1.1, pareto:0.2, normal:20 or zones:50/5:30/15:20/80":
        "random_distribution" => decides(&["pattern"]);
    way "--set pattern=rand-replace": "norandommap" => flag(&["pattern"]);
    none "a cell is sequential, strided, reverse or random; --set pattern=seq,rand compares them":
        "percentage_random seekpct sprandom spr_op spr_num_regions spr_cs";
    none "pattern=rand visits each block once per pass without a map in memory, whatever the size":
        "softrandommap random_generator" => idle("iolab's random order needs no map in memory");
    none "a share of the writes can trim instead, on blocks of their own: --set trim_percent=30":
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch num_range";
    none "requests carry no such flag": "writefua readfua write_mode read_mode verify_mode sg_write_mode stream_id";
    // Amount and location of the data.
    way "--size 1G (region)": "filesize" => decides(&["region", "bytes"]), "file_size working_set";
    way "--set bytes=10G": "io_size io_limit" => decides(&["bytes"]);
    way "--set bytes=N times bs": "number_ios" => decides(&["bytes"]), "count";
    way "--set bytes=N times the region; trials are repeated anyway": "loops" => decides(&["bytes"]), "numruns passes";
    way "--set layout=shared: each thread has a share of the region":
        "offset_increment" => decides(&["layout", "region"]);
    way "--set layout=private with --set files=100, or files=none for a file per thread":
        "nrfiles nr_files" => does(Effect::Decides(&["files"]), false, &["1"]),
        "openfiles file_service_type" => idle("it has no effect on a job with one file");
    way "give it as TARGET: iolab run EXPERIMENT TARGET": "filename directory" => target(), "lun dir";
    way "--set allocate=append with a workload that only writes": "file_append";
    none "iolab always leaves free space on a file system; --precondition seq:1 writes all of the region":
        "fill_device fill_fs" => flag(&["region", "bytes"]);
    none "zones are not supported; --set pattern=strided --set skip=2G skips after each request":
        "zonemode zoneskip zonerange zonesize zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits zone_reset_threshold \
            zone_reset_frequency recover_zbd_write_error write_zone_remainders";
    // The path to the storage.
    way "--direct (cache=direct); --buffered for the page cache": "direct" => flag(&["cache"]);
    way "--buffered (cache=cold), or --set cache=hot": "buffered" => flag(&["cache"]);
    way "--set cache=cold drops the page cache before each trial": "invalidate" => flag(&["cache"]);
    way "--set cache=hot": "pre_read" => flag(&["cache"]);
    way "--set fadvise=sequential, random or noreuse": "fadvise_hint" => decides(&["fadvise"]);
    way "--set iopoll=true": "hipri" => flag(&["iopoll"]), "hipri_percentage";
    way "--set sqpoll=true": "sqthread_poll" => flag(&["sqpoll"]);
    none "iolab registers files and buffers with io_uring wherever the kernel takes them":
        "fixedbufs registerfiles" => idle("iolab registers both wherever the kernel takes them");
    way "--set batch=one, 50% or all":
        "iodepth_batch iodepth_batch_submit" => idle(AT_ONCE),
        "iodepth_batch_complete iodepth_batch_complete_min iodepth_low" => decides(&["batch"]);
    none "only the fewest completions to wait for can be set: --set batch=50%":
        "iodepth_batch_complete_max" => idle(AT_ONCE);
    way "--rate 1000: with a rate requests do not wait for earlier ones":
        "io_submit_mode" => idle("at a given rate requests do not wait for earlier ones");
    // Durability.
    way "--set sync=each (fsync after each write), with --set sync_every=N after every Nth":
        "fsync" => decides(&["sync", "sync_every"]);
    way "--set sync=fdatasync, with --set sync_every=N after every Nth write":
        "fdatasync" => decides(&["sync", "sync_every"]);
    way "--set sync=end": "end_fsync fsync_on_close" => flag(&["sync"]), "end_syncfs conv";
    none "--set sync=end, each, osync and odsync are the ways to make data durable":
        "write_barrier" => idle("fio ignores it too: none of the engines that iolab has sends barriers"),
        "sync_file_range";
    // Content and buffers.
    way "--set compressible=100": "zero_buffers" => flag(&["compressible"]);
    none "iolab always writes data that is different in every 4 KiB": "refill_buffers scramble_buffers" => only(&["1"], "data is different in every 4 KiB");
    none "data is different in every 4 KiB, and shrinks as asked: --set compressible=50":
        "buffer_pattern dedupe_mode dedupe_global dedupe_percentage dedupe_working_set_percentage dedupratio",
        "buffer_compress_chunk" => idle("what can be compressed lies in one piece of every 4 KiB");
    way "--set compressible=50 for a ratio of 2": "compressratio";
    way "--direct --set buffer_memory=contiguous":
        "mem iomem" => decides(&["buffer_memory"]),
        "hugepage-size";
    none "buffers are aligned to pages": "mem_align iomem_align";
    none "limit the memory of a run with systemd-run -p MemoryMax=1G iolab ...":
        "lockmem" => idle("direct I/O uses no memory that it could take away");
    // Files and allocation.
    none "iolab fills its scratch file before the trials and removes it after them; --fresh writes to a new file in \
        each trial":
        "fallocate overwrite create_serialize create_fsync create_on_open allow_file_create unlink unlink_each_loop"
            => idle(SCRATCH),
        "create_only";
    way "--destroy-data, which is refused for what is mounted": "allow_mounted_write";
    // Time and load.
    way "--time 30s is the length of a trial": "timeout" => decides(&["time"]), "elapsed test-duration duration";
    way "--set bytes=none --time 30s": "time_based" => flag(&["time", "bytes"]);
    way "the first trial of every cell is a warm-up that no number rests on (--set warmup=none, --soak 1h: none); --precondition writes first":
        "ramp_time" => idle("the first trial of every cell is a warm-up"),
        "ramp_size warm_up";
    none "all groups start at one barrier": "job_start_clock_id startdelay start_delay";
    none "a thread sleeps for the whole thinktime, after each of its requests":
        "thinktime_iotime thinktime_blocks thinktime_spin",
        "thinktime_blocks_type"
            => only(&["complete", "issue"], "a pause begins once the requests before it have completed"),
        "thinkcycles rate_ignore_thinktime";
    way "--rate 1000 (requests per second), --set arrivals=poisson":
        "rate_process" => decides(&["arrivals"]),
        "iorate interval_rate";
    none "no trial fails for being slow; 'iolab compare' judges against an earlier run":
        "rate_min ratemin rate_iops_min rate_cycle ratecycle";
    way "iolab run load-latency --slo 'p99<1ms' finds the greatest rate at which a level holds, and with --rate \
        whether it holds there; iolab fit WHAT judges storage against the levels of a purpose":
        "slo sla max_latency",
        "latency_target latency_window latency_percentile"
            => asks("the run says at which depths, from 1 to iodepth, this level of latency holds (depth, time, hold)"),
        "latency_run" => idle("trials are repeated anyway");
    way "--precondition steady waits for a steady state before the trials":
        "steadystate ss steadystate_duration ss_dur steadystate_ramp_time ss_ramp steadystate_check_interval \
            ss_interval";
    none "a trial ends when all groups that have a bound are over":
        "exitall exit_what flow flow_id flow_sleep",
        "wait_for" => idle("cells run one after the other"),
        "new_group" => idle(WHOLE),
        "exitall_on_error" => idle("a trial ends at its first error");
    way "cells run one after the other, in random order":
        "stonewall wait_for_previous" => idle("cells run one after the other");
    way "--set trials_min=10, or --precision 2%": "runs repeat iterations min-runs";
    // Threads and processors.
    way "--threads 8":
        "thread" => only(&["0", "1"], "iolab's workers are threads"),
        "threads-per-queue forthreads nthreads workers";
    way "--set cpus=0-3,8": "cpumask cpu_affinity affinity";
    way "--set placement=packed (split), spread or float (shared)": "cpus_allowed_policy" => decides(&["placement"]);
    way "--set cpus=0-3 for the CPUs of a node; numactl --membind=0 iolab run EXPERIMENT for its memory":
        "numa_cpu_nodes numa numa_mem_policy";
    way "ionice -c VALUE iolab run EXPERIMENT": "prioclass ionice";
    way "ionice -n VALUE iolab run EXPERIMENT": "prio";
    none "requests carry no such flag or hint": "uncached atomic write_hint";
    none "the kernel chooses the CPU of its thread that polls (sqpoll)": "sqthread_poll_cpu";
    none "a random pattern draws an offset for each request, and a trim is a request of its own":
        "rw_sequencer random_sequence_stride trimwrite";
    none "requests carry no hint of their duration": "priohint";
    none "all requests of a run have the same priority":
        "cmdprio cmdprio_percentage cmdprio_class cmdprio_hint cmdprio_bssplit log_prio";
    way "systemd-run --scope -p IOWeight=50 iolab run EXPERIMENT": "cgroup cgroup_weight cgroup_nodelete";
    way "sudo -u USER iolab run EXPERIMENT": "uid gid";
    way "echo none | sudo tee /sys/block/DEVICE/queue/scheduler; the run file records the scheduler": "ioscheduler";
    way "run the program before or after iolab": "exec_prerun exec_postrun prepare cleanup setup";
    way "--set command=\"PROGRAM {file}\" times a program": "program arguments grace_time std_redirect";
    // Verification.
    way "--verify reads back and checks what each trial has written":
        "verify_only verify_async_cpus verify_policy",
        "do_verify" => flag(&["verify"]),
        "verify_fatal verify_dump verify_async"
            => idle("all that was written is checked after each trial, and every fault is reported");
    none "--verify reads back all that a trial has written, after the trial, with iolab's own checksums":
        "verify_backlog verify_backlog_batch" => idle("iolab reads back after the trial, all that was written"),
        "verify_interval" => idle("iolab has a checksum for every 512 bytes"),
        "verify_pattern" => idle("iolab writes blocks that all differ and cannot be compressed, fio the pattern between its headers: only storage that compresses or deduplicates tells them apart"),
        "verify_offset verify_pattern_interval verify_state_save verify_state_load verify_write_sequence verify_header_seed \
            experimental_verify";
    none "a trial ends at its first error; the run goes on and reports it": "continue_on_error ignore_error";
    way "errors are in the run file: iolab export FILE --format csv": "error_dump";
    // Traces.
    none "iolab writes no log of requests": "write_iolog";
    way "iolab replay TRACE TARGET":
        "read_iolog read_iolog_chunked replay_no_stall replay_time_scale replay_redirect replay_align replay_scale replay_skip";
    // Recording and display.
    way "--set latency=false": "gtod_reduce" => flag(&["latency"]);
    way "--set latency=false": "disable_lat" => flag(&["latency"]), "disable_clat disable_slat" => idle(OUTSIDE);
    none "iolab always keeps its counters; they are read outside the timed loop":
        "disable_bw disable_bw_measurement disk_util" => idle(OUTSIDE),
        "stats" => idle(WHOLE);
    none "iolab calibrates the time stamp counter and says which clock it used":
        "clocksource" => idle("iolab calibrates its clock and records which it is"),
        "gtod_cpu";
    way "all latencies are kept: iolab export FILE --format csv --histogram":
        "clat_percentiles lat_percentiles slat_percentiles percentile_list" => idle(LATENCIES),
        "block_error_percentiles";
    none "a cell is always reported as a whole; throughput is in MB/s, sizes are binary":
        "group_reporting per_job_logs unified_rw_reporting significant_figures unit_base" => idle(WHOLE),
        "kb_base" => only(&["1024"], "sizes are binary");
    way "each trial is kept over time: iolab export FILE --format csv --series":
        "write_bw_log write_iops_log" => idle(LOGGED),
        "write_lat_log write_hist_log" => flag(&["latency_over_time"]),
        "log_avg_msec log_hist_msec log_hist_coarseness log_window_value log_max_value" => idle(INTERVALS),
        "log_offset log_entries log_compression log_store_compressed log_unix_epoch log_alternate_epoch \
            log_issue_time" => idle(NO_LOG),
        "log_compression_cpus log_alternate_epoch_clock_id bandwidth-log",
        "bwavgtime iopsavgtime" => idle(OUTSIDE);
    way "--seed 42": "randseed" => idle("--seed gives the offsets; the same seed gives the same"), "random_seed";
    none "the same --seed gives the same offsets; each trial of a run has its own":
        "randrepeat allrandrepeat" => idle("--seed gives the offsets; the same seed gives the same");
    way "iolab table FILE --format json, iolab export FILE --format csv":
        "output-format export-json export-csv json export-markdown";
    way "iolab table FILE --format csv": "minimal terse terse-version";
    none "progress is shown on a terminal, and as lines elsewhere": "eta eta-newline eta-interval status-interval";
    way "mpirun -n 4 iolab run EXPERIMENT (several hosts are one run under MPI: docs/CLUSTER.md)":
        "client server remote-config hostname hostsfile";
    way "iolab run EXPERIMENT --dry-run": "parse-only showcmd";
    // fio's own engines.
    none "it belongs to an engine of fio that iolab does not have; 'iolab list --settings --all' names the backends":
        "libblkio_driver" => only(&["io_uring"], "its driver io_uring makes the calls that iolab's backend of that name makes, without the library's own work"),
        "libblkio_path" => target();
    // fio's options with the name of a setting, and those without an effect on a cell.
    unanswered:
        "rwmixread" => decides(&["read_percent"]),
        "bs" => decides(&["bs", "bs_mix"]),
        "thinktime" => decides(&["thinktime"]),
        "buffer_compress_percentage" => decides(&["compressible"]),
        "cpus_allowed" => decides(&["cpus"]),
        "nice" => decides(&["nice"]),
        "size" => decides(&["region", "bytes"]),
        "offset" => decides(&["offset"]),
        "numjobs" => decides(&["threads", "layout"]),
        "iodepth" => decides(&["depth"]),
        "ioengine" => decides(&["backend"]),
        "sync" => decides(&["sync", "sync_every"]),
        "runtime" => decides(&["time"]),
        "rate rate_iops" => decides(&["rate"]),
        "verify" => decides(&["verify"]),
        "name description" => idle("a text"),
        "threads" => only(&["0", "1"], "iolab's workers are threads");
};

/// The answer for an option of another tool; hyphens and underscores are equivalent.
pub fn answer(name: &str) -> Option<Answer> {
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    let wanted = plain(name);
    let known = |foreign: &&Foreign| foreign.names().any(|known| plain(known) == wanted);
    FOREIGN.iter().find(known)?.answer
}

/// The reading of an option in a fio job; `None` if iolab does not support it.
pub fn in_job(name: &str) -> Option<InJob> {
    let mut all = FOREIGN.iter().flat_map(|foreign| foreign.options);
    all.find(|option| option.names().any(|known| known == name))?
        .in_job
}

/// Every setting that an option of a fio job decides.
pub fn decided_settings() -> impl Iterator<Item = &'static str> {
    let all = FOREIGN.iter().flat_map(|foreign| foreign.options);
    let effects = all.filter_map(|option| Some(option.in_job?.effect));
    effects.flat_map(Effect::settings).copied()
}

/// Every supported option of a fio job.
pub fn names_in_jobs() -> impl Iterator<Item = &'static str> {
    let all = FOREIGN.iter().flat_map(|foreign| foreign.options);
    let understood = all.filter(|option| option.in_job.is_some());
    understood.flat_map(Named::names)
}

impl Answer {
    /// The answer as a hint, with the value of the option where VALUE stands.
    pub fn hint(self, value: Option<&str>) -> String {
        match self {
            Self::Way(way) => format!(
                "iolab's way: {}",
                way.replace("VALUE", value.unwrap_or("VALUE"))
            ),
            Self::None(why) => format!("iolab has no counterpart: {why}"),
        }
    }
}

/// The error for an unknown setting, with iolab's equivalent if another tool has an option of that name, otherwise with
/// similar names among the settings and `further`.
pub fn unknown_setting(name: &str, further: &[&str]) -> Error {
    if let Some(answer) = answer(name) {
        return Error::usage(format!("'{name}' is not a setting of iolab")).hint(answer.hint(None));
    }
    let names = |setting: &'static Setting| {
        [setting.name]
            .into_iter()
            .chain(setting.aliases.iter().copied())
    };
    let settings = SETTINGS.iter().flat_map(names);
    let known: Vec<&str> = settings.chain(further.iter().copied()).collect();
    match nearest(name, &known).is_empty() {
        true => Error::usage(format!("setting '{name}' is unknown"))
            .hint("'iolab list --settings --all' shows all of them"),
        false => unknown("setting", name, &known),
    }
}

/// The units of fio's options whose numbers have none.
const BARE_UNITS: [(&str, &str); 3] = [("runtime", "s"), ("thinktime", "us"), ("time", "s")];

/// The error for an option (`--runtime`) that the command (`iolab run`) does not have, and that names a setting or an option of another tool;
/// `None` for other names. The way out has the `value` that was given with it; it is one of the command's own `options` if there is one.
pub fn unknown_option(
    command: &str,
    options: &[&str],
    option: &str,
    value: Option<&str>,
) -> Option<Error> {
    let name = option.trim_start_matches('-');
    let name = name.split('=').next().unwrap_or(name).replace('-', "_");
    let hint = match Setting::find(&name) {
        Some(setting) => {
            let is_bare = |value: &str| value.bytes().all(|c| c.is_ascii_digit());
            let unit = BARE_UNITS.iter().find(|(known, _)| *known == name);
            let with_unit = |value: &str| match unit.filter(|_| is_bare(value)) {
                Some((_, unit)) => format!("{value}{unit}"),
                None => value.to_owned(),
            };
            // The next word of a command line need not be a value of this option.
            let is_value = |value: &String| {
                value.bytes().all(|c| c.is_ascii_graphic())
                    && setting.set(&mut CellSpec::default(), value).is_ok()
            };
            let value = value.map(with_unit).filter(is_value);
            let value = value.as_deref().unwrap_or("VALUE");
            match options.contains(&setting.name) {
                true => format!("use --{} {value}", setting.name),
                false => format!("it is a setting: --set {}={value}", setting.name),
            }
        }
        None => answer(&name)?.hint(None),
    };
    let what = format!("'{option}' is not an option of '{command}'");
    Some(Error::usage(what).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_one_answer() {
        let mut seen: Vec<&str> = Vec::new();
        for foreign in FOREIGN {
            for name in foreign.names() {
                assert!(!seen.contains(&name), "{name} has two answers");
                let answered = foreign.answer.is_some();
                assert!(
                    !(answered && Setting::find(name).is_some()),
                    "{name} is a setting"
                );
                seen.push(name);
            }
        }
    }

    #[test]
    fn job_options_decide_existing_settings() {
        for name in names_in_jobs() {
            let effect = in_job(name).expect("understood").effect;
            if let Effect::Decides(settings) = effect {
                for setting in settings {
                    assert!(Setting::find(setting).is_some(), "{setting}");
                }
            }
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        let way = answer("cpu-affinity");
        let Some(Answer::Way(words)) = way else {
            panic!("{way:?}");
        };
        insta::assert_snapshot!(words, @"--set cpus=0-3,8");
        assert_eq!(answer("cpu_affinity"), way);
        assert_eq!(answer("no_such_option"), None);
        let told =
            ["bsrange", "slo", "fdatasync"].map(|name| unknown_setting(name, &[]).to_string());
        insta::assert_snapshot!(told.join("\n"), @r"
        'bsrange' is not a setting of iolab
          iolab's way: --set bs_mix=4k-64k, any multiple of 4 KiB up to 64 KiB
        'slo' is not a setting of iolab
          iolab's way: iolab run load-latency --slo 'p99<1ms' finds the greatest rate at which a level holds, and with --rate whether it holds there; iolab fit WHAT judges storage against the levels of a purpose
        'fdatasync' is not a setting of iolab
          iolab's way: --set sync=fdatasync, with --set sync_every=N after every Nth write
        ");
        assert!(unknown_option("iolab run", &[], "--cpus_allowed", None).is_some());
        let told = [
            ("--iodepth", "8"),
            ("--runtime", "10"),
            ("--runtime", "10ms"),
            ("--thinktime", "5"),
            ("--iodepth", "/dev/x"),
        ]
        .map(|(option, value)| {
            let error = unknown_option("iolab run", &["time"], option, Some(value));
            let error = error.expect("a setting");
            error.remedy().expect("a hint").to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        it is a setting: --set depth=8
        use --time 10s
        use --time 10ms
        it is a setting: --set thinktime=5us
        it is a setting: --set depth=VALUE
        ");
        assert!(unknown_option("iolab run", &[], "--nothing-like-it", None).is_none());
    }
}
