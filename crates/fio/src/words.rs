//! A trial in the words of fio's command line: options that no machine decides, each as `--NAME` or `--NAME=VALUE`.

use iolab_workload::trial::{
    Backend, CacheState, FileLayout, Pattern, Sizes, SyncPolicy, TrialSpec, share,
};

/// The settings common to all workers.
pub fn common(spec: &TrialSpec) -> Vec<String> {
    let mut words = vec![
        "--allow_file_create=0".to_owned(),
        "--fallocate=none".to_owned(),
        "--thread".to_owned(),
        "--group_reporting".to_owned(),
        format!("--ioengine={}", spec.backend),
        format!("--rw={}", order(spec)),
        format!("--iodepth={}", spec.depth),
        format!("--direct={}", u8::from(spec.cache == CacheState::Direct)),
        // iolab has brought the page cache into its state, and gives no advice.
        "--invalidate=0".to_owned(),
        match spec.fadvise {
            Some(advice) => format!("--fadvise_hint={advice}"),
            None => "--fadvise_hint=0".to_owned(),
        },
        // Without this fio takes the same offsets in every trial and ignores the seed (fixed after 3.33).
        "--randrepeat=0".to_owned(),
        format!("--randseed={}", spec.seed),
    ];
    words.extend(choices(spec).into_iter().map(str::to_owned));
    words.extend(sizes_and_pauses(spec));
    let every = spec.sync_every;
    match spec.sync {
        SyncPolicy::Each => words.push(format!("--fsync={every}")),
        SyncPolicy::Fdatasync => words.push(format!("--fdatasync={every}")),
        _ => {}
    }
    let wait = spec.batch.wait_for(spec.depth);
    if wait > 1 {
        words.push(format!("--iodepth_batch={wait}"));
        words.push(format!("--iodepth_batch_complete_min={wait}"));
    }
    match spec.pattern {
        Pattern::Zipf(_) | Pattern::Pareto(_) | Pattern::Normal(_) => {
            words.push(format!("--random_distribution={}", spec.pattern));
        }
        Pattern::Zoned(zones) => words.push(format!("--random_distribution=zoned:{zones}")),
        Pattern::Seq
        | Pattern::Strided
        | Pattern::Reverse
        | Pattern::Rand
        | Pattern::RandReplace => {}
    }
    if spec.reads() && spec.writes() {
        words.push(format!("--rwmixread={}", spec.read_percent));
    }
    if let Some(time) = spec.limit.time {
        words.push(format!("--runtime={}us", time.as_micros()));
        if spec.requests_bound().is_none() {
            words.push("--time_based".to_owned());
        }
    }
    words
}

/// Sizes of requests, their data, and pauses of threads.
fn sizes_and_pauses(spec: &TrialSpec) -> Vec<String> {
    let mut words = Vec::new();
    match &spec.bs_mix {
        None => words.push(format!("--bs={}", spec.bs)),
        Some(mix) => {
            let split = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}/{}", share.bytes, share.percent));
                shares.collect::<Vec<_>>().join(":")
            };
            let range = |sizes: &Sizes| {
                let shares = sizes.shares().iter();
                let shares = shares.map(|share| format!("{}-{}", share.bytes, share.largest()));
                shares.collect::<String>()
            };
            words.push(match mix.has_ranges() {
                true => format!("--bsrange={},{}", range(&mix.reads), range(&mix.writes)),
                false => format!("--bssplit={},{}", split(&mix.reads), split(&mix.writes)),
            });
            let starts = [&mix.reads, &mix.writes].map(|sizes| sizes.start().unwrap_or(spec.bs));
            words.push(match starts {
                [reads, writes] if reads != writes => format!("--blockalign={reads},{writes}"),
                [both, _] => format!("--blockalign={both}"),
            });
        }
    }
    if (1..100).contains(&spec.compressible) {
        words.push(format!(
            "--buffer_compress_percentage={}",
            spec.compressible
        ));
    }
    if let Some(think) = spec.thinktime {
        words.push(format!("--thinktime={}us", think.as_micros()));
    }
    words
}

/// Options that a trial gives or leaves out.
fn choices(spec: &TrialSpec) -> Vec<&'static str> {
    let ring = spec.backend == Backend::IoUring;
    let choices = [
        (spec.pattern.shares_region(), "--norandommap"),
        (
            spec.sync == SyncPolicy::End && spec.writes(),
            "--end_fsync=1",
        ),
        (spec.sync == SyncPolicy::Osync, "--sync=sync"),
        (spec.sync == SyncPolicy::Odsync, "--sync=dsync"),
        (spec.compressible == 100, "--zero_buffers"),
        (ring, "--fixedbufs"),
        (ring, "--registerfiles"),
        (ring && spec.sqpoll, "--sqthread_poll"),
        (spec.iopoll && spec.backend != Backend::Null, "--hipri"),
        (spec.latency, "--lat_percentiles=1"),
        (spec.latency, "--clat_percentiles=0"),
        (!spec.latency, "--gtod_reduce=1"),
    ];
    let given = choices.into_iter().filter(|(given, _)| *given);
    given.map(|(_, word)| word).collect()
}

/// `rw`: order and direction.
fn order(spec: &TrialSpec) -> String {
    let direction = match (spec.reads(), spec.writes()) {
        (true, false) => "read",
        (false, true) if !spec.writes_data() => "trim",
        (false, true) => "write",
        _ => "rw",
    };
    match spec.pattern {
        Pattern::Seq => direction.to_owned(),
        // From the end of a block back over it and the one before.
        Pattern::Reverse => format!("{direction}:-{}", 2 * spec.bs),
        Pattern::Strided => format!("{direction}:{}", spec.skip),
        Pattern::Rand
        | Pattern::RandReplace
        | Pattern::Zipf(_)
        | Pattern::Pareto(_)
        | Pattern::Normal(_)
        | Pattern::Zoned(_) => format!("rand{direction}"),
    }
}

/// The job of one worker: its part of the region, and its requests.
///
/// # Errors
/// A setting that fio has no words for.
pub fn own(spec: &TrialSpec, worker: u32) -> Result<Vec<String>, String> {
    let blocks = spec.region / spec.bs;
    let (first, count) = match spec.layout {
        FileLayout::Private => (0, spec.private_bytes(worker) / spec.bs),
        FileLayout::Overlapping => (0, blocks),
        _ if spec.pattern.shares_region() => (0, blocks),
        _ => share(blocks, worker, spec.threads),
    };
    let mut words = vec![
        format!("--offset={}", spec.offset + first * spec.bs),
        format!("--size={}", count * spec.bs),
    ];
    if let Some(bytes) = spec.bytes_bound() {
        words.push(format!(
            "--io_size={}",
            share(bytes, worker, spec.threads).1
        ));
    } else if let Some(bound) = spec.requests_bound() {
        let requests = share(bound, worker, spec.threads).1;
        if requests == 0 {
            return Err(
                "it has no worker that makes no request, and there are fewer requests than workers"
                    .to_owned(),
            );
        }
        words.push(format!("--io_size={}", requests * spec.bs));
    }
    Ok(words)
}
