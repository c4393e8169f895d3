//! `iolab distil`: an experiment that resembles a trace, made of its first half, compared with its second, and written as TOML.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use iolab_command::failure::{Failure, Outcome};
use iolab_command::output;
use iolab_latency::{LatencyHistogram, counts, new_latency_histogram};
use iolab_report::layout::{Column, text, wrapped};
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{counted, format_size};
use iolab_workload::{Error, Result};

use crate::trace::survey::Survey;
use crate::trace::{Access, Reading, Trace};

/// Most sizes of an experiment.
const SIZES_MAX: usize = 10;
/// Most sizes that are counted apart.
const COUNTED_MAX: usize = 4096;
/// Requests of the same kind before one that it may follow on.
const RECENT: usize = 16;
/// Equal parts of the trace's bytes whose requests are counted.
const PARTS: usize = 64;
/// Share of requests that follow on another from which the order counts as sequential.
const SEQUENTIAL_FROM: f64 = 0.5;

/// The requests of one kind in half a trace.
#[derive(Debug)]
struct Kind {
    requests: u64,
    /// Requests of each size, bytes.
    sizes: BTreeMap<u32, u64>,
    /// Requests that begin where a recent one ends.
    following: u64,
    /// Requests in each of the equal parts of the trace's bytes.
    places: Vec<u64>,
    /// Ends of recent requests.
    recent: [u64; RECENT],
}

impl Kind {
    fn new() -> Self {
        Self {
            requests: 0,
            sizes: BTreeMap::new(),
            following: 0,
            places: vec![0; PARTS],
            recent: [u64::MAX; RECENT],
        }
    }

    fn note(&mut self, access: &Access, end: u64) {
        self.following += u64::from(self.recent.contains(&access.offset));
        self.recent[self.requests as usize % RECENT] = access.offset + u64::from(access.bytes);
        self.requests += 1;
        if self.sizes.len() < COUNTED_MAX || self.sizes.contains_key(&access.bytes) {
            *self.sizes.entry(access.bytes).or_default() += 1;
        }
        let part = u128::from(access.offset) * PARTS as u128 / u128::from(end.max(1));
        self.places[(part as usize).min(PARTS - 1)] += 1;
    }

    fn following_share(&self) -> f64 {
        self.following as f64 / self.requests.max(1) as f64
    }
}

/// Half of a trace.
#[derive(Debug)]
struct Half {
    reads: Kind,
    writes: Kind,
    gaps: LatencyHistogram,
    first_ns: u64,
    last_ns: u64,
}

impl Half {
    fn new() -> Self {
        Self {
            reads: Kind::new(),
            writes: Kind::new(),
            gaps: new_latency_histogram(),
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    fn note(&mut self, access: &Access, end: u64) {
        match access.writes {
            true => self.writes.note(access, end),
            false => self.reads.note(access, end),
        }
        if self.first_ns == u64::MAX {
            self.first_ns = access.at_ns;
        } else {
            let gap = access.at_ns.saturating_sub(self.last_ns);
            self.gaps.saturating_record(gap);
        }
        self.last_ns = self.last_ns.max(access.at_ns);
    }

    fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns).max(1) as f64 / 1e9
    }

    /// Requests per second.
    fn rate(&self) -> f64 {
        (self.reads.requests + self.writes.requests) as f64 / self.seconds()
    }
}

/// Requests of one kind in an experiment.
#[derive(Debug, Clone, PartialEq)]
struct Group {
    writes: bool,
    /// Requests per second.
    rate: f64,
    /// Sizes, bytes, and their shares in percent.
    sizes: Vec<(u32, u32)>,
    is_sequential: bool,
}

impl Group {
    /// The group of these requests; `None` if they are less than one in a thousand.
    fn of(kind: &Kind, half: &Half, writes: bool) -> Option<Self> {
        let all = half.reads.requests + half.writes.requests;
        (kind.requests * 1000 > all).then(|| Self {
            writes,
            // As the experiment has it: a whole number.
            rate: (kind.requests as f64 / half.seconds()).round().max(1.0),
            sizes: shares(&kind.sizes),
            is_sequential: kind.following_share() >= SEQUENTIAL_FROM,
        })
    }
}

/// The most frequent sizes with shares in percent; others count as the nearest of these.
fn shares(sizes: &BTreeMap<u32, u64>) -> Vec<(u32, u32)> {
    let mut frequent: Vec<(u32, u64)> = sizes.iter().map(|(size, count)| (*size, *count)).collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut kept: BTreeMap<u32, u64> = frequent
        .iter()
        .take(SIZES_MAX)
        .map(|one| (one.0, 0))
        .collect();
    let all: u64 = sizes.values().sum();
    for (size, count) in sizes {
        let nearest = kept.keys().min_by_key(|own| own.abs_diff(*size)).copied();
        if let Some(own) = nearest.and_then(|nearest| kept.get_mut(&nearest)) {
            *own += count;
        }
    }
    // Whole percents that make 100: the greatest share takes what rounding leaves.
    let percent = |count: u64| (count * 100 / all.max(1)) as u32;
    let mut shares: Vec<(u32, u32)> = kept
        .iter()
        .map(|(size, count)| (*size, percent(*count)))
        .collect();
    shares.retain(|(_, share)| *share > 0);
    let rest = 100 - shares.iter().map(|(_, share)| share).sum::<u32>().min(100);
    if let Some(most) = shares.iter_mut().max_by_key(|(_, share)| *share) {
        most.1 += rest;
    }
    shares
}

/// How far an experiment is from requests in one respect: 0 is equal, 1 is as far as can be.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Distance {
    what: &'static str,
    value: f64,
}

/// An experiment made of half a trace.
#[derive(Debug)]
struct Distilled {
    groups: Vec<Group>,
    /// Bytes that the requests lie in.
    end: u64,
    /// Distances from the other half.
    distances: Vec<Distance>,
}

/// Makes an experiment of the first half of a trace, and holds it against the second.
///
/// # Errors
/// The trace cannot be read.
fn distilled(trace: &Trace, survey: &Survey) -> Result<Distilled> {
    let mut requests = trace.requests()?;
    let (mut first, mut second) = (Half::new(), Half::new());
    let mut number = 0;
    while let Some(access) = requests.next_request()? {
        let half = match number < survey.requests() / 2 {
            true => &mut first,
            false => &mut second,
        };
        half.note(&access, survey.end);
        number += 1;
    }
    let reads = Group::of(&first.reads, &first, false);
    let writes = Group::of(&first.writes, &first, true);
    let groups: Vec<Group> = reads.into_iter().chain(writes).collect();
    let distances = distances(&groups, &second);
    Ok(Distilled {
        groups,
        end: survey.end,
        distances,
    })
}

fn distances(groups: &[Group], half: &Half) -> Vec<Distance> {
    let rate: f64 = groups.iter().map(|group| group.rate).sum();
    let kind = |group: &Group| {
        if group.writes {
            &half.writes
        } else {
            &half.reads
        }
    };
    let most = |of: &dyn Fn(&Group) -> f64| groups.iter().map(of).fold(0.0, f64::max);
    let written = groups.iter().filter(|group| group.writes);
    let written: f64 = written.map(|group| group.rate).sum::<f64>() / rate;
    let all = (half.reads.requests + half.writes.requests).max(1) as f64;
    let sequential = |group: &Group| {
        let share = kind(group).following_share();
        (share - f64::from(u8::from(group.is_sequential))).abs()
    };
    let places = |group: &Group| match group.is_sequential {
        // One after the other: over the time of a trial they go everywhere.
        true => 0.0,
        false => from_uniform(&kind(group).places),
    };
    let distance = |what, value| Distance { what, value };
    vec![
        distance("rate", 1.0 - rate.min(half.rate()) / rate.max(half.rate())),
        distance(
            "share of writes",
            (written - half.writes.requests as f64 / all).abs(),
        ),
        distance("gaps", from_poisson(&half.gaps, rate)),
        distance(
            "sizes",
            most(&|group| of_sizes(&group.sizes, &kind(group).sizes)),
        ),
        distance("sequential share", most(&sequential)),
        distance("places", most(&places)),
    ]
}

/// Distance of gaps from exponential ones at this rate (Kolmogorov and Smirnov).
fn from_poisson(gaps: &LatencyHistogram, rate: f64) -> f64 {
    let (all, mut below, mut most) = (gaps.len().max(1) as f64, 0, 0.0f64);
    for (gap, count) in counts(gaps) {
        let expected = 1.0 - (-rate * gap as f64 / 1e9).exp();
        most = most.max((expected - below as f64 / all).abs());
        below += count;
        most = most.max((expected - below as f64 / all).abs());
    }
    most
}

/// Distance of two distributions of sizes (Kolmogorov and Smirnov).
fn of_sizes(shares: &[(u32, u32)], counted: &BTreeMap<u32, u64>) -> f64 {
    let all: u64 = counted.values().sum();
    let below = |size: u32| {
        let own = shares.iter().filter(|(own, _)| *own <= size);
        let own: u32 = own.map(|(_, share)| share).sum();
        let counted: u64 = counted.range(..=size).map(|(_, count)| count).sum();
        (f64::from(own) / 100.0 - counted as f64 / all.max(1) as f64).abs()
    };
    let sizes = shares.iter().map(|(size, _)| size).chain(counted.keys());
    sizes.map(|size| below(*size)).fold(0.0, f64::max)
}

/// Distance of places from a uniform distribution (Kolmogorov and Smirnov).
fn from_uniform(places: &[u64]) -> f64 {
    let all = places.iter().sum::<u64>().max(1) as f64;
    let (mut below, mut most) = (0, 0.0f64);
    for (number, count) in (1u32..).zip(places) {
        below += count;
        let expected = f64::from(number) / PARTS as f64;
        most = most.max((expected - below as f64 / all).abs());
    }
    most
}

/// Fewest requests whose distributions mean something.
const REQUESTS_MIN: u64 = 100;
/// Greatest distance of an experiment that stands for its trace.
const FAR: f64 = 0.2;

const DISTIL_HELP: &str = "\
The experiment is made of the first half of the trace: reads and writes as groups, their sizes, \
rates and order. It is held against the second half. Above a distance of 0.2 in any respect the \
trace cannot be distilled: no file is written, and the exit code is 5.";

#[derive(Debug, Args)]
#[command(after_help = DISTIL_HELP)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// New file for the experiment (TOML) instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Writes an experiment that resembles a trace.
pub(crate) fn distil(options: &Options) -> Outcome {
    let trace = Trace::open(&options.reading)?;
    let survey = Survey::of(&trace)?;
    if survey.requests() < REQUESTS_MIN {
        let count = counted(survey.requests(), "request");
        let few = Error::usage(format!("{count} are too few to be distilled"));
        return Err(few
            .hint(format!("give a trace of at least {REQUESTS_MIN}"))
            .into());
    }
    let distilled = distilled(&trace, &survey)?;
    let name = options.reading.trace.display().to_string();
    let name = escape_control(&name);
    output::told(answer(&distilled, &name, output::style().width).trim_end());
    if far(&distilled).next().is_some() {
        return Err(Failure::CannotTell);
    }
    let mut to = output::open(options.output.as_deref())?;
    to.write_all(experiment_text(&distilled, &name.replace('\n', " ")).as_bytes())?;
    Ok(to.flush()?)
}

fn far(distilled: &Distilled) -> impl Iterator<Item = &'static str> {
    let far = distilled.distances.iter().filter(|own| own.value > FAR);
    far.map(|own| own.what)
}

fn answer(distilled: &Distilled, name: &str, width: u16) -> String {
    let of =
        |value: fn(&Distance) -> String| distilled.distances.iter().map(value).collect::<Vec<_>>();
    let table = text(
        vec![
            Column::new(
                "distance from the second half in",
                0,
                of(|own| own.what.to_owned()),
            )
            .left(),
            Column::new("", 0, of(|own| format!("{:.3}", own.value))),
        ],
        width,
    );
    let far: Vec<&str> = far(distilled).collect();
    let said = match far.is_empty() {
        true => format!("{name} resembles groups of random requests at constant rates."),
        false => format!(
            "{name} cannot be distilled: its second half differs from an experiment like its first half in {} by more than {FAR}. Replay it instead.",
            far.join(", ")
        ),
    };
    format!("{table}\n{}", wrapped(&said, width))
}

/// Unit of the region, bytes.
const UNIT: u64 = 1 << 20;

/// The definition of the experiment, with its distances as comments.
fn experiment_text(distilled: &Distilled, trace: &str) -> String {
    let region = format_size(distilled.end.next_multiple_of(UNIT));
    let response = match distilled.groups.first() {
        Some(group) => format!("{}.p99", name(group)),
        None => "p99".to_owned(),
    };
    let distances: Vec<String> = distilled
        .distances
        .iter()
        .map(|own| format!("# {}: {:.3}", own.what, own.value))
        .collect();
    let groups: Vec<String> = distilled.groups.iter().map(group).collect();
    format!(
        "# Distilled from the first half of {trace}. Distances from its second half (0: equal, 1: as far as can be):
{}

name = \"distilled\"
question = \"How does this storage answer requests like those of a trace?\"
response = \"{response}\"

[settings]
cache = \"direct\"
region = \"{region}\"
time = \"10s\"
backend = \"io_uring\"

{}
[design]
trials_min = 6
trials_max = 20
precision = 0.10
budget = \"2min\"
",
        distances.join("\n"),
        groups.join("\n")
    )
}

fn name(group: &Group) -> &'static str {
    match group.writes {
        true => "writes",
        false => "reads",
    }
}

fn group(group: &Group) -> String {
    let pattern = match group.is_sequential {
        true => "seq",
        false => "rand-replace",
    };
    let smallest = group
        .sizes
        .iter()
        .map(|(size, _)| *size)
        .min()
        .unwrap_or(4096);
    let sizes = group.sizes.iter();
    let sizes = sizes.map(|(size, share)| format!("{}:{share}", format_size((*size).into())));
    let sizes: Vec<String> = sizes.collect();
    let mix = match sizes.as_slice() {
        [] | [_] => String::new(),
        several => format!("bs_mix = \"{}\"\n", several.join(",")),
    };
    format!(
        "[group.{}]
pattern = \"{pattern}\"
bs = \"{}\"
{mix}read_percent = {}
rate = {}
arrivals = \"poisson\"
depth = 256
",
        name(group),
        format_size(smallest.into()),
        100 * u8::from(!group.writes),
        group.rate
    )
}
