//! Trials on a disk that is computed, in virtual time: no device, no privilege, nothing written.
//!
//! Settings without a meaning on a modelled disk. A built-in experiment leaves out the levels of its factors that have
//! none; if the user asks for one, it is refused.

use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::catalogue::{parsed, text_of, wrong_definition};
use crate::definition::{Definition, built_in};
use iolab_engine::list::RequestList;
use iolab_engine::{simulation, trial};
use iolab_plan::cells::{PlannedCell, cells};
use iolab_plan::experiment::Experiment;
use iolab_record::digest;
use iolab_record::environment::{Environment, KEYS};
use iolab_runner::evidence::Origin;
use iolab_runner::{Executor, OpenedVirtual, Scheme, VirtualTarget, cut_region, fit_groups};
use iolab_workload::outcome::{Ended, Outcome};
use iolab_workload::settings::{CellSpec, Consumer, SETTINGS, Setting, Topic};
use iolab_workload::trial::{Allocate, Backend, Batch, FileLayout, TrialSpec};
use iolab_workload::units::exact_size;
use iolab_workload::virtual_disk::{Model, Request};
use iolab_workload::{Error, Result, usage_errors};

/// The engine in virtual time.
struct Simulated<'a> {
    disk: &'a Disk,
    model: Box<dyn Model>,
    now_ns: u64,
    /// The seed of the disk of the next trial, if each has a new one.
    next_seed: Option<u64>,
}

impl Simulated<'_> {
    /// Makes durable what earlier trials have written, as the engine does before a trial that writes, and after one that leaves writes in a
    /// cache.
    fn flush(&mut self) {
        let flushed = crate::serve(&mut *self.model, self.now_ns, &Request::flush());
        self.now_ns = flushed.finished;
    }
}

impl Executor for Simulated<'_> {
    fn run(&mut self, cell: &CellSpec, stop: &AtomicBool) -> Result<Outcome> {
        if let Some(seed) = self.next_seed {
            self.model = self.disk.build(seed)?;
            self.next_seed = Some(seed.wrapping_add(1));
        }
        if cell.trial.writes() {
            self.flush();
        }
        let (disk, now) = (&mut *self.model, self.now_ns);
        let (mut outcome, end) = match cell.has_groups() {
            true => simulation::run_groups(&cell.group_trials(), disk, now, stop)?,
            false => simulation::run(&cell.trial, disk, now, stop)?,
        };
        self.now_ns = end;
        if outcome.ended == Ended::Interrupted {
            return Err(Error::interrupted());
        }
        if leaves_writes(cell, &outcome) {
            let began = self.now_ns;
            self.flush();
            outcome.region.owed_sync_ns = Some(self.now_ns - began);
        }
        Ok(outcome)
    }

    fn pause(&mut self, time: Duration, _stop: &AtomicBool) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns = self.now_ns.saturating_add(ns);
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        self.disk.fit(cell)
    }

    fn alignment(&self) -> u64 {
        self.disk.block()
    }

    fn origin(&self, _cell: &CellSpec) -> Origin {
        Origin::Model
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }
}

/// Whether a trial has left writes in a cache that no sync of its own has made durable.
fn leaves_writes(cell: &CellSpec, outcome: &Outcome) -> bool {
    match cell.has_groups() {
        true => {
            let groups = cell.group_trials();
            let mut own = groups.iter().zip(&outcome.groups);
            own.any(|(group, own)| trial::owes_sync(&group.trial, &own.outcome))
        }
        false => trial::owes_sync(&cell.trial, outcome),
    }
}

const NO_FILES: &str = "a model is one disk without files";

const NO_HOST: &str = "system calls take no time on a model";

/// Settings as a model takes them. Each group is judged by itself; models of several targets are refused where these are named.
const MODEL: Consumer = Consumer {
    takes: "idle active workload batch target pattern bs bs_mix skip offset region threads depth read_percent sync sync_every \
            first_offset bytes time rate arrivals thinktime latency latency_over_time ranks hosts shift files",
    lacks: &[
        (
            "tool",
            "other tools need a file: 'iolab serve' offers a model as one",
        ),
        ("command linkage descriptors", NO_FILES),
        ("cache", "a model has no page cache"),
        ("sqpoll iopoll", NO_HOST),
        ("buffer_init buffer_memory", "no data is copied on a model"),
        ("verify compressible", "a model keeps no data"),
        (
            "hardware_counters cpus placement rate_slack",
            "a model has no processor",
        ),
        (
            "system fadvise nice realtime trace",
            "a model has no kernel",
        ),
        ("trim_percent", "a model has no trim"),
    ],
    cannot,
};

fn cannot(trial: &TrialSpec) -> Vec<(&'static str, bool, &'static str)> {
    // These backends represent one outstanding request and several.
    let simulated = [Backend::Psync, Backend::Libaio, Backend::IoUring];
    let is_plain_space = matches!(trial.allocate, None | Some(Allocate::Recycled));
    vec![
        ("backend", !simulated.contains(&trial.backend), NO_HOST),
        ("layout", trial.layout == FileLayout::Private, NO_FILES),
        ("allocate", !is_plain_space, NO_FILES),
    ]
}

/// As [`VirtualTarget::adapt`].
fn adapt(experiment: &mut Experiment, asked: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let mut left_out: Vec<(&str, Vec<String>)> = Vec::new();
    // That it runs a program is the first reason.
    let (programs, others): (Vec<_>, Vec<_>) = SETTINGS
        .iter()
        .partition(|setting| setting.topic == Topic::Programs);
    for setting in programs.into_iter().chain(others) {
        let (kept, without, why) = parted(experiment, setting)?;
        if without.is_empty() {
            continue;
        }
        let named = format!("{}={}", setting.name, without.join(","));
        usage_errors! {
            kept.is_empty() || asked(setting.name) => format!("{} does not apply to a model: {named}: {why}", experiment.name),
                match asked(setting.name) {
                    true => "leave it out, or measure a file or a device".to_owned(),
                    false => instead(experiment, setting),
                };
        }
        experiment.sweep(setting, &kept)?;
        match left_out.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(named),
            None => left_out.push((why, vec![named])),
        }
    }
    check_groups(experiment)?;
    if !experiment.names("buffer_memory") {
        // The default of a new run is meant for real devices.
        experiment.apply_set("buffer_memory=kernel")?;
    }
    let reasons: Vec<String> = left_out
        .into_iter()
        .map(|(why, names)| format!("{} ({why})", names.join(", ")))
        .collect();
    Ok((!reasons.is_empty()).then(|| {
        format!(
            "{}: ignored, because it does not apply to a model: {}",
            experiment.name,
            reasons.join("; ")
        )
    }))
}

/// The remedy if a model refuses the value that a definition gives to a setting: the default value, if nothing else is
/// missing.
fn instead(experiment: &Experiment, setting: &'static Setting) -> String {
    let measure = match experiment.runs_programs() {
        true => "measure a directory",
        false => "measure a file or a device",
    };
    let value = setting.get(&CellSpec::default());
    let set = format!("{}={value}", setting.name);
    let mut changed = experiment.clone();
    let is_set = changed.apply_set(&set).is_ok();
    match is_set && adapt(&mut changed, &|name| name == setting.name).is_ok() {
        true => format!("take --set {set}, or {measure}"),
        false => measure.to_owned(),
    }
}

/// Refuses settings of a group that have no meaning.
fn check_groups(experiment: &Experiment) -> Result<()> {
    for cell in cells(experiment)? {
        for group in cell.spec.active() {
            if let Some((setting, why)) = MODEL.refusals(&group.spec).first() {
                return Err(Error::usage(format!(
                    "{}: {}.{}={} has no meaning on a model: {why}",
                    experiment.name,
                    group.name,
                    setting.name,
                    setting.get(&group.spec)
                ))
                .hint("leave it out, or measure a file or a device"));
            }
        }
    }
    Ok(())
}

/// The levels of a setting, for a fixed one its value: those that have a meaning on a model, those that have none, and why.
fn parted(
    experiment: &Experiment,
    setting: &'static Setting,
) -> Result<(Vec<String>, Vec<String>, &'static str)> {
    let base = experiment.base()?;
    let factor = experiment.factors.iter().find(|f| f.of == setting.into());
    let levels = match factor {
        Some(factor) => factor.levels.clone(),
        None => vec![setting.get(&base)],
    };
    let (mut kept, mut without, mut reason) = (Vec::new(), Vec::new(), "");
    for level in levels {
        let mut cell = base.clone();
        setting.set(&mut cell, &level)?;
        let mut refusals = MODEL.refusals(&cell).into_iter();
        match refusals.find(|(other, _)| *other == setting) {
            None => kept.push(level),
            Some((_, why)) => {
                reason = why;
                without.push(level);
            }
        }
    }
    Ok((kept, without, reason))
}

/// The beginning of a name that means a model.
const PREFIX: &str = "model:";

/// The name of a model's clock.
const VIRTUAL: &str = "virtual (of the model)";

/// A definition of a disk, and the facts that iolab needs of it before it runs.
#[derive(Debug, Clone)]
struct Disk {
    name: String,
    text: String,
    definition: Definition,
    bytes: u64,
    /// Size of the measured part of the disk, bytes.
    room: u64,
}

/// The scheme of models: the rest of a name is of the catalogue, or the path of a TOML file.
pub const MODELS: Scheme = Scheme {
    prefix: PREFIX,
    open: |name, measured| Ok(Rc::new(Disk::open(name, measured)?)),
};

impl Disk {
    /// The model of this name in the catalogue, or in the TOML file at this path.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such model, with similar names; a fault in the file, with line and column; or
    /// another definition than the run with this environment measured.
    fn open(name: &str, measured: Option<&Environment>) -> Result<Self> {
        let text = text_of(name)?;
        let own = digest(text.bytes());
        let is_other = |run: &Environment| run.get(&KEYS.model_digest).as_ref() != Some(&own);
        // A name in a run file may be any file: its text is compared before it is parsed, since parse errors quote it.
        usage_errors! {
            measured.is_some_and(is_other) => format!("{PREFIX}{name} is not the disk that the run measured: its definition has changed"),
                "measure again, and ask about that run";
        }
        let definition = parsed(name, &text)?;
        let model = crate::build(&definition, 0).map_err(|why| wrong_definition(why, name))?;
        Ok(Self {
            bytes: model.capacity(),
            room: model.capacity(),
            name: format!("{PREFIX}{name}"),
            text,
            definition,
        })
    }

    /// A new disk of this definition.
    fn build(&self, seed: u64) -> Result<Box<dyn Model>> {
        crate::build(&self.definition, seed).map_err(|why| Error::usage(why).within(&self.name))
    }

    /// Checks the settings of one group of workers.
    fn check(&self, spec: &TrialSpec) -> Result<()> {
        usage_errors! {
            spec.offset + spec.region > self.bytes =>
                format!("the region ends at byte {}, beyond the {} bytes of {}", spec.offset + spec.region, self.bytes, self.name),
                "choose a smaller offset or region";
        }
        let (block, size) = (self.block(), exact_size(self.block()));
        if let Some(bytes) = spec.unaligned_request(block) {
            return Err(Error::usage(format!(
                "bs_mix has requests of {bytes} bytes, not a multiple of {size}, the block of {}",
                self.name
            ))
            .hint(format!("choose multiples of {size}")));
        }
        let values = [
            ("bs", spec.bs),
            ("offset", spec.offset),
            ("skip", spec.skip),
        ];
        for (name, value) in values {
            usage_errors! {
                !value.is_multiple_of(block) =>
                    format!("{name} of {value} bytes is not a multiple of {size}, the block of {}", self.name),
                    format!("choose a multiple of {size}");
            }
        }
        Ok(())
    }
}

impl VirtualTarget for Disk {
    fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn beside(&self, bytes: u64) -> OpenedVirtual {
        Rc::new(Self {
            room: self.room.min(bytes),
            ..self.clone()
        })
    }

    fn block(&self) -> u64 {
        self.definition.block()
    }

    fn adapt(
        &self,
        experiment: &mut Experiment,
        asked: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        adapt(experiment, asked)
    }

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        if cell.spec.has_groups() {
            return fit_groups(&mut cell.spec, |target, spec| {
                if let Some(target) = target {
                    return Err(
                        Error::usage(format!("a group on {target} in a run on a model"))
                            .hint("a model is measured alone: leave the target of the group out"),
                    );
                }
                cut_region(spec, self.room);
                self.check(spec)
            });
        }
        cut_region(&mut cell.spec.trial, self.room);
        if cell.spec.batch_auto {
            // A strategy changes CPU time, of which a model takes none.
            cell.spec.trial.batch = Batch::One;
            cell.spec.batch_auto = false;
        }
        cell.spec.check()?;
        self.check(&cell.spec.trial)
    }

    fn environment(&self) -> Environment {
        let mut environment = Environment::default();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        environment.put(&KEYS.iolab_version, version);
        environment.put(&KEYS.clock_source, VIRTUAL.to_owned());
        environment.put(&KEYS.model_title, self.definition.title.clone());
        environment.put(&KEYS.model_digest, digest(self.text.bytes()));
        let is_own = self.name.strip_prefix(PREFIX).and_then(built_in).is_none();
        environment.put(&KEYS.model_definition, is_own.then(|| self.text.clone()));
        environment.put(&KEYS.model_block_bytes, self.block());
        let write_cache = match self.definition.model.has_write_cache() {
            true => "write back",
            false => "write through",
        };
        environment.put(&KEYS.device_write_cache, write_cache.to_owned());
        environment.put(
            &KEYS.device_rotational,
            self.definition.model.is_rotational(),
        );
        environment
    }

    fn executor(&self, seed: u64, afresh: bool) -> Result<Box<dyn Executor + '_>> {
        Ok(Box::new(Simulated {
            disk: self,
            model: self.build(seed)?,
            now_ns: 0,
            next_seed: afresh.then(|| seed.wrapping_add(1)),
        }))
    }

    fn run_list(
        &self,
        spec: &TrialSpec,
        list: &mut dyn RequestList,
        stop: &AtomicBool,
    ) -> Result<Outcome> {
        let mut disk = self.build(spec.seed)?;
        Ok(simulation::run_list(spec, list, &mut *disk, 0, stop)?.0)
    }
}
