//! Requirements of a purpose on storage: workloads, and service levels with their sources.
//!
//! Parameters of a requirement, and the texts that are derived from them: `{batch * record_mb / step_s}`.

use std::time::Duration;

use serde::Deserialize;
use toml::{Spanned, Value};

use iolab_plan::experiment::document::{Definition, DocumentText, Entries, Ordered, budget};
use iolab_plan::experiment::{Design, Experiment, TRIALS_MAX, check_question};
use iolab_plan::read_user_file::definition;
use iolab_workload::names::{check_file_name, unknown};
use iolab_workload::response::Response;
use iolab_workload::service_level::Need;
use iolab_workload::settings::Setting;
use iolab_workload::trial::{Backend, CacheState, FileLayout};
use iolab_workload::units::{counted, exact_duration, exact_size, format_size, singular_after_one};
use iolab_workload::{Error, Result, usage_errors};

/// Name and TOML text of every built-in requirement, in alphabetical order.
pub const BUILTIN_REQUIREMENTS: &[(&str, &str)] = iolab_plan::definitions![
    "../requirements/", "ceph-journal", "checkpoint", "etcd", "kafka", "kv-cache", "model-load",
    "moe-experts", "postgresql", "sqlite", "training-data", "vm-images",
];

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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    question: Spanned<String>,
    not: String,
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
        let document: Document = source.parse(["requirement", "etcd"])?;
        let name = check_file_name(document.name.get_ref())
            .map_err(|error| source.at(document.name.span(), error))?;
        let mut parameters = Parameters::default();
        for (name, value) in &document.parameters.0 {
            let added = parameters.add(name.get_ref(), *value);
            added.map_err(|error| source.at(name.span(), error))?;
        }
        for change in changes {
            parameters.set(source.name, change)?;
        }
        let question = parameters.fill(document.question.get_ref());
        let question = question
            .and_then(|filled| check_question(&singular_after_one(&filled.text)))
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
            not: document.not,
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
        definition("requirement", BUILTIN_REQUIREMENTS, name, |text| {
            Self::from_toml(text, name, changes)
        })
    }

    /// Sets how long each workload loads the storage.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): too short for an interval, or too long.
    pub fn hold_for(&mut self, hold: Duration) -> Result<()> {
        self.hold = hold;
        for workload in &mut self.workloads {
            let experiment = &mut workload.experiment;
            let trial = experiment.base()?.trial.limit.time.unwrap_or(TRIAL);
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
                ("allocate", cell.trial.starts_fresh(), "recycled"),
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

impl WorkloadEntry {
    fn resolve(
        mut self,
        source: &DocumentText<'_>,
        of: &str,
        question: &str,
        parameters: &Parameters,
    ) -> Result<RequiredWorkload> {
        for (_, value) in &mut self.settings.0 {
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
            settings: self.settings,
            ..Definition::default()
        }
        .apply(source, &mut experiment)?;
        set_trial_time(&mut experiment)
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
        })
    }
}

/// Gives the trials of a workload a length, which nothing else may end.
fn set_trial_time(experiment: &mut Experiment) -> Result<()> {
    if experiment.values("bytes").any(|value| value != "none") {
        return Err(Error::usage("bytes ends a trial before its time").hint(
            "leave bytes out: hold says how long the workload runs, time how long each trial",
        ));
    }
    if experiment.values("time").any(|value| value == "none") {
        return Err(Error::usage("time=none: a trial without an end")
            .hint("leave time out for trials of 1 s, or give it the length of a trial"));
    }
    if experiment.base()?.trial.limit.time.is_none()
        && let Some(time) = Setting::find("time")
    {
        experiment.fix(time, &exact_duration(TRIAL))?;
    }
    Ok(())
}

/// Digits of a number that is derived.
const DIGITS: i32 = 4;

/// Parameters by name, in the order of the document.
#[derive(Debug, Clone, PartialEq, Default)]
struct Parameters(Vec<(String, f64)>);

/// A text with its expressions replaced by their values.
#[derive(Debug, PartialEq)]
struct Filled {
    text: String,
    /// The expressions with the parameters in them: `batch=7 * step_s=0.323`; empty without any.
    from: Vec<String>,
}

impl Parameters {
    /// Adds a parameter with its default.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a name that no expression could have, or a value that is none.
    fn add(&mut self, name: &str, value: f64) -> Result<()> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        usage_errors! {
            !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(is_letter) =>
                format!("'{name}' is not a name of a parameter"), "use letters, digits and _, a letter first";
            !is_value(value) => format!("the parameter {name} is {value}"), "give it a number above 0";
        }
        self.0.push((name.to_owned(), value));
        Ok(())
    }

    /// Changes a parameter: `NAME=VALUE`.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such parameter, or a value that is none.
    fn set(&mut self, of: &str, change: &str) -> Result<()> {
        let wrong = |what: &str| {
            Error::usage(format!("--set {change}: {what}")).hint("write NAME=NUMBER, above 0")
        };
        let (name, value) = change
            .split_once('=')
            .ok_or_else(|| wrong("there is no ="))?;
        if self.0.is_empty() {
            return Err(
                Error::usage(format!("--set {change}: {of} has no parameters"))
                    .hint(format!("change a copy: iolab show {of} > mine.toml")),
            );
        }
        let known: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let place = known.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| unknown(&format!("parameter of {of}"), name, &known))?;
        let value = value.parse().ok().filter(|value| is_value(*value));
        self.0[place].1 = value.ok_or_else(|| wrong("it is not a number above 0"))?;
        Ok(())
    }

    /// Replaces every `{EXPRESSION}`: names and numbers with `*` and `/` between them, from left to right.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an expression that cannot be read.
    fn fill(&self, text: &str) -> Result<Filled> {
        let mut filled = Filled {
            text: String::new(),
            from: Vec::new(),
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}').ok_or_else(|| {
                Error::usage(format!("the brace of '{{{after}' is not closed")).hint(HINT)
            })?;
            let (value, from) = self.value(expression)?;
            filled.text += before;
            filled.text += &rounded(value).to_string();
            filled.from.push(from);
            rest = after;
        }
        filled.text += rest;
        Ok(filled)
    }

    /// The value of an expression, and the expression with values.
    fn value(&self, expression: &str) -> Result<(f64, String)> {
        let wrong = |what: String| Error::usage(format!("{{{expression}}}: {what}")).hint(HINT);
        let (mut value, mut from) = (1.0, String::new());
        let words = ["*"].into_iter().chain(expression.split_whitespace());
        for pair in words.collect::<Vec<_>>().chunks(2) {
            let [operator, word] = pair else {
                return Err(wrong("a name or a number is missing".to_owned()));
            };
            let (other, shown) = match self.0.iter().find(|(name, _)| name == word) {
                Some((name, value)) => (*value, format!("{name}={value}")),
                None => {
                    let number = word.parse().ok().filter(|value| is_value(*value));
                    let number = number.ok_or_else(|| {
                        wrong(format!(
                            "'{word}' is neither a parameter nor a number above 0"
                        ))
                    })?;
                    (number, (*word).to_owned())
                }
            };
            value = match *operator {
                "*" => value * other,
                "/" => value / other,
                _ => return Err(wrong(format!("'{operator}' is neither * nor /"))),
            };
            if !from.is_empty() {
                from += &format!(" {operator} ");
            }
            from += &shown;
        }
        match is_value(value) {
            true => Ok((value, from)),
            false => Err(wrong(format!("its value is {value}"))),
        }
    }
}

const HINT: &str = "write names of [parameters] and numbers with * and / between them: {batch * record_mb / step_s}";

fn is_value(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// A whole number as it is, another one with [`DIGITS`] digits.
fn rounded(value: f64) -> f64 {
    if value.fract() == 0.0 {
        return value;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parameters() -> Parameters {
        let mut own = Parameters::default();
        for (name, value) in [("batch", 7.0), ("record_mb", 146.600628), ("step_s", 0.323)] {
            own.add(name, value).expect("valid");
        }
        own
    }

    #[test]
    fn expressions_become_numbers_with_their_origin() {
        let mut own = parameters();
        let filled = own
            .fill("throughput>{batch * record_mb / step_s * 0.9}MB/s")
            .expect("valid");
        assert_eq!(filled.text, "throughput>2859MB/s");
        assert_eq!(
            filled.from,
            ["batch=7 * record_mb=146.600628 / step_s=0.323 * 0.9"]
        );
        own.set("x", "batch=400").expect("known");
        assert_eq!(
            own.fill("{batch} and {batch / 3}").expect("valid").text,
            "400 and 133.3"
        );
        assert_eq!(own.fill("p99<5ms").expect("plain").from, [""; 0]);
    }

    #[test]
    fn mistakes_in_expressions_are_named() {
        let mut own = parameters();
        let told = [
            "{", "{}", "{batch *}", "{bach}", "{batch + 1}", "{0}", "{batch batch}",
        ]
        .map(|text| own.fill(text).expect_err(text).message().to_owned());
        let set = ["batch", "batch=0", "batch=x", "bach=1"]
            .map(|text| own.set("mine", text).expect_err(text).to_string());
        let none = Parameters::default()
            .set("etcd", "a=1")
            .expect_err("none")
            .to_string();
        insta::assert_snapshot!([&told[..], &set, &[none]].concat().join("\n"), @"
        the brace of '{' is not closed
        {}: a name or a number is missing
        {batch *}: a name or a number is missing
        {bach}: 'bach' is neither a parameter nor a number above 0
        {batch + 1}: '+' is neither * nor /
        {0}: '0' is neither a parameter nor a number above 0
        {batch batch}: a name or a number is missing
        --set batch: there is no =
          write NAME=NUMBER, above 0
        --set batch=0: it is not a number above 0
          write NAME=NUMBER, above 0
        --set batch=x: it is not a number above 0
          write NAME=NUMBER, above 0
        parameter of mine 'bach' is unknown
          did you mean batch?
        --set a=1: etcd has no parameters
          change a copy: iolab show etcd > mine.toml
        ");
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_refused(text: String) {
            let _ = parameters().fill(&text);
        }

        #[test]
        fn derived_numbers_keep_four_digits(value in 1e-6..1e12_f64) {
            let shown = rounded(value);
            prop_assert!((shown / value - 1.0).abs() <= 5.1e-4);
        }
    }
}
