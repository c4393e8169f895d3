//! `[design]`: repetitions, what ends them, and the bytes that a run may write.

use std::str::FromStr;
use std::time::Duration;

use iolab_workload::settings::CellSpec;
use iolab_workload::units::{
    counted, exact_duration, exact_size, format_duration, format_size, parse_duration, parse_share,
    parse_size, rough_duration,
};
use iolab_workload::{Error, Result, table, usage_errors};
use toml::Value;

use crate::experiment::Experiment;
use crate::precondition::Precondition;

/// Most trials of a cell.
pub const TRIALS_MAX: u32 = 10_000;

/// With fewer trials, the median has no exact 95 % interval.
pub const INTERVAL_TRIALS: u32 = 6;

/// Chance that some interval of a comparison misses its true value.
const COMPARED_ALPHA: f64 = 0.05;

/// Latest start of the block that completes the fewest trials, relative to the budget.
pub const LAST_BLOCK: f64 = 1.1;

/// Longest budget of a run.
pub const BUDGET_MAX: Duration = Duration::from_secs(30 * 86_400);

/// Divisor of the time of counted trials that gives the time foreseen for their other work.
const COUNTED_BESIDE: u32 = 10;

/// Longest pause between blocks.
const SETTLE_MAX: Duration = Duration::from_secs(3600);

iolab_workload::named! {
    /// The trials of a cell that no summary includes.
    #[derive(Default)]
    pub enum WarmUp: "warm-up" {
        /// The first trial of each cell.
        #[default]
        First = "first",
        /// No trial: the beginning is part of the answer.
        None = "none",
    }
}

/// The number of repetitions, and what ends them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Design {
    /// Fewest measured trials per cell.
    pub trials_min: u32,
    /// Most measured trials per cell.
    pub trials_max: u32,
    /// Goal: distance of the median to the farther end of its 95 % interval, over the median.
    pub precision: f64,
    /// Time for the whole run; finer sizes get the same again.
    pub budget: Duration,
    /// Number of finer sizes around each bend and each best size of the grid, measured in a second pass over all sizes; 0 for
    /// none.
    pub refine: u32,
    /// Pause before each block except the first; not part of the budget.
    pub settle: Duration,
    /// Writes to the target before the first trial, outside of the budget. Rounds of all cells, which replace blocks, are
    /// within it.
    pub precondition: Precondition,
    /// The trials of a cell that are warm-ups.
    pub warmup: WarmUp,
    /// Most bytes that the run writes to each target, with its fill and its warm-ups; `None` for any number.
    pub writes: Option<u64>,
    /// Whether cells with an ordered pattern use the first half of the region and the others the second one: random writes scatter a
    /// region, and slow down reads of it in large blocks.
    pub halves: bool,
}

impl Default for Design {
    fn default() -> Self {
        Self {
            trials_min: INTERVAL_TRIALS,
            trials_max: 30,
            precision: 0.05,
            budget: Duration::from_secs(60),
            refine: 0,
            settle: Duration::ZERO,
            precondition: Precondition::default(),
            warmup: WarmUp::First,
            writes: None,
            halves: false,
        }
    }
}

/// Times of the parts of a run.
#[derive(Debug, Clone, Copy)]
pub struct BlockTimes {
    /// Probes before the first block, which the budget pays for.
    pub probes: Duration,
    /// One trial of each cell on fast storage.
    pub least: Duration,
    /// One trial of each cell at the longest.
    pub longest: Duration,
}

/// The fewest trials of a cell with which another run of this many cells can be compared: the exact interval of the median, which covers
/// `1 - 2^(1-n)` at most, exists at the level that Bonferroni's correction leaves for each cell.
pub fn trials_to_compare(cells: usize) -> u32 {
    let each = COMPARED_ALPHA / cells.max(1) as f64;
    (1.0 - each.log2()).ceil() as u32
}

impl Design {
    /// Takes over the preparation of a target. Rounds of all cells decide on the number of trials, and have no warm-up:
    /// rounds before the last window are excluded. Decisions of earlier rounds are dropped with them.
    fn prepare(&mut self, precondition: Precondition) {
        let default = Self::default();
        if let Some(before) = self.precondition.rounds_of_cells() {
            if (self.trials_min, self.trials_max) == (before.window, before.rounds) {
                (self.trials_min, self.trials_max) = (default.trials_min, default.trials_max);
            }
            self.warmup = default.warmup;
        }
        self.precondition = precondition;
        if let Some(steady) = precondition.rounds_of_cells() {
            (self.trials_min, self.trials_max) = (steady.window, steady.rounds);
            self.warmup = WarmUp::None;
        }
    }

    /// The number of trials of a cell after which precision ends the repetition of this many cells, if the budget allows
    /// them. It is the larger of the smallest number and the number that a comparison with another run needs.
    pub fn trials_wanted(&self, cells: usize) -> u32 {
        if let Some(steady) = self.precondition.rounds_of_cells() {
            return steady.window;
        }
        self.trials_min
            .max(trials_to_compare(cells))
            .min(self.trials_max)
    }

    /// The longest time of its trials, if one of each cell takes `block`. The budget bounds it, and so does the number of
    /// rounds of cells, of counted trials, or of the single trial of a soak.
    pub(crate) fn time_at_most(&self, block: Option<Duration>) -> Duration {
        let rounds = match self.precondition.rounds_of_cells() {
            Some(steady) => Some(steady.rounds),
            None if self.is_counted() => Some(self.trials_max + self.warm_ups()),
            None => self.is_soak().then_some(1),
        };
        rounds.zip(block).map_or(self.budget, |(rounds, block)| {
            let time = block.saturating_mul(rounds);
            let beside = match self.is_counted() {
                true => time / COUNTED_BESIDE,
                false => Duration::ZERO,
            };
            self.budget.min(time.saturating_add(beside))
        })
    }

    /// Ends after this number of trials, whatever they take besides their load: no budget cuts a requested load short.
    pub fn counted(trials: u32) -> Self {
        Self {
            trials_min: trials,
            trials_max: trials,
            budget: BUDGET_MAX,
            ..Self::default()
        }
    }

    /// Whether the number of trials alone ends it.
    pub fn is_counted(&self) -> bool {
        self.trials_min == self.trials_max && self.budget == BUDGET_MAX
    }

    /// Whether trials are repeated for a precision: not if steady rounds end them, nor if a single trial from its beginning on is asked for.
    pub fn seeks_precision(&self) -> bool {
        self.precondition.rounds_of_cells().is_none() && !self.is_soak()
    }

    /// Whether each cell has one trial, from its beginning on.
    fn is_soak(&self) -> bool {
        self.trials_max == 1 && self.warmup == WarmUp::None
    }

    /// Warm-up trials of each cell.
    pub fn warm_ups(&self) -> u32 {
        match self.warmup {
            WarmUp::First => 1,
            WarmUp::None => 0,
        }
    }

    /// Trials that each cell gets whatever the budget is: its warm-up, and one that is measured.
    pub fn granted(&self) -> u32 {
        self.warm_ups() + 1
    }

    /// `a warm-up and at least one measured trial`.
    pub fn granted_in_words(&self) -> &'static str {
        match self.warmup {
            WarmUp::First => "a warm-up and at least one measured trial",
            WarmUp::None => "at least one trial",
        }
    }

    /// A warning for a budget that is too short for the fewest trials of this many cells; `None` if it suffices.
    pub fn shortfall(&self, cells: usize, times: BlockTimes) -> Option<String> {
        let budget = rough_duration(self.budget);
        let fewest = self.fewest(times.least, times.probes);
        let each = self.trials_within(times.least, times.probes).max(1);
        let granted = times.longest.saturating_mul(self.granted());
        let granted = granted.saturating_add(times.probes);
        let subject = counted(cells as u64, "cell");
        let (s, fewer) = match cells {
            1 => ("s", None),
            _ => ("", Some("fewer levels (--set NAME=VALUE,...)")),
        };
        let longer = match granted > self.budget {
            true => format!(" and take{s} up to {}", rough_duration(granted)),
            false => String::new(),
        };
        if fewest > self.budget && each < self.trials_min {
            let fewer = fewer.map_or_else(String::new, |fewer| format!("{fewer} or "));
            return Some(format!(
                "{subject} in {budget} give{s} at most n = {each}{longer}, and {} of each: choose {fewer}a larger --budget: this experiment alone needs at least {}",
                self.needed(),
                rough_duration(fewest)
            ));
        }
        let shorter = match self.is_soak() {
            true => "a shorter --soak",
            false => "a shorter --time",
        };
        let fewer = fewer.map_or_else(String::new, |fewer| format!("{fewer}, "));
        let remedy = format!("choose {fewer}{shorter} or a larger --budget");
        if granted > self.budget {
            return Some(format!(
                "{subject} take{s} up to {}, more than the budget ({budget}): each gets {}; {remedy}",
                rough_duration(granted),
                self.granted_in_words()
            ));
        }
        let fewest = self.fewest(times.longest, times.probes);
        // Trials may end by their byte limit long before; the warning is for budgets that are far too short.
        (fewest > self.budget.saturating_mul(2)).then(|| {
            let each = self.trials_within(times.longest, times.probes);
            format!(
                "{subject} in {budget} may give only n = {each}, and {} of each, which take up to {}: {remedy}",
                self.needed(),
                rough_duration(fewest)
            )
        })
    }

    /// Time of the fewest trials with blocks of this length.
    fn fewest(&self, block: Duration, probes: Duration) -> Duration {
        let blocks = block.saturating_mul(self.trials_min + self.warm_ups());
        blocks.saturating_add(probes)
    }

    /// Measured trials of each cell within the budget, with blocks of this length: one that begins within it is completed, and the
    /// one that completes the fewest trials may begin a little later.
    fn trials_within(&self, block: Duration, probes: Duration) -> u32 {
        let budget = self.budget.saturating_sub(probes);
        let room = budget.as_secs_f64() / block.as_secs_f64();
        let blocks = room.ceil() as u32;
        let each = blocks.saturating_sub(self.warm_ups());
        let lacks_one = each.saturating_add(1) == self.trials_min;
        each + u32::from(lacks_one && f64::from(blocks) < room * LAST_BLOCK)
    }

    /// The reason for the fewest trials, for messages.
    fn needed(&self) -> String {
        match self.trials_min {
            INTERVAL_TRIALS => format!("an interval needs {INTERVAL_TRIALS} trials"),
            other => format!("trials_min asks for {}", counted(u64::from(other), "trial")),
        }
    }

    /// Refuses what rounds of cells decide, if they take the place of blocks.
    fn check_rounds(&self) -> Result<()> {
        let Some(steady) = self.precondition.rounds_of_cells() else {
            return Ok(());
        };
        let given = [
            (self.trials_min != steady.window, "trials_min", "set window"),
            (self.trials_max != steady.rounds, "trials_max", "set rounds"),
            (self.refine > 0, "refine", "leave it out"),
            (self.warmup != WarmUp::None, "warmup", "leave it out"),
        ];
        match given.into_iter().find(|(given, ..)| *given) {
            None => Ok(()),
            Some((_, name, instead)) => Err(Error::usage(format!(
                "{name} with precondition={}, whose rounds are the trials",
                self.precondition
            ))
            .hint(format!("{instead}: steady:round=cells,window=5,rounds=25"))),
        }
    }

    /// Refuses bounds that contradict each other or exceed the maximum.
    pub(super) fn check(&self) -> Result<()> {
        self.check_rounds()?;
        usage_errors! {
            self.trials_min == 0 || self.trials_min > self.trials_max =>
                format!("trials_min is {} and trials_max {}", self.trials_min, self.trials_max),
                "trials_min is at least 1 and at most trials_max";
            self.trials_max > TRIALS_MAX => format!("trials_max is {}", self.trials_max), format!("choose at most {TRIALS_MAX}");
            !(self.precision > 0.0 && self.precision < 1.0) => format!("precision is {}", self.precision),
                "choose a share above 0 and below 1, for example 0.05 for 5 %";
            self.writes.is_some() && self.precondition.passes().is_some() =>
                format!("writes with precondition={}, which writes without a limit", self.precondition),
                "leave one of them out, or choose --precondition trim";
            self.settle > SETTLE_MAX => format!("settle is {}", exact_duration(self.settle)), "choose a pause of at most an hour";
            self.budget.is_zero() || self.budget > BUDGET_MAX => format!("the budget is {}", exact_duration(self.budget)),
                "choose a time above zero and at most 30 days";
        }
        Ok(())
    }
}

/// An entry of `[design]`, which has one value.
#[derive(Debug)]
pub struct DesignEntry {
    /// Name of the entry in the file.
    pub name: &'static str,
    /// Changes a design; refuses a value that it does not take.
    pub(super) set: Set,
    /// The value for a definition; `None` for the default of an entry that is seldom given.
    pub(super) get: Get,
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

impl Experiment {
    /// Caps the bytes of each trial that writes: the fewest trials of all cells, and what fills their target, stay within `writes`.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage): cells without such a cap; a cap below the requests in flight.
    pub(crate) fn cap_writes(&self, mut cells: Vec<&mut CellSpec>) -> Result<()> {
        let Some(budget) = self.design.writes else {
            return Ok(());
        };
        let lacks_cap = |cell: &CellSpec| cell.runs_program() || cell.has_groups();
        usage_errors! {
            cells.iter().any(|cell| lacks_cap(cell)) => "writes in an experiment with programs or groups",
                "leave it out: iolab caps what workers with one task write to one target";
        }
        let trials = self.design.trials_wanted(cells.len()) + self.design.warm_ups();
        let fill = cells.iter().map(|cell| cell.bytes_used()).max();
        let rest = budget.saturating_sub(fill.unwrap_or(0));
        let sizes = cells.iter().map(|cell| cell.trial.largest_request());
        let largest = sizes.max().unwrap_or(1);
        let writers: Vec<CellSpec> = cells.iter().map(|cell| (**cell).clone()).collect();
        // Enough for the requests in flight of every cell.
        let in_flight = writers.iter().map(|cell| &cell.trial).map(|trial| {
            trial
                .in_flight_of_all()
                .saturating_mul(trial.largest_request())
        });
        let least_cap = in_flight.max().unwrap_or(0).next_multiple_of(largest);
        let least = (writers.len() as u64 * u64::from(trials)).saturating_mul(least_cap);
        let least = least.saturating_add(fill.unwrap_or(0));
        for spec in &mut cells {
            if !spec.trial.writes_data() {
                continue;
            }
            let same = writers.iter().filter(|other| other.target == spec.target);
            let same = same.filter(|other| other.trial.writes_data()).count() as u64;
            let cap = rest / (same * u64::from(trials));
            let request = spec.trial.largest_request();
            // All trials write alike if that is possible.
            let cap = match cap - cap % largest {
                0 => cap - cap % request,
                whole => whole,
            };
            let in_flight = spec.trial.in_flight_of_all();
            if cap / request < in_flight {
                return Err(Error::usage(format!(
                    "writes={} leaves {} for each trial of {}, less than the {} in flight",
                    exact_size(budget),
                    exact_size(cap),
                    counted(same, "cell"),
                    counted(in_flight, "request"),
                ))
                .hint(format!(
                    "allow more (--set writes={}), or choose fewer levels, a smaller region or smaller requests",
                    exact_size(least).replace(' ', "")
                )));
            }
            let limit = &mut spec.trial.limit.bytes;
            *limit = Some(limit.map_or(cap, |own| own.min(cap)));
        }
        Ok(())
    }
}

/// Most bytes that a trial of a cell writes under a budget of writes.
pub fn writes_at_most(cell: &CellSpec) -> u64 {
    match cell.trial.writes_data() {
        true => cell.trial.limit.bytes.unwrap_or(u64::MAX),
        false => 0,
    }
}
