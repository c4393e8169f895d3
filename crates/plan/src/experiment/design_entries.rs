//! The entries of `[design]`, which `--set` takes too, each with its name and how its value is read and written.

use std::str::FromStr;
use std::time::Duration;

use iolab_workload::names::unknown;
use iolab_workload::table;
use iolab_workload::units::{
    format_duration, format_size, parse_duration, parse_share, parse_size,
};
use iolab_workload::{Error, Result};
use toml::Value;

use super::design::{Design, WarmUp};
use crate::precondition::Precondition;

/// An entry of `[design]`, which has one value.
#[derive(Debug)]
pub struct DesignEntry {
    /// Name of the entry in the file.
    pub name: &'static str,
    set: Set,
    get: Get,
}

impl PartialEq for DesignEntry {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

type Set = fn(&mut Design, &str) -> Result<()>;
type Get = fn(&Design) -> Option<Value>;

const fn row(name: &'static str, set: Set, get: Get) -> DesignEntry {
    DesignEntry { name, set, get }
}

/// Every entry, in the order of definitions.
pub(super) static DESIGN: &[DesignEntry] = &table! {
    row("trials_min", set_least, |design| Some(design.trials_min.into()));
    row("trials_max", set_most, |design| Some(design.trials_max.into()));
    row("precision", |design, text| parse_share(text).map(|share| design.precision = share),
        |design| Some(design.precision.into()));
    row("budget", |design, text| time("budget", text).map(|time| design.budget = time),
        |design| Some(format_duration(design.budget).into()));
    row("refine", |design, text| number("refine", text).map(|sizes| design.refine = sizes),
        |design| (design.refine > 0).then(|| design.refine.into()));
    row("settle", |design, text| time("settle", text).map(|time| design.settle = time),
        |design| (!design.settle.is_zero()).then(|| format_duration(design.settle).into()));
    row("precondition", |design, text| text.parse().map(|own| design.prepare(own)),
        |design| (design.precondition != Precondition::default()).then(|| design.precondition.to_string().into()));
    row("warmup", |design, text| text.parse().map(|warmup| design.warmup = warmup),
        |design| (design.warmup != WarmUp::default()).then(|| design.warmup.name().into()));
    row("writes", |design, text| most_bytes(text).map(|bytes| design.writes = bytes),
        |design| design.writes.map(|bytes| format_size(bytes).into()));
    row("halves", |design, text| flag("halves", text).map(|halves| design.halves = halves),
        |design| design.halves.then(|| true.into()));
};

/// The name of every entry.
pub fn design_names() -> Vec<&'static str> {
    DESIGN.iter().map(|entry| entry.name).collect()
}

impl DesignEntry {
    /// The entry of this name; `None` if there is none.
    pub fn find(name: &str) -> Option<&'static Self> {
        DESIGN.iter().find(|entry| entry.name == name)
    }

    /// The entry of this name in a definition.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): there is none, with similar ones.
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        Self::find(name).ok_or_else(|| unknown("entry of [design]", name, &design_names()))
    }

    /// Changes a design.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a value that it does not take.
    pub(super) fn set(&self, design: &mut Design, text: &str) -> Result<()> {
        (self.set)(design, text)
    }

    /// The value for a definition; `None` for the default of an entry that is seldom given.
    pub(super) fn get(&self, design: &Design) -> Option<Value> {
        (self.get)(design)
    }
}

/// Refuses bounds of trials that contradict each other, of which each would move the other.
pub(super) fn check_bounds<'a>(
    given: impl Iterator<Item = (&'static DesignEntry, &'a str)> + Clone,
) -> Result<()> {
    let last = |name: &str| {
        let own = given.clone().filter(|(entry, _)| entry.name == name);
        own.last().and_then(|(_, text)| text.parse::<u32>().ok())
    };
    match last("trials_min").zip(last("trials_max")) {
        Some((least, most)) if least > most => Err(Error::usage(format!(
            "trials_min={least} and trials_max={most}"
        ))
        .hint("trials_min is at most trials_max")),
        _ => Ok(()),
    }
}

/// Sets the fewest trials. A bound that contradicts the other one moves it.
fn set_least(design: &mut Design, text: &str) -> Result<()> {
    design.trials_min = number("trials_min", text)?;
    design.trials_max = design.trials_max.max(design.trials_min);
    Ok(())
}

fn set_most(design: &mut Design, text: &str) -> Result<()> {
    design.trials_max = number("trials_max", text)?;
    design.trials_min = design.trials_min.min(design.trials_max);
    Ok(())
}

fn most_bytes(text: &str) -> Result<Option<u64>> {
    match text {
        "none" => Ok(None),
        _ => parse_size(text)
            .map(Some)
            .map_err(|error| error.within("writes")),
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.parse().map_err(|_| {
        Error::usage(format!("'{text}' is not a value of {name}"))
            .hint("write a whole number, or a budget such as 60s")
    })
}

fn flag(name: &str, text: &str) -> Result<bool> {
    text.parse().map_err(|_| {
        Error::usage(format!("'{text}' is neither true nor false"))
            .hint(format!("write {name}=true or {name}=false"))
    })
}

/// Reads a time of the entry `name`.
pub(super) fn time(name: &str, text: &str) -> Result<Duration> {
    parse_duration(text).map_err(|error| error.within(name))
}
