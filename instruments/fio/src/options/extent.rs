//! Extent of a job: the amount of its work, its part of the file, its end, and its rate.

use iolab_workload::trial::{Arrivals, FileLayout, Pattern, Rate, TrialSpec};
use iolab_workload::units::exact_size;

use super::{
    Fault, Faults, Options, Read, count, duration, is_set, number, percentage, short, size,
    unknown, value,
};

/// The size of the file of a job.
#[derive(Clone, Copy)]
pub(crate) struct FileSize {
    /// Size of an existing file or device, bytes; `None` if there is none, or it is not examined.
    pub known: Option<u64>,
    /// Size for a job without one, bytes.
    pub otherwise: u64,
}

/// Bytes, or a share of a file.
enum Amount {
    Bytes(u64),
    Percent(u64),
}

impl Amount {
    fn parse(name: &'static str, text: &str) -> Read<Self> {
        let Some(percent) = text.strip_suffix('%') else {
            return size(name, text).map(Self::Bytes);
        };
        let percent = percentage(name, percent.trim()).map_err(|_| unknown(name, text))?;
        Ok(Self::Percent(percent.into()))
    }

    /// The bytes, for a file of `file` bytes.
    fn of(self, name: &'static str, file: Option<u64>) -> Read<u64> {
        match (self, file) {
            (Self::Bytes(bytes), _) => Ok(bytes),
            (Self::Percent(percent), Some(file)) => {
                let bytes = u128::from(file) * u128::from(percent) / 100;
                Ok(bytes.try_into().unwrap_or(u64::MAX))
            }
            (Self::Percent(percent), None) => {
                let message = format!("{name}={percent}% of a file of unknown size");
                let hint = "give filesize, or a file or device that is there as TARGET";
                Err(Fault::new(name, message, hint))
            }
        }
    }
}

/// `filesize`, if it is one size.
fn file_size(name: &'static str, text: &str) -> Read<u64> {
    if text.contains(['-', ':']) {
        let message = format!("{name}={}: files of different sizes", short(text));
        return Err(Fault::new(
            name,
            message,
            "a job has one file: give one size",
        ));
    }
    size(name, text)
}

/// The part of the file that a job visits.
struct Extent {
    /// Start, bytes.
    offset: u64,
    /// Distance between the starts of two clones, bytes.
    increment: Option<u64>,
    /// The given size, or the rest of a file of known size after the offset, bytes.
    sized: Option<u64>,
    /// The size, or the default for a job without a size, bytes.
    given: u64,
    /// The part of `given` in whole requests, bytes.
    own: u64,
    /// Bytes that one clone transfers in one loop.
    transferred: u64,
}

impl Extent {
    fn read(options: &Options, trial: &TrialSpec, size: FileSize, faults: &mut Faults) -> Self {
        let file = faults.given(options, "filesize", file_size);
        let whole = file.or(size.known);
        let bs = trial.bs;
        let mut bytes_of = |name: &'static str, of: Option<u64>, share: fn(u64, u64) -> u64| {
            let (name, text) = value(options, name)?;
            let amount = Amount::parse(name, text);
            let is_share = matches!(amount, Ok(Amount::Percent(_)));
            let bytes = amount.and_then(|amount| amount.of(name, of));
            let bytes = faults.or(bytes, size.otherwise);
            Some(if is_share {
                share(bytes, bs.max(1))
            } else {
                bytes
            })
        };
        // fio makes shares whole blocks: where a job begins the next one, how far it goes the one before.
        let up = |bytes: u64, bs: u64| bytes.div_ceil(bs).saturating_mul(bs);
        let down = |bytes: u64, bs: u64| bytes - bytes % bs;
        let offset = bytes_of("offset", whole, up).unwrap_or(0);
        let increment = bytes_of("offset_increment", whole, up).filter(|bytes| *bytes > 0);
        // In a file of a given size, the job goes from its offset to the end.
        let rest = |file: u64| file.saturating_sub(offset);
        let is_share = value(options, "size").is_some_and(|(_, text)| text.ends_with('%'));
        // A filled target has no other size.
        let fills = value(options, "fill_device").is_some_and(|(_, text)| text != "0");
        let sized = bytes_of("size", whole, down).filter(|_| !fills);
        let sized = match is_share {
            true => sized.map(|bytes| bytes.min(whole.map_or(u64::MAX, rest))),
            // 0 is all of the file, as without a size.
            false => sized.filter(|bytes| *bytes > 0).or(file.map(rest)),
        };
        let given = sized.unwrap_or(size.otherwise);
        let transferred =
            bytes_of("io_size", Some(given), |bytes, _| bytes).filter(|bytes| *bytes > 0);
        // Requests of one size do not begin after the last whole block.
        let own = match trial.bs_mix {
            None if given >= bs => down(given, bs.max(1)),
            _ => given,
        };
        let transferred = transferred.map_or(own, |bytes| match trial.bs_mix {
            None => last_request(bytes, own, bs.max(1)),
            Some(_) => bytes,
        });
        Self {
            offset,
            increment,
            sized,
            given,
            own,
            transferred,
        }
    }
}

/// The region, its division among workers, and the end of the job.
pub(super) fn bounds(
    options: &Options,
    trial: &mut TrialSpec,
    size: FileSize,
    faults: &mut Faults,
) {
    let extent = Extent::read(options, trial, size, faults);
    limit(options, trial, &extent, faults);
    trial.offset = extent.offset;
    let shares = shares(options, trial, &extent);
    (trial.layout, trial.region) = faults.or(shares, (FileLayout::Shared, extent.own));
    if extent.sized.is_some_and(|bytes| bytes < trial.bs) {
        let option = value(options, "size")
            .or_else(|| value(options, "filesize"))
            .map_or("size", |(name, _)| name);
        let (bytes, bs) = (exact_size(extent.given), exact_size(trial.bs));
        let message = format!("{bytes} of the file are smaller than a block of {bs}");
        let fault = Fault::new(option, message, "give a larger size, or a smaller bs");
        faults.0.push(fault);
    }
    trial.region = trial.region.max(trial.bs);
}

/// Sets the limits of the trial.
fn limit(options: &Options, trial: &mut TrialSpec, extent: &Extent, faults: &mut Faults) {
    let loops = faults.or(count(options, "loops", u32::MAX), 1);
    let threads = u64::from(trial.threads);
    let of_all = |bytes: u64| bytes.saturating_mul(threads);
    let time = faults.given(options, "runtime", duration);
    trial.limit.time = time.filter(|time| !time.is_zero());
    // Without a time fio reports this option, and runs as if it was not given.
    let time_based = is_set(options, "time_based") && trial.limit.time.is_some();
    let of_one = extent.transferred.saturating_mul(u64::from(loops));
    let bytes = of_all(of_one);
    // A run file keeps its numbers signed.
    let bytes = bytes.min(i64::MAX as u64);
    trial.limit.bytes = (!time_based && bytes > 0).then_some(bytes);
    let requests = |name, text: &str| number::<u64>(name, text, |_| true);
    if let Some(requests) = faults.given(options, "number_ios", requests) {
        let requests = requests.saturating_mul(u64::from(loops));
        // A job that its time ends does not look at them.
        let bytes = of_all(requests).saturating_mul(trial.bs);
        if !time_based && bytes > 0 {
            let least = trial.limit.bytes.map_or(bytes, |other| other.min(bytes));
            trial.limit.bytes = Some(least.min(i64::MAX as u64));
        }
    }
    if trial.pattern == Pattern::Strided {
        let pass = one_pass(extent.own, trial.bs, trial.skip);
        let pass = of_all(pass);
        trial.limit.bytes = trial.limit.bytes.map(|bytes| bytes.min(pass));
    }
}

/// Division of the region among workers, and its length.
fn shares(options: &Options, trial: &TrialSpec, extent: &Extent) -> Read<(FileLayout, u64)> {
    let own = extent.own;
    let all = own.saturating_mul(u64::from(trial.threads));
    let shared = options.contains_key("filename");
    let shares_region = trial.pattern.shares_region();
    let step = match extent.increment {
        _ if trial.threads == 1 => return Ok((FileLayout::Shared, own)),
        // A file in a directory is each clone's own. With offset_increment each has as many bytes of its own file, further back.
        _ if !shared => return Ok((FileLayout::Private, all)),
        None if shares_region => return Ok((FileLayout::Shared, own)),
        None => return Ok((FileLayout::Overlapping, own)),
        Some(step) if step == extent.given && !shares_region => {
            return Ok((FileLayout::Shared, all));
        }
        Some(step) => step,
    };
    let option = "offset_increment";
    let is_in_percent = |name| value(options, name).is_some_and(|(_, text)| text.contains('%'));
    let (message, hint) = if ["size", "offset", option].into_iter().any(is_in_percent) {
        (
            "clones with offset_increment, and a range in percent".to_owned(),
            "give size, offset and offset_increment in bytes",
        )
    } else if step == extent.given {
        (
            format!(
                "clones with offset_increment, and pattern {}",
                trial.pattern
            ),
            "threads of one job draw from all of its region with this pattern: make the clones jobs of their own, each with its offset",
        )
    } else {
        (
            format!("offset_increment={step} is not the size of a job"),
            "with offset_increment=SIZE each thread has a share of the file; without it each goes over all of it",
        )
    };
    Err(Fault::new(option, message, hint))
}

/// The bytes that fio transfers for `bytes` bytes (`io_size`). It begins a request while some are left, but no further pass
/// over its `own` whole blocks for less than a block.
fn last_request(bytes: u64, own: u64, bs: u64) -> u64 {
    let whole = bytes - bytes % bs;
    match whole > 0 && own > 0 && whole.is_multiple_of(own) {
        true => whole,
        false => bytes.div_ceil(bs).saturating_mul(bs),
    }
}

/// The bytes that a pass visits in runs of `run` bytes with `skip` bytes left out between them.
fn one_pass(bytes: u64, run: u64, skip: u64) -> u64 {
    let stride = run.saturating_add(skip).max(1);
    let (whole, rest) = (bytes / stride, bytes % stride);
    whole.saturating_mul(run).saturating_add(rest.min(run))
}

/// Sets the rate of the requests. fio's rates apply to each job.
pub(super) fn load(options: &Options, trial: &mut TrialSpec, faults: &mut Faults) {
    let iops = value(options, "rate_iops").map(|given| (given, Rate::Requests as fn(u64) -> Rate));
    let bytes = value(options, "rate").map(|given| (given, Rate::Bytes as fn(u64) -> Rate));
    let is_given = |name| is_set(options, name);
    if is_given("rate") && is_given("rate_iops") {
        faults.0.push(Fault::new(
            "rate_iops",
            "rate and rate_iops in one job",
            "give one of them: rate counts bytes, rate_iops requests",
        ));
    }
    if let Some(((name, text), kind)) = iops.or(bytes) {
        let of_all = |one: Option<u64>| match one.filter(|one| *one > 0) {
            None => Ok(None),
            Some(one) => one
                .checked_mul(u64::from(trial.threads))
                .map(|all| Some(kind(all)))
                .ok_or_else(|| unknown(name, text)),
        };
        let rate = rate_of_one(name, text, trial).and_then(of_all);
        trial.rate = faults.or(rate, None);
    }
    let arrivals = |name, text: &str| match text {
        "linear" => Ok(Arrivals::Constant),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err(unknown(name, text)),
    };
    let arrivals = faults.given(options, "rate_process", arrivals);
    trial.arrivals = arrivals.unwrap_or(Arrivals::Constant);
}

/// The rate of one job: the rate of its direction, or of both directions together if they keep the share of reads. `None`
/// if that direction has no rate.
fn rate_of_one(name: &'static str, text: &str, trial: &TrialSpec) -> Read<Option<u64>> {
    let mut given = Vec::new();
    for part in text.split(',').map(str::trim) {
        given.push(match part {
            "" => None,
            part => Some(size(name, part)?),
        });
    }
    let reads = given.first().copied().flatten();
    // A value given once applies to every direction.
    let writes = match given.len() {
        1 => reads,
        _ => given.get(1).copied().flatten(),
    };
    let percent = u64::from(trial.read_percent);
    match percent {
        100 => Ok(reads),
        0 => Ok(writes),
        _ => {
            let both = reads
                .zip(writes)
                .map(|(reads, writes)| (reads, reads.saturating_add(writes)));
            let keeps = |(reads, all): &(u64, u64)| {
                reads.saturating_mul(100) == all.saturating_mul(percent) && trial.bs_mix.is_none()
            };
            let Some((_, all)) = both.filter(keeps) else {
                let message = format!("{name}={} in a mix with {percent} % reads", short(text));
                let hint = "fio has a rate for reads and one for writes, iolab one for both: give rates in the proportion of the mix, or make the directions jobs of their own";
                return Err(Fault::new(name, message, hint));
            };
            Ok(Some(all))
        }
    }
}
