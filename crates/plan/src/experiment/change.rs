//! Changes of an experiment by the user: from `--set`, or from an option that is short for it.

use std::mem::discriminant;
use std::time::Duration;

use iolab_workload::{Error, Result};

use super::design::{WarmUp, set_budget, set_settle, set_writes};
use super::{DESIGN, Experiment, GroupSetting};
use crate::precondition::{Emptying, Precondition};
use iolab_workload::command_template::split_list;
use iolab_workload::settings::ValueKind;
use iolab_workload::units::parse_share;

/// A change of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    what: What,
    /// The user's words, for messages.
    said: String,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// A list of levels makes the setting a factor, a single one fixes it.
    Setting(GroupSetting, Vec<String>),
    TrialsMin(u32),
    TrialsMax(u32),
    Precision(f64),
    Budget(Duration),
    Refine(u32),
    Settle(Duration),
    Precondition(Precondition),
    Pilot(bool),
    WarmUp(WarmUp),
    Writes(Option<u64>),
}

/// Longest words of the user in a message, characters.
const SAID_MAX: usize = 80;

/// The user's words for messages, shortened: a long list of levels hides the fault.
fn shortened(said: String) -> String {
    match said.char_indices().nth(SAID_MAX) {
        None => said,
        Some((end, _)) => format!("{}...", &said[..end]),
    }
}

impl Change {
    /// Reads `NAME=VALUE[,VALUE...]`. The entries of `[design]` take one value.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such name, or a value that it does not take.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, values) = text.split_once('=').ok_or_else(|| {
            Error::usage("there is no '=' in it")
                .hint("write --set NAME=VALUE or --set NAME=VALUE,VALUE")
                .within(format!("--set {text}"))
        })?;
        Self::said(name.trim(), values, format!("--set {text}"))
    }

    /// Sets `name` to a value, or to several separated by commas.
    ///
    /// # Errors
    ///
    /// Errors of [`Change::parse`].
    pub fn of(name: &str, values: &str) -> Result<Self> {
        Self::said(name, values, format!("--set {name}={values}"))
    }

    /// As [`Change::parse`], for an option that stands for a setting; `said` is the option with its value, for messages.
    ///
    /// # Errors
    ///
    /// As [`Change::parse`].
    pub fn of_option(name: &str, values: &str, said: String) -> Result<Self> {
        Self::said(name, values, said)
    }

    /// Adds this many finer sizes around each bend.
    pub fn refine(sizes: u32) -> Self {
        Self {
            what: What::Refine(sizes),
            said: format!("--refine {sizes}"),
        }
    }

    fn said(name: &str, values: &str, said: String) -> Result<Self> {
        let said = shortened(said);
        match What::read(name, values) {
            Ok(what) => Ok(Self { what, said }),
            Err(error) => Err(error.within(said)),
        }
    }

    /// Whether both change the same setting, under any of its names, or the same entry of the design.
    pub fn is_of_same(&self, other: &Self) -> bool {
        match (&self.what, &other.what) {
            (What::Setting(own, _), What::Setting(other, _)) => own == other,
            (own, other) => discriminant(own) == discriminant(other),
        }
    }

    /// The user's words: `--set bs=4k`, `--depth 32`.
    pub fn as_said(&self) -> &str {
        &self.said
    }

    /// The levels of a setting; empty for other changes.
    pub fn levels(&self) -> &[String] {
        match &self.what {
            What::Setting(_, levels) => levels,
            _ => &[],
        }
    }

    /// Whether it changes the setting of this name, or the entry `budget`, `trials_min` or `trials_max` of the design.
    pub fn is_of(&self, name: &str) -> bool {
        match &self.what {
            What::Setting(of, _) => of.is(name),
            What::Budget(_) => name == "budget",
            What::TrialsMin(_) => name == "trials_min",
            What::TrialsMax(_) => name == "trials_max",
            _ => false,
        }
    }

    /// Whether it asks for a purge of devices before the first trial.
    pub fn purges(&self) -> bool {
        match self.what {
            What::Precondition(precondition) => precondition.emptying == Emptying::Purge,
            _ => false,
        }
    }

    /// The budget; `None` for other changes.
    pub fn budget(&self) -> Option<Duration> {
        match self.what {
            What::Budget(budget) => Some(budget),
            _ => None,
        }
    }
}

impl What {
    fn read(name: &str, text: &str) -> Result<Self> {
        let values = text.trim();
        let count = || {
            values.parse().map_err(|_| {
                Error::usage(format!("'{values}' is not a value of {name}"))
                    .hint("write a whole number, or a budget such as 60s")
            })
        };
        Ok(match name {
            "trials_min" => Self::TrialsMin(count()?),
            "trials_max" => Self::TrialsMax(count()?),
            "precision" => Self::Precision(parse_share(values)?),
            "budget" => Self::Budget(set_budget(values)?),
            "refine" => Self::Refine(count()?),
            "settle" => Self::Settle(set_settle(values)?),
            "precondition" => Self::Precondition(values.parse()?),
            "pilot" => Self::Pilot(values.parse().map_err(|_| {
                Error::usage(format!("'{values}' is neither true nor false"))
                    .hint("write pilot=true or pilot=false")
            })?),
            "warmup" => Self::WarmUp(values.parse()?),
            "writes" => Self::Writes(set_writes(values)?),
            _ => {
                let of = GroupSetting::find(name, &DESIGN)?;
                let levels = match of.setting.kind {
                    ValueKind::List => {
                        let separator = of.setting.kind.separator();
                        text.split(separator).map(str::to_owned).collect()
                    }
                    // Only commands may contain commas, in quotes.
                    _ => split_list(text),
                };
                Self::Setting(of, levels)
            }
        })
    }
}

/// Refuses bounds of trials that contradict each other, of which each would move the other.
fn check_bounds_of_trials<'a>(changes: impl Iterator<Item = &'a Change>) -> Result<()> {
    let (mut least, mut most) = (None, None);
    for change in changes {
        match change.what {
            What::TrialsMin(count) => least = Some(count),
            What::TrialsMax(count) => most = Some(count),
            _ => {}
        }
    }
    match least.zip(most) {
        Some((least, most)) if least > most => Err(Error::usage(format!(
            "trials_min={least} and trials_max={most}"
        ))
        .hint("trials_min is at most trials_max")),
        _ => Ok(()),
    }
}

impl Experiment {
    /// Applies a change.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage); the experiment is then unchanged.
    pub fn apply(&mut self, change: &Change) -> Result<()> {
        let mut changed = self.clone();
        changed
            .take(&change.what)
            .and_then(|()| changed.check())
            .map_err(|error| error.within(change.said.clone()))?;
        changed.follow(self);
        *self = changed;
        Ok(())
    }

    /// Applies changes that belong together: only all of them together have to give a plan.
    ///
    /// # Errors
    /// Of kind usage, naming the change that invalidates the plan; the experiment is then unchanged.
    pub fn apply_all(&mut self, changes: &[Change]) -> Result<()> {
        let mut changed = self.clone();
        // Rounds of all cells set bounds of trials, which a bound of the user contradicts wherever it stands.
        let prepares = |change: &&Change| matches!(change.what, What::Precondition(_));
        let (first, others): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(prepares);
        let changes = || first.iter().chain(&others).copied();
        check_bounds_of_trials(changes())?;
        for change in changes() {
            let before = changed.clone();
            changed
                .take(&change.what)
                .map_err(|error| error.within(change.said.clone()))?;
            changed.follow(&before);
        }
        if let Err(error) = changed.check() {
            // One by one, for the change that it comes from.
            let mut tried = self.clone();
            changes().try_for_each(|change| tried.apply(change))?;
            return Err(error);
        }
        *self = changed;
        Ok(())
    }

    /// Applies `NAME=VALUE[,VALUE...]`; see [`Change::parse`].
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage); the experiment is then unchanged.
    pub fn apply_set(&mut self, text: &str) -> Result<()> {
        self.apply(&Change::parse(text)?)
    }

    fn take(&mut self, what: &What) -> Result<()> {
        let design = &mut self.design;
        match what {
            What::Setting(of, levels) => {
                self.check_effect(of)?;
                // The variants of an inquiry are cells with the settings that it has chosen.
                self.inquiry = None;
                let region = self.region();
                self.sweep(of.clone(), levels)?;
                if of.is("region") && of.group.is_none() {
                    self.move_groups(region)?;
                }
                if of.group.is_none() {
                    self.displace(of.setting);
                }
                self.drop_included_settings(of)?;
                self.forget_what_does_not_vary();
            }
            // A bound that contradicts the other one moves it.
            What::TrialsMin(least) => {
                design.trials_min = *least;
                design.trials_max = design.trials_max.max(*least);
            }
            What::TrialsMax(most) => {
                design.trials_max = *most;
                design.trials_min = design.trials_min.min(*most);
            }
            What::Precision(share) => design.precision = *share,
            What::Budget(time) => design.budget = *time,
            What::Refine(sizes) => design.refine = *sizes,
            What::Settle(time) => design.settle = *time,
            What::Precondition(plan) => design.prepare(*plan),
            What::Pilot(pilot) => design.pilot = Some(*pilot),
            What::WarmUp(warmup) => design.warmup = *warmup,
            What::Writes(bytes) => design.writes = *bytes,
        }
        Ok(())
    }
}
