//! Suspects: mechanisms that may cause a difference between two cells, each with settings that take it away from both.
//!
//! A suspect is a constant in a file of `suspect/`, and a line in `SUSPECTS`.

mod device;
mod threads;

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use iolab_workload::Result;
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::{PerStage, Stage};
use iolab_workload::system_settings::{SystemSetting, SystemSettings};
use iolab_workload::trial::{BufferInit, TrialSpec};

/// Requests of a trial that shows a 99th percentile: about ten lie above it.
pub const QUANTILE_REQUESTS: f64 = 1000.0;

/// Name of the suspect that cells between both sides show.
pub const BETWEEN: &str = "request-time";

/// Sizes between both sides to which a model of their difference is fitted.
const SIZES_BETWEEN: u32 = 4;

/// A mechanism, and how it is taken away.
#[derive(Debug, Clone, Copy)]
pub struct Suspect {
    /// Name of the suspect in files and in JSON.
    pub name: &'static str,
    /// Its description, for the middle of a sentence.
    pub what: &'static str,
    /// The effect of the intervention, for the middle of a sentence.
    pub change: &'static str,
    /// The side of a difference between two cells that the intervention is to change.
    pub acts_on: ActsOn,
    /// Its place among suspects of the same sign that act on the same number of sides: the commoner causes first. If time
    /// is short the last ones are left out.
    pub order: u8,
    /// The counter that a run reads if it is at work; `None` if no counter shows it.
    pub counted: Option<Counted>,
    /// The evidence that the intervention took effect.
    pub check: Check,
    /// The phenomena of which it can be a cause, shown by its intervention.
    pub explains: &'static [Compared],
    /// The settings of both sides without it.
    pub take_off: fn(&Sides) -> Intervention,
}

/// The side of a difference between two cells that an intervention changes if its suspect is the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActsOn {
    /// The worse side, which gets what it lacks.
    Worse,
    /// The better side, which loses its advantage.
    Better,
}

/// Evidence that an intervention took effect, in the cells of both sides without the suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The settings in force: a setting that cannot be carried out as it is fails the trial.
    Settings,
    /// At least half of the requested number of requests were in flight.
    InFlight,
    /// A tenth of the page faults with the suspect, or fewer, on both sides together.
    FewerFaults,
    /// Nine tenths of the device's I/Os per request with the suspect, or fewer, on both sides together.
    FewerDeviceIos,
    /// Half of the time that threads waited for a CPU which others used with the suspect, or less, on both sides together.
    LessCpuWait,
    /// The bytes of both sides came from storage: with the suspect the memory of this computer took them.
    FromStorage,
    /// The longer load moved as many bytes as with the suspect, and the shorter one no more: else what uses something up would not be compared at
    /// the same place.
    SameVolume,
}

/// Kind of the two sides of a phenomenon, in the order in which phenomena of one run are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// Two cells.
    Cells,
    /// Two loads of one cell, of which the longer one lasts beyond a fall of throughput. A change of their speed moves the
    /// place of the fall: only interventions that watch their bytes show anything.
    Loads,
    /// The median and the 99th percentile of latency of one cell, which both sides are.
    Quantiles,
}

/// The machine in the run that shows the difference, and the permitted changes to it. Unknown facts are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineState {
    /// Whether trials may change settings of the kernel.
    pub may_change_system: bool,
    /// Whether threads may be given the highest nice value.
    pub may_raise_nice: bool,
    /// Whether threads may become real-time threads.
    pub may_be_realtime: bool,
    /// The I/O scheduler of the target's device.
    pub scheduler: Option<String>,
    /// The largest request that reaches the device in one piece, bytes.
    pub request_max_bytes: Option<u64>,
    /// The most that the kernel reads ahead, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// When the kernel uses transparent huge pages.
    pub huge_pages: Option<String>,
    /// The share of their time in which threads waited for a CPU that others used, on the side where that was more.
    pub cpu_wait: Option<f64>,
    /// Credits or cached data that a trial leaves for the next one.
    pub leftover: Leftover,
}

/// State that trials leave in a target for later ones, as the level of their throughput showed it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Leftover {
    /// Nothing: the level stayed, or each trial has a target that is as new.
    #[default]
    Nothing,
    /// The rest of something that idle time restores: throughput fell to one part in this many.
    Drained(f64),
    /// Something that idle time does not take away.
    Lasting,
}

/// The settings of the two cells whose difference is to be explained.
#[derive(Debug, Clone, PartialEq)]
pub struct Sides {
    /// The cell that is compared with.
    pub base: CellSpec,
    /// The cell that is compared with it.
    pub other: CellSpec,
    /// Whether both are measured on a modelled disk.
    pub is_model: bool,
    /// The kind of the sides.
    pub compared: Compared,
    /// Requests per second of the cell that both are; `None` if they are two cells, or two loads.
    pub iops: Option<f64>,
    /// The machine that they are measured on.
    pub machine: MachineState,
    /// Counters of possible causes, from the run that shows the difference.
    pub signs: Signs,
}

/// The way to take a suspect away.
#[derive(Debug, Clone, PartialEq)]
pub enum Intervention {
    /// Settings of both sides that take it away.
    Settings(Box<Sides>),
    /// Nothing: cells between both sides, in ascending order of their size, show whether it makes the difference.
    Between(Vec<CellSpec>),
    /// Nothing: the mechanism has no part in these cells.
    Irrelevant,
    /// Nothing that leaves a difference: the two sides differ in that mechanism and in nothing else.
    IsTheDifference,
    /// Nothing as long as this other suspect is there, which hides it: its name.
    After(&'static str),
    /// A possible part in the difference, but no setting takes it away here; why.
    Lacks(Obstacle),
}

/// The obstacle that keeps a suspect from being tried; a name in the definition of a run, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Obstacle {
    /// The two sides differ in its mechanism and in nothing else.
    IsTheDifference,
    /// A side changes its level by itself, and each variant starts from the state that the previous one leaves.
    KeepsState,
    /// Taking it away changes settings of the kernel, which is not allowed.
    NeedsChangeSystem,
    /// Taking it away needs a priority that only root may give.
    NeedsRoot,
    /// The budget does not pay for it.
    NoTime {
        /// The budget that pays for all suspects, s.
        budget_s: u64,
        /// Idle time before each trial, ns, which is part of that budget; 0 if none is needed.
        #[serde(default, skip_serializing_if = "is_zero")]
        idle_ns: u64,
    },
    /// Others were asked for.
    NotAskedFor,
    /// A side without it has settings that cannot be together.
    Conflict {
        /// The error of the check of these settings.
        error: String,
    },
}

/// Whether a number needs no mention.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Sides {
    /// The cells that are measured: both sides, or the one that both are.
    pub fn cells(&self) -> Vec<&CellSpec> {
        match self.compared {
            Compared::Cells | Compared::Loads => vec![&self.base, &self.other],
            Compared::Quantiles => vec![&self.base],
        }
    }

    /// The trials of both sides.
    pub fn trials(&self) -> [&TrialSpec; 2] {
        [&self.base.trial, &self.other.trial]
    }

    /// Both sides with at least this idle time before each trial.
    pub fn after_idle(&self, idle: Duration) -> Self {
        let mut sides = self.clone();
        for cell in [&mut sides.base, &mut sides.other] {
            cell.idle = cell.idle.max(idle);
        }
        sides
    }

    /// Both sides with trials that end after this time at the latest.
    pub fn ended_after(&self, time: Duration) -> Self {
        let mut sides = self.clone();
        for cell in [&mut sides.base, &mut sides.other] {
            cell.trial.limit.time = Some(cell.trial.limit.time.map_or(time, |own| own.min(time)));
        }
        sides
    }

    /// Whether a setting is the same on both sides.
    pub fn share<T: PartialEq>(&self, of: impl Fn(&TrialSpec) -> T) -> bool {
        of(&self.base.trial) == of(&self.other.trial)
    }

    /// Both sides with another setting of the kernel, which a model does not have; lacking if the kernel's settings may not be changed.
    pub(crate) fn changed_system(&self, change: impl Fn(&mut SystemSettings)) -> Intervention {
        match self.changed_if(!self.is_model, |cell| change(&mut cell.system)) {
            Intervention::Settings(_) if !self.machine.may_change_system => {
                Intervention::Lacks(Obstacle::NeedsChangeSystem)
            }
            intervention => intervention,
        }
    }

    /// Both sides with this value of a setting of the kernel, in which they differ or which can cause a difference.
    pub(crate) fn with_system(
        &self,
        can_cause: bool,
        setting: SystemSetting,
        value: &str,
    ) -> Intervention {
        match can_cause || self.differ_in(setting) {
            true => self.changed_system(|system| system.set(setting, value)),
            false => Intervention::Irrelevant,
        }
    }

    /// Whether the two differ in a setting of the kernel.
    pub(crate) fn differ_in(&self, setting: SystemSetting) -> bool {
        self.base.system.get(setting) != self.other.system.get(setting)
    }

    /// The suspect in which these two differ, and in nothing else: taking it away leaves no difference.
    pub fn by_construction(&self) -> Option<&'static Suspect> {
        let mut all = Suspect::all().iter();
        all.find(|suspect| {
            suspect.explains.contains(&self.compared)
                && matches!((suspect.take_off)(self), Intervention::IsTheDifference)
        })
    }

    /// Whether a suspect of these two sides is the source of their bytes.
    pub fn have_sources_to_try(&self) -> bool {
        let mut all = Suspect::all().iter();
        all.any(|suspect| {
            suspect.is_the_source() && matches!((suspect.take_off)(self), Intervention::Settings(_))
        })
    }

    /// Checks both cells.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub fn check(&self) -> Result<()> {
        self.base.check()?;
        self.other.check()
    }

    /// The sign of a suspect before it is tried, from the run that shows the difference.
    pub fn sign_of(&self, suspect: &Suspect) -> Sign {
        suspect
            .counted
            .map_or(Sign::Unknown, |counted| self.signs.of(counted))
    }

    /// The cells at sizes between both sides, which differ in their size and in nothing else; `None` if there are too few.
    pub fn between(&self) -> Option<Vec<CellSpec>> {
        let (small, large) = match self.base.trial.bs <= self.other.trial.bs {
            true => (&self.base, &self.other),
            false => (&self.other, &self.base),
        };
        let of_size = |bs: u64| {
            let mut cell = small.clone();
            cell.trial.bs = bs;
            cell
        };
        if of_size(large.trial.bs) != *large {
            return None;
        }
        let least = small.trial.bs;
        let ratio = large.trial.bs as f64 / least as f64;
        // A multiple of the smaller size is aligned as that is.
        let size = |place: u32| {
            let share = f64::from(place) / f64::from(SIZES_BETWEEN + 1);
            ratio.powf(share).round() as u64 * least
        };
        let mut sizes: Vec<u64> = (1..=SIZES_BETWEEN).map(size).collect();
        sizes.dedup();
        sizes.retain(|size| (least + 1..large.trial.bs).contains(size));
        (sizes.len() == SIZES_BETWEEN as usize).then(|| sizes.into_iter().map(of_size).collect())
    }

    /// Whether any buffer is new memory, whose pages fault.
    pub(crate) fn have_faults(&self) -> bool {
        let mut trials = self.trials().into_iter();
        trials.any(|trial| trial.buffer_init == BufferInit::Untouched)
    }

    /// Number of sides in which others differ.
    pub fn changed_in(&self, others: &Self) -> usize {
        usize::from(self.base != others.base) + usize::from(self.other != others.other)
    }

    /// Both sides changed, if their settings let the suspect have a part in them.
    pub(crate) fn changed_if(
        &self,
        can_cause: bool,
        change: impl Fn(&mut CellSpec),
    ) -> Intervention {
        match can_cause {
            true => self.changed(change),
            false => Intervention::Irrelevant,
        }
    }

    /// Both sides changed, or irrelevant if the change affects neither. A difference is not a suspect of itself.
    pub(crate) fn changed(&self, change: impl Fn(&mut CellSpec)) -> Intervention {
        let mut sides = self.clone();
        change(&mut sides.base);
        change(&mut sides.other);
        let is_one = self.compared != Compared::Quantiles && sides.base == sides.other;
        match (sides == *self, is_one) {
            (true, _) => Intervention::Irrelevant,
            (false, true) => Intervention::IsTheDifference,
            (false, false) => Intervention::Settings(Box::new(sides)),
        }
    }
}

/// All suspects, in the order of their names.
static SUSPECTS: &[Suspect] = &[
    device::ALLOCATION,
    device::BANDWIDTH,
    threads::BUFFER_FOOTPRINT,
    threads::BUFFER_PIECES,
    threads::CPU_BINDING,
    threads::CPU_WAITING,
    device::DURABILITY,
    threads::FILE_LOCK,
    device::HOST_READ_AHEAD,
    threads::HUGE_PAGES,
    device::MAPPED_READ_AHEAD,
    threads::PAGE_FAULTS,
    device::QUEUEING,
    device::REACH,
    device::READ_AHEAD,
    device::READ_AHEAD_LIMIT,
    device::RECOVERY,
    device::REQUEST_LIMIT,
    device::REQUEST_TIME,
    device::SCHEDULER,
    threads::SHARED_DESCRIPTOR,
    device::SMALL_REQUESTS,
    threads::SYSTEM_CALLS,
    threads::TLB,
    threads::WAITING,
    device::WRITE_BACK,
    device::WRITE_CACHE,
    device::WRITTEN_DATA,
];

impl Suspect {
    /// A suspect of differences between cells, on the worse side, that no counter shows.
    const USUAL: Self = Self {
        name: "",
        what: "",
        change: "",
        acts_on: ActsOn::Worse,
        order: 0,
        counted: None,
        check: Check::Settings,
        explains: &[Compared::Cells],
        take_off: |_| Intervention::Irrelevant,
    };

    /// All suspects, in the order of their names.
    pub fn all() -> &'static [Self] {
        SUSPECTS
    }

    /// Whether it is the source of the bytes, so that a comparison with and without it compares sources.
    pub fn is_the_source(&self) -> bool {
        self.check == Check::FromStorage
    }

    /// The suspect of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        SUSPECTS.iter().find(|suspect| suspect.name == name)
    }
}

/// A counter that shows a mechanism at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Page faults of this process for each byte.
    PageFaults,
    /// I/Os of the device for each request.
    DeviceIos,
    /// The share of their time in which threads waited for a CPU that others used.
    CpuWait,
    /// Time in a stage of a traced request for each byte.
    Stage(Stage),
}

/// The indication of a counter for a mechanism, in the order in which suspects are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Sign {
    /// More was counted on the worse side.
    OnWorseSide,
    /// Unknown, or without a counter.
    #[default]
    Unknown,
    /// The worse side did not count more.
    NotThere,
}

/// The sign of each.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Signs {
    /// Sign of [`Counted::PageFaults`].
    pub page_faults: Sign,
    /// Sign of [`Counted::DeviceIos`].
    pub device_ios: Sign,
    /// Sign of [`Counted::CpuWait`].
    pub cpu_wait: Sign,
    /// Sign of each [`Counted::Stage`].
    pub stages: PerStage<Sign>,
}

impl Signs {
    /// The sign of a counter.
    pub fn of(&self, counted: Counted) -> Sign {
        match counted {
            Counted::PageFaults => self.page_faults,
            Counted::DeviceIos => self.device_ios,
            Counted::CpuWait => self.cpu_wait,
            Counted::Stage(stage) => self.stages[stage],
        }
    }
}
