//! Suspects: mechanisms that may cause a difference between two cells, each with settings that take it away from both.
//!
//! A suspect is a constant in a file of `suspect/`, and a line in `SUSPECTS`.

mod buffers;
mod device;
mod read_ahead;
mod threads;
mod writes;

use std::time::Duration;

use iolab_workload::Result;
use iolab_workload::settings::CellSpec;
use iolab_workload::stages::{PerStage, Stage};
use iolab_workload::system_settings::{HugePageUse, SystemSettings};
use iolab_workload::trial::{BufferInit, TrialSpec};

use crate::untried_suspect::Obstacle;

/// Requests of a trial that shows a 99th percentile: about ten lie above it.
pub const QUANTILE_REQUESTS: f64 = 1000.0;

/// A mechanism, and how it is taken away.
#[derive(Debug, Clone, Copy)]
pub struct Suspect {
    /// Its name in files and in JSON.
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

/// The side of a difference that an intervention changes if its suspect is the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActsOn {
    /// The worse side, which gets what it lacks.
    Worse,
    /// The better side, which loses its advantage.
    Better,
    /// One of them, or both.
    Either,
}

/// Evidence that an intervention took effect, in the cells of both sides without the suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub huge_pages: Option<HugePageUse>,
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
    /// Nothing: the mechanism has no part in these cells.
    Irrelevant,
    /// Nothing that leaves a difference: the two sides differ in that mechanism and in nothing else.
    IsTheDifference,
    /// Nothing as long as this other suspect is there, which hides it: its name.
    After(&'static str),
    /// A possible part in the difference, but no setting takes it away here; why.
    Lacks(Obstacle),
}

impl Sides {
    /// The cells that are measured: both sides, or the one that both are.
    pub(crate) fn cells(&self) -> Vec<&CellSpec> {
        match self.compared {
            Compared::Cells | Compared::Loads => vec![&self.base, &self.other],
            Compared::Quantiles => vec![&self.base],
        }
    }

    /// The trials of both.
    pub(crate) fn trials(&self) -> [&TrialSpec; 2] {
        [&self.base.trial, &self.other.trial]
    }

    /// Both sides with at least this idle time before each trial.
    pub(crate) fn after_idle(&self, idle: Duration) -> Self {
        let mut sides = self.clone();
        for cell in [&mut sides.base, &mut sides.other] {
            cell.idle = cell.idle.max(idle);
        }
        sides
    }

    /// Both sides with trials that end after this time at the latest.
    pub(crate) fn ended_after(&self, time: Duration) -> Self {
        let mut sides = self.clone();
        for cell in [&mut sides.base, &mut sides.other] {
            cell.trial.limit.time = Some(cell.trial.limit.time.map_or(time, |own| own.min(time)));
        }
        sides
    }

    /// Whether a setting is the same on both sides.
    pub(crate) fn share<T: PartialEq>(&self, of: impl Fn(&TrialSpec) -> T) -> bool {
        of(&self.base.trial) == of(&self.other.trial)
    }

    /// Both sides with another setting of the kernel; lacking if the kernel's settings may not be changed.
    pub(crate) fn changed_system(&self, change: impl Fn(&mut SystemSettings)) -> Intervention {
        match self.changed(|cell| change(&mut cell.system)) {
            Intervention::Settings(_) if !self.machine.may_change_system => {
                Intervention::Lacks(Obstacle::NeedsChangeSystem)
            }
            intervention => intervention,
        }
    }

    /// Whether the two differ in a setting of the kernel.
    pub(crate) fn differ_in<T: PartialEq>(&self, of: impl Fn(&SystemSettings) -> T) -> bool {
        of(&self.base.system) != of(&self.other.system)
    }

    /// The suspects in which these two differ, and in nothing else: taking one away leaves no difference.
    pub fn by_construction(&self) -> impl Iterator<Item = &'static Suspect> + '_ {
        let all = Suspect::all().iter();
        all.filter(|suspect| suspect.explains.contains(&self.compared))
            .filter(|suspect| matches!((suspect.take_off)(self), Intervention::IsTheDifference))
    }

    /// Whether a suspect of these two sides is the source of their bytes.
    pub fn have_sources_to_try(&self) -> bool {
        let mut all = Suspect::all().iter();
        all.any(|suspect| {
            suspect.is_the_source() && matches!((suspect.take_off)(self), Intervention::Settings(_))
        })
    }

    /// Whether these are the two sides of a mechanism that would be its own suspect.
    pub fn is_by_construction(&self) -> bool {
        self.by_construction().next().is_some()
    }

    /// Checks both cells.
    ///
    /// # Errors
    /// Settings that cannot be together.
    pub(crate) fn check(&self) -> Result<()> {
        self.base.check()?;
        self.other.check()
    }

    /// The sign of a suspect before it is tried, from the run that shows the difference.
    pub(crate) fn sign_of(&self, suspect: &Suspect) -> Sign {
        suspect
            .counted
            .map_or(Sign::Unknown, |counted| self.signs.of(counted))
    }

    /// Whether any buffer is new memory, whose pages fault.
    pub(crate) fn have_faults(&self) -> bool {
        let mut trials = self.trials().into_iter();
        trials.any(|trial| trial.buffer_init == BufferInit::Untouched)
    }

    /// Number of sides in which others differ.
    pub(crate) fn changed_in(&self, others: &Self) -> usize {
        usize::from(self.base != others.base) + usize::from(self.other != others.other)
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
    writes::ALLOCATION,
    device::BANDWIDTH,
    buffers::BUFFER_FOOTPRINT,
    buffers::BUFFER_PIECES,
    threads::CPU_BINDING,
    threads::CPU_WAITING,
    writes::DURABILITY,
    threads::FILE_LOCK,
    read_ahead::HOST_READ_AHEAD,
    buffers::HUGE_PAGES,
    read_ahead::MAPPED_READ_AHEAD,
    buffers::PAGE_FAULTS,
    device::QUEUEING,
    device::REACH,
    read_ahead::READ_AHEAD,
    read_ahead::READ_AHEAD_LIMIT,
    writes::RECOVERY,
    device::REQUEST_LIMIT,
    device::SCHEDULER,
    threads::SHARED_DESCRIPTOR,
    device::SMALL_REQUESTS,
    threads::SYSTEM_CALLS,
    buffers::TLB,
    threads::WAITING,
    writes::WRITE_BACK,
    writes::WRITE_CACHE,
    writes::WRITTEN_DATA,
];

impl Suspect {
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

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_workload::trial::{Backend, CacheState, Pattern, SyncPolicy};

    fn sides(base: impl Fn(&mut TrialSpec), other: impl Fn(&mut TrialSpec)) -> Sides {
        let of = |change: &dyn Fn(&mut TrialSpec)| {
            let mut cell = CellSpec::default();
            cell.trial.cache = CacheState::Direct;
            change(&mut cell.trial);
            cell
        };
        Sides {
            base: of(&base),
            other: of(&other),
            is_model: true,
            compared: Compared::Cells,
            iops: None,
            machine: MachineState::default(),
            signs: Signs::default(),
        }
    }

    fn relevant(sides: &Sides) -> Vec<&'static str> {
        let takes = |suspect: &&Suspect| {
            suspect.explains.contains(&sides.compared)
                && matches!((suspect.take_off)(sides), Intervention::Settings(_))
        };
        let all = Suspect::all().iter().filter(takes);
        all.map(|suspect| suspect.name).collect()
    }

    #[test]
    fn suspects_are_those_with_a_possible_part() {
        let random = sides(|_| {}, |trial| trial.pattern = Pattern::Rand);
        assert_eq!(relevant(&random), ["reach", "read-ahead", "waiting"]);
        let durable = sides(
            |_| {},
            |trial| {
                trial.read_percent = 0;
                trial.sync = SyncPolicy::Each;
            },
        );
        assert_eq!(relevant(&durable), ["durability", "read-ahead"]);
        let cached = sides(|_| {}, |trial| trial.read_percent = 0);
        assert_eq!(relevant(&cached), ["read-ahead", "waiting", "write-cache"]);
        let threads = sides(
            |trial| trial.bs = 128 << 10,
            |trial| {
                trial.bs = 128 << 10;
                trial.threads = 8;
            },
        );
        assert_eq!(relevant(&threads), ["bandwidth", "read-ahead"]);
    }

    /// A region that hardly shrinks says nothing about its size.
    #[test]
    fn a_region_of_few_requests_is_not_reduced() {
        let of = |region: u64| {
            sides(
                |trial| trial.region = region,
                |trial| {
                    trial.region = region;
                    trial.pattern = Pattern::Rand;
                },
            )
        };
        let requests = 64 * of(1 << 30).base.trial.bs;
        assert!(relevant(&of(8 * requests)).contains(&"reach"));
        assert!(!relevant(&of(4 * requests)).contains(&"reach"));
    }

    /// Durable writes add a constant to both sides, on models too.
    #[test]
    fn two_writing_sides_do_not_suspect_write_caches() {
        let writes = |trial: &mut TrialSpec| trial.read_percent = 0;
        let of = sides(writes, |trial| {
            writes(trial);
            trial.depth = 32;
        });
        assert!(!relevant(&of).contains(&"write-cache"));
    }

    #[test]
    fn a_compared_setting_is_not_a_suspect() {
        let direction = sides(
            |trial| {
                trial.read_percent = 0;
            },
            |trial| {
                trial.read_percent = 0;
                trial.sync = SyncPolicy::Each;
            },
        );
        assert!(!relevant(&direction).contains(&"durability"));
        assert!(direction.is_by_construction());
        let order = sides(|_| {}, |trial| trial.pattern = Pattern::Rand);
        assert!(!order.is_by_construction());
    }

    #[test]
    fn an_intervention_is_a_valid_cell() {
        let sizes = sides(|_| {}, |trial| trial.bs = 4 << 20);
        for suspect in Suspect::all() {
            if let Intervention::Settings(without) = (suspect.take_off)(&sizes) {
                for side in [&without.base, &without.other] {
                    side.check().expect(suspect.name);
                }
            }
        }
        let asynchronous = (Suspect::find("waiting").expect("there").take_off)(&sizes);
        let Intervention::Settings(without) = asynchronous else {
            panic!("{asynchronous:?}");
        };
        assert_eq!(without.base.trial.backend, Backend::Libaio);
    }

    /// A wait for storage that is added to both sides makes any two writes more alike.
    #[test]
    fn writes_against_reads_suspect_write_caches() {
        let mut direction = sides(|_| {}, |trial| trial.read_percent = 0);
        direction.is_model = false;
        assert!(relevant(&direction).contains(&"write-cache"));
        let write = |trial: &mut TrialSpec| trial.read_percent = 0;
        let mut sizes = sides(write, |trial| {
            trial.read_percent = 0;
            trial.bs = 64 << 10;
        });
        sizes.is_model = false;
        assert!(!relevant(&sizes).contains(&"write-cache"));
    }

    /// Reverse order takes away read-ahead of the kernel too: the drive's read-ahead is tried after it.
    #[test]
    fn read_ahead_of_the_drive_follows_the_kernels() {
        let cold = |trial: &mut TrialSpec| trial.cache = CacheState::Cold;
        let order = sides(cold, |trial| {
            trial.cache = CacheState::Cold;
            trial.pattern = Pattern::Rand;
        });
        let found = (Suspect::find("read-ahead").expect("there").take_off)(&order);
        assert_eq!(found, Intervention::After("host-read-ahead"));
    }

    /// Waiting for other requests or for storage can make some requests slow; causes common to all requests cannot.
    #[test]
    fn slow_requests_have_suspects_of_their_own() {
        let of = |change: &dyn Fn(&mut TrialSpec)| {
            let mut tail = sides(change, change);
            tail.compared = Compared::Quantiles;
            relevant(&tail)
        };
        assert_eq!(of(&|_| {}), [""; 0]);
        let random = |trial: &mut TrialSpec| {
            trial.backend = Backend::Libaio;
            trial.depth = 8;
            trial.pattern = Pattern::Rand;
        };
        assert_eq!(of(&random), ["queueing", "reach"]);
        let durable = |trial: &mut TrialSpec| {
            trial.read_percent = 0;
            trial.sync = SyncPolicy::Odsync;
        };
        assert_eq!(of(&durable), ["durability"]);
    }

    /// Two sizes on a device whose requests are split at the lower one.
    fn split() -> Sides {
        let mut sizes = sides(|trial| trial.bs = 64 << 10, |trial| trial.bs = 68 << 10);
        sizes.is_model = false;
        sizes.machine.request_max_bytes = Some(64 << 10);
        sizes
    }

    fn of(name: &str, sides: &Sides) -> Intervention {
        (Suspect::find(name).expect("there").take_off)(sides)
    }

    #[test]
    fn kernel_settings_are_changed_with_consent_only() {
        let mut sizes = split();
        let lacks = Intervention::Lacks(Obstacle::NeedsChangeSystem);
        assert_eq!(of("request-limit", &sizes), lacks);
        sizes.machine.may_change_system = true;
        let Intervention::Settings(without) = of("request-limit", &sizes) else {
            panic!("it may be changed");
        };
        assert_eq!(without.other.system.to_string(), "max_sectors_kb:max");
        sizes.machine.request_max_bytes = Some(1 << 20);
        assert_eq!(of("request-limit", &sizes), Intervention::Irrelevant);
    }

    #[test]
    fn a_compared_kernel_setting_explains_itself() {
        let mut sizes = sides(|_| {}, |_| {});
        sizes.is_model = false;
        sizes.other.system = "scheduler:none".parse().expect("valid");
        assert_eq!(of("scheduler", &sizes), Intervention::IsTheDifference);
    }

    /// Advice on a file does not reach the pages that faults of a mapping bring in.
    #[test]
    fn mapped_read_ahead_is_its_own_suspect() {
        let mapped = |trial: &mut TrialSpec| {
            trial.cache = CacheState::Cold;
            trial.backend = Backend::Mmap;
        };
        let mut order = sides(mapped, |trial| {
            mapped(trial);
            trial.pattern = Pattern::Rand;
        });
        order.is_model = false;
        assert_eq!(of("host-read-ahead", &order), Intervention::Irrelevant);
        assert_eq!(
            of("read-ahead", &order),
            Intervention::After("mapped-read-ahead")
        );
        order.machine.may_change_system = true;
        let Intervention::Settings(without) = of("mapped-read-ahead", &order) else {
            panic!("it may be changed");
        };
        assert!(matches!(
            of("read-ahead", &without),
            Intervention::Settings(_)
        ));
    }

    #[test]
    fn a_priority_is_raised_if_needed_and_allowed() {
        let mut sizes = split();
        assert_eq!(of("cpu-waiting", &sizes), Intervention::Irrelevant);
        sizes.machine.cpu_wait = Some(0.3);
        let lacks = Intervention::Lacks(Obstacle::NeedsRoot);
        assert_eq!(of("cpu-waiting", &sizes), lacks);
        sizes.machine.may_raise_nice = true;
        let priorities = |sizes: &Sides| match of("cpu-waiting", sizes) {
            Intervention::Settings(sides) => (sides.base.trial.nice, sides.base.trial.realtime),
            other => panic!("{other:?}"),
        };
        assert_eq!(priorities(&sizes), (Some(-20), None));
        // Real-time threads can keep all else from a CPU.
        sizes.machine.may_be_realtime = true;
        assert_eq!(priorities(&sizes), (Some(-20), None));
        sizes.machine.may_change_system = true;
        assert_eq!(priorities(&sizes), (None, Some(50)));
        // A control group may have none of them.
        sizes.machine.may_be_realtime = false;
        assert_eq!(priorities(&sizes), (Some(-20), None));
        sizes.machine.may_be_realtime = true;
        // Real-time threads would keep the kernel's polling thread from the CPU.
        sizes.other.trial.sqpoll = true;
        assert_eq!(priorities(&sizes), (Some(-20), None));
    }
}
