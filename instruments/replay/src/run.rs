//! `iolab replay`: a trace on targets and models.
//!
//! The trials of a replay: every target at every speed, in blocks of random order.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use iolab_command::failure::{self, Failure};
use iolab_command::output;
use iolab_command::output_format::format_of;
use iolab_engine::asynchronous;
use iolab_engine::list::{ListedRequest, RequestList};
use iolab_host::clock::Clock;
use iolab_host::tracing;
use iolab_record::ServedVerdict;
use iolab_runner::campaign::Program;
use iolab_runner::{
    GivenTargets, OpenedVirtual, StopFlags, SystemUnderTest, Targets, VirtualTarget, run_list,
    run_virtual_list,
};
use iolab_storage::{ExtraFiles, Need, Size, Target};
use iolab_workload::outcome::{Outcome, Tally};
use iolab_workload::pattern::derive;
use iolab_workload::trial::{Backend, CacheState, RATE_MAX, Rate, TrialLimit, TrialSpec};
use iolab_workload::units::{counted, format_bytes, rough_duration};
use iolab_workload::{Error, Result, usage_errors};

use crate::ahead::Ahead;
use crate::answer::{Answer, Times, Trial, distinct};
use crate::certificate::Meter;
use crate::fio::Fio;
use crate::mapping::Mapping;
use crate::options::{Options, ReplayFormat, Speed};
use crate::record::{sectors, watched};
use crate::text::text;
use crate::trace::Trace;
use crate::trace::survey::Survey;

/// A bound that no replay reaches: its list ends it.
const ENDLESS: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Most requests whose events are recorded.
const WATCHED_MAX: u64 = 100_000;
/// Most bytes in flight.
const IN_FLIGHT_MAX: u64 = 256 << 20;

/// Bytes of scratch files, unless the user names a size.
const SCRATCH_MAX: u64 = 1 << 30;

/// Something that a trace is replayed on.
enum Place<'a> {
    Target(String, &'a Target),
    Model(&'a dyn VirtualTarget),
}

impl Place<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Target(name, _) => name,
            Self::Model(disk) => disk.name(),
        }
    }

    /// Bytes, the block to which requests are rounded, and the cache state.
    fn extent(&self) -> (u64, u64, CacheState) {
        match self {
            Self::Target(_, target) => match target.direct_alignment() {
                Ok(alignment) => (target.size(), alignment.offset.max(1), CacheState::Direct),
                Err(_) => (target.size(), 1, CacheState::Cold),
            },
            Self::Model(disk) => (disk.bytes(), disk.block(), CacheState::Direct),
        }
    }
}

/// Replays a trace and prints the answer.
pub(crate) fn replay(options: &Options, program: Program) -> failure::Outcome {
    let formats = &[
        (ReplayFormat::Text, &["txt"][..]),
        (ReplayFormat::Json, &["json"]),
    ];
    let path = options.output.as_deref();
    let format = format_of(path, options.format, Some(ReplayFormat::Text), formats)?;
    let trace = Trace::open(&options.reading)?;
    let survey = Survey::of(&trace)?;
    // Opened first, so that no measurement is lost to a name that is taken.
    let mut to = output::open(path)?;
    let mut trials = Vec::new();
    let ended = carry_out((&trace, &survey), options, program, &mut trials);
    if trials.is_empty() {
        return ended.map_err(Failure::from);
    }
    let file = options.reading.trace.display().to_string();
    let words = std::env::args_os().skip(1);
    let answer = Answer {
        arguments: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        ..Answer::of(file, &trace, &survey, options.seed, trials)
    };
    match format {
        ReplayFormat::Text => write!(to, "{}", text(&answer, output::style().width))?,
        ReplayFormat::Json => {
            serde_json::to_writer_pretty(&mut to, &answer).map_err(std::io::Error::from)?;
            writeln!(to)?;
        }
    }
    to.flush()?;
    ended?;
    match answer.is_kept() {
        true => Ok(()),
        false => Err(Failure::CannotTell),
    }
}

/// Replays a trace on all targets. An error leaves the trials that were done before it.
///
/// # Errors
/// A target that lacks something or must not be used; a failed request; the user's interrupt.
fn carry_out(
    (trace, survey): (&Trace, &Survey),
    terms: &Options,
    program: Program,
    done: &mut Vec<Trial>,
) -> Result<()> {
    check(survey, terms)?;
    let given = GivenTargets::of(&terms.targets, program.schemes)?;
    if terms.peer.is_some() {
        check_peer(survey, terms, &given)?;
    }
    let watch = program.watch(&given.real);
    let stop = (program.catch)(true)?;
    let clock = Clock::calibrate();
    // Before anything is written: without the program there is nothing to compare with.
    let find = |_| Fio::find(&clock, &stop.now);
    let fio = terms.peer.as_ref().map(find).transpose()?;
    let campaign = Campaign {
        trace,
        survey,
        terms,
        stop: &stop,
        clock,
        fio,
        program,
    };
    if given.real.is_empty() {
        return campaign.trials(None, &given.models, done);
    }
    if let Some(watch) = &watch {
        watch.opens(&given.real);
    }
    let needs: Vec<Need> = given
        .real
        .iter()
        .map(|path| need(survey, terms, path.is_dir()))
        .collect();
    let system = SystemUnderTest::Targets(Targets::open(&given.real, &needs)?);
    system.notes().iter().for_each(|note| (program.note)(note));
    if let Some(watch) = &watch {
        watch.has_opened(&system, system.fill_bytes());
    }
    let replayed = fill(&system, terms.seed, &stop, program)
        .and_then(|()| campaign.trials(Some(&system), &given.models, done));
    drop(watch);
    let removed = {
        let _watch = system.watch_removal(&[], program.end);
        system.remove()
    };
    match (replayed, removed) {
        (Err(error), Err(left)) => Err(error.also(left.message())),
        (replayed, removed) => removed.and(replayed),
    }
}

fn check(survey: &Survey, terms: &Options) -> Result<()> {
    let is_by_time = |speed: &Speed| matches!(speed, Speed::Times(_));
    usage_errors! {
        survey.whole_seconds && terms.speed.iter().any(is_by_time) =>
            "the time stamps of the trace are whole seconds: they do not say when a request began",
            "replay a trace with finer stamps; or, if it has response times, as fast as its depth allows: --speed max";
        survey.mean_depth.is_none() && terms.speed.contains(&Speed::Max) =>
            "--speed max: the trace has no completions, so it does not say how many requests were in flight",
            "state a factor instead, for example --speed 10";
        terms.reads_only && survey.reads == 0 => "--reads-only: the trace has no reads", "leave it out";
    }
    Ok(())
}

/// Refuses what no other program can replay, or what cannot be watched.
fn check_peer(survey: &Survey, terms: &Options, given: &GivenTargets) -> Result<()> {
    usage_errors! {
        !given.models.is_empty() => "--peer: no other program replays on a model", "give a directory, a file or a device";
        terms.speed.contains(&Speed::Max) => "--peer: at the speed max no request has a time to be late for",
            "state a factor instead, for example --speed 1";
        survey.requests() > WATCHED_MAX => format!(
            "--peer: the trace has {}, and the events of {WATCHED_MAX} can be recorded",
            counted(survey.requests(), "request")
        ), "replay the beginning of the trace, for example --for 10s";
    }
    tracing::check()
}

/// The need of a trace for a target.
fn need(survey: &Survey, terms: &Options, is_scratch: bool) -> Need {
    const UNIT: u64 = 1 << 20;
    let end = survey.end.next_multiple_of(UNIT);
    let least = Mapping::longest(survey.largest, 4096);
    let most = match is_scratch {
        true => end.min(SCRATCH_MAX.max(least)),
        false => end,
    };
    Need {
        size: terms
            .size
            .map_or(Size::AtMost { most, least }, Size::Exactly),
        write: survey.writes > 0 && !terms.reads_only,
        consent: terms.consent.consent(),
        beside: ExtraFiles::default(),
        lends: terms.peer.is_some(),
    }
}

fn fill(system: &SystemUnderTest, seed: u64, stop: &StopFlags, program: Program) -> Result<()> {
    let bytes = system.fill_bytes();
    if bytes == 0 {
        return Ok(());
    }
    let mut shown = (program.filling)("filling the scratch files", bytes);
    system.fill(seed, &stop.after_trial, &mut shown)
}

/// Terms of all trials.
struct Campaign<'a> {
    trace: &'a Trace,
    survey: &'a Survey,
    terms: &'a Options,
    stop: &'a StopFlags,
    clock: Clock,
    fio: Option<Fio>,
    program: Program,
}

/// Replays of the same.
#[derive(Clone, Copy)]
struct Cell<'a> {
    place: &'a Place<'a>,
    speed: Speed,
    /// The program that replays in place of iolab.
    fio: Option<&'a Fio>,
}

impl Campaign<'_> {
    /// All trials, block by block.
    fn trials(
        &self,
        system: Option<&SystemUnderTest>,
        models: &[OpenedVirtual],
        done: &mut Vec<Trial>,
    ) -> Result<()> {
        let (terms, stop) = (self.terms, self.stop);
        let real = system.into_iter().flat_map(SystemUnderTest::targets);
        let real = real.map(|(named, target)| Place::Target(named.display().to_string(), target));
        let places: Vec<Place<'_>> = real
            .chain(models.iter().map(|disk| Place::Model(&**disk)))
            .collect();
        let programs: Vec<Option<&Fio>> = [None]
            .into_iter()
            .chain(self.fio.as_ref().map(Some))
            .collect();
        let mut cells = Vec::new();
        for place in &places {
            for speed in distinct(terms.speed.iter().copied()) {
                cells.extend(programs.iter().map(|fio| Cell {
                    place,
                    speed,
                    fio: *fio,
                }));
            }
        }
        cells.iter().for_each(|cell| self.announce(cell));
        stop.makes_trials.store(true, Ordering::Relaxed);
        let began = Instant::now();
        for block in 0..terms.blocks {
            // Every block takes about as long.
            let each = began.elapsed() / block.max(1);
            if block > 0 && began.elapsed() + each > terms.budget {
                break;
            }
            let seed = derive(terms.seed, u64::from(block));
            let mut order: Vec<usize> = (0..cells.len()).collect();
            order.sort_by_key(|number| derive(seed, *number as u64));
            for number in order {
                if stop.after_trial.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                let mut trial = self.run(cells[number], derive(seed, 0))?;
                (trial.cell, trial.block) = (number, block);
                done.push(trial);
            }
        }
        Ok(())
    }

    /// Says how long a replay takes, if that is long.
    fn announce(&self, cell: &Cell<'_>) {
        let (Speed::Times(factor), Place::Target(name, _), None) =
            (cell.speed, cell.place, cell.fio)
        else {
            return;
        };
        let time = Duration::from_secs_f64(self.survey.span_ns as f64 / factor / 1e9);
        if time > Duration::from_secs(60) {
            let time = rough_duration(time);
            (self.program.note)(&format!(
                "{name} at {}: each replay takes {time}; --speed and --for shorten it",
                cell.speed
            ));
        }
    }

    fn run(&self, cell: Cell<'_>, seed: u64) -> Result<Trial> {
        let (bytes, block, cache) = cell.place.extent();
        let (survey, terms, stop) = (self.survey, self.terms, self.stop);
        let region = bytes.min(survey.end.next_multiple_of(block)) / block * block;
        let spec = self.spec(cell, region, block, cache, seed);
        spec.check()
            .map_err(|error| error.within(cell.place.name()))?;
        let mapping = Mapping::new(terms.beyond, survey.end, region, block, terms.reads_only);
        let (factor, meter) = match cell.speed {
            Speed::Times(factor) => {
                let gap = survey.median_gap_ns as f64 / factor;
                (factor, Some(Meter::new(gap as u64)))
            }
            Speed::Max => (1.0, None),
        };
        let list = |meter: Option<Meter>| {
            let is_real = matches!(cell.place, Place::Target(..));
            let mut list = Ahead::new(self.trace, mapping.clone(), factor, meter, is_real)?;
            match list.is_empty() {
                false => Ok(list),
                true => list.finish().and_then(|_| Err(nothing_left(region))),
            }
        };
        let of_iolab = |meter: Option<Meter>| -> Result<Trial> {
            let mut list = list(meter)?;
            let ran = match cell.place {
                Place::Model(disk) => run_virtual_list(&spec, &mut list, *disk, &stop.now),
                Place::Target(_, target) => {
                    let shared = Mutex::new(list);
                    let ran = run_list(&spec, &shared, target, &self.clock, &stop.now);
                    list = shared
                        .into_inner()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    ran
                }
            };
            let (outcome, verdict) = ran?;
            let (changed, meter) = list.finish()?;
            Ok(Trial {
                tool: "iolab".to_owned(),
                changed,
                certificate: meter.map(Meter::certificate),
                ..measured(&outcome, &verdict)
            })
        };
        let ran = match (cell.place, meter) {
            (Place::Target(_, target), Some(meter)) if terms.peer.is_some() => {
                let mut all = list(None)?;
                let asked: Vec<ListedRequest> = std::iter::from_fn(|| all.next()).collect();
                let (changed, _) = all.finish()?;
                let map = sectors(target, region)?;
                let (eye, judge) = ((&map, &self.clock), (meter.clone(), spec.depth));
                let ran = watched(&asked, eye, judge, || match cell.fio {
                    None => of_iolab(Some(meter)),
                    Some(fio) => {
                        fio.replay(&asked, &spec, target, &self.clock, &stop.now)?;
                        Ok(Trial {
                            tool: fio.version.clone(),
                            served_by: "unknown".to_owned(),
                            served_because: "another program replayed".to_owned(),
                            changed,
                            ..Trial::default()
                        })
                    }
                });
                ran.map(|(trial, at_block_layer)| Trial {
                    at_block_layer: Some(at_block_layer),
                    ..trial
                })
            }
            (_, meter) => of_iolab(meter),
        };
        let trial = ran.map_err(|error: Error| error.within(cell.place.name()))?;
        Ok(Trial {
            target: cell.place.name().to_owned(),
            speed: cell.speed.to_string(),
            region_bytes: region,
            block_bytes: block,
            depth: spec.depth,
            ..trial
        })
    }

    fn spec(
        &self,
        cell: Cell<'_>,
        region: u64,
        block: u64,
        cache: CacheState,
        seed: u64,
    ) -> TrialSpec {
        let (survey, terms) = (self.survey, self.terms);
        let longest = Mapping::longest(survey.largest, block).min(region.max(1));
        let room = (IN_FLIGHT_MAX / longest).clamp(1, u64::from(terms.depth)) as u32;
        let (depth, rate) = match cell.speed {
            Speed::Times(factor) => {
                let rate = (survey.rate() * factor).clamp(1.0, RATE_MAX as f64);
                (room, Some(Rate::Requests(rate as u64)))
            }
            Speed::Max => {
                let mean = survey.mean_depth.unwrap_or(1.0).round();
                ((mean as u32).clamp(1, room), None)
            }
        };
        let writes = survey.writes > 0 && !terms.reads_only;
        TrialSpec {
            backend: match (cell.place, depth) {
                (Place::Model(_), 1) | (Place::Target(..), 1) => Backend::Psync,
                (Place::Model(_), _) => Backend::IoUring,
                (Place::Target(..), _) => asynchronous(),
            },
            bs: longest,
            region,
            depth,
            read_percent: match (survey.reads > 0, writes) {
                (true, true) => 50,
                (reads, _) => 100 * u8::from(reads),
            },
            cache,
            rate,
            // Starts as exact as the machine allows: lateness can cost the certificate.
            rate_slack: rate.map_or(TrialSpec::default().rate_slack, |_| Duration::ZERO),
            limit: TrialLimit {
                time: Some(ENDLESS),
                ..TrialLimit::default()
            },
            seed,
            ..TrialSpec::default()
        }
    }
}

fn nothing_left(region: u64) -> Error {
    let region = format_bytes(region as f64);
    Error::usage(format!("no request of the trace lies in its {region}"))
        .hint("let requests begin again (--beyond wrap), or scale their offsets (--beyond scale)")
}

/// The results of a trial, without its place.
fn measured(outcome: &Outcome, verdict: &ServedVerdict) -> Trial {
    let seconds = outcome.elapsed_ns.max(1) as f64 / 1e9;
    let moved = outcome.operations.moved();
    let requests = moved.read.requests + moved.write.requests;
    let times = |tally: &Tally| {
        let histogram = tally
            .waits
            .as_ref()
            .map_or(&tally.latency, |waits| &waits.response);
        (tally.requests > 0).then(|| Times {
            requests: tally.requests,
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        })
    };
    Trial {
        requests,
        seconds,
        requests_per_s: requests as f64 / seconds,
        mb_per_s: (moved.read.bytes + moved.write.bytes) as f64 / 1e6 / seconds,
        reads: times(&outcome.operations.read),
        writes: times(&outcome.operations.write),
        served_by: verdict.served_by.to_string(),
        served_because: verdict.reason.clone(),
        ..Trial::default()
    }
}
