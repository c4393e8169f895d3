//! Options by which the requests of a job differ from each other or pause, and where its threads run: sizes, CPUs, nice value,
//! advice, pauses.

use super::{
    Fault, Faults, Options, Read, is_set, number, percentage, refused, short, size, unknown, value,
};
use iolab_workload::system_settings::{Cpus, Placement};
use iolab_workload::trial::{
    Advice, BS_MAX, Backend, BufferMemory, CacheState, FileLayout, NICE, Pattern, SizeMix, Sizes,
    TrialSpec,
};

/// Sizes of random draws, and the alignment of requests.
pub(super) fn sizes(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let mix = faults.or(mix(options, trial.trim_percent == 100), None);
    let Some(mix) = mix else {
        return;
    };
    // A direction that the job does not have has no say.
    let (reads, writes) = match trial.read_percent {
        100 => (&mix.reads, &mix.reads),
        0 => (&mix.writes, &mix.writes),
        _ => (&mix.reads, &mix.writes),
    };
    let used = SizeMix {
        reads: reads.clone(),
        writes: writes.clone(),
    };
    let smallest = [&mix.reads, &mix.writes].map(smallest);
    let starts = match value(options, "ba") {
        Some((name, aligned)) => {
            let of_direction = |number: usize| {
                let text = directions(aligned)[number];
                size(name, text).and_then(|bytes| match bytes {
                    1..=BS_MAX => Ok(bytes),
                    _ => Err(unknown(name, aligned)),
                })
            };
            let given = match trial.trim_percent == 100 {
                true => of_direction(2).map(|trims| [trims; 2]),
                false => of_direction(0).and_then(|reads| Ok([reads, of_direction(1)?])),
            };
            let given = faults.or(given, smallest);
            // fio then keeps no map of visited blocks.
            if trial.pattern == Pattern::Rand && given != smallest {
                trial.pattern = Pattern::RandReplace;
            }
            given
        }
        None => smallest,
    };
    let used = with_starts(trial, used, starts);
    let bs = trial.bs;
    let mut all = used.reads.shares().iter().chain(used.writes.shares());
    if all.any(|share| share.bytes != bs || share.multiples > 1) {
        trial.bs_mix = Some(used);
    }
}

/// Euclid's algorithm.
fn largest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn smallest(sizes: &Sizes) -> u64 {
    let all = sizes.shares().iter().map(|share| share.bytes);
    all.min().unwrap_or_default()
}

/// Gives the directions of a mix the alignment of their reads and writes. Both use the `bs` of the trial if it is the same,
/// and in ordered patterns, whose requests follow each other.
fn with_starts(trial: &mut TrialSpec, used: SizeMix, starts: [u64; 2]) -> SizeMix {
    let [reads, writes] = match trial.read_percent {
        100 => [starts[0]; 2],
        0 => [starts[1]; 2],
        _ => starts,
    };
    let is_ordered = trial.pattern.is_ordered();
    trial.bs = match is_ordered {
        true => reads.min(writes),
        false => largest_divisor(reads, writes),
    };
    let bs = trial.bs;
    let starting = |sizes: Sizes, start: u64| match start == bs || is_ordered {
        true => sizes,
        false => sizes.starting_at(start),
    };
    SizeMix {
        reads: starting(used.reads, reads),
        writes: starting(used.writes, writes),
    }
}

/// `bssplit`, `bsrange`, or a size for each direction; a direction of which the first two say nothing has its `bs`.
fn mix(options: &Options, only_trims: bool) -> Read<Option<SizeMix>> {
    let split = value(options, "bssplit");
    let range = value(options, "bsrange");
    if let (Some((option, _)), Some((other, _))) = (split, range) {
        let message = format!("{option} and {other} in one job");
        return Err(Fault::new(option, message, "give one of them"));
    }
    let (bs_name, bs) = value(options, "bs").unwrap_or(("bs", ""));
    let bs = directions(bs);
    let (name, given) = match split.or(range) {
        Some((name, text)) => (name, directions(text)),
        None if bs.iter().all(|part| *part == bs[0]) => return Ok(None),
        None => (bs_name, [""; 3]),
    };
    let of = |direction: usize| -> Read<String> {
        match (given[direction], split) {
            ("", _) => block(bs_name, bs[direction]).map(|bytes| bytes.to_string()),
            (text, Some(_)) => {
                let parts = text.split(':').map(|part| share(name, text, part));
                Ok(parts.collect::<Read<Vec<String>>>()?.join(","))
            }
            (text, None) => bounded(name, text),
        }
    };
    let mix = match only_trims {
        true => of(2)?,
        false => format!("{}/{}", of(0)?, of(1)?),
    };
    let mix = mix.parse().map_err(|error| Fault::within(name, error));
    mix.map(Some)
}

/// The parts for reads, for writes and for trims; empty if missing. As in fio, one part applies to all of them, and the
/// second of two to trims too.
pub(super) fn directions(text: &str) -> [&str; 3] {
    let mut parts = text.split(',').map(str::trim);
    let reads = parts.next().unwrap_or_default();
    let writes = parts.next().unwrap_or(reads);
    [reads, writes, parts.next().unwrap_or(writes)]
}

/// The block size of a direction, bytes.
pub(super) fn block(name: &'static str, text: &str) -> Read<u64> {
    let bytes = match text {
        "" => 4096,
        text => size(name, text)?,
    };
    match bytes {
        1..=BS_MAX => Ok(bytes),
        _ => Err(unknown(name, text)),
    }
}

/// `4k-64k`.
fn bounded(name: &'static str, text: &str) -> Read<String> {
    let parts = text.split_once(['-', ':']);
    let (first, last) = parts.ok_or_else(|| unknown(name, text))?;
    let (first, last) = (size(name, first.trim())?, size(name, last.trim())?);
    Ok(match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    })
}

/// `64k/30`; without a share `64k` or `64k/`.
fn share(name: &'static str, all: &str, part: &str) -> Read<String> {
    let (bytes, percent) = match part.split_once('/') {
        Some((bytes, percent)) => (bytes, percent.trim()),
        None => (part, ""),
    };
    let bytes = size(name, bytes.trim())?;
    if !(1..=BS_MAX).contains(&bytes) {
        return Err(unknown(name, all));
    }
    Ok(match percent {
        "" => bytes.to_string(),
        percent => format!("{bytes}:{percent}"),
    })
}

/// The CPUs of the threads.
pub(super) fn placement(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    trial.cpus = faults.given(options, "cpus_allowed", |name, list| {
        list.parse::<Cpus>()
            .map_err(|error| Fault::within(name, error))
    });
    let policy = |name, text: &str| match text {
        "shared" => Ok(Placement::Float),
        "split" => Ok(Placement::Packed),
        _ => Err(unknown(name, text)),
    };
    let policy = faults.given(options, "cpus_allowed_policy", policy);
    trial.placement = policy.unwrap_or(Placement::Float);
}

/// Advice, nice value, memory of buffers, compressibility of data, and latency over time.
pub(super) fn flags(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let logs = ["write_lat_log", "write_hist_log"];
    trial.latency_over_time = logs.iter().any(|log| options.contains_key(*log));
    let advice = faults.given(options, "fadvise_hint", |name, text| match text {
        // By default fio gives the advice that fits the pattern.
        "0" | "none" | "1" => Ok(None),
        "sequential" => Ok(Some(Advice::Sequential)),
        "random" => Ok(Some(Advice::Random)),
        "noreuse" => Ok(Some(Advice::NoReuse)),
        _ => Err(unknown(name, text)),
    });
    trial.fadvise = advice.flatten();
    trial.nice = faults.given(options, "nice", |name, text| {
        number(name, text, |nice| NICE.contains(nice))
    });
    let is_direct = trial.cache == CacheState::Direct;
    // A file in hugetlbfs may follow.
    let memory = |name, text: &str| match text.split(':').next() {
        Some("malloc" | "mmap") => Ok(BufferMemory::Kernel),
        Some("mmaphuge" | "shmhuge") if is_direct => Ok(BufferMemory::Contiguous),
        _ => Err(refused(name, text, name)),
    };
    if let Some(memory) = faults.given(options, "mem", memory) {
        trial.buffer_memory = memory;
    }
    // A stage that only reads has no data of its own.
    if trial.writes_data() {
        let percent = faults.given(options, "buffer_compress_percentage", percentage);
        trial.compressible = match is_set(options, "zero_buffers") {
            true => 100,
            false => percent.unwrap_or(trial.compressible),
        };
    }
}

/// Refuses memory that is taken from the page cache if a job uses that.
pub(super) fn check_lockmem(options: &Options, trial: &TrialSpec, faults: &mut Faults) {
    faults.given(options, "lockmem", |option, text| match size(option, text)? {
        0 => Ok(()),
        _ if trial.cache == CacheState::Direct => Ok(()),
        _ => Err(Fault::new(
            option,
            format!(
                "{option}={} with buffered I/O, of which it leaves less memory to the page cache",
                short(text)
            ),
            "limit the memory of a run: systemd-run --scope -p MemoryMax=1G iolab run JOB.fio",
        )),
    });
}

/// Pauses after each request.
pub(super) fn pauses(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let think = faults.given(options, "thinktime", super::micros);
    trial.thinktime = think.filter(|think| !think.is_zero());
}

/// Reports every pair of options of a job that exclude each other. Other faults of a job do not hide these, as they hide the
/// checks of its cell.
pub(super) fn check(options: &Options, trial: &TrialSpec, faults: &mut Faults) {
    let trims = trial.trims();
    if trial.verify && trims {
        let hint = "trimmed blocks hold nothing to verify: leave out one of the two";
        name(options, ("verify", "rw"), hint, faults);
    }
    if trial.verify && trial.writes_data() && trial.layout == FileLayout::Private {
        let several = ["offset_increment", "numjobs"];
        let several = several.into_iter().find(|name| options.contains_key(*name));
        let hint = "iolab reads back what is written from one file, and not from one of each thread: give filename, or leave verify out";
        name(
            options,
            ("verify", several.unwrap_or("numjobs")),
            hint,
            faults,
        );
    }
    let has_no_trims = matches!(
        trial.backend,
        Backend::Libaio | Backend::IoUring | Backend::Mmap
    );
    if trims && has_no_trims {
        let hint = "iolab trims with ioengine=psync, pvsync2 or sync: give one of them, and a larger numjobs for more at a time";
        name(options, ("rw", "ioengine"), hint, faults);
    }
}

/// Names two options as they are given, at the first of them.
fn name(
    options: &Options,
    (option, other): (&'static str, &'static str),
    hint: &str,
    faults: &mut Faults,
) {
    let given = |name: &'static str| {
        let (name, text) = value(options, name)?;
        Some((name, format!("{name}={}", short(text))))
    };
    let Some(((option, first), (_, second))) = given(option).zip(given(other)) else {
        return;
    };
    let fault = Fault::new(option, format!("{first} with {second}"), hint);
    faults.0.push(fault);
}
