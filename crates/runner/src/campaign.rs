//! The steps that run, study, fit, resume and why share: a [`Site`] makes plans, and opens its
//! targets, to which the plans are fitted. [`Opened`] fills scratch files. A [`Workspace`] is where plans are carried out.

mod workspace;

use std::cell::OnceCell;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iolab_engine::request_tracer::Tracing;
use iolab_host::device::Device;
use iolab_host::processor::check_realtime;
use iolab_host::system_control::SystemControl;
use iolab_plan::cells::{FittedPlan, OneProcess, Plan, Processes};
use iolab_plan::experiment::Experiment;
use iolab_plan::forecast::Forecast;
use iolab_plan::precondition::Emptying;
use iolab_plan::standard::Medium;
use iolab_record::environment::Environment;
use iolab_storage::{Consent, Need, Size, device_under};
use iolab_workload::settings::CellSpec;
use iolab_workload::{Error, Result, launchers, usage_errors};

use crate::peers::PeerList;

use crate::preflight::NewPreflight;
use crate::program_executor::executor_of;
use crate::ranks::{AssumedRanks, Ranks};
use crate::virtual_target::{OpenedVirtual, SchemeList, scheme_of};
use crate::{
    EndProcess, GivenTargets, NewObserver, ProgramExecutor, RunPrograms, StopFlags,
    SystemUnderTest, Targets, Watch, fit_all, settle_targets,
};
pub use workspace::{AskedPeaks, Opened, Workspace};

/// Trials that an earlier session made of a plan, and what these took of its budget.
pub type Made = (u64, Duration);

/// Takes the bytes filled so far, to show them.
pub type Filling = Box<dyn FnMut(u64)>;

/// The program around a campaign: what the user sees, and what differs between processes.
#[derive(Clone, Copy)]
pub struct Program {
    /// Shows a note.
    pub note: fn(&str),
    /// Begins to show the share of these bytes that is filled; the returned function takes the bytes filled so far.
    pub filling: fn(&str, u64) -> Filling,
    /// Shows the writes of a campaign, before anything is written.
    pub announce: fn(&Writes),
    /// Catches signals; with `true`, the first Ctrl-C lets the trial in flight end.
    pub catch: fn(bool) -> Result<StopFlags>,
    /// The path of a target's name in this process.
    pub place: fn(&Path) -> Result<PathBuf>,
    /// Examinations before the first trial.
    pub preflights: &'static [NewPreflight],
    /// Other tools that measure the same cells.
    pub peers: PeerList,
    /// Executors of programs as trials.
    pub executors: &'static [ProgramExecutor],
    /// Observers of the drives.
    pub observers: &'static [NewObserver],
    /// The tracer of requests.
    pub tracing: Tracing,
    /// Schemes of targets in virtual time.
    pub schemes: SchemeList,
    /// Ends the process if storage does not answer.
    pub end: EndProcess,
}

impl Program {
    /// Watches over targets of these names, before any of them is looked up; `None` for models.
    pub fn watch(self, named: &[PathBuf]) -> Option<Watch> {
        let real = named.iter();
        let real = real.filter(|named| scheme_of(self.schemes, named).is_none());
        let real: Vec<PathBuf> = real.cloned().collect();
        (!real.is_empty()).then(|| Watch::over_preparation(&real, self.end))
    }

    /// Restores settings of the kernel that a killed run left changed, if this process is root, and reports them. Failures
    /// are reported, and stop nothing.
    pub fn restore_leftovers(self) {
        match SystemControl::restore_leftovers() {
            Ok(restored) => self.tell_restored(&restored),
            Err(error) => (self.note)(&error.to_string()),
        }
    }

    fn tell_restored(self, restored: &[String]) {
        for text in restored {
            (self.note)(&format!("restored after a run that was killed: {text}"));
        }
    }
}

/// Writes of a campaign, as far as iolab knows.
#[derive(Debug)]
pub struct Writes {
    /// The forecast of each plan, or of the rest of it.
    pub forecasts: Vec<Forecast>,
    /// The kind of the targets; `None` if they differ.
    pub medium: Option<Medium>,
    /// Whether one of the targets is an NVMe namespace.
    pub has_namespace: bool,
    /// Bytes of the scratch files that are filled.
    pub filled: u64,
    /// Whether trials run programs, whose writes are unknown.
    pub runs_programs: bool,
}

/// Whether the user permits what can harm others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// By an option.
    Given,
    /// The option is not given.
    NotGiven,
    /// The command has no option that gives the permission.
    NoOption,
}

impl Permission {
    /// The permission of a command that has the option.
    pub fn of(is_given: bool) -> Self {
        match is_given {
            true => Self::Given,
            false => Self::NotGiven,
        }
    }
}

/// The bytes of a target that are used.
#[derive(Debug, Clone)]
pub enum Region {
    /// The bytes that plans ask for, or as many as there are.
    Cut,
    /// Exactly the bytes that plans ask for, which the user has named.
    Exact,
    /// The bytes that an earlier session had of each target.
    Had(Vec<u64>),
}

impl Region {
    /// The region of a new run.
    pub fn of(is_named: bool) -> Self {
        match is_named {
            true => Self::Exact,
            false => Self::Cut,
        }
    }

    fn is_exact(&self) -> bool {
        !matches!(self, Self::Cut)
    }
}

/// Permissions that a user gives to a campaign, and how it measures.
#[derive(Clone)]
pub struct Terms {
    /// The permission to destroy data on the targets.
    pub consent: Consent,
    /// The permission to change settings of the kernel, and to start real-time threads.
    pub system: Permission,
    /// The programs that may be started.
    pub programs: RunPrograms,
    /// The permission to purge, which erases more than the region. The text of an experiment is not a permission: it may
    /// come from someone else.
    pub purges: Permission,
    /// The other processes of the run.
    pub ranks: Option<Rc<dyn Ranks>>,
    /// The bytes of a target that are used.
    pub region: Region,
    /// Whether plans are carried out with the cache state that they name, or refused.
    pub keeps_cache: bool,
    /// Whether the ranks that plans ask for are assumed: nothing is carried out, and the ranks do not exist.
    pub foresees_ranks: bool,
    /// The flags that end it early, once signals are caught: before anything is made, and once in a command.
    pub signals: Rc<OnceCell<StopFlags>>,
    /// The program around it.
    pub program: Program,
}

impl Terms {
    /// Terms that permit nothing.
    pub fn strict(program: Program) -> Self {
        Self {
            consent: Consent::No,
            system: Permission::NoOption,
            programs: RunPrograms::Typed(Vec::new()),
            purges: Permission::NoOption,
            ranks: None,
            region: Region::Cut,
            keeps_cache: false,
            foresees_ranks: false,
            signals: Rc::default(),
            program,
        }
    }

    /// The flags; from here on signals are caught.
    fn flags(&self, in_two_steps: bool) -> Result<StopFlags> {
        if let Some(flags) = self.signals.get() {
            return Ok(flags.clone());
        }
        let flags = (self.program.catch)(in_two_steps)?;
        Ok(self.signals.get_or_init(|| flags).clone())
    }
}

/// The targets of plans. Nothing is opened yet.
pub struct Site {
    /// The target in virtual time, instead of others.
    pub model: Option<OpenedVirtual>,
    /// The targets, the run's own first.
    pub targets: Vec<PathBuf>,
    /// The user's names for the targets, or for the model.
    pub names: Environment,
    /// The watch over targets that do not answer, which ends the process; started before any target is looked up. `None`
    /// for a model.
    pub watch: Option<Watch>,
    /// Permissions of the user.
    pub terms: Terms,
}

/// The sites of all targets: one site for all files and devices, in the same blocks, with the watch over them, then one for
/// each model. Takes the terms, since a signal ends the process only once nothing holds its flags any more.
pub fn sites(given: &GivenTargets, watch: Option<Watch>, terms: Terms) -> Vec<Site> {
    let mut all = Vec::new();
    if !given.real.is_empty() {
        all.push(Site::of(given.real.clone(), None, watch, terms.clone()));
    }
    // A model is measured in no more bytes than the others have.
    let files = given
        .real
        .iter()
        .filter_map(|target| target.metadata().ok());
    let files = files.filter(|m| m.is_file()).map(|m| m.len());
    let room = files
        .chain(given.models.iter().map(|disk| disk.bytes()))
        .min();
    all.extend(given.models.iter().map(|disk| {
        let disk = disk.beside(room.unwrap_or(u64::MAX));
        let name = PathBuf::from(disk.name());
        Site::of(vec![name], Some(disk), None, terms.clone())
    }));
    all
}

/// Opens the targets of the plans, one site after the other, and fits the plans. Models are limited to the room of the
/// targets before them.
///
/// # Errors
/// As [`Site::open`].
pub fn open_all(
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
    /// The site of these targets, or of the model with that name.
    pub fn of(
        targets: Vec<PathBuf>,
        model: Option<OpenedVirtual>,
        watch: Option<Watch>,
        terms: Terms,
    ) -> Self {
        Self {
            model,
            targets,
            names: Environment::default(),
            watch,
            terms,
        }
    }

    /// Settles on the targets of an experiment here, several as levels of the factor `target`.
    ///
    /// # Errors
    /// As [`settle_targets`].
    pub fn settle(&mut self, experiment: &mut Experiment, given: &[PathBuf]) -> Result<()> {
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
    pub fn plan(
        &self,
        mut experiment: Experiment,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<(Plan, Option<String>)> {
        let left_out = match &self.model {
            Some(disk) => disk.adapt(&mut experiment, is_chosen)?,
            None => None,
        };
        let small = experiment.leave_out_small_sizes(self.block(), is_chosen)?;
        let few = match &self.terms.ranks {
            Some(ranks) if !is_chosen("bs") => {
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
    pub fn plan_as_begun(&self, experiment: Experiment) -> Result<Plan> {
        Plan::of(experiment, self.processes())
    }

    /// The processes that carry trials out.
    fn processes(&self) -> &dyn Processes {
        match &self.terms.ranks {
            _ if self.terms.foresees_ranks => &AssumedRanks,
            Some(ranks) => &**ranks,
            None => &OneProcess,
        }
    }

    /// Refuses plans that cannot be carried out on the model, before anything is opened.
    fn check_model(&self, plans: &[Plan]) -> Result<()> {
        let Some(disk) = &self.model else {
            return Ok(());
        };
        for plan in plans.iter().filter(|_| self.terms.region.is_exact()) {
            let trials = plan.cells().iter().map(|cell| &cell.spec.trial);
            let ends = trials.map(|trial| trial.offset.saturating_add(trial.region));
            let (end, bytes) = (ends.max().unwrap_or(0), disk.bytes());
            usage_errors! {
                end > bytes => format!("the region ends at byte {end}, beyond the {bytes} bytes of {}", disk.name()), "choose a smaller region with --size";
            }
        }
        let mut cells = plans.iter().flat_map(Plan::cells);
        cells.try_for_each(|cell| disk.fit(&mut cell.clone()))
    }

    /// Refuses plans that change settings of the kernel, or start real-time threads, unless the user allows it: an
    /// experiment or a run file may come from someone else.
    fn check_system(&self, plans: &[Plan]) -> Result<()> {
        let hint = match self.terms.system {
            _ if self.model.is_some() => return Ok(()),
            Permission::Given => return Ok(()),
            Permission::NotGiven => "allow it with --change-system, as root",
            Permission::NoOption => {
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
        let hint = match self.terms.purges {
            _ if self.model.is_some() => return Ok(()),
            Permission::Given => return Ok(()),
            Permission::NotGiven => {
                "type --precondition purge (with the other steps of the definition) and --destroy-data, or --precondition trim"
            }
            Permission::NoOption => {
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
        let ranks = self
            .terms
            .ranks
            .as_ref()
            .map_or(1, |ranks| ranks.count() as u64);
        let threads = of_process.saturating_mul(ranks);
        if threads == 0 || self.model.is_some() {
            return Ok(None);
        }
        check_realtime(threads)?;
        Ok(Some(
            "real-time threads: other programs may get no CPU during trials".to_owned(),
        ))
    }

    /// Needs of plans for each target; empty for a model.
    fn needs(&self, plans: &[Plan]) -> Result<Vec<Need>> {
        if self.model.is_some() {
            return Ok(Vec::new());
        }
        if let Some((plan, executor)) = executor_of(self.terms.program.executors, plans)? {
            return (executor.needs)(plan, &self.targets);
        }
        for cell in plans.iter().flat_map(Plan::cells) {
            if cell.spec.tool.is_peer() {
                crate::peers::find(self.terms.program.peers, cell.spec.tool)?;
            }
            let lacks_tracer = self.terms.program.tracing.is_none();
            usage_errors! {
                lacks_tracer && cell.spec.trials().iter().any(|trial| trial.trace) => "trace=true needs the instrument 'stages', which this program lacks",
                    "leave trace out, or use an iolab that has this instrument";
            }
        }
        let exact = self.terms.region.is_exact();
        let mut needs = crate::needs(plans, &self.targets, &self.terms.consent, exact)?;
        if let Region::Had(sizes) = &self.terms.region {
            for (need, bytes) in needs.iter_mut().zip(sizes) {
                need.size = Size::Exactly(*bytes);
            }
        }
        Ok(needs)
    }

    /// Refuses what needs no open target for its refusal; otherwise returns the needs of plans for each target, with remarks about
    /// their trials.
    ///
    /// # Errors
    /// Anything that would be refused.
    pub fn foresee(&self, plans: &[Plan]) -> Result<(Vec<Need>, Vec<String>)> {
        self.check_system(plans)?;
        self.check_purge(plans)?;
        let realtime = self.check_realtime(plans)?;
        self.check_model(plans)?;
        let needs = self.needs(plans)?;
        Ok((needs, realtime.into_iter().chain(started(plans)).collect()))
    }

    /// Checks that the user allows the programs that plans start.
    ///
    /// # Errors
    /// Of kind [`Refused`](iolab_workload::Kind::Refused): the first that is not allowed.
    pub fn check_programs(&self, plans: &[Plan]) -> Result<()> {
        let mut plans = plans.iter();
        plans.try_for_each(|plan| self.terms.programs.check(plan))
    }

    /// Opens the targets of the plans, and fits the plans to them. Everything that can be refused is refused here, before
    /// anything is written.
    ///
    /// # Errors
    /// When a target lacks something, or must not be used, or when a plan does not fit.
    pub fn open(self, plans: Vec<Plan>) -> Result<(Opened, Vec<FittedPlan>)> {
        self.check_system(&plans)?;
        self.check_purge(&plans)?;
        let realtime = self.check_realtime(&plans)?;
        let needs = self.needs(&plans)?;
        if let Some(watch) = &self.watch {
            let here = |named: &PathBuf| self.place(named).unwrap_or_else(|_| named.clone());
            watch.opens(&self.targets.iter().map(here).collect::<Vec<_>>());
        }
        let mut workspace = self.workspace(&plans, &needs)?;
        let has_ranks = self.terms.ranks.is_some();
        workspace.control_system(&plans, has_ranks, self.watch.as_ref())?;
        let (plans, notes) = fit_all(
            plans,
            &workspace.setup.place,
            self.processes(),
            self.terms.keeps_cache,
            self.terms.program.tracing,
        )?;
        for text in notes.into_iter().chain(realtime) {
            (self.terms.program.note)(&text);
        }
        if let Some(ranks) = self.terms.ranks {
            workspace.share(ranks, &needs)?;
        }
        let opened = Opened {
            place: self.model.map(|disk| disk.name().to_owned()),
            workspace,
            watch: self.watch,
        };
        Ok((opened, plans))
    }

    /// As [`Site::open`], of one plan.
    ///
    /// # Errors
    /// As [`Site::open`].
    pub fn open_one(self, plan: Plan) -> Result<(Opened, FittedPlan)> {
        let (opened, plans) = self.open(vec![plan])?;
        match <[FittedPlan; 1]>::try_from(plans) {
            Ok([plan]) => Ok((opened, plan)),
            Err(_) => unreachable!("one plan is fitted for each that is given"),
        }
    }

    /// The path of a target's name in this process.
    fn place(&self, named: &Path) -> Result<PathBuf> {
        let ranks = self.terms.ranks.as_ref();
        ranks.map_or_else(
            || (self.terms.program.place)(named),
            |ranks| ranks.place(named),
        )
    }

    /// Catches signals, and opens the targets, finds or builds the programs, or makes the model.
    ///
    /// # Errors
    /// When a target or a program lacks something, or must not be used.
    fn workspace(&self, plans: &[Plan], needs: &[Need]) -> Result<Workspace> {
        usage_errors! {
            self.model.is_some() && self.terms.ranks.is_some() => "a model is computed by one process", concat!("start iolab without ", launchers!());
        }
        self.check_model(plans)?;
        // Before a scratch file exists: from then on a signal must not leave it.
        let stop = self.terms.flags(self.terms.ranks.is_none())?;
        let programs = executor_of(self.terms.program.executors, plans);
        let place = match (&self.model, programs?) {
            (Some(disk), _) => SystemUnderTest::Model(Rc::clone(disk)),
            (None, Some((plan, executor))) => {
                self.terms.programs.check(plan)?;
                let programs = (executor.open)(plan, &self.targets);
                // A signal from the terminal ends the compiler too, which is not a failure of the compiler.
                if stop.after_trial.load(Ordering::Relaxed) {
                    return Err(Error::interrupted());
                }
                let (targets, programs) = programs?;
                SystemUnderTest::Programs(targets, programs)
            }
            (None, None) => {
                let place = |named: &Path| self.place(named);
                SystemUnderTest::Targets(Targets::open_at(&self.targets, needs, &place)?)
            }
        };
        Ok(Workspace::at(place, self, stop))
    }
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
