//! fio's options: what iolab makes of each.

/// What an option of a job does to the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It decides these settings.
    Decides(&'static [&'static str]),
    /// It asks something of the run; what.
    Asks(&'static str),
    /// It names where the job works.
    Target,
    /// It changes nothing that is measured, or iolab always does it; the reason.
    Idle(&'static str),
}

/// An option that is understood.
#[derive(Debug)]
pub(super) struct Known {
    /// Its names.
    pub(super) names: &'static [&'static str],
    /// Whether it has a meaning without a value.
    pub(super) is_flag: bool,
    /// The values that it may have, where iolab can do no other; empty where it takes any or its reader says.
    pub(super) only: &'static [&'static str],
    /// What it does.
    pub(super) effect: Effect,
}

const fn decides(names: &'static [&'static str], settings: &'static [&'static str]) -> Known {
    Known {
        names,
        is_flag: false,
        only: &[],
        effect: Effect::Decides(settings),
    }
}

const fn flag(names: &'static [&'static str], settings: &'static [&'static str]) -> Known {
    Known {
        is_flag: true,
        ..decides(names, settings)
    }
}

const fn target(names: &'static [&'static str]) -> Known {
    Known {
        names,
        is_flag: false,
        only: &[],
        effect: Effect::Target,
    }
}

const fn asks(names: &'static [&'static str], what: &'static str) -> Known {
    Known {
        names,
        is_flag: false,
        only: &[],
        effect: Effect::Asks(what),
    }
}

const fn idle(names: &'static [&'static str], why: &'static str) -> Known {
    Known {
        names,
        is_flag: true,
        only: &[],
        effect: Effect::Idle(why),
    }
}

const fn only(
    names: &'static [&'static str],
    values: &'static [&'static str],
    why: &'static str,
) -> Known {
    Known {
        only: values,
        ..idle(names, why)
    }
}

const LOGGED: &str = "each trial is kept over time: iolab export --series";
const LATENCIES: &str = "all latencies are kept: iolab export --histogram";
const SCRATCH: &str = "iolab makes its scratch file before the trials and removes it after them";

/// Every option that is understood.
pub(super) static KNOWN: &[Known] = &[
    decides(
        &["rw", "readwrite"],
        &["pattern", "read_percent", "skip", "trim_percent"],
    ),
    decides(&["rwmixread", "rwmixwrite"], &["read_percent"]),
    decides(
        &[
            "bs",
            "blocksize",
            "bsrange",
            "blocksize_range",
            "ba",
            "blockalign",
        ],
        &["bs", "bs_mix"],
    ),
    decides(&["bssplit"], &["bs", "bs_mix"]),
    decides(
        &[
            "thinktime",
            "thinktime_blocks",
            "thinktime_iotime",
            "thinktime_spin",
        ],
        &["thinktime", "thinktime_every", "bursts"],
    ),
    only(
        &["thinktime_blocks_type"],
        &["complete", "issue"],
        "a pause begins once the requests before it have completed",
    ),
    flag(&["uncached"], &["dontcache"]),
    flag(&["atomic"], &["atomic"]),
    decides(&["fadvise_hint"], &["fadvise"]),
    decides(&["prio", "prioclass"], &["ioprio"]),
    decides(&["buffer_compress_percentage"], &["compressible"]),
    decides(&["dedupe_percentage"], &["dedup"]),
    idle(
        &["buffer_compress_chunk"],
        "what can be compressed lies in one piece of every 4 KiB",
    ),
    only(
        &["dedupe_mode"],
        &["repeat"],
        "data repeats that of one block",
    ),
    decides(&["cpus_allowed"], &["cpus"]),
    decides(&["cpus_allowed_policy"], &["placement"]),
    decides(&["numa_mem_policy"], &["memory_node"]),
    decides(&["size", "filesize"], &["region", "bytes"]),
    decides(&["io_size", "io_limit", "loops"], &["bytes"]),
    decides(&["number_ios"], &["requests"]),
    decides(&["offset"], &["offset"]),
    decides(&["offset_increment"], &["layout", "region"]),
    decides(&["numjobs"], &["threads", "layout"]),
    decides(&["iodepth"], &["depth"]),
    decides(
        &[
            "iodepth_batch",
            "iodepth_batch_submit",
            "iodepth_batch_complete",
            "iodepth_batch_complete_min",
        ],
        &["batch"],
    ),
    flag(
        &["direct", "buffered", "invalidate", "pre_read"],
        &["cache"],
    ),
    decides(&["ioengine"], &["backend"]),
    decides(&["sync", "fsync", "fdatasync"], &["sync", "sync_every"]),
    flag(&["end_fsync", "fsync_on_close"], &["sync"]),
    decides(&["runtime", "timeout"], &["time"]),
    flag(&["time_based"], &["time", "bytes"]),
    flag(&["norandommap"], &["pattern"]),
    decides(&["random_distribution"], &["pattern"]),
    flag(
        &["zero_buffers", "refill_buffers", "scramble_buffers"],
        &["content"],
    ),
    flag(&["gtod_reduce", "disable_lat"], &["latency"]),
    decides(&["rate", "rate_iops"], &["rate"]),
    idle(
        &["ratemin", "rate_iops_min", "ratecycle", "rate_cycle"],
        "a rate that is not held is flagged, and ends no trial",
    ),
    decides(&["rate_process"], &["arrivals"]),
    decides(&["startdelay", "start_delay"], &["start_delay"]),
    flag(&["hipri"], &["iopoll"]),
    flag(&["sqthread_poll"], &["sqpoll"]),
    flag(&["fixedbufs", "registerfiles"], &["registered"]),
    decides(&["verify"], &["verify"]),
    flag(&["do_verify"], &["verify"]),
    target(&["filename", "directory"]),
    idle(&["name", "description"], "a text"),
    idle(
        &[
            "group_reporting",
            "new_group",
            "per_job_logs",
            "unified_rw_reporting",
            "stats",
            "significant_figures",
            "unit_base",
        ],
        "a cell is always reported as a whole",
    ),
    only(
        &["thread", "threads"],
        &["0", "1"],
        "iolab's workers are threads",
    ),
    idle(
        &["stonewall", "wait_for_previous", "wait_for"],
        "cells run one after the other",
    ),
    flag(&["exitall", "exit_what"], &["ends_trial"]),
    idle(&["exitall_on_error"], "a trial ends at its first error"),
    decides(&["flow"], &["flow"]),
    idle(
        &["flow_id"],
        "jobs that run side by side share one flow of requests",
    ),
    idle(
        &["flow_sleep"],
        "a group that is ahead of its share looks again every 100 us",
    ),
    decides(
        &["zonemode", "zonesize", "zonerange", "zoneskip"],
        &["pattern", "skip_every", "skip"],
    ),
    asks(
        &["latency_target", "latency_percentile", "latency_window"],
        "the run says at which depths, from 1 to iodepth, this level of latency holds (depth, time, hold)",
    ),
    idle(&["latency_run"], "trials are repeated anyway"),
    idle(&["ramp_time"], "the first trial of every cell is a warm-up"),
    idle(
        &["randrepeat", "allrandrepeat", "randseed"],
        "--seed gives the offsets; the same seed gives the same",
    ),
    idle(
        &["random_generator", "softrandommap"],
        "iolab's random order needs no map in memory",
    ),
    idle(
        &[
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "allow_file_create",
            "fallocate",
            "overwrite",
            "unlink",
            "unlink_each_loop",
            "openfiles",
            "file_service_type",
        ],
        SCRATCH,
    ),
    idle(
        &["io_submit_mode"],
        "at a given rate requests do not wait for earlier ones",
    ),
    idle(
        &[
            "disable_slat",
            "disable_clat",
            "disable_bw",
            "disable_bw_measurement",
            "disk_util",
            "bwavgtime",
            "iopsavgtime",
        ],
        "iolab counts outside the timed loop",
    ),
    idle(
        &["clocksource"],
        "iolab calibrates its clock and records which it is",
    ),
    idle(
        &[
            "clat_percentiles",
            "lat_percentiles",
            "slat_percentiles",
            "percentile_list",
        ],
        LATENCIES,
    ),
    idle(
        &[
            "write_bw_log",
            "write_lat_log",
            "write_iops_log",
            "write_hist_log",
            "log_avg_msec",
            "log_hist_msec",
            "log_hist_coarseness",
            "log_window_value",
            "log_max_value",
            "log_offset",
            "log_entries",
            "log_compression",
            "log_store_compressed",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_issue_time",
        ],
        LOGGED,
    ),
    idle(
        &["verify_fatal", "verify_dump", "verify_async"],
        "all that was written is checked after each trial, and every fault is reported",
    ),
    only(&["nrfiles"], &["1"], "a trial uses one file"),
    only(&["kb_base"], &["1024"], "sizes are binary"),
    only(
        &["mem", "iomem"],
        &["malloc", "mmap"],
        "buffers are small pages that were touched",
    ),
];

/// The option of a name.
pub(super) fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_spec::settings::Setting;

    #[test]
    fn every_option_stands_once_and_decides_settings_that_there_are() {
        let mut seen: Vec<&str> = Vec::new();
        for known in KNOWN {
            for name in known.names {
                assert!(!seen.contains(name), "{name} twice");
                seen.push(name);
            }
            if let Effect::Decides(settings) = known.effect {
                for setting in settings {
                    assert!(Setting::find(setting).is_some(), "{setting}");
                }
            }
        }
    }
}
