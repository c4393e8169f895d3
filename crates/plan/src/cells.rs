//! The cells of an experiment, as a plan and as a plan fitted to target, machine and processes. Neither plan changes once it is
//! made.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::time::Duration;

use iolab_workload::settings::{CellSpec, Tool, cell_label};
use iolab_workload::trial::{Batch, CacheState, FileLayout, HUGE_PAGE_MIN_BYTES, TrialSpec};
use iolab_workload::units::exact_size;
use iolab_workload::{Error, Result};

use crate::experiment::{Change, Experiment, GroupSetting, Refined};

/// One combination of levels.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCell {
    /// The level of each factor, in the order of the factors.
    pub levels: Vec<String>,
    /// The settings of its trials.
    pub spec: CellSpec,
    /// Whether the run added it after the grid, as a finer size or a rate of a search.
    pub refined: bool,
}

/// The processes that together carry out the trials of a plan.
pub trait Processes {
    /// Gives the workers of each cell their numbers among the workers of all processes.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): cells that these processes cannot carry out.
    fn span(&self, cells: &mut [PlannedCell]) -> Result<()>;
}

/// One process with all workers.
#[derive(Debug, Clone, Copy)]
pub struct OneProcess;

impl Processes for OneProcess {
    fn span(&self, _cells: &mut [PlannedCell]) -> Result<()> {
        Ok(())
    }
}

/// An experiment with its cells, including their time limits and their workers among all processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    experiment: Experiment,
    /// In the order of the factors' levels; cells that a run adds come last.
    cells: Vec<PlannedCell>,
    left_out: Option<String>,
}

/// Cells that a run adds, and the experiment that includes them.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedCells {
    experiment: Experiment,
    cells: Vec<PlannedCell>,
}

impl Plan {
    /// The plan of an experiment, including sizes and rates that a run of it has added.
    ///
    /// # Errors
    ///
    /// Errors of [`cells`], and of kind [`Usage`](iolab_workload::Kind::Usage): cells that the processes cannot carry out.
    pub fn of(experiment: Experiment, processes: &dyn Processes) -> Result<Self> {
        let mut cells = timed_cells(&experiment)?;
        processes.span(&mut cells)?;
        Ok(Self {
            cells,
            left_out: left_out(&experiment),
            experiment,
        })
    }

    /// The plan of a new run, without additions of an earlier run of the definition.
    ///
    /// # Errors
    ///
    /// As [`Plan::of`].
    pub fn of_new_run(experiment: Experiment, processes: &dyn Processes) -> Result<Self> {
        let mut experiment = Experiment {
            refined: None,
            ..experiment
        };
        if let Some(levels) = experiment.seek.clone() {
            experiment.seek(levels)?;
        }
        // Stored as settings of the experiment, so that a run begun without them is resumed without them.
        if measures_the_device(&experiment)? {
            let asks_for_buffers = ["buffer_memory", "buffer_init"];
            if !asks_for_buffers.iter().any(|name| experiment.names(name)) {
                experiment.apply_set("buffer_memory=contiguous")?;
            }
            if !["first_offset", "allocate"]
                .iter()
                .any(|name| experiment.names(name))
            {
                experiment.apply_set("first_offset=random")?;
            }
        }
        let plan = Self::of(experiment, processes)?;
        let mut unknown = plan.cells.iter().flat_map(|cell| &cell.spec.unknown);
        match unknown.next() {
            None => Ok(plan),
            Some(setting) => Err(Error::usage(format!("{setting} is unknown"))
                .hint(format!("only imported results have settings that are unknown: give one with --set {setting}=..."))),
        }
    }

    /// Sets another budget, from which the length of trials for service levels follows.
    ///
    /// # Errors
    ///
    /// None for a plan of a checked experiment.
    pub fn set_budget(&mut self, budget: Duration) -> Result<()> {
        self.experiment.design.budget = budget;
        let experiment = &self.experiment;
        // A share of a budget may be too short for service levels that the whole budget would suffice for; that must not end a
        // study.
        let mut timed = unchecked(experiment, None)?;
        timed.retain(|cell| meaningless(experiment, cell).is_none());
        let timed = timed.iter_mut().zip(&mut self.cells);
        for (timed, cell) in timed.filter(|(_, cell)| !cell.spec.has_groups()) {
            lengthen(experiment, timed);
            cell.spec.trial.limit.time = timed.spec.trial.limit.time;
        }
        Ok(())
    }

    /// Whether the plan can use the page cache instead: it asks for direct I/O, and does not compare cache states.
    pub fn can_be_buffered(&self) -> bool {
        let sweeps = |name: &str| self.experiment.factors.iter().any(|f| f.of.is(name));
        self.wants_direct() && !sweeps("cache")
    }

    /// This experiment with I/O through the page cache.
    ///
    /// # Errors
    ///
    /// As [`Plan::of`].
    pub fn buffered(self, processes: &dyn Processes) -> Result<Self> {
        let mut experiment = self.experiment;
        experiment.apply(&Change::of("cache", "cold")?)?;
        Self::of(experiment, processes)
    }

    /// Finer sizes of `bs`, measured together with the others from block `block` on.
    ///
    /// # Errors
    ///
    /// Errors of [`cells`].
    pub fn finer(&self, block: u32, sizes: Vec<String>) -> Result<AddedCells> {
        self.added(Experiment {
            refined: Some(Refined { block, bs: sizes }),
            ..self.experiment.clone()
        })
    }

    /// A further rate of a search, requests per second.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), when there are too many.
    pub fn at_rate(&self, rate: u64) -> Result<AddedCells> {
        let mut experiment = self.experiment.clone();
        experiment.add_rate(rate)?;
        self.added(experiment)
    }

    /// The cells that `experiment` has and this plan lacks.
    fn added(&self, experiment: Experiment) -> Result<AddedCells> {
        let cells = timed_cells(&experiment)?.into_iter();
        Ok(AddedCells {
            cells: cells.skip(self.cells.len()).collect(),
            experiment,
        })
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The cells of the plan.
    pub fn cells(&self) -> &[PlannedCell] {
        &self.cells
    }

    /// A sentence about combinations without a meaning, which are left out; `None` when there are none.
    pub fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// Whether any cell writes.
    pub fn writes(&self) -> bool {
        let trials = self.cells.iter().flat_map(|cell| cell.spec.trials());
        trials.into_iter().any(TrialSpec::writes)
    }

    /// Whether any cell asks for direct I/O.
    pub fn wants_direct(&self) -> bool {
        self.cells.iter().any(|cell| is_direct(&cell.spec))
    }

    /// The levels of a cell for messages: `bs=4KiB, skip=1MiB`.
    pub fn describe(&self, cell: &PlannedCell) -> String {
        cell_label(&self.factor_names(), &cell.levels)
    }

    /// Names of the factors in order.
    pub fn factor_names(&self) -> Vec<String> {
        factor_names(&self.experiment)
    }
}

/// The cells of an experiment, with the time limits of their trials.
fn timed_cells(experiment: &Experiment) -> Result<Vec<PlannedCell>> {
    let mut cells = cells(experiment)?;
    for cell in &mut cells {
        lengthen(experiment, cell);
    }
    experiment.cap_writes(cells.iter_mut().map(|cell| &mut cell.spec).collect())?;
    Ok(cells)
}

/// Extends the trials of a cell to the time that the service levels of the experiment need.
fn lengthen(experiment: &Experiment, cell: &mut PlannedCell) {
    let trial = &mut cell.spec.trial;
    trial.limit.time = experiment.trial_time(trial).or(trial.limit.time);
}

/// Names of the factors of an experiment, in order.
pub fn factor_names(experiment: &Experiment) -> Vec<String> {
    let factors = experiment.factors.iter();
    factors.map(|factor| factor.of.to_string()).collect()
}

/// Whether some cell uses direct I/O, so that the run measures the device.
///
/// Unless the user chooses otherwise, such a run uses contiguous buffers, because fragmented ones make the kernel split
/// requests. Runs about the preparation of buffers are excepted. Its ordered patterns start at another block in each trial,
/// because the drive may have cached the blocks of the trial before. Excludes comparisons with other tools, whose buffers
/// and offsets iolab cannot choose.
fn measures_the_device(experiment: &Experiment) -> Result<bool> {
    let cells = cells(experiment)?;
    let is_own = |cell: &PlannedCell| cell.spec.tool == Tool::IOLAB && !cell.spec.runs_program();
    Ok(cells.iter().all(is_own) && cells.iter().any(|cell| is_direct(&cell.spec)))
}

/// Whether a cell, or one of its groups, uses direct I/O.
fn is_direct(cell: &CellSpec) -> bool {
    let trials = cell.trials();
    trials
        .into_iter()
        .any(|trial| trial.cache == CacheState::Direct)
}

/// The cross product of all factors, in which the last factor varies fastest; then the product with the levels of `bs` that the run
/// has added. Combinations without a meaning are left out.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): too many cells, a `skip` without effect because the pattern is not `strided`, or
/// no cell with a meaning.
pub fn cells(experiment: &Experiment) -> Result<Vec<PlannedCell>> {
    let mut all = product(experiment, None)?;
    check_response_group(experiment, &all)?;
    if let Some(refined) = &experiment.refined {
        all.extend(product(experiment, Some(&refined.bs))?);
    }
    let has_meaning = |cell: &PlannedCell| meaningless(experiment, cell).is_none();
    if all.iter().any(has_meaning) {
        all.retain(has_meaning);
        return Ok(all);
    }
    match all.first().and_then(|cell| meaningless(experiment, cell)) {
        Some(Meaningless::Pages) => {
            let least = exact_size(HUGE_PAGE_MIN_BYTES);
            Err(Error::usage(format!(
                "buffer_init is nohuge, and every bs is smaller than the smallest huge page of any kernel, {least}"
            ))
            .hint(format!(
                "choose a bs of at least {least}, or another buffer_init"
            )))
        }
        // With no cell left, the check of each cell reports its fault.
        _ => Ok(all),
    }
}

/// Refuses a response of a group that runs in no cell, because its rate is 0 or it is never active.
fn check_response_group(experiment: &Experiment, all: &[PlannedCell]) -> Result<()> {
    let Some(group) = &experiment.response_group else {
        return Ok(());
    };
    let runs = |cell: &PlannedCell| cell.spec.runs_group(Some(group));
    if all.is_empty() || all.iter().any(runs) {
        return Ok(());
    }
    Err(Error::usage(format!(
        "the response belongs to group {group}, which runs in no cell"
    ))
    .hint("give it a rate other than 0 and name it in a level of active, or name another group in the response"))
}

/// Why a combination has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Meaningless {
    /// A choice of page size that does not affect these buffers.
    Pages,
    /// A file per thread together with one descriptor for all threads.
    Sharing,
    /// More threads than blocks in the region.
    Blocks,
    /// Reads that differ from other reads only in the sync policy, which does not affect reads.
    Sync,
}

impl Meaningless {
    fn words(self) -> String {
        match self {
            Self::Pages => format!(
                "buffer_init nohuge has no effect when bs is below {}",
                exact_size(HUGE_PAGE_MIN_BYTES)
            ),
            Self::Sharing => "with a file per thread there is no shared descriptor".to_owned(),
            Self::Blocks => "the region has fewer blocks than threads".to_owned(),
            Self::Sync => "reads are the same under every sync policy".to_owned(),
        }
    }
}

fn meaningless(experiment: &Experiment, planned: &PlannedCell) -> Option<Meaningless> {
    let cell = &planned.spec;
    // Errors in groups are reported instead of left out.
    if cell.has_groups() {
        return None;
    }
    let spec = &cell.trial;
    let blocks = spec.region / spec.bs.max(1);
    let lacks_blocks = blocks < u64::from(spec.threads) && spec.layout != FileLayout::Overlapping;
    if !spec.buffer_init_applies() {
        Some(Meaningless::Pages)
    } else if !spec.sharing_applies() {
        Some(Meaningless::Sharing)
    } else if lacks_blocks && spec.threads > 1 && !cell.runs_program() {
        Some(Meaningless::Blocks)
    } else if !spec.writes() && !cell.runs_program() && experiment.repeats("sync", &planned.levels)
    {
        Some(Meaningless::Sync)
    } else {
        None
    }
}

/// A sentence about combinations of an experiment that have no meaning and are left out; `None` when there are none.
fn left_out(experiment: &Experiment) -> Option<String> {
    let all = product(experiment, None).ok()?;
    let found: Vec<Meaningless> = all
        .iter()
        .filter_map(|cell| meaningless(experiment, cell))
        .collect();
    let reasons = BTreeSet::from_iter(&found).into_iter();
    let reasons: Vec<String> = reasons.map(|why| why.words()).collect();
    (!found.is_empty()).then(|| {
        format!(
            "left out {} of {} combinations: {}",
            found.len(),
            all.len(),
            reasons.join("; ")
        )
    })
}

/// The cross product of the factors, with `sizes` instead of the levels of `bs` if they are given.
fn product(experiment: &Experiment, sizes: Option<&[String]>) -> Result<Vec<PlannedCell>> {
    experiment.check()?;
    unchecked(experiment, sizes)
}

/// The combinations of an experiment, before each is checked.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage): a setting without effect in every cell, or an unknown group.
pub(crate) fn unchecked(
    experiment: &Experiment,
    sizes: Option<&[String]>,
) -> Result<Vec<PlannedCell>> {
    let first = PlannedCell {
        levels: Vec::new(),
        spec: experiment.base()?,
        refined: sizes.is_some(),
    };
    if experiment.only.is_empty() {
        return crossed(experiment, sizes, &[], first);
    }
    let mut cells = Vec::new();
    for combination in &experiment.only {
        cells.extend(crossed(experiment, sizes, combination, first.clone())?);
    }
    Ok(cells)
}

/// The cross product of the factors that the combination does not list, each combined with the combination's levels.
fn crossed(
    experiment: &Experiment,
    sizes: Option<&[String]>,
    listed: &[(GroupSetting, String)],
    first: PlannedCell,
) -> Result<Vec<PlannedCell>> {
    let mut cells = vec![first];
    for factor in &experiment.factors {
        let level = listed.iter().find(|(of, _)| *of == factor.of);
        let levels = match (level, sizes) {
            (Some((_, level)), _) => std::slice::from_ref(level),
            (None, Some(sizes)) if factor.of.is("bs") => sizes,
            (None, _) => &factor.levels,
        };
        let mut crossed = Vec::with_capacity(cells.len() * levels.len());
        for cell in &cells {
            for level in levels {
                let mut next = cell.clone();
                if factor.of.group.is_none() {
                    factor.of.setting.set(&mut next.spec, level)?;
                }
                next.levels.push(level.clone());
                crossed.push(next);
            }
        }
        cells = crossed;
    }
    if !experiment.groups.is_empty() {
        for cell in &mut cells {
            experiment.put_groups(&mut cell.spec, &cell.levels)?;
        }
    }
    Ok(cells)
}

impl Experiment {
    /// Number of cells; 0 for an invalid plan.
    pub fn cell_count(&self) -> usize {
        cells(self).map_or(0, |cells| cells.len())
    }
}

/// A plan whose cells are cut to the target and checked against it. Additions and choices of a run make a new one.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedPlan(Plan);

impl Deref for FittedPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl FittedPlan {
    /// Fits every cell with `fit`, which cuts it to the target and checks it.
    ///
    /// # Errors
    ///
    /// Errors of `fit`, with the cell.
    pub fn of(mut plan: Plan, fit: &dyn Fn(&mut PlannedCell) -> Result<()>) -> Result<Self> {
        let factors = plan.factor_names();
        for cell in &mut plan.cells {
            fit(cell).map_err(|error| error.within(cell_label(&factors, &cell.levels)))?;
        }
        if plan.experiment.design.halves {
            split_region(&mut plan.cells);
        }
        Ok(Self(plan))
    }

    /// The plan with another budget, from which the length of trials for service levels follows.
    ///
    /// # Errors
    ///
    /// None for a plan of a checked experiment.
    pub fn with_budget(self, budget: Duration) -> Result<Self> {
        let mut plan = self.0;
        plan.set_budget(budget)?;
        Ok(Self(plan))
    }

    /// The plan with the regions and completion strategies with which a run began, cell by cell.
    #[must_use]
    pub fn as_begun<'a>(mut self, begun: impl Iterator<Item = &'a CellSpec>) -> Self {
        for (PlannedCell { spec, .. }, begun) in self.0.cells.iter_mut().zip(begun) {
            (spec.trial.offset, spec.trial.region) = (begun.trial.offset, begun.trial.region);
            for (group, begun) in spec.groups.iter_mut().zip(&begun.groups) {
                group.spec.trial.region = begun.spec.trial.region;
            }
            if !begun.batch_auto {
                spec.trial.batch = begun.trial.batch;
                spec.batch_auto = false;
            }
        }
        self
    }

    /// The plan with completion strategies for cells, given by index, that had none yet.
    #[must_use]
    pub fn with_batches(mut self, chosen: &[(usize, Batch)]) -> Self {
        for (cell, batch) in chosen {
            let spec = &mut self.0.cells[*cell].spec;
            spec.trial.batch = *batch;
            spec.batch_auto = false;
        }
        self
    }

    /// The plan with further cells, fitted with `fit` like the others.
    ///
    /// # Errors
    ///
    /// Errors of `fit`, with the cell.
    pub fn grown(
        mut self,
        AddedCells { experiment, cells }: AddedCells,
        fit: &dyn Fn(&mut PlannedCell) -> Result<()>,
    ) -> Result<Self> {
        let factors = factor_names(&experiment);
        self.0.experiment = experiment;
        for mut cell in cells {
            fit(&mut cell).map_err(|error| error.within(cell_label(&factors, &cell.levels)))?;
            self.0.cells.push(cell);
        }
        Ok(self)
    }
}

/// Gives cells with an ordered pattern the first half of their region and the others the second one, if there are both.
fn split_region(cells: &mut [PlannedCell]) {
    let is_ordered = |cell: &PlannedCell| cell.spec.trial.pattern.is_ordered();
    if cells.iter().all(is_ordered) || !cells.iter().any(is_ordered) {
        return;
    }
    let requests = cells.iter().map(|cell| cell.spec.trial.largest_request());
    let unit = requests.max().unwrap_or(1);
    for cell in cells {
        let is_ordered = is_ordered(cell);
        let trial = &mut cell.spec.trial;
        let half = trial.region / 2 / unit * unit;
        // A half holds a request of every cell.
        if half > 0 {
            trial.offset += if is_ordered { 0 } else { half };
            trial.region = half;
        }
    }
}
