//! Requirements of a purpose on storage: workloads, and service levels with their sources.

mod parameters;

use std::path::Path;
use std::time::Duration;

use iolab_workload::names::unknown;
use iolab_workload::quantity::{counted, exact_duration, exact_size};
use iolab_workload::response::Response;
use iolab_workload::service_level::Need;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::trial::{Backend, CacheState, FileLayout};
use iolab_workload::units::format_size;
use iolab_workload::usage_errors;
use iolab_workload::{Error, Result};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::experiment::document::{Definition, DocumentText, Entries, Groups, Ordered, budget};
use crate::experiment::{Design, Experiment, TRIALS_MAX, check_question, read_text};
use iolab_workload::names::check_file_name;
use parameters::Parameters;

/// Name and TOML text of every built-in requirement, in alphabetical order, collected from `requirements/` by the build.
pub const BUILTIN_REQUIREMENTS: &[(&str, &str)] =
    include!(concat!(env!("OUT_DIR"), "/requirements.rs"));

/// Length of a trial if the workload gives none: short, because many trials show how much the storage varies.
const TRIAL: Duration = Duration::from_secs(1);
/// Most workloads of a requirement.
const WORKLOADS_MAX: usize = 20;
/// Most levels of a workload.
const LEVELS_MAX: usize = 20;

/// Requirements of a purpose on storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// Name of the requirement.
    pub name: String,
    /// The question, one line.
    pub question: String,
    /// The limits of the answer.
    pub not: String,
    /// Time for which each workload loads the storage.
    pub hold: Duration,
    /// The workloads to run.
    pub workloads: Vec<RequiredWorkload>,
}

/// One workload of a requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredWorkload {
    /// Name of the workload.
    pub name: String,
    /// The experiment that runs it.
    pub experiment: Experiment,
    /// Service levels that the workload must keep.
    pub levels: Vec<Need>,
    /// Levels that follow from parameters, each with the expression, in words.
    pub derived: Vec<String>,
    /// The length of its trials.
    trial: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    question: Spanned<String>,
    #[serde(rename = "not")]
    not_covered: String,
    hold: Spanned<Value>,
    #[serde(default)]
    parameters: Ordered<f64>,
    workload: Vec<Spanned<WorkloadEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadEntry {
    name: Spanned<String>,
    settings: Entries,
    level: Vec<LevelEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelEntry {
    level: Spanned<String>,
    source: String,
    #[serde(default)]
    wording: String,
    remedy: String,
}

impl Requirement {
    /// Reads a requirement with changes of its parameters, `NAME=VALUE`; `source` names it in messages.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a fault, with its line and a valid alternative.
    pub fn from_toml(text: &str, source: &str, changes: &[String]) -> Result<Self> {
        let source = DocumentText { name: source, text };
        let document: Document = source.parse()?;
        let name = check_file_name(document.name.get_ref())
            .map_err(|error| source.at(document.name.span(), error))?;
        let mut parameters = Parameters::default();
        for (name, value) in document.parameters.entries() {
            let added = parameters.add(name.get_ref(), *value);
            added.map_err(|error| source.at(name.span(), error))?;
        }
        for change in changes {
            parameters.set(source.name, change)?;
        }
        let question = parameters.fill(document.question.get_ref());
        let question = question
            .and_then(|filled| check_question(&filled.text))
            .map_err(|error| source.at(document.question.span(), error))?;
        let hold = budget(&source, &document.hold)?;
        let count = document.workload.len();
        usage_errors! {
            count == 0 || count > WORKLOADS_MAX => format!("{}: the requirement has {count} workloads", source.name),
                format!("give it 1 to {WORKLOADS_MAX}, each as [[workload]] with name, settings and levels");
        }
        let workloads = document
            .workload
            .into_iter()
            .map(|entry| {
                let span = entry.span();
                let workload = entry
                    .into_inner()
                    .resolve(&source, &name, &question, &parameters)?;
                workload
                    .experiment
                    .check()
                    .map_err(|error| source.at(span, error))?;
                Ok(workload)
            })
            .collect::<Result<_>>()?;
        let mut requirement = Self {
            name,
            question,
            not: document.not_covered,
            hold,
            workloads,
        };
        requirement.hold_for(hold)?;
        Ok(requirement)
    }

    /// The built-in requirement of this name, or the one in the TOML file at this path, with changes of its parameters.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such requirement, with similar names; or a fault in the file or a change.
    pub fn find(name: &str, changes: &[String]) -> Result<Self> {
        let builtin = BUILTIN_REQUIREMENTS.iter();
        if let Some((_, text)) = builtin.clone().find(|(builtin, _)| *builtin == name) {
            return Self::from_toml(text, name, changes);
        }
        let path = Path::new(name);
        if path.exists() || path.extension().is_some_and(|ext| ext == "toml") {
            return Self::from_toml(&read_text(path)?, name, changes);
        }
        let known: Vec<&str> = builtin.map(|(name, _)| *name).collect();
        Err(unknown("requirement", name, &known))
    }

    /// Whether [`Requirement::find`] finds a built-in requirement by this name.
    pub fn is_builtin(name: &str) -> bool {
        BUILTIN_REQUIREMENTS
            .iter()
            .any(|(builtin, _)| *builtin == name)
    }

    /// Sets how long each workload loads the storage.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): too short for an interval, or too long.
    pub fn hold_for(&mut self, hold: Duration) -> Result<()> {
        self.hold = hold;
        for workload in &mut self.workloads {
            let (experiment, trial) = (&mut workload.experiment, workload.trial);
            let trials = (hold.as_secs_f64() / trial.as_secs_f64()).round() as u32;
            usage_errors! {
                trials < 8 => format!("{}: {} s of load are {}", self.name, hold.as_secs_f64(), counted(trials, "trial")),
                    format!("an interval takes 8: give --for {}s or more", 8.0 * trial.as_secs_f64());
                trials > TRIALS_MAX => format!("{}: {} of load are more than {TRIALS_MAX} trials", self.name, exact_duration(hold)),
                    format!("load the storage for at most {}", exact_duration(trial.saturating_mul(TRIALS_MAX)));
            }
            experiment.design = Design::counted(trials);
            experiment.check()?;
        }
        Ok(())
    }

    /// Changes the workloads for a disk without file system and page cache, which takes whole blocks of `block` bytes. Returns a
    /// description of each workload whose requests became larger.
    ///
    /// # Errors
    ///
    /// None for requirements that were read.
    pub fn use_bare_disk(&mut self, block: u64) -> Result<Vec<String>> {
        let mut grown = Vec::new();
        for workload in &mut self.workloads {
            let trial = workload.experiment.base()?.trial;
            let bs = trial.bs.next_multiple_of(block);
            if bs != trial.bs {
                let (from, to) = (exact_size(trial.bs), exact_size(bs));
                grown.push(format!("{}: {to} instead of {from}", workload.name));
            }
            let backend = match trial.backend {
                Backend::Sync => Backend::Psync,
                other => other,
            };
            for (name, value) in [
                ("cache", CacheState::Direct.to_string()),
                ("backend", backend.to_string()),
                ("bs", format_size(bs)),
            ] {
                if let Some(setting) = Setting::find(name) {
                    workload.experiment.fix(setting, &value)?;
                }
            }
        }
        Ok(grown)
    }

    /// Changes workloads that create files to overwrite a device or an existing file. Returns whether any was changed.
    ///
    /// # Errors
    ///
    /// None for requirements that were read.
    pub fn write_in_place(&mut self) -> Result<bool> {
        let mut changed = false;
        for workload in &mut self.workloads {
            let cell = workload.experiment.base()?;
            for (name, is_own, value) in [
                ("allocate", makes_files(&cell), "recycled"),
                ("layout", cell.trial.layout == FileLayout::Private, "shared"),
            ] {
                if is_own && let Some(setting) = Setting::find(name) {
                    workload.experiment.fix(setting, value)?;
                    changed = true;
                }
            }
        }
        Ok(changed)
    }
}

fn makes_files(cell: &CellSpec) -> bool {
    cell.trial.starts_fresh()
}

impl WorkloadEntry {
    fn resolve(
        mut self,
        source: &DocumentText<'_>,
        of: &str,
        question: &str,
        parameters: &Parameters,
    ) -> Result<RequiredWorkload> {
        for value in self.settings.values_mut() {
            let span = value.span();
            if let Value::String(text) = value.get_mut() {
                let filled = parameters.fill(text);
                *text = filled.map_err(|error| source.at(span, error))?.text;
            }
        }
        let name = check_file_name(self.name.get_ref())
            .map_err(|error| source.at(self.name.span(), error))?;
        let mut experiment = Experiment::bare(
            format!("{of}-{name}"),
            question.to_owned(),
            Response::Latency,
            Design::default(),
        );
        Definition {
            factors: Entries::default(),
            settings: self.settings,
            groups: Groups::default(),
            design: Entries::default(),
        }
        .apply(source, &mut experiment)?;
        let trial = trial_time(&mut experiment)
            .map_err(|error| source.at(self.name.span(), error.within(&name)))?;
        let count = self.level.len();
        if count == 0 || count > LEVELS_MAX {
            let error = Error::usage(format!("workload {name} has {count} levels")).hint(format!(
                "give it 1 to {LEVELS_MAX}, each as [[workload.level]]"
            ));
            return Err(source.at(self.name.span(), error));
        }
        let mut derived = Vec::new();
        let levels = self.level.into_iter().map(|entry| {
            let at = |error| source.at(entry.level.span(), error);
            let filled = parameters.fill(entry.level.get_ref()).map_err(at)?;
            let level = filled.text.parse().map_err(at)?;
            if !filled.from.is_empty() {
                let from = filled.from.join(", ");
                derived.push(format!("{name} {level} is derived: {from}"));
            }
            Ok(Need {
                level,
                source: entry.source,
                wording: entry.wording,
                remedy: entry.remedy,
            })
        });
        let levels = levels.collect::<Result<_>>()?;
        Ok(RequiredWorkload {
            levels,
            derived,
            name,
            experiment,
            trial,
        })
    }
}

/// The length of the trials of a workload, which nothing else may end.
fn trial_time(experiment: &mut Experiment) -> Result<Duration> {
    if experiment.values("bytes").any(|value| value != "none") {
        return Err(Error::usage("bytes ends a trial before its time").hint(
            "leave bytes out: hold says how long the workload runs, time how long each trial",
        ));
    }
    if experiment.values("time").any(|value| value == "none") {
        return Err(Error::usage("time=none: a trial without an end")
            .hint("leave time out for trials of 1 s, or give it the length of a trial"));
    }
    if let Some(time) = experiment.base()?.trial.limit.time {
        return Ok(time);
    }
    if let Some(time) = Setting::find("time") {
        experiment.fix(time, &exact_duration(TRIAL))?;
    }
    Ok(TRIAL)
}
