//! Options of other tools that are no settings of iolab, each with iolab's way to the same, or that there is none.

use crate::Error;
use crate::names::unknown;
use crate::settings::{SETTINGS, Setting};

/// The answer to an option of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// How iolab does it.
    Way(&'static str),
    /// Why it does not.
    None(&'static str),
}

/// Options with the same answer.
#[derive(Debug)]
pub struct Foreign {
    /// Their names, without hyphens in front and with blanks between.
    names: &'static str,
    /// What holds for all of them.
    pub answer: Answer,
}

impl Foreign {
    /// Their names, without hyphens in front.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }
}

const fn way(names: &'static str, way: &'static str) -> Foreign {
    Foreign {
        names,
        answer: Answer::Way(way),
    }
}

const fn none(names: &'static str, why: &'static str) -> Foreign {
    Foreign {
        names,
        answer: Answer::None(why),
    }
}

/// All of them, by topic. Most are fio's; some are of vdbench, diskspd, elbencho, hyperfine, ioping, dd and sysbench.
pub static FOREIGN: &[Foreign] = &[
    // What a request is.
    way(
        "rw readwrite",
        "--set workload=RR (or WR, RS, WS), or --set pattern=rand --set read_percent=70",
    ),
    way(
        "rwmixwrite rdpct read_pct write_pct readpercent",
        "--set read_percent=70",
    ),
    way(
        "blocksize block_size xfersize record_size reclen recsize",
        "--set bs=4k",
    ),
    way("bssplit", "--set bs_mix=4k:60,64k:30,1M:10"),
    none(
        "bsrange blocksize_range bs_unaligned blocksize_unaligned bs_is_seq_rand",
        "requests have one I/O size, or several with shares: --set bs_mix=4k:50,64k:50; --set bs=4k,64k,1M measures several sizes in cells of their own",
    ),
    none(
        "ba blockalign offset_align",
        "blocks are aligned to their own size from --set offset on",
    ),
    way(
        "random_distribution",
        "--set pattern=rand, rand-replace, zipf:1.1 or zones:50/5:30/15:20/80",
    ),
    way("norandommap", "--set pattern=rand-replace"),
    none(
        "percentage_random seekpct rw_sequencer random_sequence_stride sprandom spr_op \
         spr_num_regions spr_cs",
        "a cell is sequential, strided, reverse or random; --set pattern=seq,rand compares them",
    ),
    none(
        "softrandommap random_generator",
        "pattern=rand visits each block once per pass without a map in memory, whatever the size",
    ),
    none(
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch num_range trimwrite",
        "a share of the writes can trim instead, on blocks of their own: --set trim_percent=30",
    ),
    none(
        "write_hint dataplacement fdp fdp_pli fdp_pli_select plids plid_select dp_scheme",
        "data placement cannot be chosen",
    ),
    none(
        "writefua readfua write_mode read_mode verify_mode sg_write_mode stream_id",
        "requests carry no such flag",
    ),
    way("uncached", "--set dontcache=true"),
    none(
        "md_per_io_size pi_act pi_chk apptag apptag_mask cmd_type cdb_len verify_bytchk",
        "iolab issues requests of the block layer, not commands of a protocol",
    ),
    // How much, where.
    way("filesize file_size working_set", "--size 1G (region)"),
    way("io_size io_limit", "--set bytes=10G"),
    way("number_ios count", "--set requests=10000"),
    way(
        "loops numruns passes",
        "--set bytes=N times the region; trials are repeated anyway",
    ),
    way(
        "offset_increment",
        "--set layout=shared: each thread has a share of the region",
    ),
    none(
        "nrfiles nr_files openfiles file_service_type files filename_format unique_filename \
         opendir",
        "a trial uses one file, or one per thread (--set layout=private)",
    ),
    way(
        "filename directory lun dir",
        "give it as TARGET: iolab run EXPERIMENT TARGET",
    ),
    none(
        "filetype lockfile",
        "TARGET decides: a directory, a file or a block device",
    ),
    way(
        "file_append",
        "--set fresh=true with a workload that only writes",
    ),
    none(
        "fill_device fill_fs",
        "iolab always leaves free space on a file system; --precondition seq:1 writes all of the region",
    ),
    way(
        "zoneskip zonerange zonesize",
        "--set pattern=strided --set skip_every=256M --set skip=2G; zoned devices are not supported",
    ),
    none(
        "zonemode zonecapacity read_beyond_wp max_open_zones \
         job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency \
         recover_zbd_write_error write_zone_remainders",
        "zoned devices are not supported",
    ),
    // Through which path.
    way(
        "direct",
        "--direct (cache=direct); --buffered for the page cache",
    ),
    way("buffered", "--buffered (cache=cold), or --set cache=hot"),
    way(
        "invalidate",
        "--set cache=cold drops the page cache before each trial",
    ),
    way("pre_read", "--set cache=hot"),
    way(
        "fadvise_hint",
        "--set fadvise=sequential, random or noreuse",
    ),
    way("hipri hipri_percentage", "--set iopoll=true"),
    way("sqthread_poll", "--set sqpoll=true"),
    none(
        "sqthread_poll_cpu",
        "the kernel chooses the CPU of its polling thread",
    ),
    way("fixedbufs registerfiles", "--set registered=true"),
    none(
        "nonvectored libaio_vectored userspace_reap force_async serialize_overlap",
        "iolab chooses how it uses a backend; 'iolab list --settings' names what can be set",
    ),
    way(
        "iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min",
        "--set batch=one, 50% or all",
    ),
    none(
        "iodepth_batch_complete_max iodepth_low",
        "only the fewest completions to wait for can be set: --set batch=50%",
    ),
    way(
        "io_submit_mode",
        "--rate 1000: with a rate requests do not wait for earlier ones",
    ),
    // Durability.
    way("end_fsync fsync_on_close end_syncfs conv", "--set sync=end"),
    none(
        "write_barrier sync_file_range",
        "--set sync=end, each, osync and odsync are the ways to make data durable",
    ),
    // Data and memory.
    way("zero_buffers", "--set content=zero"),
    way(
        "refill_buffers scramble_buffers",
        "--set content=unique, the default",
    ),
    none(
        "buffer_pattern buffer_compress_chunk dedupe_mode dedupe_working_set_percentage \
         dedupe_global",
        "data is unique, repeated or zero (--set content=unique,repeated,zero), and unique data shrinks as asked: --set compressible=50 --set dedup=30",
    ),
    way(
        "compressratio dedupratio",
        "--set compressible=50 for a ratio of 2, --set dedup=50",
    ),
    way("mem iomem hugepage-size", "--set buffer_memory=contiguous"),
    none("mem_align iomem_align", "buffers are aligned to pages"),
    none(
        "lockmem",
        "limit the memory of a run with systemd-run -p MemoryMax=1G iolab ...",
    ),
    // Files and their space.
    none(
        "fallocate overwrite create_serialize create_fsync create_on_open create_only \
         allow_file_create unlink unlink_each_loop",
        "iolab fills its scratch file before the trials and removes it after them; --fresh writes to a new file in each trial",
    ),
    way(
        "allow_mounted_write",
        "--destroy-data, which is refused for what is mounted",
    ),
    // Time and load.
    way(
        "timeout elapsed test-duration duration",
        "--time 30s is the length of a trial",
    ),
    way("time_based", "--set bytes=none --time 30s"),
    way(
        "ramp_time ramp_size warmup warm_up",
        "the first trial of every cell is a warm-up that no number rests on; --precondition writes first",
    ),
    none(
        "job_start_clock_id",
        "all groups start at one barrier; the setting start_delay of a group delays it against the others",
    ),
    way("thinktime_iotime", "--set bursts=100ms/900ms"),
    none(
        "thinktime_spin thinktime_blocks_type thinkcycles rate_ignore_thinktime",
        "a thread sleeps in a pause, which begins once its requests have completed: --set thinktime=1ms",
    ),
    way(
        "rate_process iorate interval_rate",
        "--rate 1000 (requests per second), --set arrivals=poisson",
    ),
    none(
        "rate_min ratemin rate_iops_min rate_cycle",
        "no trial fails for being slow; 'iolab compare' judges against an earlier run",
    ),
    way(
        "slo sla latency_target latency_window latency_percentile latency_run max_latency",
        "iolab run load-latency --slo 'p99<1ms' finds the greatest rate at which a level holds, and with --rate whether it holds there; iolab fit WHAT judges storage against the levels of a purpose",
    ),
    way(
        "steadystate ss steadystate_duration ss_dur steadystate_ramp_time ss_ramp \
         steadystate_check_interval ss_interval",
        "--precondition steady",
    ),
    way(
        "exitall exit_what",
        "the setting ends_trial of a group ends all groups of its trial with this one",
    ),
    none(
        "flow_id flow_sleep wait_for new_group exitall_on_error",
        "a trial ends when all groups that have a bound are over; groups whose setting flow is a weight share one flow of requests",
    ),
    way(
        "stonewall wait_for_previous",
        "cells run one after the other, in random order",
    ),
    way(
        "runs repeat iterations min-runs",
        "--set trials_min=10, or --precision 2%",
    ),
    // Threads and processors.
    way(
        "thread threads-per-queue forthreads nthreads workers",
        "--threads 8",
    ),
    way("cpumask cpu_affinity affinity", "--set cpus=0-3,8"),
    way(
        "cpus_allowed_policy",
        "--set placement=packed (split), spread or float (shared)",
    ),
    way(
        "numa_cpu_nodes numa_mem_policy numa",
        "--set memory_node=0 for the memory, --set cpus=0-3 for the CPUs of a node",
    ),
    way("nice", "nice -n 10 iolab run EXPERIMENT"),
    way(
        "prio prioclass ionice",
        "--set ioprio=be:4 (rt:0 to rt:7, be:0 to be:7, idle)",
    ),
    none("priohint", "requests carry no hint of their duration"),
    none(
        "cmdprio cmdprio_percentage cmdprio_class cmdprio_hint cmdprio_bssplit log_prio",
        "all requests of a run have the same priority",
    ),
    way(
        "cgroup cgroup_weight cgroup_nodelete",
        "systemd-run --scope -p IOWeight=50 iolab run EXPERIMENT",
    ),
    way("uid gid", "sudo -u USER iolab run EXPERIMENT"),
    way(
        "ioscheduler",
        "echo none | sudo tee /sys/block/DEVICE/queue/scheduler; the run file records the scheduler",
    ),
    none(
        "cpuload cpuchunks cpumode exit_on_io_done",
        "iolab makes no load but I/O",
    ),
    way(
        "exec_prerun exec_postrun prepare cleanup setup",
        "run the program before or after iolab",
    ),
    way(
        "program arguments grace_time std_redirect",
        "--set command=\"PROGRAM {file}\" times a program",
    ),
    // Verification.
    way(
        "verify_only do_verify verify_fatal verify_dump verify_async verify_async_cpus \
         verify_policy",
        "--verify reads back and checks what each trial has written",
    ),
    none(
        "verify_backlog verify_backlog_batch verify_interval verify_offset verify_pattern \
         verify_pattern_interval verify_state_save verify_state_load verify_write_sequence \
         verify_header_seed experimental_verify",
        "--verify reads back all that a trial has written, after the trial, with iolab's own checksums",
    ),
    none(
        "continue_on_error ignore_error",
        "a trial ends at its first error; the run goes on and reports it",
    ),
    way(
        "error_dump",
        "errors are in the run file: iolab export FILE --format csv",
    ),
    // Traces.
    none(
        "write_iolog read_iolog read_iolog_chunked merge_blktrace_file merge_blktrace_scalars \
         merge_blktrace_iters replay_no_stall replay_time_scale replay_redirect replay_align \
         replay_scale replay_skip",
        "iolab replays no traces on storage; 'iolab model check' replays one on a modelled disk",
    ),
    // Numbers and how they are shown.
    way("gtod_reduce", "--set latency=false"),
    way(
        "disable_lat disable_clat disable_slat",
        "--set latency=false",
    ),
    none(
        "disable_bw disable_bw_measurement stats disk_util",
        "iolab always keeps its counters; they are read outside the timed loop",
    ),
    none(
        "clocksource gtod_cpu",
        "iolab calibrates the time stamp counter and says which clock it used",
    ),
    way(
        "clat_percentiles lat_percentiles slat_percentiles percentile_list block_error_percentiles",
        "all latencies are kept: iolab export FILE --format csv --histogram",
    ),
    none(
        "group_reporting per_job_logs unified_rw_reporting significant_figures unit_base kb_base",
        "a cell is always reported as a whole; throughput is in MB/s, sizes are binary",
    ),
    way(
        "write_bw_log write_lat_log write_iops_log write_hist_log log_avg_msec log_hist_msec \
         log_hist_coarseness log_window_value log_max_value log_offset log_entries log_compression \
         log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch \
         log_alternate_epoch_clock_id log_issue_time bwavgtime iopsavgtime bandwidth-log",
        "each trial is kept over time: iolab export FILE --format csv --series",
    ),
    way("randseed random_seed", "--seed 42"),
    none(
        "randrepeat allrandrepeat",
        "the same --seed gives the same offsets; each trial of a run has its own",
    ),
    way(
        "output-format export-json export-csv json export-markdown",
        "iolab table FILE --format json, iolab export FILE --format csv",
    ),
    way(
        "minimal terse terse-version",
        "iolab table FILE --format csv",
    ),
    none(
        "eta eta-newline eta-interval status-interval",
        "progress is shown on a terminal, and as lines elsewhere",
    ),
    way(
        "client server remote-config hostname hostsfile",
        "mpirun -n 4 iolab run EXPERIMENT (several hosts are one run under MPI: docs/CLUSTER.md)",
    ),
    none(
        "profile device-names load read-req-num-512-blocks large-block-op-kbytes prep",
        "fio's profiles have no counterpart; 'iolab list' shows the built-in experiments",
    ),
    way("parse-only showcmd", "iolab run EXPERIMENT --dry-run"),
    none(
        "idle-prof trigger trigger-file trigger-timeout trigger-remote",
        "iolab has nothing like it",
    ),
    // Engines of their own.
    none(
        "donorname inplace clustername rbdname clientname conf busy_poll touch_objects \
         rbd_encryption_format rbd_encryption_passphrase pool cont object_class chunk_size \
         skip_bad hdfsdirectory namenode port interface ttl nodelay protocol proto listen pingpong \
         window_size mss verb bindname stat_type uri nfs_url gpu_dev_ids cuda_io rocm_io volume \
         brick http_host http_user http_pass https http_mode http_s3_region http_s3_key \
         http_s3_keyid http_s3_security_token http_s3_sse_customer_key \
         http_s3_sse_customer_algorithm http_s3_storage_class http_swift_auth_token http_verbose \
         http_object_mode libblkio_driver libblkio_path libblkio_pre_connect_props \
         libblkio_num_entries libblkio_queue_size libblkio_pre_start_props libblkio_vectored \
         libblkio_write_zeroes_on_trim libblkio_wait_mode libblkio_force_enable_completion_eventfd \
         xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_dev_subnqn xnvme_mem xnvme_iovec",
        "it belongs to an engine of fio that iolab does not have; 'iolab list --settings' names the backends",
    ),
];

/// The answer for an option of another tool, hyphens and underlines being the same.
pub fn answer(name: &str) -> Option<Answer> {
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    let wanted = plain(name);
    let known = |foreign: &&Foreign| foreign.names().any(|known| plain(known) == wanted);
    FOREIGN.iter().find(known).map(|foreign| foreign.answer)
}

impl Answer {
    /// As a hint says it.
    pub fn hint(self) -> String {
        match self {
            Self::Way(way) => format!("iolab's way: {way}"),
            Self::None(why) => format!("iolab has no counterpart: {why}"),
        }
    }
}

/// The error for a name that is no setting: iolab's way where another tool has it, else the nearest of the settings and
/// of `further` names.
pub fn unknown_setting(name: &str, further: &[&str]) -> Error {
    if let Some(answer) = answer(name) {
        return Error::usage(format!("'{name}' is not a setting of iolab")).hint(answer.hint());
    }
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    unknown("setting", name, &[&known[..], further].concat())
}

/// The error for an option (`--runtime`) that iolab does not have: it is a setting, or an option of another tool; `None`
/// where it is neither.
pub fn unknown_option(option: &str) -> Option<Error> {
    let name = option.trim_start_matches('-');
    let name = name.split('=').next().unwrap_or(name);
    let hint = match Setting::find(&name.replace('-', "_")) {
        Some(setting) => format!("it is a setting: --set {}=VALUE", setting.name),
        None => answer(name)?.hint(),
    };
    Some(Error::usage(format!("'{option}' is not an option of iolab")).hint(hint))
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
                assert_eq!(Setting::find(name), None, "{name} is a setting");
                seen.push(name);
            }
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        let way = answer("cpu-affinity");
        assert!(matches!(way, Some(Answer::Way(way)) if way.contains("cpus=")));
        assert_eq!(answer("cpu_affinity"), way);
        assert_eq!(answer("no_such_option"), None);
        for name in ["bsrange", "slo"] {
            let error = unknown_setting(name, &[]);
            assert!(error.message().contains(name), "{error}");
            assert!(
                error.remedy().is_some_and(|hint| hint.contains("iolab")),
                "{error}"
            );
        }
        let option = unknown_option("--iodepth=8").expect("a setting");
        assert!(
            option
                .remedy()
                .is_some_and(|hint| hint.contains("--set depth="))
        );
        assert!(unknown_option("--cpus_allowed").is_some());
        assert!(unknown_option("--nothing-like-it").is_none());
        let near = unknown_setting("patern", &[]);
        assert!(near.remedy().is_some_and(|hint| hint.contains("pattern")));
    }
}
