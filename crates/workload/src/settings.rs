//! The table of settings, which serves TOML, `--set`, messages and help (its rows are in `settings/rows.rs`); settings of a cell, and
//! those that a consumer carries out.

mod rows;
mod setting;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use crate::command_template::{Linkage, Template};
use crate::names::{Active, TargetName};
use crate::system_settings::SystemSettings;
use crate::trial::{Rate, TrialSpec, WorkloadCode};
use crate::units::{format_duration, format_size};
use crate::{Error, Result};
pub use rows::SETTINGS;
pub use setting::{Setting, Topic};

/// The kind of values that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes: `4096`, `4k`, `4KiB`.
    Size,
    /// A whole number.
    Count,
    /// A time: `0.5`, `250ms`.
    Time,
    /// Requests or bytes per second: `5000`, `50MB/s`.
    Rate,
    /// `true` or `false`.
    Flag,
    /// One word: a name from a list, or a text of its own form such as `zipf:1.2` or a nice value.
    Word,
    /// An absolute path, unchanged: a name may end in a space.
    Path,
    /// Text that may contain commas.
    List,
}

impl ValueKind {
    /// Whether its values are stored as numbers.
    pub fn is_number(self) -> bool {
        !matches!(self, ValueKind::Word | ValueKind::Path | ValueKind::List)
    }

    /// A value without surrounding blanks; a path keeps them.
    fn trimmed(self, text: &str) -> &str {
        match self {
            ValueKind::Path => text.trim_start(),
            _ => text.trim(),
        }
    }

    /// The separator of several values on the command line.
    pub fn separator(self) -> char {
        match self {
            ValueKind::List => ';',
            _ => ',',
        }
    }

    /// Whether its values are times.
    pub fn is_time(self) -> bool {
        self == ValueKind::Time
    }

    /// The accepted values, for messages.
    pub fn wants(self) -> &'static str {
        match self {
            ValueKind::Size => "a size such as \"4KiB\" or 4096",
            ValueKind::Count => "a whole number",
            ValueKind::Time => "a time such as \"250ms\" or 0.5",
            ValueKind::Rate => "requests per second, or bytes per second such as \"50MB/s\"",
            ValueKind::Flag => "true or false",
            ValueKind::Word => "a name in quotes",
            ValueKind::Path => "a path in quotes",
            ValueKind::List => "a text in quotes",
        }
    }
}

/// The text of a value that is not known.
const UNKNOWN: &str = "unknown";

/// The value of a setting in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Absent: a limit that does not exist, a program that does not run.
    None,
    /// Missing in the report of another tool.
    Unknown,
    /// On or off.
    Flag(bool),
    /// Bytes, or a count.
    Number(u64),
    /// A time.
    Time(Duration),
    /// Requests or bytes per second.
    Rate(Rate),
    /// A name.
    Word(String),
}

impl Value {
    /// A name, or [`Value::None`].
    pub fn word(name: Option<impl Display>) -> Self {
        name.map_or(Self::None, |name| Self::Word(name.to_string()))
    }

    /// The canonical text: `4KiB`, `rand`, `250ms`, `none`.
    pub fn text(&self, kind: ValueKind) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Unknown => UNKNOWN.to_owned(),
            Self::Flag(on) => on.to_string(),
            Self::Number(bytes) if kind == ValueKind::Size => format_size(*bytes),
            Self::Number(count) => count.to_string(),
            Self::Time(Duration::ZERO) => "0".to_owned(),
            Self::Time(time) => format_duration(*time),
            Self::Rate(rate) => rate.to_string(),
            Self::Word(name) => name.clone(),
        }
    }
}

impl From<bool> for Value {
    fn from(on: bool) -> Self {
        Self::Flag(on)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u8> for Value {
    fn from(number: u8) -> Self {
        Self::Number(number.into())
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

/// As exports write it: a time in ns, a rate in requests per second.
impl From<Value> for serde_json::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::None | Value::Unknown => Self::Null,
            Value::Flag(on) => on.into(),
            Value::Number(number) => number.into(),
            Value::Time(time) => u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).into(),
            Value::Rate(rate) => rate.requests().into(),
            Value::Word(name) => name.into(),
        }
    }
}

/// Longest name, bytes.
const NAME_MAX: usize = 15;

/// Issuer of a cell's requests: iolab (or a program that it times), or a peer. The runner knows which peers it can start; a
/// run file may name others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tool {
    letters: [u8; NAME_MAX],
}

impl Tool {
    /// iolab itself.
    pub const IOLAB: Self = Self::named("iolab").expect("letters");

    /// The tool of a name; `None` unless that is 1 to 15 lowercase letters, digits and hyphens.
    pub const fn named(name: &str) -> Option<Self> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() > NAME_MAX {
            return None;
        }
        let mut letters = [0; NAME_MAX];
        let mut at = 0;
        while at < bytes.len() {
            if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'-') {
                return None;
            }
            letters[at] = bytes[at];
            at += 1;
        }
        Some(Self { letters })
    }

    /// Its name in definitions, run files and exports.
    pub fn name(&self) -> &str {
        let length = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..length.unwrap_or(NAME_MAX)];
        // All bytes are checked ASCII.
        std::str::from_utf8(letters).unwrap_or_default()
    }

    /// Whether it is a tool other than iolab.
    pub fn is_peer(self) -> bool {
        self != Self::IOLAB
    }
}

impl Default for Tool {
    fn default() -> Self {
        Self::IOLAB
    }
}

impl Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tool {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::named(text).ok_or_else(|| {
            Error::usage(format!("'{text}' is not the name of a tool"))
                .hint("write iolab, or the name of a peer such as fio")
        })
    }
}

/// Why a consumer refuses settings that no consumer names.
const NO_SETTING: &str = "it has no such setting";

/// Settings that a consumer other than the engine (another tool, a modelled disk) carries out. Settings that it does not name must
/// have their default value.
#[derive(Debug, Clone, Copy)]
pub struct Consumer {
    /// Settings that it carries out as the engine does, or that iolab carries out around it. Names here are separated by blanks.
    pub takes: &'static str,
    /// Settings of which it carries out the default value only, and why.
    pub lacks: &'static [(&'static str, &'static str)],
    /// Settings of which it refuses some values: whether the value at hand is one, and why.
    pub cannot: fn(&TrialSpec) -> Vec<(&'static str, bool, &'static str)>,
}

impl Consumer {
    /// Why a consumer refuses the value of each setting that it refuses in this cell.
    pub fn refusals(&self, cell: &CellSpec) -> Vec<(&'static Setting, &'static str)> {
        let conditions = (self.cannot)(&cell.trial);
        let plain = CellSpec::default();
        let has = |names: &str, name: &str| names.split(' ').any(|other| other == name);
        let why = |setting: &&'static Setting| {
            let name = setting.name;
            let mut own = conditions.iter().filter(|(of, ..)| *of == name).peekable();
            let is_taken = own.peek().is_some() || has(self.takes, name);
            if let Some((.., why)) = own.find(|(_, refused, _)| *refused) {
                return Some((*setting, *why));
            }
            let lacked = self.lacks.iter().find(|(names, _)| has(names, name));
            let is_plain = is_taken || setting.value(cell) == setting.value(&plain);
            (!is_plain).then_some((*setting, lacked.map_or(NO_SETTING, |(_, why)| why)))
        };
        SETTINGS
            .iter()
            .filter_map(|setting| why(&setting))
            .collect()
    }

    /// Refuses a trial, for the first setting of the table that it refuses.
    ///
    /// # Errors
    /// The reason.
    pub fn check(&self, trial: &TrialSpec) -> std::result::Result<(), String> {
        match self.refusals(&CellSpec::of(trial.clone())).first() {
            Some((_, why)) => Err((*why).to_owned()),
            None => Ok(()),
        }
    }
}

/// The settings of one cell, typed, from the definition to the report, before the choices that need a measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSpec {
    /// The trial; its seed is set for each trial. With groups, the merged trial of all groups.
    pub trial: TrialSpec,
    /// Groups that do different things at the same time; empty if all workers do the same.
    pub groups: Vec<GroupSpec>,
    /// The active groups; `None`: all.
    pub active: Option<Active>,
    /// The workload code, if one sets pattern and share of reads.
    pub workload: Option<WorkloadCode>,
    /// Whether short probes choose the completion strategy (`batch = "auto"`), the default.
    pub batch_auto: bool,
    /// The build of the built-in reader that each trial runs, if any.
    pub linkage: Option<Linkage>,
    /// The user's program that each trial runs, if any.
    pub command: Option<Template>,
    /// The tool that carries out the cell.
    pub tool: Tool,
    /// Its target in a run with several; `None`: the target of the run.
    pub target: Option<TargetName>,
    /// Settings of the kernel that are changed for the time of each trial.
    pub system: SystemSettings,
    /// Time without I/O before each trial; part of the budget, and not of the trial.
    pub idle: Duration,
    /// Names of the settings that the report of another tool does not give; their fields are meaningless.
    pub unknown: BTreeSet<&'static str>,
}

/// The settings without which a cell is not described: cells in which one of them is known on one side only are not compared.
pub const DESCRIBING: [&str; 8] = [
    "pattern", "read_percent", "bs", "threads", "depth", "backend", "cache", "region",
];

/// A group of a cell: workers with the same settings.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSpec {
    /// Name of the group.
    pub name: String,
    /// The settings of its workers; has no groups itself.
    pub spec: CellSpec,
}

impl GroupSpec {
    /// The settings of its workers.
    pub fn trial(&self) -> &TrialSpec {
        &self.spec.trial
    }

    /// Whether it issues no requests in this cell: its rate is 0.
    pub fn is_idle(&self) -> bool {
        self.spec.trial.rate == Some(Rate::ZERO)
    }
}

impl CellSpec {
    /// A cell whose trials are these, with nothing left to choose.
    pub fn of(trial: TrialSpec) -> Self {
        Self {
            trial,
            batch_auto: false,
            ..Self::default()
        }
    }

    /// Whether a trial runs a program instead of issuing requests.
    pub fn runs_program(&self) -> bool {
        self.linkage.is_some() || self.command.is_some()
    }

    /// The longest time of a trial according to its limits, with the idle time before it.
    pub fn time_foreseen(&self) -> Option<Duration> {
        Some(self.trial.time_foreseen()?.saturating_add(self.idle))
    }

    /// Whether two cells can be compared: both say in which order their requests go, and neither leaves out a [`DESCRIBING`] setting
    /// that the other one says.
    pub fn is_comparable(&self, other: &Self) -> bool {
        self.says_order()
            && DESCRIBING
                .iter()
                .all(|name| self.unknown.contains(name) == other.unknown.contains(name))
    }

    /// Whether the order of requests is known, without which nothing else that a report says of them describes a cell.
    pub fn says_order(&self) -> bool {
        !self.unknown.contains("pattern")
    }

    /// The completion strategy; `auto` until it is chosen.
    pub fn batch_name(&self) -> String {
        match self.batch_auto {
            true => "auto".to_owned(),
            false => self.trial.batch.to_string(),
        }
    }

    /// The program with its arguments and placeholders.
    pub fn program(&self) -> Option<Template> {
        let reader = self.linkage.map(Linkage::template);
        self.command.clone().or(reader)
    }
}

impl Default for CellSpec {
    fn default() -> Self {
        Self {
            trial: TrialSpec::default(),
            groups: Vec::new(),
            active: None,
            workload: None,
            batch_auto: true,
            linkage: None,
            command: None,
            tool: Tool::IOLAB,
            target: None,
            system: SystemSettings::default(),
            idle: Duration::ZERO,
            unknown: BTreeSet::new(),
        }
    }
}

/// A level with its factor, as users type it: `bs=4KiB`.
pub fn level_label(factor: &str, level: &str) -> String {
    format!("{factor}={level}")
}

/// The label of a cell in messages: `bs=4KiB, depth=8`; `every trial` if nothing varies.
pub fn cell_label(factors: &[String], levels: &[String]) -> String {
    if factors.is_empty() {
        return "every trial".to_owned();
    }
    let parts: Vec<String> = factors
        .iter()
        .zip(levels)
        .map(|(factor, level)| level_label(factor, level))
        .collect();
    parts.join(", ")
}

/// Some of the cells of a tool, in the words of a message: `2 of its 6 cells (bs=16MiB)`, `any of its 6 cells`, `its only cell`.
pub fn own_cells(factors: &[String], some: &[&[String]], others: &[&[String]]) -> String {
    match (some.len(), some.len() + others.len()) {
        (1, 1) => "its only cell".to_owned(),
        (n, all) if n == all => format!("any of its {all} cells"),
        (n, all) => format!(
            "{n} of its {all} cells ({})",
            some_cells_label(factors, some, others)
        ),
    }
}

/// Most cells that [`some_cells_label`] names individually.
const NAMED_MAX: usize = 3;
/// Levels of one factor that it names.
const LEVELS_MAX: usize = 4;

/// A label of some cells among others, by their levels. If a factor's levels occur in no other cell, these levels
/// (`bs=8MiB, 16MiB`); otherwise cell by cell (`bs=4KiB, depth=1; bs=64KiB, depth=8; and 4 more`).
fn some_cells_label(factors: &[String], some: &[&[String]], others: &[&[String]]) -> String {
    let levels_of = |place: usize| {
        let mut levels: Vec<&str> = Vec::new();
        for level in some.iter().filter_map(|cell| cell.get(place)) {
            if !levels.contains(&level.as_str()) {
                levels.push(level);
            }
        }
        levels
    };
    let own = factors.iter().enumerate().map(|(place, factor)| {
        let levels = levels_of(place);
        let mut shared = others.iter().filter_map(|cell| cell.get(place));
        let is_shared = shared.any(|level| levels.contains(&level.as_str()));
        (factor, levels, is_shared)
    });
    let apart = own.filter(|(_, levels, is_shared)| !is_shared && levels.len() <= LEVELS_MAX);
    if let Some((factor, levels, _)) = apart.min_by_key(|(_, levels, _)| levels.len()) {
        return level_label(factor, &levels.join(", "));
    }
    let named = some.iter().take(NAMED_MAX);
    let mut parts: Vec<String> = named.map(|cell| cell_label(factors, cell)).collect();
    if some.len() > NAMED_MAX {
        parts.push(format!("and {} more", some.len() - NAMED_MAX));
    }
    parts.join("; ")
}
