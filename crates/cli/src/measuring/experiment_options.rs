//! Options that change an experiment, as a list of changes.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use iolab_engine::asynchronous;
use iolab_plan::cells::cells;
use iolab_plan::experiment::{BUDGET_MAX, Change, Experiment};
use iolab_plan::forecast::ASSUMED_RATE;
use iolab_plan::precondition::Emptying;
use iolab_runner::peers::adapt;
use iolab_runner::{RunPrograms, VirtualTarget};
use iolab_workload::command_template::Template;
use iolab_workload::settings::Tool;
use iolab_workload::trial::Backend;
use iolab_workload::units::{exact_duration, format_size};
use iolab_workload::{Error, Result};

use super::PEERS;
use super::arguments::{Changes, ProgramsOption};
use iolab_command::options::new_seed;

/// The requested changes, in the order in which they are applied.
pub(crate) struct Asked {
    changes: Vec<Change>,
    /// The region as a share of the target, in percent.
    share: Option<f64>,
    /// Whether peers are named, to which a plan is adapted.
    peers: bool,
}

impl Changes {
    /// Reads every change: the short forms, then the `--set`s.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the change; also for a change given twice.
    pub(crate) fn read(&self) -> Result<Asked> {
        let flags = [
            (self.direct, "cache", "direct", "--direct"),
            (self.buffered, "cache", "cold", "--buffered"),
            (self.fresh, "allocate", "fresh", "--fresh"),
        ];
        let flags = flags.into_iter().filter(|(given, ..)| *given);
        let flags = flags.map(|(_, name, value, said)| (name, value, said.to_owned()));
        let share = self.size.as_deref().map(share_of).transpose()?.flatten();
        let size = self.size.clone().filter(|_| share.is_none());
        let values = [
            ("bs", &self.bs),
            ("size", &size),
            ("threads", &self.threads),
            ("depth", &self.depth),
            ("rate", &self.rate),
            ("time", &self.time),
            ("precision", &self.precision),
            ("budget", &self.budget),
            ("precondition", &self.precondition),
            ("settle", &self.settle),
        ];
        let values = values
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .map(|(name, value)| (name, value, format!("--{name} {value}")));
        let tools = self.tools();
        let said = format!("--peer {}", self.peers.join(" --peer "));
        let peers = tools.as_deref().map(|tools| ("tool", tools, said));
        let changes = flags.chain(values).chain(peers);
        let changes = changes.map(|(name, value, said)| Change::of_option(name, value, said));
        let sets = self.sets.iter().map(|set| Change::parse(set));
        let changes: Vec<Change> = changes.chain(sets).collect::<Result<_>>()?;
        for (place, change) in changes.iter().enumerate() {
            if let Some(first) = changes[..place].iter().find(|c| c.is_of_same(change)) {
                return Err(twice(first.as_said(), change.as_said()));
            }
        }
        if let Some(percent) = share
            && let Some(other) = changes.iter().find(|change| change.is_of("region"))
        {
            return Err(twice(&format!("--size {percent}%"), other.as_said()));
        }
        Ok(Asked {
            changes,
            share,
            peers: !self.peers.is_empty(),
        })
    }

    /// iolab and its peers without duplicates; `None` without peers.
    fn tools(&self) -> Option<String> {
        let tools = PEERS.iter().map(|peer| peer.tool);
        let asked = tools.filter(|tool| self.peers.iter().any(|name| name == tool.name()));
        let tools = [Tool::IOLAB].into_iter().chain(asked);
        let tools: Vec<String> = tools.map(|tool| tool.to_string()).collect();
        (!self.peers.is_empty()).then(|| tools.join(","))
    }

    /// The requested seed, or a new one.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(new_seed)
    }
}

impl Asked {
    /// Whether the user chose this setting, in any way and under any of its names.
    pub(crate) fn has(&self, setting: &str) -> bool {
        self.changes.iter().any(|change| change.is_of(setting))
            || (self.share.is_some() && setting == "region")
    }

    /// Whether the command line asks for a purge of devices.
    pub(crate) fn purges(&self) -> bool {
        let mut designs = self.changes.iter().filter_map(Change::design);
        designs.any(|design| design.precondition.emptying == Emptying::Purge)
    }

    /// The programs that the command line names.
    pub(crate) fn commands(&self) -> Vec<Template> {
        let named = self.changes.iter().filter(|change| change.is_of("command"));
        let commands = named.flat_map(Change::levels);
        // An invalid command is refused with its experiment.
        commands.filter_map(|text| text.parse().ok()).collect()
    }

    /// The requested budget.
    pub(crate) fn budget(&self) -> Option<Duration> {
        let mut budgets = self.changes.iter().rev();
        let change = budgets.find(|change| change.is_of("budget"))?;
        Some(change.design()?.budget)
    }

    /// Applies every change to an experiment, adapts it to the requested depth and to the peers, and removes I/O sizes larger
    /// than the region, unless the user named them. Fixed settings of a built-in definition (`is_builtin`) are only defaults.
    /// Returns notes about its own decisions.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with the change.
    pub(crate) fn apply(
        &self,
        experiment: &mut Experiment,
        is_builtin: bool,
        targets: &[PathBuf],
        model: Option<&dyn VirtualTarget>,
    ) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if is_builtin && let Some(depth) = self.depth_without_backend(experiment)? {
            let backend = asynchronous();
            notes.push(format!(
                "{} sets backend={backend} for all levels: the default backend has one request in flight (--set backend=... chooses another)",
                depth.as_said()
            ));
            experiment.apply(&Change::of("backend", backend.name())?)?;
        }
        experiment.apply_all(&self.changes)?;
        if let Some(percent) = self.share {
            let bytes = (whole(targets, model)? as f64 * percent / 100.0) as u64;
            let bytes = bytes - bytes % BLOCK;
            let said = format!("--size {percent}%");
            experiment.apply(&Change::of_option("region", &bytes.to_string(), said)?)?;
        }
        if is_builtin && model.is_none() {
            let is_chosen = |setting: &str| self.has(setting);
            notes.extend(iolab_runner::adapt_to_system(experiment, &is_chosen)?);
        }
        if self.peers {
            notes.extend(adapt(PEERS, experiment, &|setting| self.has(setting))?);
        }
        if !self.has("bs") {
            let region = experiment.base()?.trial.region;
            // An existing file is never extended.
            let files = targets
                .iter()
                .filter_map(|target| std::fs::metadata(target).ok());
            let least = files.filter(|m| m.is_file()).map(|m| m.len()).min();
            let most = model.map(VirtualTarget::room).or(least);
            let room = most.map_or(region, |bytes| region.min(bytes));
            notes.extend(experiment.leave_out_sizes_above(room)?);
        }
        if self.has("time") {
            notes.extend(ended_by_bytes(experiment)?);
        }
        Ok(notes)
    }

    /// The change of the depth above 1, if neither the user nor the experiment chose a backend that supports it.
    fn depth_without_backend(&self, experiment: &Experiment) -> Result<Option<&Change>> {
        let depth = self.changes.iter().find(|change| change.is_of("depth"));
        let depth = depth.filter(|depth| depth.levels().iter().any(|level| level.trim() != "1"));
        if depth.is_none() || self.has("backend") || experiment.runs_programs() {
            return Ok(None);
        }
        let backends: Vec<Backend> = experiment
            .values("backend")
            .map(str::parse)
            .collect::<Result<_>>()?;
        // With several backends, the experiment compares the backends.
        Ok(depth.filter(|_| match backends.as_slice() {
            [] => true,
            [only] => !only.is_asynchronous(),
            _ => false,
        }))
    }
}

/// The time for all trials on several targets, one budget for each, and what says so.
pub(crate) fn budget_of_targets(budget: Duration, targets: usize) -> (Duration, String) {
    let count = u32::try_from(targets.max(1)).unwrap_or(u32::MAX);
    let all = budget.saturating_mul(count).min(BUDGET_MAX);
    let text = format!(
        "the budget of {} holds for each of {targets} targets: {} in all (--budget sets the time for all of them)",
        exact_duration(budget),
        exact_duration(all)
    );
    (all, text)
}

/// Bytes that a share of a target is a multiple of: no direct I/O has larger blocks.
const BLOCK: u64 = 4096;

/// Reads a size that is a share of the target, in percent; `None` for other sizes.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a share of 0 %, or above 100 %.
fn share_of(size: &str) -> Result<Option<f64>> {
    let Some(percent) = size.trim().strip_suffix('%') else {
        return Ok(None);
    };
    let percent = percent.trim().parse::<f64>().ok();
    match percent.filter(|percent| *percent > 0.0 && *percent <= 100.0) {
        Some(percent) => Ok(Some(percent)),
        None => Err(
            Error::usage(format!("--size {size}: not a share of the target"))
                .hint("write more than 0% and at most 100%, or bytes such as 10GiB"),
        ),
    }
}

/// The size of the smallest target, bytes.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a directory, which has no size; a target that cannot be read.
fn whole(targets: &[PathBuf], model: Option<&dyn VirtualTarget>) -> Result<u64> {
    if let Some(disk) = model {
        return Ok(disk.room());
    }
    let here = [PathBuf::from(".")];
    let targets = if targets.is_empty() { &here } else { targets };
    let sizes = targets.iter().map(|target| match target.is_dir() {
        true => Err(Error::usage(format!(
            "--size is a share, but {} is a directory, which has no size",
            target.display()
        ))
        .hint("write bytes (--size 10GiB), or name a file or a block device as TARGET")),
        // The end of a block device is its size.
        false => File::open(target)
            .and_then(|mut file| file.seek(SeekFrom::End(0)))
            .map_err(|error| {
                Error::usage(format!(
                    "cannot read the size of {}: {error}",
                    target.display()
                ))
                .hint("check the name; for a block device, run iolab as root")
            }),
    });
    let sizes: Vec<u64> = sizes.collect::<Result<_>>()?;
    Ok(sizes.into_iter().min().unwrap_or_default())
}

/// A note about a limit in bytes that ends trials before the user's time; `None` if that would need storage faster than the
/// assumed rate.
fn ended_by_bytes(experiment: &Experiment) -> Result<Option<String>> {
    let cells = cells(experiment)?;
    let trials = cells.iter().filter(|cell| !cell.spec.runs_program());
    let bounds = trials
        .flat_map(|cell| cell.spec.trials())
        .filter_map(|trial| {
            let (bytes, time) = (trial.limit.bytes?, trial.limit.time?);
            Some((bytes as f64 / time.as_secs_f64(), bytes, time))
        });
    let lowest = bounds.min_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let lowest = lowest.filter(|(rate, ..)| *rate < ASSUMED_RATE);
    Ok(lowest.map(|(rate, bytes, time)| {
        let (bytes, time) = (format_size(bytes), exact_duration(time));
        format!(
            "{}: bytes={bytes} ends a trial before its time of {time} on storage faster than {:.3} MB/s; --set bytes=none removes that bound",
            experiment.name,
            rate / 1e6
        )
    }))
}

/// The error for a change given twice.
fn twice(first: &str, second: &str) -> Error {
    Error::usage(format!("{first} and {second} set the same"))
        .hint("keep one of them; give several values in one list: --set bs=4k,64k")
}

impl ProgramsOption {
    /// The programs that the user allows: the `typed` ones, or all.
    pub(crate) fn consent(&self, typed: Vec<Template>) -> RunPrograms {
        match self.run_programs {
            true => RunPrograms::All,
            false => RunPrograms::Typed(typed),
        }
    }
}
