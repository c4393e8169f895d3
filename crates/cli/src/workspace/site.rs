//! The way from experiments to plans that are ready to be carried out, the same for every command that measures: an experiment
//! becomes a plan, plans and their place are opened and fitted to each other, the place is filled and looked at.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use iolab_host::device::Device;
use iolab_host::realtime_limit::check_realtime;
use iolab_plan::cells::{FittedPlan, OneProcess, Plan, Processes};
use iolab_plan::experiment::Experiment;
use iolab_plan::precondition::Emptying;
use iolab_runner::ranks::{AssumedRanks, Ranks};
use iolab_runner::{Disk, Fitted, GivenTargets, Programs, RunPrograms, Watch, settle_targets};
use iolab_storage::{Consent, Need, Size, device_under};
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result, launchers};

use super::{AskedPeaks, FillLimit, TargetNames, Workspace};
use crate::dry_run::{self, Made};
use crate::launcher;
use crate::signals::Signals;
use crate::target_names::give;
use iolab_command::failure::Outcome;
use iolab_command::output::note;

/// The targets of plans, and the user's permissions for them. Nothing is opened yet.
pub(crate) struct Site {
    /// The modelled disk, instead of targets.
    pub(crate) model: Option<Disk>,
    /// The targets, the run's own first.
    pub(crate) targets: Vec<PathBuf>,
    /// The user's names for the targets, or for the model.
    pub(crate) names: TargetNames,
    /// The signals that end it early.
    pub(crate) signals: Signals,
    /// The watch over targets that do not answer, which ends the process; started before any target is looked up. `None`
    /// for a model.
    pub(crate) watch: Option<Watch>,
    /// The user's permission to destroy data on the targets.
    pub(crate) consent: Consent,
    /// Whether the user allows trials to change settings of the kernel.
    pub(crate) changes_system: SystemConsent,
    /// The programs that the user allows to start.
    pub(crate) programs: RunPrograms,
    /// Whether the user asks for purges of devices.
    pub(crate) purges: PurgeConsent,
    /// The other processes of the run.
    pub(crate) ranks: Option<Rc<Ranks>>,
    pub(crate) region: Region,
    /// Whether plans are carried out with the cache state that they name, or refused.
    pub(crate) keeps_cache: bool,
    /// Whether the ranks that plans ask for are assumed: nothing is carried out, and the ranks do not exist.
    pub(crate) foresees_ranks: bool,
}

/// The bytes of a target that are used.
pub(crate) enum Region {
    /// The bytes that plans ask for, or as many as there are.
    Cut,
    /// Exactly the bytes that plans ask for, which the user has named.
    Exact,
    /// The bytes that an earlier session had of each target.
    Had(Vec<u64>),
}

/// Whether the user allows trials to change what other programs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemConsent {
    /// By `--change-system`.
    Given,
    /// The option is not given.
    NotGiven,
    /// The command has no such option.
    NoOption,
}

impl SystemConsent {
    /// The consent of a command that has the option.
    pub(crate) fn of(is_given: bool) -> Self {
        match is_given {
            true => Self::Given,
            false => Self::NotGiven,
        }
    }
}

/// Whether the user allows purges, which erase more than the region. The text of an experiment is not a consent: it may
/// come from someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PurgeConsent {
    /// By a precondition that is typed, and purges.
    Given,
    /// No such precondition is typed.
    NotGiven,
    /// The command has no option for it.
    NoOption,
}

impl PurgeConsent {
    /// The consent of a command that has the option.
    pub(crate) fn of(is_given: bool) -> Self {
        match is_given {
            true => Self::Given,
            false => Self::NotGiven,
        }
    }
}

impl Region {
    /// The region of a new run.
    pub(crate) fn of(is_named: bool) -> Self {
        match is_named {
            true => Self::Exact,
            false => Self::Cut,
        }
    }

    fn is_exact(&self) -> bool {
        !matches!(self, Self::Cut)
    }
}

/// The sites of all targets: one site for all files and devices, in the same blocks, with the watch over them, then one for
/// each model. `make` gives the site of a model or of these targets.
///
/// # Errors
/// As [`give`].
pub(crate) fn sites(
    given: &GivenTargets,
    named: &[String],
    watch: Option<Watch>,
    make: &dyn Fn(Option<Disk>, Vec<PathBuf>) -> Site,
) -> Result<Vec<Site>> {
    let mut all = Vec::new();
    if !given.real.is_empty() {
        let mut site = make(None, given.real.clone());
        site.watch = watch;
        all.push(site);
    }
    // A model is measured in no more bytes than the others have.
    let files = given
        .real
        .iter()
        .filter_map(|target| target.metadata().ok());
    let files = files.filter(|m| m.is_file()).map(|m| m.len());
    let room = files.chain(given.models.iter().map(Disk::bytes)).min();
    let of_model = |disk: &Disk| {
        let disk = disk.clone().beside(room.unwrap_or(u64::MAX));
        let name = PathBuf::from(disk.name());
        make(Some(disk), vec![name])
    };
    all.extend(given.models.iter().map(of_model));
    let targets: Vec<Vec<PathBuf>> = all.iter().map(|site| site.targets.clone()).collect();
    let names = give(named, &targets)?;
    let signals = Signals::default();
    for (site, names) in all.iter_mut().zip(names) {
        site.names = names;
        site.signals = signals.clone();
    }
    Ok(all)
}

/// Opens the targets of the plans, one site after the other, and fits the plans. Models are limited to the room of the
/// targets before them.
///
/// # Errors
/// As [`Site::open`].
pub(crate) fn open_all(
    planned: impl IntoIterator<Item = (Site, Vec<Plan>)>,
) -> Result<Vec<(Opened, Vec<FittedPlan>)>> {
    let mut room = u64::MAX;
    let opened = planned.into_iter().map(|(mut site, plans)| {
        site.model = site.model.map(|disk| disk.beside(room));
        let (opened, plans) = site.open(plans)?;
        room = room.min(opened.workspace.room());
        Ok((opened, plans))
    });
    opened.collect()
}

impl Site {
    /// Settles on the targets of an experiment here, several as levels of the factor `target`.
    ///
    /// # Errors
    /// As [`settle_targets`].
    pub(crate) fn settle(&mut self, experiment: &mut Experiment, given: &[PathBuf]) -> Result<()> {
        if self.model.is_none() {
            self.targets = settle_targets(experiment, given)?;
        }
        Ok(())
    }

    /// The plan of a new run here. Levels that have no meaning on a model are left out, which is given in words; `is_chosen` says
    /// of which settings the user has chosen the levels.
    ///
    /// # Errors
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): an experiment that cannot be carried out here.
    pub(crate) fn plan(
        &self,
        mut experiment: Experiment,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<(Plan, Option<String>)> {
        let left_out = match &self.model {
            Some(_) => iolab_runner::adapt(&mut experiment, is_chosen)?,
            None => None,
        };
        let small = experiment.leave_out_small_sizes(self.block(), is_chosen)?;
        let few = match &self.ranks {
            Some(ranks) if ranks.count() > 1 && !is_chosen("bs") => {
                experiment.leave_out_sizes_of_few_blocks(ranks.count() as u32)?
            }
            _ => None,
        };
        let told = left_out.into_iter().chain(small).chain(few);
        let told: Vec<String> = told.collect();
        let left_out = (!told.is_empty()).then(|| told.join("; "));
        let plan = Plan::of_new_run(experiment, self.processes())?;
        Ok((plan, left_out))
    }

    /// The largest block of the model, or of the devices below the targets, bytes; 0 if none is known.
    fn block(&self) -> u64 {
        if let Some(disk) = &self.model {
            return disk.block();
        }
        let blocks = self.targets.iter().filter_map(|path| {
            let device = Device::read(Path::new("/sys"), device_under(path)?)?;
            device.logical_block_bytes
        });
        blocks.max().unwrap_or(0)
    }

    /// The plan of a run that was begun.
    ///
    /// # Errors
    /// As [`Site::plan`].
    pub(crate) fn plan_as_begun(&self, experiment: Experiment) -> Result<Plan> {
        Plan::of(experiment, self.processes())
    }

    /// The processes that carry trials out.
    fn processes(&self) -> &dyn Processes {
        match &self.ranks {
            _ if self.foresees_ranks => &AssumedRanks,
            Some(ranks) => &**ranks,
            None => &OneProcess,
        }
    }

    /// Refuses plans that a run on a model would refuse, before anything is opened.
    fn check_blocks(&self, plans: &[Plan]) -> Result<()> {
        let mut cells = plans.iter().flat_map(Plan::cells);
        let Some(disk) = &self.model else {
            return Ok(());
        };
        cells.try_for_each(|cell| disk.check_cell(cell))
    }

    /// Refuses plans that change settings of the kernel, or start real-time threads, unless the user allows it: an
    /// experiment or a run file may come from someone else.
    fn check_system(&self, plans: &[Plan]) -> Result<()> {
        let hint = match self.changes_system {
            _ if self.model.is_some() => return Ok(()),
            SystemConsent::Given => return Ok(()),
            SystemConsent::NotGiven => "allow it with --change-system, as root",
            SystemConsent::NoOption => {
                "this command cannot allow it: leave 'realtime' and 'system' out of the definition"
            }
        };
        let mut cells = plans.iter().flat_map(Plan::cells);
        let asked = cells.find_map(|cell| Some((cell, cell.spec.needs_change_system()?)));
        let Some((cell, setting)) = asked else {
            return Ok(());
        };
        let what = match cell.spec.system.is_none() {
            true => format!(
                "refusing to start real-time threads, which can keep other programs from the CPUs ({setting})"
            ),
            false => format!("refusing to change settings of the kernel ({setting})"),
        };
        Err(Error::refused(what).hint(hint))
    }

    /// Refuses plans that purge a device, if the user does not ask for that.
    fn check_purge(&self, plans: &[Plan]) -> Result<()> {
        let hint = match self.purges {
            _ if self.model.is_some() => return Ok(()),
            PurgeConsent::Given => return Ok(()),
            PurgeConsent::NotGiven => {
                "type --precondition purge (with the other steps of the definition) and --destroy-data, or --precondition trim"
            }
            PurgeConsent::NoOption => {
                "this command does not purge: start a new run, and type --precondition purge and --destroy-data"
            }
        };
        let emptying = |plan: &Plan| plan.experiment().design.precondition.emptying;
        if !plans.iter().any(|plan| emptying(plan) == Emptying::Purge) {
            return Ok(());
        }
        // Only devices are ever purged.
        let is_device = |path: &&PathBuf| {
            let found = path.metadata();
            found.is_ok_and(|found| found.file_type().is_block_device())
        };
        let Some(device) = self.targets.iter().find(is_device) else {
            return Ok(());
        };
        Err(Error::refused(format!(
            "refusing to purge {}, which erases all of it: the definition asks for that, and the command line does not",
            device.display()
        ))
        .hint(hint))
    }

    /// The effect of the plans' real-time threads on other programs; `None` without any.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): they may take all CPUs for themselves.
    fn check_realtime(&self, plans: &[Plan]) -> Result<Option<String>> {
        let cells = plans.iter().flat_map(Plan::cells).map(|cell| &cell.spec);
        let of_process = cells.map(CellSpec::realtime_threads).max().unwrap_or(0);
        // All ranks may run on this machine.
        let ranks = self.ranks.as_ref().map_or(1, |ranks| ranks.count() as u64);
        let threads = of_process.saturating_mul(ranks);
        if threads == 0 || self.model.is_some() {
            return Ok(None);
        }
        check_realtime(threads)?;
        Ok(Some(
            "real-time threads: other programs may get no CPU during trials".to_owned(),
        ))
    }

    /// Needs of plans for each target; empty for a model, and for directories with the files of programs.
    fn needs(&self, plans: &[Plan]) -> Result<Vec<Need>> {
        if self.model.is_some() || runs_programs(plans) {
            return Ok(Vec::new());
        }
        let exact = self.region.is_exact();
        let mut needs = iolab_runner::needs(plans, &self.targets, &self.consent, exact)?;
        if let Region::Had(sizes) = &self.region {
            for (need, bytes) in needs.iter_mut().zip(sizes) {
                need.size = Size::Exactly(*bytes);
            }
        }
        Ok(needs)
    }

    /// Prints a description of the plans, and `does`, which describes them further; `follows` says that another forecast
    /// precedes.
    ///
    /// # Errors
    /// Anything that would be refused before a target is opened.
    pub(crate) fn dry_run(&self, plans: &[Plan], follows: bool, does: &[String]) -> Outcome {
        self.dry_run_after((0, Duration::ZERO), (plans, None), follows, does)
    }

    /// [`Site::dry_run`] of plans that share this budget.
    ///
    /// # Errors
    /// As [`Site::dry_run`].
    pub(crate) fn dry_run_sharing(
        &self,
        budget: Duration,
        plans: &[Plan],
        follows: bool,
        does: &[String],
    ) -> Outcome {
        self.dry_run_after((0, Duration::ZERO), (plans, Some(budget)), follows, does)
    }

    /// [`Site::dry_run`] of the rest after the trials of an earlier session, and their time from the budget.
    ///
    /// # Errors
    /// As [`Site::dry_run`].
    pub(crate) fn dry_run_after(
        &self,
        made: Made,
        (plans, shared): (&[Plan], Option<Duration>),
        follows: bool,
        does: &[String],
    ) -> Outcome {
        self.check_system(plans)?;
        self.check_purge(plans)?;
        let realtime = self.check_realtime(plans)?;
        self.check_blocks(plans)?;
        let does = does.iter().cloned().chain(realtime);
        let does: Vec<String> = does.chain(started(plans)).collect();
        let needs = match plans {
            [plan] if runs_programs(plans) => Programs::needs(plan, &self.targets)?,
            _ => self.needs(plans)?,
        };
        let place = dry_run::PlanTargets {
            targets: &self.targets,
            needs: &needs,
            model: self.model.as_ref(),
            made,
            shared,
        };
        dry_run::print(plans, place, follows, &does)?;
        // Last, so that the programs to allow are listed.
        Ok(plans
            .iter()
            .try_for_each(|plan| self.programs.check(plan))?)
    }

    /// Opens the targets of the plans, and fits the plans to them. Everything that can be refused is refused here, before
    /// anything is written.
    ///
    /// # Errors
    /// When a target lacks something, or must not be used, or when a plan does not fit.
    pub(crate) fn open(self, plans: Vec<Plan>) -> Result<(Opened, Vec<FittedPlan>)> {
        self.check_system(&plans)?;
        self.check_purge(&plans)?;
        let realtime = self.check_realtime(&plans)?;
        let needs = self.needs(&plans)?;
        if let Some(watch) = &self.watch {
            let here = |named: &PathBuf| self.place(named).unwrap_or_else(|_| named.clone());
            watch.opens(&self.targets.iter().map(here).collect::<Vec<_>>());
        }
        let mut workspace = self.workspace(&plans, &needs)?;
        workspace.control_system(&plans, self.ranks.is_some(), self.watch.as_ref())?;
        let place = workspace.place();
        let Fitted { plans, notes } =
            iolab_runner::fit_all(plans, place, self.processes(), self.keeps_cache)?;
        for text in notes.into_iter().chain(realtime) {
            note(format_args!("note: {text}"));
        }
        if let Some(ranks) = self.ranks {
            workspace.share(ranks, &needs)?;
        }
        let watch = self.watch;
        Ok((Opened { workspace, watch }, plans))
    }

    /// As [`Site::open`], of one plan.
    ///
    /// # Errors
    /// As [`Site::open`].
    pub(crate) fn open_one(self, plan: Plan) -> Result<(Opened, FittedPlan)> {
        let (opened, plans) = self.open(vec![plan])?;
        match <[FittedPlan; 1]>::try_from(plans) {
            Ok([plan]) => Ok((opened, plan)),
            Err(_) => unreachable!("one plan is fitted for each that is given"),
        }
    }

    /// The path of a target's name in this process.
    pub(super) fn place(&self, named: &Path) -> Result<PathBuf> {
        let ranks = self.ranks.as_ref();
        ranks.map_or_else(|| launcher::place(named), |ranks| ranks.place(named))
    }

    fn workspace(&self, plans: &[Plan], needs: &[Need]) -> Result<Workspace> {
        if let Some(disk) = &self.model {
            if self.ranks.is_some() {
                return Err(Error::usage("a model is computed by one process")
                    .hint(concat!("start iolab without ", launchers!())));
            }
            if self.region.is_exact() {
                let mut cells = plans.iter().map(Plan::cells);
                cells.try_for_each(|cells| disk.check_size(cells))?;
            }
            return Workspace::for_model(self, disk.clone());
        }
        match plans {
            [plan] if plan.experiment().runs_programs() => Workspace::for_programs(self, plan),
            _ => Workspace::open(self, needs),
        }
    }
}

/// Whether programs are run, on files made for them: never together with other plans.
fn runs_programs(plans: &[Plan]) -> bool {
    matches!(plans, [plan] if plan.experiment().runs_programs())
}

/// Each program that plans start, with its arguments.
fn started(plans: &[Plan]) -> Vec<String> {
    let cells = plans.iter().flat_map(Plan::cells);
    let mut all: Vec<String> = Vec::new();
    for program in cells.filter_map(|cell| cell.spec.program()) {
        let line = format!("Starts: {program}");
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// Opened targets that are not changed yet.
pub(crate) struct Opened {
    workspace: Workspace,
    /// The watch of the site, until the targets are prepared, or removed.
    watch: Option<Watch>,
}

impl Opened {
    /// Fills scratch files, finds the ceilings that `peak` asks for, and examines target and machine.
    ///
    /// # Errors
    /// A failed write, a failed probe, or the user's interrupt.
    pub(crate) fn prepare(
        self,
        seed: u64,
        plans: &[FittedPlan],
        peak: Option<&AskedPeaks>,
    ) -> Result<Workspace> {
        self.prepare_after((0, Duration::ZERO), seed, plans, peak)
    }

    /// [`Opened::prepare`] for the rest after the trials of an earlier session.
    ///
    /// # Errors
    /// As [`Opened::prepare`].
    pub(crate) fn prepare_after(
        self,
        made: Made,
        seed: u64,
        plans: &[FittedPlan],
        peak: Option<&AskedPeaks>,
    ) -> Result<Workspace> {
        // In this order: the watch is dropped last.
        let Self {
            watch,
            mut workspace,
        } = self;
        workspace.announce_writes(plans, made);
        workspace.check_writes(plans)?;
        let mut probed = plans.iter();
        let writes = probed.any(|plan| plan.writes() && plan.experiment().design.writes.is_none());
        let probes_write = writes && matches!(peak, Some(AskedPeaks::Measured));
        workspace.tell(watch.as_ref(), probes_write);
        // Without a limit it is never given up.
        workspace.fill(seed, None)?;
        if let Some(peak) = peak {
            workspace.determine_peaks(peak, writes)?;
        }
        workspace.check_before_run(plans);
        Ok(workspace)
    }

    /// As [`Opened::prepare`] without ceilings, with a limit on the time of filling.
    ///
    /// # Errors
    /// As [`Opened::prepare`].
    pub(crate) fn prepare_within(
        self,
        limit: FillLimit,
        seed: u64,
        plan: &FittedPlan,
    ) -> Result<Prepared> {
        let Self {
            watch,
            mut workspace,
        } = self;
        let plans = std::slice::from_ref(plan);
        workspace.announce_writes(plans, (0, Duration::ZERO));
        workspace.tell(watch.as_ref(), false);
        if let Some(time) = workspace.fill(seed, Some(limit))? {
            return Ok(Prepared::FillTakes(time));
        }
        workspace.check_before_run(plans);
        Ok(Prepared::Ready(Box::new(workspace)))
    }
}

/// Result of preparing within a limit.
pub(crate) enum Prepared {
    /// Scratch files are filled.
    Ready(Box<Workspace>),
    /// Filling was given up: it would take this time.
    FillTakes(Duration),
}
