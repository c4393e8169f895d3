//! The jobs of a job file: the options of their sections, each one understood.

use std::collections::BTreeMap;

use iolab_workload::foreign_options::{Effect, answer, in_job, names_in_jobs};
use iolab_workload::names::{alternatives, nearest};
use iolab_workload::{Error, Result};

use super::lines::{self, Around, Said};
use super::lines::{Hidden, LinePosition, Mistakes};
use crate::options::{Options, give, is_set, replaced_by, short};

/// Most jobs of a file.
const JOBS_MAX: usize = 1000;

/// Most jobs that a note names.
const NAMED_MAX: usize = 3;

/// Names of jobs, the first few of many: `a, b, c and 96 more`.
pub(super) fn listed(names: &[String]) -> String {
    let named = names.get(..NAMED_MAX).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// A job.
pub(super) struct Job {
    /// Name of the job, from its section.
    pub(super) name: String,
    /// Place of the job's section in the file.
    place: LinePosition,
    /// Its options, all of them known.
    pub(super) options: Options,
    /// Identical jobs that run at the same time: their threads are counted with its own.
    pub(super) also: Vec<String>,
    /// Whether its `libblkio_path` replaces a `filename`.
    pub(super) leaves_filename: bool,
    /// Places of its options.
    places: BTreeMap<String, LinePosition>,
}

impl Job {
    /// Makes `libblkio_path` the file: the library ignores `filename`, wherever it stands.
    fn take_path(&mut self) {
        if let Some(path) = self.options.get("libblkio_path").cloned() {
            let place = self.place_of("libblkio_path");
            self.places.insert("filename".to_owned(), place);
            let left = self.options.insert("filename".to_owned(), path);
            self.leaves_filename = left.is_some();
        }
    }

    /// The place of an option, or otherwise of the job.
    pub(super) fn place_of(&self, option: &str) -> LinePosition {
        self.places
            .get(option)
            .cloned()
            .unwrap_or_else(|| self.place())
    }

    /// The place of the job. Statements about a job follow from all of its options: the place is hidden if one of them is.
    pub(super) fn place(&self) -> LinePosition {
        let hidden = || self.places.values().find_map(|place| place.hidden.clone());
        let mut place = self.place.clone();
        place.hidden = place.hidden.or_else(hidden);
        place
    }

    /// An option in the form that may be shown, with its value if the job file itself has it.
    pub(super) fn shown(&self, option: &str, value: &str) -> String {
        match self.hidden(option) {
            None => format!("{option}={value}"),
            Some(Hidden::Variables(written)) => written.clone(),
            Some(Hidden::Elsewhere) => option.to_owned(),
        }
    }

    /// The value of an option that may be shown.
    pub(super) fn public(&self, option: &str) -> Option<&String> {
        let value = self.options.get(option);
        value.filter(|_| self.hidden(option).is_none())
    }

    /// Why an option is not shown.
    fn hidden(&self, option: &str) -> Option<&Hidden> {
        self.places.get(option)?.hidden.as_ref()
    }

    /// Whether it waits for all jobs before it.
    pub(super) fn waits(&self, before: &Self) -> bool {
        let is_before = |name: &String| *name == before.name || before.also.contains(name);
        ["stonewall", "wait_for_previous"]
            .iter()
            .any(|name| is_set(&self.options, name))
            || self.options.get("wait_for").is_some_and(is_before)
    }

    /// Whether it does what another does, apart from texts and reports, and in how many clones. Those of a job with
    /// `offset_increment` have ranges of their own, which another job begins anew.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let matters = |(name, _): &(&String, &String)| {
            name.as_str() != "numjobs"
                && in_job(name).is_none_or(|known| !matches!(known.effect, Effect::Idle(_)))
        };
        let (own, others) = (self.options.iter(), other.options.iter());
        !is_set(&self.options, "offset_increment") && own.filter(matters).eq(others.filter(matters))
    }
}

/// The jobs, each with the options of `[global]`.
///
/// # Errors
/// When there are too many.
pub(super) fn read(text: &str, around: Around<'_>, mistakes: &mut Mistakes) -> Result<Vec<Job>> {
    let mut global = (Options::new(), BTreeMap::new());
    let mut jobs: Vec<Job> = Vec::new();
    let mut in_global = true;
    let mut in_section = false;
    for (place, said) in lines::read(text, around, mistakes) {
        let (name, value) = match said {
            Said::Section(name) => {
                in_global = name == "global";
                in_section = true;
                if !in_global {
                    jobs.push(Job {
                        name,
                        place: place.clone(),
                        options: global.0.clone(),
                        also: Vec::new(),
                        leaves_filename: false,
                        places: global.1.clone(),
                    });
                }
                if jobs.len() > JOBS_MAX {
                    let error = Error::usage(format!("there are more than {JOBS_MAX} jobs"));
                    return Err(place.error(error.hint("give fewer")));
                }
                continue;
            }
            Said::Option(name, value) => (name, value),
        };
        if !in_section {
            let shown = short(&name);
            let error = Error::usage(format!("'{shown}' stands before the first section"));
            mistakes.add(&place, error.hint("write [global] above it"));
        }
        let value = match checked(&name, value) {
            Ok(value) => value,
            Err(error) => {
                mistakes.add(&place, error);
                if mistakes.are_enough() {
                    break;
                }
                continue;
            }
        };
        let (options, places) = match jobs.last_mut() {
            Some(job) if !in_global => (&mut job.options, &mut job.places),
            _ => (&mut global.0, &mut global.1),
        };
        for other in replaced_by(&name) {
            places.remove(other);
        }
        places.insert(name.clone(), place);
        give(options, name, value);
    }
    jobs.iter_mut().for_each(Job::take_path);
    if jobs.is_empty() {
        let error = Error::usage("there is no job in it");
        mistakes.add(
            &LinePosition::of(text.lines().count().max(1)),
            error.hint("a job begins with its name in brackets: [job1]"),
        );
    }
    Ok(jobs)
}

/// The value of an option that is understood, or switched off.
fn checked(name: &str, value: Option<String>) -> Result<String> {
    let shown = short(name);
    let Some(known) = in_job(name) else {
        let is_off = value
            .as_deref()
            .is_some_and(|value| ["0", "none"].contains(&value));
        return match answer(name) {
            Some(_) if is_off => Ok("0".to_owned()),
            Some(answer) => {
                let value = value.as_deref().map(short);
                let given = match &value {
                    None => format!("'{shown}'"),
                    Some(value) => format!("{shown}={value}"),
                };
                let hint = answer.hint(value.as_deref());
                Err(Error::usage(format!("iolab cannot carry out {given}")).hint(hint))
            }
            None => Err(unknown_option(&shown)),
        };
    };
    let value = match value {
        None if !known.is_flag => {
            return Err(Error::usage(format!("'{shown}' has no value"))
                .hint(format!("write {shown}=VALUE")));
        }
        value => value.unwrap_or_else(|| "1".to_owned()),
    };
    if known.only.is_empty() || known.only.contains(&value.as_str()) {
        return Ok(value);
    }
    let why = match known.effect {
        Effect::Idle(why) => format!(": {why}"),
        Effect::Decides(_) | Effect::Asks(_) | Effect::Target => String::new(),
    };
    Err(
        Error::usage(format!("iolab cannot carry out {shown}={value}{why}")).hint(
            answer(name).map_or_else(
                || format!("give {}", alternatives(known.only)),
                |answer| answer.hint(None),
            ),
        ),
    )
}

fn unknown_option(name: &str) -> Error {
    let known: Vec<&str> = names_in_jobs().collect();
    let error = Error::usage(format!("'{name}' is not an option that iolab knows"));
    match nearest(name, &known).as_slice() {
        [] => error
            .hint("take it out, or run the job with fio and bring its JSON in with 'iolab import'"),
        near => error.hint(format!("did you mean {}?", alternatives(near))),
    }
}
