//! An experiment: a named question with its factors and levels, fixed settings, response and design.

mod change;
pub(crate) mod design;
pub mod document;
mod group_settings;
mod inquiry;
mod missing_levels;
mod question;
mod rate_search;
mod tracked_cells;

use iolab_workload::names::check_file_name;
use iolab_workload::{Error, Result, usage_errors};
use serde::Deserialize;
use toml::Spanned;

use crate::read_user_file::definition;

pub use change::Change;
pub use design::{
    BUDGET_MAX, BlockTimes, Design, DesignEntry, INTERVAL_TRIALS, LAST_BLOCK, TRIALS_MAX, WarmUp,
    design_names, trials_to_compare, writes_at_most,
};
pub use group_settings::{Combination, ExperimentGroup, GroupSetting, new_group_name};
pub use inquiry::{BLOCKS_MAX, Inquiry, Untried, Variant};
pub use missing_levels::{LevelChange, REFINE_MAX, Refined};

use document::{Definition, DocumentText, Entries, Groups, check_level_count};
use iolab_workload::escape_control::steers;
use iolab_workload::group::split_group;
use iolab_workload::response::Response;
use iolab_workload::service_level::ServiceLevels;
use iolab_workload::settings::{CellSpec, Setting};
use iolab_workload::units::{exact_duration, parse_duration};

/// Name and TOML text of every built-in experiment, in alphabetical order.
pub const BUILTIN: &[(&str, &str)] = crate::definitions![
    "../experiments/", "buffer-memory", "buffer-size", "disk-grid", "durable-log", "glance",
    "in-flight", "interference", "limits-iocost", "limits-saturation", "limits-seastar", "linkage",
    "load-latency", "pts-iops", "pts-lat", "pts-tp", "pts-wsat", "read-random", "read-size",
    "read-stride", "why-serialised", "write-random", "write-size", "write-stride", "write-vs-read",
];

iolab_workload::named! {
    /// A test of a standard that an experiment can follow; `standard.rs` says how far it does.
    pub enum Standard: "standard" {
        /// Random requests of eight sizes in seven mixes of reads and writes.
        PtsIops = "pts-iops",
        /// Sequential reads and writes.
        PtsThroughput = "pts-tp",
        /// Latency of single requests.
        PtsLatency = "pts-lat",
        /// Writes from a purged device on until they are steady.
        PtsWriteSaturation = "pts-wsat",
    }
}

/// Most cells of an experiment.
pub const CELLS_MAX: usize = 10_000;

/// One varied setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The setting that varies.
    pub of: GroupSetting,
    /// Its levels in canonical form (`4KiB`), at least two.
    pub levels: Vec<String>,
}

/// A question, and how to measure the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name; run files are named after it.
    pub name: String,
    /// The question, one line.
    pub question: String,
    /// The measured quantity: decides precision, figures and findings.
    pub response: Response,
    /// The group whose response is measured; `None` for the whole trial.
    pub response_group: Option<String>,
    /// The settings that vary, in the order of the definition.
    pub factors: Vec<Factor>,
    /// Fixed settings in canonical form; settings not listed have their defaults.
    pub settings: Vec<(&'static Setting, String)>,
    /// Groups of workers that do different things at the same time in every trial; empty if all workers do the same.
    pub groups: Vec<ExperimentGroup>,
    /// The number of repetitions, and what ends them.
    pub design: Design,
    /// Levels that the run has added to its plan.
    pub refined: Option<Refined>,
    /// Service levels for which the run searches the highest rate; the rates tried are levels of the factor `rate`.
    pub seek: Option<ServiceLevels>,
    /// Service levels that the run checks in every cell.
    pub hold: Option<ServiceLevels>,
    /// The combinations of levels to measure; empty for all. Factors not listed are crossed with them.
    pub only: Vec<Combination>,
    /// Settings of the cells whose response decides whether rounds of all cells are steady; empty for every cell.
    pub track: Vec<Combination>,
    /// The test of a standard that it follows, as far as its settings allow.
    pub standard: Option<Standard>,
    /// The difference whose cause the run finds, with the cells for it.
    pub inquiry: Option<Inquiry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    question: Spanned<String>,
    response: Spanned<String>,
    standard: Option<Spanned<String>>,
    seek: Option<Spanned<String>>,
    hold: Option<Spanned<String>>,
    #[serde(default)]
    factors: Entries,
    #[serde(default)]
    settings: Entries,
    #[serde(default)]
    group: Groups,
    #[serde(default)]
    design: Entries,
    refined: Option<Refined>,
    #[serde(default)]
    only: Vec<Entries>,
    #[serde(default)]
    track: Vec<Entries>,
    inquiry: Option<Inquiry>,
}

impl Experiment {
    /// An experiment of one cell with all defaults, to which factors and settings are added.
    pub fn bare(name: String, question: String, response: Response, design: Design) -> Self {
        Self {
            name,
            question,
            response,
            response_group: None,
            factors: Vec::new(),
            settings: Vec::new(),
            groups: Vec::new(),
            design,
            refined: None,
            seek: None,
            hold: None,
            only: Vec::new(),
            track: Vec::new(),
            standard: None,
            inquiry: None,
        }
    }

    /// Reads a definition; `source` names it in messages.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a fault, with its line and a valid alternative.
    pub fn from_toml(text: &str, source: &str) -> Result<Self> {
        let source = DocumentText { name: source, text };
        let document: Document = source.parse(["experiment", "read-size"])?;
        let at = |span, error| source.at(span, error);
        let levels = |text: Option<Spanned<String>>| {
            let parse = |text: Spanned<String>| {
                let parsed: Result<ServiceLevels> = text.get_ref().parse();
                parsed.map_err(|error| at(text.span(), error))
            };
            text.map(parse).transpose()
        };
        let standard = document.standard.map(|text| {
            let parsed = text.get_ref().parse();
            parsed.map_err(|error| at(text.span(), error))
        });
        let (group, response) = split_group(document.response.get_ref());
        let name = check_file_name(document.name.get_ref())
            .map_err(|error| at(document.name.span(), error))?;
        let question = check_question(document.question.get_ref())
            .map_err(|error| at(document.question.span(), error))?;
        let response = response
            .parse()
            .map_err(|error| at(document.response.span(), error))?;
        let mut experiment = Self {
            response_group: group.map(str::to_owned),
            refined: document.refined,
            seek: levels(document.seek)?,
            hold: levels(document.hold)?,
            standard: standard.transpose()?,
            inquiry: document.inquiry,
            ..Self::bare(name, question, response, Design::default())
        };
        Definition {
            factors: document.factors,
            settings: document.settings,
            groups: document.group,
            design: document.design,
        }
        .apply(&source, &mut experiment)?;
        experiment.read_only(&source, &document.only)?;
        experiment.read_track(&source, &document.track)?;
        experiment
            .check()
            .map_err(|error| error.within(source.name))?;
        Ok(experiment)
    }

    /// The built-in experiment of this name, or the one in the TOML file at this path.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such experiment, with similar names; or a fault in the file.
    pub fn find(name: &str) -> Result<Self> {
        definition("experiment", BUILTIN, name, |text| {
            let experiment = Self::from_toml(text, name)?;
            let tracked = experiment.check_track();
            tracked.map_err(|error| error.within(name))?;
            Ok(experiment)
        })
    }

    /// Whether [`Experiment::find`] finds a built-in experiment by this name.
    pub fn is_builtin(name: &str) -> bool {
        BUILTIN.iter().any(|(builtin, _)| *builtin == name)
    }

    /// Makes a setting a factor with these levels; a single level fixes it instead.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no level, one twice, or a value that the setting does not take.
    pub fn sweep(&mut self, of: impl Into<GroupSetting>, levels: &[String]) -> Result<()> {
        let of = of.into();
        let setting = of.setting;
        check_level_count(&of, levels.len())?;
        self.release(&of);
        if let [only] = levels {
            return self.fix(of, only);
        }
        let mut canonical: Vec<String> = Vec::with_capacity(levels.len());
        for level in levels {
            let level = setting.canonical(level)?;
            usage_errors! {
                canonical.contains(&level) => format!("factor {of} has the level {level} twice"), "name every level once";
            }
            canonical.push(level);
        }
        self.settings_of(of.group.as_deref())?
            .retain(|(other, _)| *other != setting);
        match self.factors.iter_mut().find(|factor| factor.of == of) {
            Some(factor) => factor.levels = canonical,
            None => self.factors.push(Factor {
                of,
                levels: canonical,
            }),
        }
        Ok(())
    }

    /// Fixes a setting, which is then no longer a factor.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a value that the setting does not take.
    pub fn fix(&mut self, of: impl Into<GroupSetting>, text: &str) -> Result<()> {
        let of = of.into();
        let value = of.setting.canonical(text)?;
        self.release(&of);
        self.factors.retain(|factor| factor.of != of);
        let settings = self.settings_of(of.group.as_deref())?;
        match settings.iter_mut().find(|(other, _)| *other == of.setting) {
            Some((_, fixed)) => *fixed = value,
            None => settings.push((of.setting, value)),
        }
        Ok(())
    }

    /// Checks everything that does not depend on the target.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an invalid plan, with what would be valid.
    pub fn check(&self) -> Result<()> {
        let crossed = self
            .factors
            .iter()
            .filter(|factor| !self.is_listed(&factor.of));
        let cells = crossed
            .map(|factor| self.level_count(factor))
            .try_fold(self.only.len().max(1), usize::checked_mul);
        if cells.is_none_or(|n| n > CELLS_MAX) {
            let grid: Vec<String> = self
                .factors
                .iter()
                .map(|factor| format!("{} {}", factor.levels.len(), factor.of))
                .collect();
            return Err(Error::usage(format!(
                "the plan has more than {CELLS_MAX} cells: {}",
                grid.join(" x ")
            ))
            .hint("give the factors fewer levels, or ask several smaller questions"));
        }
        self.check_latency()?;
        self.check_programs()?;
        self.check_groups()?;
        self.check_workload()?;
        self.check_seek()?;
        self.check_levels()?;
        self.check_inquiry()?;
        self.check_idle()?;
        self.check_rounds()?;
        self.design.check()
    }

    /// The settings that all cells share: the fixed ones, and defaults for the others.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting without effect in every cell.
    pub fn base(&self) -> Result<CellSpec> {
        self.check_skip()?;
        self.check_refine()?;
        self.check_mix()?;
        let mut cell = CellSpec::default();
        for (setting, value) in &self.settings {
            setting.set(&mut cell, value)?;
        }
        Ok(cell)
    }

    /// Refuses `skip` without pattern `strided`, the only one that uses it.
    fn check_skip(&self) -> Result<()> {
        if self.ever("skip", |value| value != "0")
            && !self.ever("pattern", |value| value == "strided")
        {
            return Err(Error::usage("skip is set, but no cell has pattern strided")
                .hint("set pattern = \"strided\", or leave skip out"));
        }
        Ok(())
    }

    /// Refuses a latency as the response if latencies are not recorded.
    fn check_latency(&self) -> Result<()> {
        usage_errors! {
            self.response.is_latency() && self.ever("latency", |value| value == "false") =>
                format!("the response is {}, but latency=false leaves latencies unrecorded", self.response.name()),
                "set latency=true, or ask for another response";
        }
        Ok(())
    }

    /// Refuses idle time before a trial that no trial of the budget follows. An inquiry chooses its own.
    fn check_idle(&self) -> Result<()> {
        let budget = self.design.budget;
        let idle = self
            .values("idle")
            .filter_map(|value| parse_duration(value).ok());
        match idle
            .max()
            .filter(|idle| *idle >= budget && self.inquiry.is_none())
        {
            None => Ok(()),
            Some(idle) => Err(Error::usage(format!(
                "idle={} does not end within the budget of {}",
                exact_duration(idle),
                exact_duration(budget)
            ))
            .hint("the budget includes idle time: set a longer --budget, or a shorter idle")),
        }
    }

    /// Whether a setting is fixed or varied, for all groups or for one.
    pub fn names(&self, name: &str) -> bool {
        self.ever(name, |_| true)
    }

    /// Whether a setting has a value that satisfies `has`, fixed or as a level, for all groups or for one.
    fn ever(&self, name: &str, has: impl Fn(&str) -> bool) -> bool {
        self.values(name).any(has)
    }

    /// The fixed value or the levels of a setting, for all groups and for each one; empty if it has its default.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.values_of_groups(name).map(|(_, value)| value)
    }

    /// Resets a setting to its default, whether it was fixed or varied.
    pub fn forget(&mut self, setting: &'static Setting) {
        let of = GroupSetting::from(setting);
        self.release(&of);
        self.factors.retain(|factor| factor.of != of);
        self.settings.retain(|(other, _)| *other != setting);
    }

    /// The whole definition with ranges and aliases resolved; reading it gives the same experiment.
    ///
    /// # Errors
    ///
    /// None for an experiment that was read or passes [`Experiment::check`].
    pub fn to_toml(&self) -> Result<String> {
        let text = self.document().and_then(|all| toml::to_string(&all));
        text.map_err(|error| {
            Error::failed(format!("the experiment cannot be written as TOML: {error}"))
        })
    }
}

/// Refuses control characters, which could control the terminal that shows the text.
pub fn check_question(text: &str) -> Result<String> {
    usage_errors! {
        text.chars().any(steers) => "the text has a line break, a control character or a mark of the direction of writing",
            "write it on one line, without them";
    }
    Ok(text.to_owned())
}
