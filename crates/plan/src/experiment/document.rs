//! TOML documents that people write: experiments and suites, with the place of every mistake.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use iolab_spec::{Error, Result};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use toml::{Spanned, Value};

use crate::experiment::{Experiment, set_budget, set_settle};
use iolab_spec::foreign::unknown_setting;
use iolab_spec::settings::{Setting, ValueKind};

/// Most levels of one factor; more could not be distinguished in a table or a figure.
const LEVELS_MAX: usize = 1000;

/// Most brackets that are open at once. The parser has a limit of its own, but takes inline tables without a key for closed
/// twice, and overflows its stack after many of them.
const DEPTH_MAX: usize = 100;

/// The text of a document and what to call it in messages.
#[derive(Debug, Clone, Copy)]
pub struct DocumentText<'a> {
    /// A file's path, or the name of a built-in.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

impl DocumentText<'_> {
    /// Reads the document into a type; the message keeps the line and column.
    ///
    /// # Errors
    /// Of kind usage: it is not TOML, or not of this type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        let wrong = |what: &str| {
            Error::usage(format!("{}: {}", self.name, what.trim_end()))
                .hint("'iolab show read-size' prints a complete experiment to compare with")
        };
        if depth(self.text) > DEPTH_MAX {
            return Err(wrong(&format!(
                "more than {DEPTH_MAX} brackets are open at once"
            )));
        }
        toml::from_str(self.text).map_err(|error| wrong(&error.to_string()))
    }

    /// Says where in the document an error lies.
    pub(crate) fn at(&self, span: Range<usize>, error: Error) -> Error {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(0, |rest| rest.chars().count())
            + 1;
        error.within(format!("{}, line {line}, column {column}", self.name))
    }
}

/// The most brackets that are open at once, those in texts and comments among them.
fn depth(text: &str) -> usize {
    let (mut open, mut most) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// A table whose entries keep their order and their place.
#[derive(Debug, Default)]
pub(crate) struct Entries(Vec<(Spanned<String>, Spanned<Value>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Entries {
    /// The one level of each setting here, in canonical form, where `check` has nothing against it.
    pub(crate) fn levels(
        &self,
        source: &DocumentText<'_>,
        check: impl Fn(&'static Setting, &String) -> Result<()>,
    ) -> Result<Vec<(&'static Setting, String)>> {
        let mut seen = Vec::new();
        let mut levels = Vec::with_capacity(self.0.len());
        for (key, value) in &self.0 {
            let setting = claim(source, key, "only", &mut seen)?;
            let level = fixed(setting, value.get_ref())
                .and_then(|text| setting.canonical(&text))
                .and_then(|level| check(setting, &level).map(|()| level))
                .map_err(|error| source.at(value.span(), error))?;
            levels.push((setting, level));
        }
        Ok(levels)
    }
}

/// `[design]`; what is not given stays as it is.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DesignEntries {
    trials_min: Option<u32>,
    trials_max: Option<u32>,
    precision: Option<f64>,
    budget: Option<Spanned<Value>>,
    refine: Option<u32>,
    settle: Option<Spanned<Value>>,
    precondition: Option<Spanned<String>>,
    pilot: Option<bool>,
}

/// The three tables in which an experiment is defined and a suite changes it.
#[derive(Debug, Default)]
pub(crate) struct Definition {
    /// `[factors]`.
    pub(crate) factors: Entries,
    /// `[settings]`.
    pub(crate) settings: Entries,
    /// `[design]`.
    pub(crate) design: DesignEntries,
}

impl Definition {
    /// Writes what is defined here into an experiment, over what it had.
    pub(crate) fn apply(
        &self,
        source: &DocumentText<'_>,
        experiment: &mut Experiment,
    ) -> Result<()> {
        let mut seen: Vec<(&'static Setting, &str)> = Vec::new();
        for (key, value) in &self.factors.0 {
            let setting = claim(source, key, "factors", &mut seen)?;
            let levels = levels(setting, value.get_ref())
                .and_then(|levels| experiment.sweep(setting, &levels));
            levels.map_err(|error| source.at(value.span(), error))?;
        }
        for (key, value) in &self.settings.0 {
            let setting = claim(source, key, "settings", &mut seen)?;
            let fixed =
                fixed(setting, value.get_ref()).and_then(|text| experiment.fix(setting, &text));
            fixed.map_err(|error| source.at(value.span(), error))?;
        }
        self.design.apply(source, experiment)
    }
}

impl DesignEntries {
    /// Whether a budget is given.
    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    fn apply(&self, source: &DocumentText<'_>, experiment: &mut Experiment) -> Result<()> {
        let design = &mut experiment.design;
        design.trials_min = self.trials_min.unwrap_or(design.trials_min);
        design.trials_max = self.trials_max.unwrap_or(design.trials_max);
        design.precision = self.precision.unwrap_or(design.precision);
        design.refine = self.refine.unwrap_or(design.refine);
        design.pilot = self.pilot.or(design.pilot);
        if let Some(value) = &self.budget {
            design.budget = budget(source, value)?;
        }
        if let Some(value) = &self.settle {
            design.settle = value_text("settle", ValueKind::Time, value.get_ref())
                .and_then(|text| set_settle(&text))
                .map_err(|error| source.at(value.span(), error))?;
        }
        if let Some(text) = &self.precondition {
            let parsed = text.get_ref().parse();
            design.precondition = parsed.map_err(|error| source.at(text.span(), error))?;
        }
        Ok(())
    }
}

/// Reads a budget: `"60s"`, or seconds as a bare number.
pub(crate) fn budget(source: &DocumentText<'_>, value: &Spanned<Value>) -> Result<Duration> {
    value_text("budget", ValueKind::Time, value.get_ref())
        .and_then(|text| set_budget(&text))
        .map_err(|error| source.at(value.span(), error))
}

/// Finds the setting of a key and refuses one that this document has already used.
fn claim<'a>(
    source: &DocumentText<'_>,
    key: &'a Spanned<String>,
    table: &'static str,
    seen: &mut Vec<(&'static Setting, &'a str)>,
) -> Result<&'static Setting> {
    let name = key.get_ref();
    let Some(setting) = Setting::find(name) else {
        return Err(source.at(key.span(), unknown_setting(name, &[])));
    };
    if let Some((_, before)) = seen.iter().find(|(other, _)| other.name == setting.name) {
        let error = Error::usage(format!(
            "'{name}' in [{table}] was already given as '{before}'"
        ));
        let error = error.hint("list its levels in [factors], or fix it in [settings], not both");
        return Err(source.at(key.span(), error));
    }
    seen.push((setting, name));
    Ok(setting)
}

/// The levels of a factor: a list, or a range `{ from, to, times }`.
fn levels(setting: &'static Setting, value: &Value) -> Result<Vec<String>> {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| value_text(setting.name, setting.kind, item))
            .collect(),
        Value::Table(range) => range_levels(setting, range),
        _ => Err(
            Error::usage(format!("factor {} is not a list of levels", setting.name)).hint(format!(
                "write {0} = [first, second, ...] or {0} = {{ from = ..., to = ..., times = 2 }}; a single value belongs in [settings]",
                setting.name
            )),
        ),
    }
}

fn fixed(setting: &'static Setting, value: &Value) -> Result<String> {
    if matches!(value, Value::Array(_) | Value::Table(_)) {
        return Err(Error::usage(format!(
            "{} in [settings] has more than one value",
            setting.name
        ))
        .hint("several levels belong in [factors]"));
    }
    value_text(setting.name, setting.kind, value)
}

/// The text of a TOML value, when its type fits what the setting takes.
fn value_text(name: &str, kind: ValueKind, value: &Value) -> Result<String> {
    match (value, kind) {
        (Value::String(text), _) => Ok(text.clone()),
        (Value::Integer(number), ValueKind::Size | ValueKind::Count | ValueKind::Time) => {
            Ok(number.to_string())
        }
        (Value::Float(number), ValueKind::Time) => Ok(number.to_string()),
        (Value::Boolean(flag), ValueKind::Flag) => Ok(flag.to_string()),
        _ => Err(Error::usage(format!(
            "{name} takes {}, not a value of type {}",
            kind.wants(),
            value.type_str()
        ))
        .hint("change the value in the file")),
    }
}

/// The levels from `from`, multiplied by `times` each, up to `to`.
fn range_levels(setting: &'static Setting, range: &toml::Table) -> Result<Vec<String>> {
    let wrong = |what: String| {
        Error::usage(format!("{}: {what}", setting.name))
            .hint("write a range as { from = \"4KiB\", to = \"128MiB\", times = 2 }")
    };
    if !matches!(setting.kind, ValueKind::Size | ValueKind::Count) {
        return Err(wrong("a range needs sizes or whole numbers".to_owned()));
    }
    if let Some(key) = range
        .keys()
        .find(|key| !matches!(key.as_str(), "from" | "to" | "times"))
    {
        return Err(wrong(format!("'{key}' is not part of a range")));
    }
    let number = |key: &str| -> Result<u64> {
        let value = range
            .get(key)
            .ok_or_else(|| wrong(format!("the range has no '{key}'")))?;
        let text = value_text(key, ValueKind::Size, value)?;
        iolab_spec::units::parse_size(&text).map_err(|error| error.within(key))
    };
    let (from, to, times) = (number("from")?, number("to")?, number("times")?);
    if from == 0 || to < from || times < 2 {
        return Err(wrong(format!(
            "a range from {from} to {to} times {times} has no levels"
        )));
    }
    Ok(
        std::iter::successors(Some(from), |level| level.checked_mul(times))
            .take_while(|level| *level <= to)
            .map(|level| level.to_string())
            .collect(),
    )
}

/// Refuses more levels than anybody can read.
pub(crate) fn check_level_count(setting: &Setting, count: usize) -> Result<()> {
    match count {
        0 => Err(
            Error::usage(format!("factor {} has no levels", setting.name))
                .hint("give it at least one level, or leave it out"),
        ),
        1..=LEVELS_MAX => Ok(()),
        _ => Err(Error::usage(format!(
            "factor {} has {count} levels, more than {LEVELS_MAX}",
            setting.name
        ))
        .hint("give it fewer levels")),
    }
}
