//! Experiments that find the cause of a difference: their variants and the time limits of their trials, which are their length, the idle
//! time of the target before them, and the number that fits.

use std::time::Duration;

use iolab_plan::blocks::leaves_writes;
use iolab_plan::experiment::{
    BLOCKS_MAX, BUDGET_MAX, Combination, Design, Experiment, GroupSetting, Inquiry, Untried,
    Variant, check_question,
};
use iolab_plan::precondition::Precondition;
use iolab_plan::suspect::{
    BETWEEN, Intervention, Leftover, Obstacle, QUANTILE_REQUESTS, Sides, Sign, Suspect,
};
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting, cell_label};
use iolab_workload::trial::TrialSpec;
use iolab_workload::units::budget_to_recommend;
use iolab_workload::{Error, Result};

/// Name of a run that finds a cause.
pub(crate) const INQUIRY: &str = "why";

/// The difference to be explained, and the budget for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToExplain {
    /// The difference, in words.
    pub text: String,
    /// Ratio of the response of the other side to the base.
    pub seen: f64,
    /// Ratio that would be expected without the phenomenon.
    pub expected: f64,
    /// The settings of both sides.
    pub sides: Sides,
    /// Names of the suspects that are asked for; empty: all.
    pub only: Vec<&'static str>,
    /// Time of a trial of each side in the run that shows the difference.
    pub took: [Duration; 2],
    /// The quantity.
    pub response: Response,
    /// Precondition of the target in that run.
    pub precondition: Precondition,
    /// Whether throughput of a side changes its level within its trials: shorter ones would show another difference.
    pub changes_inside: bool,
    /// Time of a trial in that run besides its I/O, without writing out.
    pub around: Duration,
    /// Time of writing out after a trial that leaves writes in caches; zero if the run has no such trial.
    pub write_out: Duration,
    /// Time for all trials.
    pub budget: Duration,
}

/// The experiment that finds the cause of a phenomenon.
///
/// # Errors
/// Of kind usage: settings that no experiment can have.
pub fn experiment(phenomenon: &ToExplain) -> Result<Experiment> {
    let in_full = phenomenon;
    let shorter = in_full.shorter();
    let phenomenon = &shorter.map_or_else(
        || in_full.clone(),
        |time| ToExplain {
            sides: in_full.sides.ended_after(time),
            ..in_full.clone()
        },
    );
    let idle = phenomenon.idle();
    let sides = &phenomenon.sides.after_idle(idle);
    let (mut tried, mut between, mut untried) = suspects(phenomenon, sides);
    let has_between = !between.is_empty();
    let mut leave = |name: &str, whole: &ToExplain, own: &[&'static Suspect]| {
        let idle = whole.idle();
        let block = whole.block(&whole.sides.after_idle(idle), own, has_between);
        // One block more is the warm-up.
        let wanted = block.saturating_mul(BLOCKS_WANTED + 1);
        untried.push(Untried {
            suspect: name.to_owned(),
            why: Obstacle::NoTime {
                budget_s: budget_to_recommend(wanted).as_secs(),
                idle_ns: idle.as_nanos() as u64,
            },
        });
    };
    let own = tried.clone();
    tried.retain(|suspect| {
        let is_long_enough = phenomenon.is_long_enough_without(suspect);
        if !is_long_enough {
            leave(suspect.name, in_full, &own);
        }
        is_long_enough
    });
    let blocks = |suspects: &[&'static Suspect], between: &[CellSpec]| {
        let block = phenomenon.block(sides, suspects, !between.is_empty());
        let blocks = phenomenon.budget.as_secs_f64() / block.as_secs_f64().max(1e-9);
        // One is a warm-up.
        (blocks as u32).saturating_sub(1)
    };
    let least = Design::default().trials_min;
    // One is tried in the blocks that there are, if they can show anything, but not after idle time for which there is none.
    let has_time = |suspects: &[&'static Suspect], between: &[CellSpec]| match suspects {
        [] | [_] if idle.is_zero() => blocks(suspects, between) >= least,
        _ => blocks(suspects, between) >= BLOCKS_WANTED,
    };
    let (unhurried, all) = (in_full.unhurried(), tried.clone());
    // An intervention says more than a fit.
    if has_between && !has_time(&tried, &between) {
        between.clear();
        leave(BETWEEN, &unhurried, &all);
    }
    while !tried.is_empty() && !has_time(&tried, &between) {
        if let Some(last) = tried.pop() {
            leave(last.name, &unhurried, &all);
        }
    }
    let trials = blocks(&tried, &between).clamp(least, BLOCKS_MAX);
    let without = variants_of(sides, &tried);
    let cells = || {
        let all = without.iter();
        all.flat_map(|(_, sides)| sides.cells()).chain(&between)
    };
    let mut experiment = Experiment::bare(
        INQUIRY.to_owned(),
        check_question(&format!("What causes this: {}?", phenomenon.text))?,
        phenomenon.response,
        Design {
            trials_min: trials,
            trials_max: trials,
            budget: phenomenon.budget,
            precondition: phenomenon.precondition.before_trials(),
            ..Design::default()
        },
    );
    let usual = CellSpec::default();
    let is_named = |setting: &&Setting| {
        let is_other = |cell: &CellSpec| setting.get(cell) != setting.get(&usual);
        // A code of pattern and direction says nothing beyond these two.
        setting.name != "workload" && (CHOSEN.contains(&setting.name) || cells().any(is_other))
    };
    let named: Vec<&Setting> = SETTINGS.iter().filter(is_named).collect();
    let row = |cell: &CellSpec| -> Combination {
        let own = named.iter();
        own.map(|setting| (GroupSetting::from(*setting), setting.get(cell)))
            .collect()
    };
    let rows: Vec<Combination> = cells().map(row).collect();
    experiment.list(&rows)?;
    let variants = without.iter().map(|(names, sides)| Variant {
        without: names.iter().map(|one| one.name.to_owned()).collect(),
        base: label(&experiment, &sides.base),
        other: label(&experiment, &sides.other),
    });
    let variants = variants.collect();
    let between = between
        .iter()
        .map(|cell| label(&experiment, cell))
        .collect();
    experiment.inquiry = Some(Inquiry {
        phenomenon: phenomenon.text.clone(),
        seen: phenomenon.seen,
        expected: phenomenon.expected,
        tried: tried.iter().map(|one| one.name.to_owned()).collect(),
        untried,
        idle_ns: Some(idle.as_nanos() as u64).filter(|ns| *ns > 0),
        shorter_ns: shorter.map(|time| time.as_nanos() as u64),
        variants,
        between,
    });
    experiment.check()?;
    Ok(experiment)
}

/// The name that a run gives to this cell.
fn label(experiment: &Experiment, cell: &CellSpec) -> String {
    let (names, levels): (Vec<String>, Vec<String>) = experiment
        .factors
        .iter()
        .map(|factor| (factor.of.to_string(), factor.of.setting.get(cell)))
        .unzip();
    cell_label(&names, &levels)
}

/// The suspects that have a part on these sides, the cells between both sides, and the suspects that no setting takes away
/// here, or that are not asked for.
fn suspects(
    phenomenon: &ToExplain,
    sides: &Sides,
) -> (Vec<&'static Suspect>, Vec<CellSpec>, Vec<Untried>) {
    let mut tried: Vec<((bool, Sign, usize), &Suspect)> = Vec::new();
    let mut between: Vec<CellSpec> = Vec::new();
    let mut untried: Vec<Untried> = Vec::new();
    let mut leave = |suspect: &Suspect, why: Obstacle| {
        untried.push(Untried {
            suspect: suspect.name.to_owned(),
            why,
        });
    };
    let only = &phenomenon.only;
    let mut asked = only.clone();
    let can_tell = |suspect: &&Suspect| suspect.explains.contains(&sides.compared);
    for suspect in Suspect::all().iter().filter(can_tell) {
        let found = (suspect.take_off)(sides);
        let cover = match &found {
            Intervention::After(cover) => Suspect::find(cover),
            _ => None,
        };
        // Asking for a hidden suspect also asks for the one that hides it.
        let covers = cover.filter(|_| only.contains(&suspect.name));
        asked.extend(covers.map(|cover| cover.name));
        let found = match cover.map(|cover| (cover.take_off)(sides)) {
            None => found,
            Some(Intervention::Settings(rest)) if rest.check().is_ok() => (suspect.take_off)(&rest),
            Some(_) => Intervention::Irrelevant,
        };
        match found {
            // Without a part, or hidden by another one still.
            Intervention::Irrelevant | Intervention::After(_) => {}
            Intervention::IsTheDifference => leave(suspect, Obstacle::IsTheDifference),
            Intervention::Lacks(why) => leave(suspect, why),
            // The model predicts throughput.
            Intervention::Between(_) if phenomenon.response != Response::Throughput => {}
            Intervention::Settings(_) | Intervention::Between(_)
                if sides.machine.leftover == Leftover::Lasting =>
            {
                leave(suspect, Obstacle::KeepsState);
            }
            Intervention::Between(_) if !only.is_empty() && !only.contains(&suspect.name) => {
                leave(suspect, Obstacle::NotAskedFor);
            }
            Intervention::Between(cells) => match cells.iter().try_for_each(CellSpec::check) {
                Ok(()) => between = cells,
                Err(error) => leave(suspect, conflict(&error)),
            },
            Intervention::Settings(without) => match without.check() {
                Ok(()) => {
                    let (sign, changed) = (sides.sign_of(suspect), sides.changed_in(&without));
                    let place = (cover.is_some(), sign, changed);
                    tried.push((place, suspect));
                }
                Err(error) => leave(suspect, conflict(&error)),
            },
        }
    }
    // Suspects with a counted sign come first, and hidden ones last. A suspect that acts on one side only can explain a
    // difference by itself.
    tried.sort_by_key(|(place, suspect)| (*place, suspect.order, suspect.name));
    let mut tried: Vec<&Suspect> = tried.into_iter().map(|(_, suspect)| suspect).collect();
    tried.retain(|suspect| {
        let is_asked = only.is_empty() || asked.contains(&suspect.name);
        if !is_asked {
            leave(suspect, Obstacle::NotAskedFor);
        }
        is_asked
    });
    (tried, between, untried)
}

/// The obstacle if the sides without a suspect have settings that exclude each other.
fn conflict(error: &Error) -> Obstacle {
    Obstacle::Conflict {
        error: error.message().to_owned(),
    }
}

/// Settings that a new run would choose by itself unless they are named.
const CHOSEN: [&str; 2] = ["buffer_memory", "first_offset"];

/// The variants of these suspects: the suspects that each leaves out, and its sides. None is left out, each alone, all but one
/// each, all; equal variants are listed once.
fn variants_of(sides: &Sides, tried: &[&'static Suspect]) -> Vec<(Vec<&'static Suspect>, Sides)> {
    let but = |one: &&Suspect| {
        let others = tried.iter().copied();
        others.filter(|other| other.name != one.name).collect()
    };
    let alone = tried.iter().map(|one| vec![*one]);
    let others = alone.chain(tried.iter().map(but)).chain([tried.to_vec()]);
    let mut variants: Vec<Vec<&Suspect>> = vec![Vec::new()];
    for variant in others {
        let names = |all: &[&Suspect]| Vec::from_iter(all.iter().map(|one| one.name));
        if !variants.iter().any(|known| names(known) == names(&variant)) {
            variants.push(variant);
        }
    }
    let with_sides = variants.into_iter().map(|without| {
        let sides = without_all(sides, &without);
        (without, sides)
    });
    with_sides.collect()
}

/// The sides with these suspects taken away, one after the other. A suspect that has no part any more after an earlier one
/// changes nothing.
fn without_all(sides: &Sides, suspects: &[&Suspect]) -> Sides {
    let take_off = |sides: Sides, suspect: &&Suspect| match (suspect.take_off)(&sides) {
        Intervention::Settings(without) => *without,
        _ => sides,
    };
    suspects.iter().fold(sides.clone(), take_off)
}

/// Blocks that a suspect is worth leaving out for.
const BLOCKS_WANTED: u32 = 20;

/// A trial of this length shows as much as a longer one if its level does not change.
const LONG: Duration = Duration::from_secs(1);

/// Shorter trials show too little.
const SHORT: Duration = Duration::from_millis(100);

/// A level that falls by more than this is gone for good, as far as idle time is concerned.
const DRAINED_MAX: f64 = 1e4;

/// Least time of a trial on real storage besides its I/O: files, buffers, page cache.
const AROUND: Duration = Duration::from_millis(20);

impl ToExplain {
    /// Time of a trial of each side: its time in the first run, or its time limit if shorter.
    fn times(&self) -> [Duration; 2] {
        let foreseen = self.sides.trials().map(TrialSpec::time_foreseen);
        [0, 1].map(|side| {
            let took = self.took[side];
            foreseen[side].map_or(took, |most| most.min(took))
        })
    }

    /// Time of a trial besides its I/O.
    fn around(&self) -> Duration {
        match self.sides.is_model {
            true => self.around,
            false => self.around.max(AROUND),
        }
    }

    /// Time of a block that tries these suspects: the trials of all variants, and of the cells between both sides, and writing
    /// out their caches.
    fn block(&self, sides: &Sides, tried: &[&'static Suspect], between: bool) -> Duration {
        let variants = variants_of(sides, tried);
        let [base, other] = self.times();
        let between = sides.between().filter(|_| between).unwrap_or_default();
        let between = between.iter().map(|cell| (cell, base.max(other)));
        let cells = variants
            .iter()
            .flat_map(|(_, sides)| sides.cells().into_iter().zip([base, other]));
        let takes = cells
            .chain(between)
            .map(|(cell, time)| cell.idle + time + self.beside(cell));
        takes.sum()
    }

    /// Time of a trial besides its I/O, writing out included.
    fn beside(&self, cell: &CellSpec) -> Duration {
        match leaves_writes(cell) {
            true => self.around() + self.write_out,
            false => self.around(),
        }
    }

    /// Whether trials still have enough requests for the quantity if fewer are in flight without this suspect. At worst
    /// each request takes as long as before.
    fn is_long_enough_without(&self, suspect: &'static Suspect) -> bool {
        let without = without_all(&self.sides, &[suspect]);
        let least = self.time_of_requests(without.base.trial.in_flight());
        self.times().into_iter().all(|time| time >= least)
    }

    /// Time of a trial with enough requests for the quantity, with `in_flight` in flight, if each takes as long as it did.
    /// Zero if any number of requests is enough.
    fn time_of_requests(&self, in_flight: u64) -> Duration {
        let of_own = self.sides.base.trial.in_flight() as f64 / in_flight.max(1) as f64;
        self.sides.iops.map_or(Duration::ZERO, |iops| {
            // A setting that pages show: whole milliseconds.
            let ms = 1e3 * QUANTILE_REQUESTS * of_own.max(1.0) / iops;
            Duration::from_millis(ms.ceil() as u64).min(BUDGET_MAX)
        })
    }

    /// The phenomenon with trials that are no longer than a second, if shorter ones show the same: a larger budget lengthens them.
    fn unhurried(&self) -> Self {
        let mut long = self.clone();
        if self.may_be_shorter() {
            let time = LONG.max(self.time_of_requests(1));
            long.sides = self.sides.ended_after(time);
        }
        long
    }

    /// Whether shorter trials would show the same.
    fn may_be_shorter(&self) -> bool {
        !self.changes_inside && self.sides.share(|trial| trial.limit.time)
    }

    /// A time limit below the earlier time of a trial, if the budget has no room for enough blocks of such trials. The
    /// limit leaves room for all suspects, but is at least a second if that has room for one. `None` if trials keep their
    /// length.
    fn shorter(&self) -> Option<Duration> {
        let longest = self.times().into_iter().max()?;
        if !self.may_be_shorter() {
            return None;
        }
        let (all, between, _) = suspects(self, &self.sides);
        let room = |suspects: &[&'static Suspect]| {
            let block = self.budget / (BLOCKS_WANTED + 1);
            let variants = variants_of(&self.sides, suspects);
            let cells = || {
                let sides = variants.iter().flat_map(|(_, sides)| sides.cells());
                sides.chain(&between)
            };
            let beside = cells().map(|cell| self.beside(cell)).sum();
            let each = block.saturating_sub(beside) / cells().count() as u32;
            each.div_f64(1.0 + self.drained())
        };
        let one = room(all.get(..1).unwrap_or_default());
        // Room for one request in flight as well, if the budget allows it.
        let requests = [1, self.sides.base.trial.in_flight()]
            .map(|in_flight| self.time_of_requests(in_flight));
        let least = requests
            .into_iter()
            .find(|time| *time <= one)
            .unwrap_or(requests[1]);
        let time = room(&all).max(one.min(LONG)).max(SHORT.max(least));
        let whole_ms = Duration::from_millis(time.as_millis() as u64);
        (whole_ms < longest).then_some(whole_ms)
    }

    /// Throughput fell to one part in this many; 0 if trials leave nothing that idle time removes.
    fn drained(&self) -> f64 {
        match self.sides.machine.leftover {
            Leftover::Drained(factor) => factor.clamp(1.0, DRAINED_MAX),
            Leftover::Nothing | Leftover::Lasting => 0.0,
        }
    }

    /// The idle time before each trial that restores what the one before has drained. Credits and caches of drives drain at
    /// one rate and refill at a lower one all the time. They need `before / after - 1` times the time of a trial; the idle
    /// time adds one trial time as a reserve.
    fn idle(&self) -> Duration {
        let trial = self.times().into_iter().max().unwrap_or_default();
        tenths_of_a_second(trial.mul_f64(self.drained()))
    }
}

/// The next whole tenth of a second.
fn tenths_of_a_second(time: Duration) -> Duration {
    Duration::from_millis(100 * (time.as_millis() as u64).div_ceil(100))
}
