//! Preparation of a target before its measured trials, which brings it into the state of long use.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use iolab_workload::units::{
    format_duration, format_size, parse_duration, parse_share, parse_size,
};
use iolab_workload::{Error, Result, usage_errors};

/// Most passes of one kind.
const PASSES_MAX: u32 = 100;
/// I/O size of random passes and of rounds of writes, bytes.
pub const RAND_BS: u64 = 4096;
/// I/O size of sequential passes, bytes, if none is named.
const SEQ_BS: u64 = 1 << 20;
/// Largest I/O size of sequential passes, bytes.
const SEQ_BS_MAX: u64 = 1 << 30;
/// Most rounds on the way to a steady state.
pub const ROUNDS_MAX: u32 = 1000;
/// Most times that rounds write their range.
const FILLS_MAX: u32 = 1000;
/// The steps in their order.
const STEPS: [&str; 5] = ["purge", "trim", "seq", "rand", "steady"];
/// Remedy for an invalid round.
const ROUND: &str =
    "round is 'cells', one trial of each cell, or the time of a round of random writes: 5s";
/// Fewest rounds of a window: a line through fewer has no slope.
const WINDOW_MIN: u32 = 2;

/// How a target is prepared: the steps in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Precondition {
    /// How it is emptied before it is written.
    pub emptying: Emptying,
    /// Sequential passes.
    pub seq: u32,
    /// I/O size of these, bytes.
    pub seq_bs: u64,
    /// Random passes, each of which writes every block once.
    pub rand: u32,
    /// Rounds that follow until they are steady.
    pub steady: Option<SteadyRounds>,
}

/// How a target is emptied before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Emptying {
    /// Keeps the content of the target.
    #[default]
    Not,
    /// Trims the range that the cells use, if the target takes trims.
    Trim,
    /// Purges the whole device, if possible; otherwise as [`Emptying::Trim`].
    Purge,
}

impl Emptying {
    /// The user's word for this step; `None` if nothing is done.
    fn step(self) -> Option<&'static str> {
        match self {
            Self::Not => None,
            Self::Trim => Some("trim"),
            Self::Purge => Some("purge"),
        }
    }
}

/// Rounds that are repeated until a window of them is steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyRounds {
    /// The kind of a round.
    pub round: Round,
    /// Rounds of the window.
    pub window: u32,
    /// Largest range of the window, relative to its mean.
    pub range: f64,
    /// Largest change of the line fitted to the window, from its first to its last round, relative to the mean.
    pub slope: f64,
    /// Rounds after which the run stops waiting for a steady state.
    pub rounds: u32,
    /// For rounds of cells: number of times that they write their range until the run stops waiting for a steady state;
    /// `None` without such a limit.
    pub fills: Option<u32>,
}

/// A round on the way to a steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// Random writes of 4 KiB for this long; their requests per second are tracked. Trials follow when they are steady.
    Writes(Duration),
    /// One trial of each cell of the experiment, in the order of its factors; the response of its tracked cells is tracked. The rounds
    /// of the last window are the measured trials.
    Cells,
}

impl Default for Precondition {
    /// No preparation.
    fn default() -> Self {
        Self {
            emptying: Emptying::Not,
            seq: 0,
            seq_bs: SEQ_BS,
            rand: 0,
            steady: None,
        }
    }
}

impl Default for SteadyRounds {
    /// Five rounds within 20 %, whose slope is at most 10 %, of at most 25: SNIA, Solid State Storage Performance Test Specification,
    /// version 2.0.2 (2020), section 2.1.24. The length of a round of writes is iolab's own.
    fn default() -> Self {
        Self {
            round: Round::Writes(Duration::from_secs(5)),
            window: 5,
            range: 0.2,
            slope: 0.1,
            rounds: 25,
            fills: None,
        }
    }
}

impl Precondition {
    /// Whether anything is written, trimmed or purged before the first trial.
    pub fn writes(self) -> bool {
        let Self {
            emptying,
            seq,
            seq_bs: _,
            rand,
            steady,
        } = self;
        let writes = |steady: SteadyRounds| matches!(steady.round, Round::Writes(_));
        emptying != Emptying::Not || seq + rand > 0 || steady.is_some_and(writes)
    }

    /// The steps before the first trial.
    #[must_use]
    pub fn before_trials(self) -> Self {
        Self {
            steady: self.steady.filter(|steady| steady.round != Round::Cells),
            ..self
        }
    }

    /// Rounds of all cells, which are the trials of the experiment; `None` if it repeats blocks.
    pub fn rounds_of_cells(self) -> Option<SteadyRounds> {
        self.steady.filter(|steady| steady.round == Round::Cells)
    }

    /// Fewest passes that are written over the region before the first trial, and whether there may be more; `None` if
    /// nothing is written.
    pub fn passes(self) -> Option<(u32, bool)> {
        let own = self.seq + self.rand;
        match self.steady.map(|steady| steady.round) {
            // Steadiness is judged over several passes.
            Some(Round::Writes(_)) => Some((own + 1, true)),
            Some(Round::Cells) | None => (own > 0).then_some((own, false)),
        }
    }
}

impl fmt::Display for Precondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            emptying,
            seq,
            seq_bs,
            rand,
            steady,
        } = *self;
        let size = match seq_bs {
            SEQ_BS => String::new(),
            size => format!("/{}", format_size(size)),
        };
        let fills = steady.is_some_and(|steady| steady.fills(emptying, seq, rand));
        let parts = [
            emptying.step().map(str::to_owned),
            (seq > 0 && !(fills && size.is_empty())).then(|| format!("seq:{seq}{size}")),
            (rand > 0).then(|| format!("rand:{rand}")),
            steady.map(|steady| steady.to_string()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match parts.is_empty() {
            true => f.pad("none"),
            false => f.pad(&parts.join("+")),
        }
    }
}

impl SteadyRounds {
    /// Whether these passes are the default ones before rounds of writes.
    fn fills(self, emptying: Emptying, seq: u32, rand: u32) -> bool {
        matches!(self.round, Round::Writes(_)) && (emptying, seq, rand) == (Emptying::Not, 1, 0)
    }
}

impl fmt::Display for SteadyRounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            round,
            window,
            range,
            slope,
            rounds,
            fills,
        } = *self;
        let usual = Self::default();
        let round = (round != usual.round).then(|| match round {
            Round::Writes(time) => format!("round={}", format_duration(time)),
            Round::Cells => "round=cells".to_owned(),
        });
        let options = [
            round,
            (window != usual.window).then(|| format!("window={window}")),
            (range != usual.range).then(|| format!("range={}", percent(range))),
            (slope != usual.slope).then(|| format!("slope={}", percent(slope))),
            (rounds != usual.rounds).then(|| format!("rounds={rounds}")),
            fills.map(|fills| format!("fills={fills}")),
        ];
        let options: Vec<String> = options.into_iter().flatten().collect();
        match options.is_empty() {
            true => f.write_str("steady"),
            false => write!(f, "steady:{}", options.join(",")),
        }
    }
}

/// A share as it is typed: `7.5%`.
fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

impl FromStr for Precondition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong = || {
            Error::usage(format!("precondition '{text}' is unknown")).hint(format!(
                "write none, or steps in this order joined by '+': purge or trim, seq:PASSES, rand:PASSES (at most {PASSES_MAX}), steady; for example seq:2/128KiB+rand:1 or seq:2+steady:round=cells,rounds=25"
            ))
        };
        if text == "none" {
            return Ok(Self::default());
        }
        let mut found = Self::default();
        let mut last = 0;
        for part in text.split('+') {
            let (name, value) = match part.split_once(':') {
                Some((name, value)) => (name, Some(value)),
                None => (part, None),
            };
            let step = step_number(name).ok_or_else(wrong)?;
            usage_errors! {
                step <= last =>
                    match step == last {
                        true => format!("precondition '{text}' has a step twice"),
                        false => format!("precondition '{text}' has its steps in another order"),
                    },
                    "write each step once, in this order: purge or trim, seq, rand, steady";
            }
            last = step;
            match (name, value) {
                ("purge", None) => found.emptying = Emptying::Purge,
                ("trim", None) if found.emptying == Emptying::Purge => {
                    return Err(Error::usage(format!(
                        "precondition '{text}' purges and trims: a purge leaves nothing to trim"
                    ))
                    .hint("leave out one of the two; purge trims by itself where the target cannot be purged"));
                }
                ("trim", None) => found.emptying = Emptying::Trim,
                ("seq", value) => {
                    let (passes, size) = sized(value.unwrap_or("1"))?;
                    found.seq = passes_of("seq", passes)?;
                    found.seq_bs = size.unwrap_or(SEQ_BS);
                }
                ("rand", value) => {
                    found.rand = passes_of("rand", value.unwrap_or("1"))?;
                }
                ("steady", options) => found.steady = Some(steady(options.unwrap_or_default())?),
                _ => return Err(wrong()),
            }
        }
        if let Some(steady) = found.steady
            && steady.fills(found.emptying, 1, found.rand)
            && found.seq == 0
        {
            found.seq = 1;
        }
        Ok(found)
    }
}

/// `PASSES` or `PASSES/SIZE`.
fn sized(text: &str) -> Result<(&str, Option<u64>)> {
    let Some((passes, size)) = text.split_once('/') else {
        return Ok((text, None));
    };
    let bytes = parse_size(size).map_err(|error| error.within("precondition seq"))?;
    usage_errors! {
        bytes == 0 || bytes > SEQ_BS_MAX || !bytes.is_multiple_of(512) => format!("precondition seq:{text}: the I/O size is {size}"),
            "choose a multiple of 512 bytes of at most 1 GiB, for example 128KiB";
    }
    Ok((passes, Some(bytes)))
}

/// The place of a step in the order of all, from 1; `None` if there is none of this name.
fn step_number(name: &str) -> Option<usize> {
    let place = STEPS.iter().position(|step| *step == name)?;
    Some(place + 1)
}

fn passes_of(step: &str, text: &str) -> Result<u32> {
    let passes = text.parse().ok();
    let passes = passes.filter(|passes| (1..=PASSES_MAX).contains(passes));
    passes.ok_or_else(|| {
        Error::usage(format!(
            "precondition {step}: '{text}' is not a number of passes from 1 to {PASSES_MAX}"
        ))
        .hint(format!("write {step}:PASSES, for example {step}:2"))
    })
}

/// `round=cells,window=5,range=20%,slope=10%,rounds=25,fills=4`, each at most once.
fn steady(options: &str) -> Result<SteadyRounds> {
    let mut found = SteadyRounds::default();
    let mut seen: Vec<&str> = Vec::new();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let wrong = |hint: &str| {
            Error::usage(format!("precondition steady: '{option}' has no meaning")).hint(hint)
        };
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| wrong("write NAME=VALUE: round, window, range, slope, rounds, fills"))?;
        if seen.contains(&name) {
            return Err(wrong("name each of them once"));
        }
        seen.push(name);
        let count = |least: u32, most: u32| {
            let number: Option<u32> = value.parse().ok();
            number
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| wrong(&format!("{name} is a whole number from {least} to {most}")))
        };
        let share = || {
            let share = parse_share(value);
            share.map_err(|_| wrong(&format!("{name} is a share above 0 and below 100%")))
        };
        match name {
            "round" if value == "cells" => found.round = Round::Cells,
            "round" => {
                let time = parse_duration(value)
                    .map_err(|error| error.within("precondition steady, round").also(ROUND))?;
                if time.is_zero() {
                    return Err(wrong(ROUND));
                }
                found.round = Round::Writes(time);
            }
            "window" => found.window = count(WINDOW_MIN, ROUNDS_MAX)?,
            "range" => found.range = share()?,
            "slope" => found.slope = share()?,
            "rounds" => found.rounds = count(WINDOW_MIN, ROUNDS_MAX)?,
            "fills" => found.fills = Some(count(1, FILLS_MAX)?),
            _ => return Err(wrong("write round, window, range, slope, rounds or fills")),
        }
    }
    usage_errors! {
        found.fills.is_some() && found.round != Round::Cells =>
            "precondition steady: fills limits rounds of cells, and these are rounds of writes",
            "write round=cells,fills=4, or limit rounds of writes with rounds=25";
        found.rounds < found.window => format!("precondition steady: rounds={} is less than window={}", found.rounds, found.window),
            "allow at least as many rounds as the window has";
    }
    Ok(found)
}
