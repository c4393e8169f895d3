//! Options by which the requests of a job differ from each other or pause, and where its threads run: sizes, CPUs, NUMA node,
//! priorities, hints, pauses.

use std::time::Duration;

use iolab_workload::Error;
use iolab_workload::cpus::{Cpus, Placement};
use iolab_workload::trial::{
    Advice, BS_MAX, Bursts, CacheState, IoPriority, NICE, PRIORITY_LEVEL_MAX, Pattern, SizeMix,
    Sizes, TrialSpec, WriteHint,
};

use super::{Fault, Faults, Options, Read, is_set, refused, short, size, unknown, value};

/// Sizes that requests are drawn from, and what they begin at multiples of.
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

/// Gives the directions of a mix what their requests start at multiples of, of reads and of writes: both have the `bs` of the trial where it is the
/// same, and in ordered patterns, whose requests follow each other.
fn with_starts(trial: &mut TrialSpec, used: SizeMix, starts: [u64; 2]) -> SizeMix {
    let [reads, writes] = match trial.read_percent {
        100 => [starts[0]; 2],
        0 => [starts[1]; 2],
        _ => starts,
    };
    let is_ordered = matches!(
        trial.pattern,
        Pattern::Seq | Pattern::Strided | Pattern::Reverse
    );
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
        let error = Error::usage(format!("{option} and {other} in one job"));
        return Err(Fault {
            option,
            error: error.hint("give one of them"),
        });
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
    parsed(name, &mix).map(Some)
}

/// What is said of reads, of writes and of trims; empty where nothing is. As in fio, one part holds for all of them, and the
/// second of two for trims too.
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

fn parsed(option: &'static str, mix: &str) -> Read<SizeMix> {
    mix.parse().map_err(|error| Fault::within(option, error))
}

/// The CPUs of the threads, and the NUMA node of their memory.
pub(super) fn placement(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    if let Some((name, list)) = value(options, "cpus_allowed") {
        let cpus = list.parse::<Cpus>();
        let cpus = cpus.map_err(|error| Fault::within(name, error));
        trial.cpus = faults.or(cpus.map(Some), None);
    }
    trial.placement = match value(options, "cpus_allowed_policy") {
        None | Some((_, "shared")) => Placement::Float,
        Some((_, "split")) => Placement::Packed,
        Some((name, text)) => faults.or(Err(unknown(name, text)), Placement::Float),
    };
    if let Some((name, policy)) = value(options, "numa_mem_policy") {
        let node = policy.strip_prefix("bind:").map(str::parse::<u32>);
        match (policy, node) {
            ("default" | "local", _) => {}
            (_, Some(Ok(node))) => trial.memory_node = Some(node),
            _ => faults.or(Err(refused(name, policy, name)), ()),
        }
    }
}

/// Flags, advice, priority, what the data is like, and what is kept over time.
pub(super) fn flags(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let logs = ["write_lat_log", "write_hist_log"];
    trial.latency_over_time = logs.iter().any(|log| options.contains_key(*log));
    trial.dontcache = is_set(options, "uncached");
    // What only reads leaves no data that lives for a time.
    trial.write_hint = match value(options, "write_hint").filter(|_| trial.writes_data()) {
        None => None,
        Some((_, "none")) => Some(WriteHint::Unspecific),
        Some((name, text)) => {
            let hint = text.parse().map(Some).map_err(|_| unknown(name, text));
            faults.or(hint, None)
        }
    };
    trial.atomic = is_set(options, "atomic");
    trial.fadvise = match value(options, "fadvise_hint") {
        // By itself fio advises what fits the pattern.
        None | Some((_, "0" | "none" | "1")) => None,
        Some((_, "sequential")) => Some(Advice::Sequential),
        Some((_, "random")) => Some(Advice::Random),
        Some((_, "noreuse")) => Some(Advice::NoReuse),
        Some((name, text)) => faults.or(Err(unknown(name, text)), None),
    };
    trial.ioprio = faults.or(priority(options), None);
    if let Some((name, text)) = value(options, "nice") {
        let nice = text.parse().ok().filter(|nice| NICE.contains(nice));
        trial.nice = faults.or(nice.ok_or_else(|| unknown(name, text)).map(Some), None);
    }
    let writes = trial.writes_data();
    for (name, place) in [
        ("buffer_compress_percentage", &mut trial.compressible),
        ("dedupe_percentage", &mut trial.dedup),
    ] {
        // A stage that only reads has no data of its own.
        if let Some((name, text)) = value(options, name).filter(|_| writes) {
            let percent = text.parse::<u8>().ok().filter(|percent| *percent <= 100);
            *place = faults.or(percent.ok_or_else(|| unknown(name, text)), 0);
        }
    }
    trial.dedup_set = faults.or(repeated(options, trial), None);
}

/// How much data repeats, in percent of the region; `None` for that of one block. fio counts it from the size of one clone, also where
/// all clones have the same set.
fn repeated(options: &Options, trial: &TrialSpec) -> Read<Option<u8>> {
    /// What fio takes without a number.
    const USUAL: u8 = 5;
    let clones = match is_set(options, "dedupe_global") {
        true => trial.threads.max(1),
        false => 1,
    };
    let of_all = |percent: u8| {
        let percent = f64::from(percent) / f64::from(clones);
        Some((percent.round() as u8).max(1))
    };
    match value(options, "dedupe_mode") {
        None | Some((_, "repeat")) => Ok(None),
        Some((_, "working_set")) if trial.dedup == 0 => Ok(None),
        Some((_, "working_set")) => match value(options, "dedupe_working_set_percentage") {
            None => Ok(of_all(USUAL)),
            Some((name, text)) => {
                let percent = text.parse::<u8>().ok();
                let percent = percent.filter(|percent| (1..=100).contains(percent));
                percent.map(of_all).ok_or_else(|| unknown(name, text))
            }
        },
        Some((name, text)) => Err(unknown(name, text)),
    }
}

fn priority(options: &Options) -> Read<Option<IoPriority>> {
    let class = value(options, "prioclass");
    let level = match value(options, "prio") {
        None => 4,
        Some((name, text)) => {
            let level = text.parse::<u8>().ok();
            let level = level.filter(|level| *level <= PRIORITY_LEVEL_MAX);
            level.ok_or_else(|| unknown(name, text))?
        }
    };
    Ok(match class {
        None => options
            .contains_key("prio")
            .then_some(IoPriority::BestEffort(level)),
        Some((_, "0")) => None,
        Some((_, "1")) => Some(IoPriority::RealTime(level)),
        Some((_, "2")) => Some(IoPriority::BestEffort(level)),
        Some((_, "3")) => Some(IoPriority::Idle),
        Some((name, text)) => return Err(unknown(name, text)),
    })
}

/// Refuses memory that is taken from the page cache where a job uses that.
pub(super) fn check_lockmem(options: &Options, trial: &TrialSpec, faults: &mut Faults) {
    let Some((option, text)) = value(options, "lockmem") else {
        return;
    };
    match size(option, text) {
        Ok(0) => {}
        Ok(_) if trial.cache == CacheState::Direct => {}
        Ok(_) => {
            let error = Error::usage(format!(
                "{option}={} with buffered I/O, of which it leaves less memory to the page cache",
                short(text)
            ));
            let hint =
                "limit the memory of a run: systemd-run --scope -p MemoryMax=1G iolab run JOB.fio";
            faults.or(
                Err(Fault {
                    option,
                    error: error.hint(hint),
                }),
                (),
            );
        }
        Err(fault) => faults.or(Err(fault), ()),
    }
}

/// Pauses after requests, or between bursts.
pub(super) fn pauses(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let spin = value(options, "thinktime_spin");
    let spin =
        spin.map(|(name, text)| (name, text, faults.or(time(name, text, 1), Duration::ZERO)));
    let spin = spin.filter(|(.., time)| !time.is_zero());
    let Some((name, think)) = value(options, "thinktime") else {
        return;
    };
    // Without a unit it is in microseconds.
    let think = faults.or(time(name, think, 1), Duration::ZERO);
    if think.is_zero() {
        return;
    }
    if let Some((name, on)) = value(options, "thinktime_iotime") {
        let on = faults.or(time(name, on, 1_000_000), Duration::ZERO);
        if !on.is_zero() {
            trial.bursts = Some(Bursts { on, off: think });
            if let Some((name, text, _)) = spin {
                faults.or(Err(refused(name, text, name)), ());
            }
            return;
        }
    }
    trial.thinktime = Some(think);
    // fio sleeps for what is left of a pause, which can be nothing.
    trial.thinktime_spin = spin.map_or(Duration::ZERO, |(.., time)| time.min(think));
    let every = match value(options, "thinktime_blocks") {
        None => Ok(1),
        Some((name, text)) => match text.parse() {
            Ok(0) => Ok(1),
            Ok(every) => Ok(every),
            Err(_) => Err(unknown(name, text)),
        },
    };
    trial.thinktime_every = faults.or(every, 1);
}

/// A time whose bare numbers are so many microseconds each.
pub(super) fn time(name: &'static str, given: &str, bare_us: u64) -> Read<Duration> {
    match given.trim().parse::<u64>() {
        Ok(number) => number
            .checked_mul(bare_us)
            .map(Duration::from_micros)
            .ok_or_else(|| unknown(name, given)),
        Err(_) => super::duration(name, given),
    }
}
