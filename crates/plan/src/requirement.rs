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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_requirement_is_whole() {
        for (name, _) in BUILTIN_REQUIREMENTS {
            let mut requirement = Requirement::find(name, &[]).expect(name);
            assert_eq!(requirement.name, *name);
            let mut time = Duration::ZERO;
            for workload in &requirement.workloads {
                let plan = crate::cells::cells(&workload.experiment).expect("cells");
                assert_eq!(plan.len(), 1, "{name}");
                plan[0].spec.trial.check().expect("a trial");
                time += workload.experiment.time_at_most();
                for need in &workload.levels {
                    assert!(!need.source.is_empty() && !need.remedy.is_empty());
                    // A source that could not be opened says so in its text.
                    let unread = need.source.contains("not opened")
                        || need.source.contains("not documented");
                    assert_eq!(need.wording.is_empty(), unread, "{name}: {}", need.source);
                }
            }
            assert!(time <= Duration::from_secs(60), "{name}: {time:?}");
            assert!(!requirement.not.is_empty());
            requirement.write_in_place().expect("can be");
            for workload in &requirement.workloads {
                assert!(!makes_files(&workload.experiment.base().expect("a cell")));
            }
            requirement
                .hold_for(Duration::from_secs(600))
                .expect("ten minutes");
            let experiment = &requirement.workloads[0].experiment;
            assert_eq!(experiment.design.trials_max, 600);
            // No budget ends it. The forecast covers the load, a warm-up, and a tenth for other work of trials.
            assert!(experiment.design.is_counted());
            assert_eq!(experiment.time_at_most().as_millis(), 661_100);
            let error = requirement
                .hold_for(Duration::from_secs(3_600_000))
                .expect_err("a thousand hours");
            assert_eq!(error.kind(), iolab_workload::Kind::Usage, "{error}");
        }
    }

    const GOOD: &str = r#"name = "mine"
question = "Good?"
not = "all else"
hold = "10s"
[[workload]]
name = "log"
settings = { sync = "fdatasync", read_percent = 0, cache = "cold" }
[[workload.level]]
level = "syncs.p99<10ms"
source = "not documented"
remedy = "a faster disk"
"#;

    #[test]
    fn mistakes_are_named_with_their_line() {
        let good = Requirement::from_toml(GOOD, "mine.toml", &[]).expect("good");
        assert_eq!(good.workloads[0].experiment.name, "mine-log");
        assert_eq!(good.workloads[0].experiment.design.trials_max, 10);
        let halves = GOOD.replacen("sync =", "bytes = \"none\", time = \"500ms\", sync =", 1);
        let halves =
            Requirement::from_toml(&halves, "mine.toml", &[]).expect("trials of half a second");
        assert_eq!(halves.workloads[0].experiment.design.trials_max, 20);
        let told = [
            ("syncs.p99<10ms", "p99"),
            ("fdatasync", "maybe"),
            ("hold = \"10s\"", "hold = \"3s\""),
            ("remedy = \"a faster disk\"\n", ""),
            ("[[workload.level]]", "[[workload.levels]]"),
            ("sync =", "bytes = \"1M\", sync ="),
            ("sync =", "time = \"none\", sync ="),
        ]
        .map(|(from, to)| {
            let read = Requirement::from_toml(&GOOD.replacen(from, to, 1), "mine.toml", &[]);
            read.expect_err(to).message().to_owned()
        });
        insta::assert_snapshot!(told.join("\n"), @r"
        mine.toml, line 9, column 9: 'p99' is not a level: it has no < or >
        mine.toml, line 7, column 21: sync: sync policy 'maybe' is unknown
        mine: 3 s of load are 3 trials
        mine.toml: TOML parse error at line 8, column 1
          |
        8 | [[workload.level]]
          | ^^^^^^^^^^^^^^^^^^
        missing field `remedy`
        mine.toml: TOML parse error at line 8, column 12
          |
        8 | [[workload.levels]]
          |            ^^^^^^
        unknown field `levels`, expected one of `name`, `settings`, `level`
        mine.toml, line 6, column 8: log: bytes ends a trial before its time
        mine.toml, line 6, column 8: log: time=none: a trial without an end
        ");
        let error = Requirement::find("etc", &[]).expect_err("unknown");
        insta::assert_snapshot!(error.to_string(), @r"
requirement 'etc' is unknown
  did you mean etcd?
");
    }

    #[test]
    fn a_bare_disk_takes_whole_blocks() {
        for (name, _) in BUILTIN_REQUIREMENTS {
            let mut requirement = Requirement::find(name, &[]).expect(name);
            let grown = requirement.use_bare_disk(4096).expect(name);
            for workload in &requirement.workloads {
                let trial = workload.experiment.base().expect(name).trial;
                trial.check().expect(name);
                assert!(trial.bs.is_multiple_of(4096) && trial.cache == CacheState::Direct);
            }
            let wanted: &[&str] = match *name {
                "etcd" => &["wal: 4 KiB instead of 2300 B"],
                "sqlite" => &["wal: 8 KiB instead of 4120 B"],
                _ => &[],
            };
            assert_eq!(grown, wanted, "{name}");
        }
    }

    #[test]
    fn new_files_become_the_one_that_there_is() {
        for set in [
            "allocate = \"fresh\"", "allocate = \"append\"", "layout = \"private\"",
        ] {
            let text = GOOD.replacen("settings = {", &format!("settings = {{ {set},"), 1);
            let mut requirement = Requirement::from_toml(&text, "mine.toml", &[]).expect(set);
            assert!(requirement.write_in_place().expect(set), "{set}");
            let cell = requirement.workloads[0].experiment.base().expect(set);
            cell.trial.check().expect(set);
            assert!(
                !makes_files(&cell) && cell.trial.layout != FileLayout::Private,
                "{set}"
            );
        }
    }
}
