//! A suite: several experiments that run one after the other within one budget.

use std::path::Path;
use std::time::Duration;

use iolab_workload::{Error, Result, usage_errors};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::experiment::document::{Definition, DocumentText, Entries, budget};
use crate::experiment::{BUDGET_MAX, BUILTIN, CELLS_MAX, Experiment, check_question};
use crate::read_user_file::{beside, definition};
use iolab_workload::names::{check_file_name, unknown};

/// Name and TOML text of every built-in suite, in alphabetical order.
pub const BUILTIN_SUITES: &[(&str, &str)] = crate::definitions![
    "../suites/", "glance", "limits", "micro", "pts-iops", "pts-lat", "pts-tp", "pts-wsat",
    "quick",
];

/// Most experiments of a suite.
const EXPERIMENTS_MAX: usize = 100;

/// Most cells of all its experiments.
const SUITE_CELLS_MAX: usize = 3 * CELLS_MAX;

/// Experiments with a common budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// Name of the suite.
    pub name: String,
    /// Its purpose, one line.
    pub about: String,
    /// Time for all experiments together.
    pub budget: Duration,
    /// Whether a study also draws its overview as a picture.
    pub picture: bool,
    /// The experiments, each with its share of the budget.
    pub experiments: Vec<Experiment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: Spanned<String>,
    about: Spanned<String>,
    budget: Spanned<Value>,
    picture: Option<bool>,
    #[serde(default)]
    factors: Entries,
    #[serde(default)]
    settings: Entries,
    #[serde(default)]
    design: Entries,
    experiments: Vec<Spanned<SuiteEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteEntry {
    #[serde(rename = "use")]
    used: Spanned<String>,
    /// Its name in this suite; by default the experiment's.
    name: Option<Spanned<String>>,
    #[serde(default)]
    factors: Entries,
    #[serde(default)]
    settings: Entries,
    #[serde(default)]
    design: Entries,
}

impl Suite {
    /// Reads a suite; `source` names it in messages, and `folder` contains experiments named by path.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): a fault, with its line and a valid alternative.
    pub fn from_toml(text: &str, source: &str, folder: &Path) -> Result<Self> {
        let source = DocumentText { name: source, text };
        let document: Document = source.parse(["suite", "quick"])?;
        let name = check_file_name(document.name.get_ref())
            .map_err(|error| source.at(document.name.span(), error))?;
        let about = check_question(document.about.get_ref())
            .map_err(|error| source.at(document.about.span(), error))?;
        let total = budget(&source, &document.budget)?;
        check_extent(total, document.experiments.len())
            .map_err(|error| error.within(source.name))?;
        let common = Definition {
            factors: document.factors,
            settings: document.settings,
            design: document.design,
            ..Definition::default()
        };
        let mut experiments = Vec::new();
        let mut own_budget = Vec::new();
        let mut cells = 0;
        for entry in document.experiments {
            let span = entry.span();
            let mut design = entry.get_ref().design.0.iter();
            own_budget.push(design.any(|(key, _)| key.get_ref() == "budget"));
            let resolved = entry.into_inner().resolve(&source, folder, &common);
            let experiment: Experiment = resolved?;
            experiment
                .check()
                .and_then(|()| check_unnamed(&experiment.name, &experiments))
                .map_err(|error| source.at(span.clone(), error))?;
            cells += experiment.cell_count();
            if cells > SUITE_CELLS_MAX {
                let error =
                    Error::usage(format!("the suite has more than {SUITE_CELLS_MAX} cells"));
                return Err(source.at(span, error.hint("split it into several suites")));
            }
            experiments.push(experiment);
        }
        share_budget(total, &mut experiments, &own_budget)
            .map_err(|error| error.within(source.name))?;
        Ok(Self {
            name,
            about,
            budget: total,
            picture: document.picture.unwrap_or(true),
            experiments,
        })
    }

    /// Whether [`Suite::find`] finds a built-in suite by this name.
    pub fn is_builtin(name: &str) -> bool {
        BUILTIN_SUITES.iter().any(|(builtin, _)| *builtin == name)
    }

    /// The built-in suite of this name, or the one in the TOML file at this path.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): no such suite, with similar names; or a fault in the file.
    pub fn find(name: &str) -> Result<Self> {
        let folder = Path::new(name).parent().unwrap_or(Path::new("."));
        definition("suite", BUILTIN_SUITES, name, |text| {
            Self::from_toml(text, name, folder)
        })
    }
}

impl SuiteEntry {
    fn resolve(
        self,
        source: &DocumentText<'_>,
        folder: &Path,
        common: &Definition,
    ) -> Result<Experiment> {
        let name = self.used.get_ref();
        let found = if Experiment::is_builtin(name) {
            Experiment::find(name)
        } else if name.ends_with(".toml") {
            beside(folder, name).and_then(|path| Experiment::find(&path.to_string_lossy()))
        } else {
            let known: Vec<&str> = BUILTIN.iter().map(|(builtin, _)| *builtin).collect();
            Err(unknown("experiment", name, &known))
        };
        let found = found.map_err(|error| source.at(self.used.span(), error))?;
        let mut experiment = found.clone();
        if let Some(name) = self.name {
            experiment.name =
                check_file_name(name.get_ref()).map_err(|error| source.at(name.span(), error))?;
        }
        common.apply(source, &mut experiment)?;
        Definition {
            factors: self.factors,
            settings: self.settings,
            design: self.design,
            ..Definition::default()
        }
        .apply(source, &mut experiment)?;
        experiment.follow(&found);
        Ok(experiment)
    }
}

/// Checks that no experiment so far has this name, which identifies its results.
fn check_unnamed(name: &str, others: &[Experiment]) -> Result<()> {
    usage_errors! {
        others.iter().any(|other| other.name == name) => format!("the suite has two experiments named {name}"),
            "give one of them another name in [[experiments]]: name = \"NAME\"";
    }
    Ok(())
}

fn check_extent(budget: Duration, experiments: usize) -> Result<()> {
    usage_errors! {
        budget.is_zero() || budget > BUDGET_MAX => "the budget of the suite is zero or above 30 days",
            "choose a time above zero and at most 30 days";
        experiments == 0 || experiments > EXPERIMENTS_MAX => format!("the suite has {experiments} experiments"),
            format!("give it 1 to {EXPERIMENTS_MAX}, each as [[experiments]] with use = \"NAME\"");
    }
    Ok(())
}

/// The share `part / all` of a budget, in whole milliseconds for readable definitions, and at least one.
pub fn share(budget: Duration, part: f64, all: f64) -> Duration {
    let share = part / all.max(1e-9);
    let ms = (budget.as_secs_f64() * share * 1e3).floor().max(1.0);
    Duration::from_millis(ms as u64)
}

/// Divides what experiments with a budget of their own leave, in proportion to the number of cells, so that every cell gets about
/// the same number of trials.
fn share_budget(
    total: Duration,
    experiments: &mut [Experiment],
    own_budget: &[bool],
) -> Result<()> {
    let mut left = total;
    let mut cells = 0;
    for (experiment, own) in experiments.iter().zip(own_budget) {
        if *own {
            left = left.saturating_sub(experiment.design.budget);
        } else {
            cells += experiment.cell_count();
        }
    }
    usage_errors! {
        cells > 0 && left.is_zero() => "the budgets of the experiments use up the budget of the suite", "increase the budget of the suite";
    }
    for (experiment, own) in experiments.iter_mut().zip(own_budget) {
        if !own {
            let own_cells = experiment.cell_count() as f64;
            experiment.design.budget = share(left, own_cells, cells as f64);
        }
    }
    Ok(())
}
