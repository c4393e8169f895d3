//! TOML documents that people write, experiments and suites. Errors give line and column.
//!
//! Writes an experiment as TOML, with every value in canonical form.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, Visitor};
use toml::{Spanned, Table, Value};

use super::Factor;
use super::design::DESIGN;
use crate::experiment::design::{Design, DesignEntry, check_bounds, design_names, time};
use crate::experiment::{Combination, Experiment, GroupSetting};
use iolab_workload::foreign_options::unknown_setting;
use iolab_workload::names::unknown;
use iolab_workload::settings::{Setting, ValueKind};
use iolab_workload::{Error, Result};

/// Most levels of one factor; tables and figures could not distinguish more.
const LEVELS_MAX: usize = 1000;

/// Most nested brackets. The parser's own limit miscounts inline tables without a key, and many of them overflow its stack.
const DEPTH_MAX: usize = 100;

/// The text of a document with its name for messages.
#[derive(Debug, Clone, Copy)]
pub struct DocumentText<'a> {
    /// Path of the file, or name of the built-in.
    pub name: &'a str,
    /// The TOML text.
    pub text: &'a str,
}

impl DocumentText<'_> {
    /// Deserializes the document; messages name its kind and a built-in one `like` it.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage), with line and column: not TOML, or not of this type.
    pub fn parse<T: DeserializeOwned>(&self, [kind, like]: [&str; 2]) -> Result<T> {
        let wrong = |what: &str| {
            Error::usage(format!("{}: {}", self.name, what.trim_end())).hint(format!(
                "'iolab show {like}' prints a complete {kind} to compare with"
            ))
        };
        if depth(self.text) > DEPTH_MAX {
            return Err(wrong(&format!(
                "more than {DEPTH_MAX} brackets are open at once"
            )));
        }
        toml::from_str(self.text).map_err(|error| wrong(&error.to_string()))
    }

    /// Adds the position in the document to an error.
    pub fn at(&self, span: Range<usize>, error: Error) -> Error {
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

/// The largest number of nested brackets, including those in strings and comments.
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

/// A table whose entries keep their order and their position.
#[derive(Debug)]
pub struct Ordered<V>(pub Vec<(Spanned<String>, V)>);

/// A table of settings.
pub type Entries = Ordered<Spanned<Value>>;

/// `[group.NAME]`: a table of settings for each group.
pub type Groups = Ordered<Entries>;

impl<V> Default for Ordered<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Ordered<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct InOrder<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for InOrder<V> {
            type Value = Ordered<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of settings")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Ordered<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

impl Entries {
    /// One level for each setting, in canonical form, after `check` has accepted it.
    pub(crate) fn levels(
        &self,
        source: &DocumentText<'_>,
        check: impl Fn(&GroupSetting, &String) -> Result<()>,
    ) -> Result<Combination> {
        let mut seen = Vec::new();
        let mut levels = Vec::with_capacity(self.0.len());
        for (key, value) in &self.0 {
            let of = claim(source, key, "only", None, &mut seen)?;
            let level = fixed(&of, value.get_ref())
                .and_then(|text| of.setting.canonical(&text))
                .and_then(|level| check(&of, &level).map(|()| level))
                .map_err(|error| source.at(value.span(), error))?;
            levels.push((of, level));
        }
        Ok(levels)
    }
}

/// The tables that define an experiment, and with which a suite changes one.
#[derive(Debug, Default)]
pub struct Definition {
    /// `[factors]`.
    pub factors: Entries,
    /// `[settings]`.
    pub settings: Entries,
    /// `[group.NAME]`; empty for a suite.
    pub groups: Groups,
    /// `[design]`.
    pub design: Entries,
}

impl Definition {
    /// Applies the tables to an experiment.
    pub fn apply(&self, source: &DocumentText<'_>, experiment: &mut Experiment) -> Result<()> {
        let mut seen: Vec<(GroupSetting, &str)> = Vec::new();
        for (name, _) in &self.groups.0 {
            let added = experiment.add_group(name.get_ref());
            added.map_err(|error| source.at(name.span(), error))?;
        }
        for (key, value) in &self.factors.0 {
            let at = |error| source.at(value.span(), error);
            // TOML reads writer.rate without quotes as the key rate of a table writer.
            let group = experiment
                .groups
                .iter()
                .find(|group| group.name == *key.get_ref());
            if let (Some(group), Value::Table(own)) = (group, value.get_ref()) {
                let group = group.name.clone();
                for (name, value) in own {
                    let of = GroupSetting::find(&format!("{group}.{name}"), &[]).map_err(at)?;
                    let levels = levels(&of, value).map_err(at)?;
                    experiment.sweep(of, &levels).map_err(at)?;
                }
                continue;
            }
            let of = claim(source, key, "factors", None, &mut seen)?;
            let levels =
                levels(&of, value.get_ref()).and_then(|levels| experiment.sweep(of, &levels));
            levels.map_err(at)?;
        }
        let groups = self.groups.0.iter();
        let tables = groups.map(|(name, entries)| (Some(name.get_ref().as_str()), entries));
        for (group, entries) in std::iter::once((None, &self.settings)).chain(tables) {
            for (key, value) in &entries.0 {
                let of = claim(source, key, "settings", group, &mut seen)?;
                let fixed = fixed(&of, value.get_ref()).and_then(|text| experiment.fix(of, &text));
                fixed.map_err(|error| source.at(value.span(), error))?;
            }
        }
        apply_design(&self.design, source, &mut experiment.design)
    }
}

/// Applies `[design]`; an entry that is not given keeps its value.
fn apply_design(entries: &Entries, source: &DocumentText<'_>, design: &mut Design) -> Result<()> {
    let mut given = Vec::with_capacity(entries.0.len());
    for (key, value) in &entries.0 {
        let entry = DesignEntry::find(key.get_ref())
            .ok_or_else(|| unknown("entry of [design]", key.get_ref(), &design_names()))
            .map_err(|error| source.at(key.span(), error))?;
        let text = match value.get_ref() {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            other => {
                let type_name = other.type_str();
                let error = Error::usage(format!("{} is of type {type_name}", entry.name));
                return Err(source.at(value.span(), error.hint("give it one value")));
            }
        };
        given.push((entry, text, value.span()));
    }
    check_bounds(given.iter().map(|(entry, text, _)| (*entry, text.as_str())))
        .map_err(|error| error.within(source.name))?;
    // The precondition sets bounds of trials, which bounds of the definition contradict.
    given.sort_by_key(|(entry, ..)| entry.name != "precondition");
    for (entry, text, span) in given {
        let set = (entry.set)(design, &text);
        set.map_err(|error| source.at(span, error))?;
    }
    Ok(())
}

/// Reads a time: `"60s"`, or seconds as a bare number.
pub fn budget(source: &DocumentText<'_>, value: &Spanned<Value>) -> Result<Duration> {
    value_text("budget", ValueKind::Time, value.get_ref())
        .and_then(|text| time("budget", &text))
        .map_err(|error| source.at(value.span(), error))
}

/// Finds the setting of a key; refuses one that this document has used before.
fn claim<'a>(
    source: &DocumentText<'_>,
    key: &'a Spanned<String>,
    table: &'static str,
    group: Option<&str>,
    seen: &mut Vec<(GroupSetting, &'a str)>,
) -> Result<GroupSetting> {
    let name = key.get_ref();
    let of = match group {
        // The table of a group accepts no setting of another group.
        Some(group) => Setting::find(name)
            .ok_or_else(|| unknown_setting(name, &[]))
            .map(|setting| GroupSetting {
                group: Some(group.to_owned()),
                setting,
            }),
        None => GroupSetting::find(name, &[]),
    };
    let of = of.map_err(|error| source.at(key.span(), error))?;
    if let Some((_, before)) = seen.iter().find(|(other, _)| *other == of) {
        let error = Error::usage(format!(
            "'{name}' in [{table}] was already given as '{before}'"
        ));
        let error = error.hint("list its levels in [factors], or fix it in [settings], not both");
        return Err(source.at(key.span(), error));
    }
    seen.push((of.clone(), name));
    Ok(of)
}

/// The levels of a factor: a list, or a range `{ from, to, times }`.
fn levels(of: &GroupSetting, value: &Value) -> Result<Vec<String>> {
    match value {
        Value::Array(items) => items
            .iter()
            .map(|item| value_text(&of.to_string(), of.setting.kind, item))
            .collect(),
        Value::Table(range) => range_levels(of.setting, range),
        _ => Err(
            Error::usage(format!("factor {of} is not a list of levels")).hint(format!(
                "write {of} = [first, second, ...] or {of} = {{ from = ..., to = ..., times = 2 }}; a single value belongs in [settings]"
            )),
        ),
    }
}

fn fixed(of: &GroupSetting, value: &Value) -> Result<String> {
    if matches!(value, Value::Array(_) | Value::Table(_)) {
        return Err(
            Error::usage(format!("{of} in [settings] has more than one value"))
                .hint("several levels belong in [factors]"),
        );
    }
    value_text(&of.to_string(), of.setting.kind, value)
}

/// The text of a TOML value whose type the setting accepts.
fn value_text(name: &str, kind: ValueKind, value: &Value) -> Result<String> {
    match (value, kind) {
        (Value::String(text), _) => Ok(text.clone()),
        (
            Value::Integer(number),
            ValueKind::Size | ValueKind::Count | ValueKind::Time | ValueKind::Rate,
        ) => Ok(number.to_string()),
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

/// The levels `from`, `from * times`, and so on, up to `to`.
fn range_levels(setting: &'static Setting, range: &Table) -> Result<Vec<String>> {
    let wrong = |what: String| {
        Error::usage(format!("{}: {what}", setting.name))
            .hint("write a range as { from = \"4KiB\", to = \"128MiB\", times = 2 }")
    };
    if !matches!(
        setting.kind,
        ValueKind::Size | ValueKind::Count | ValueKind::Rate
    ) {
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
        iolab_workload::units::parse_size(&text).map_err(|error| error.within(key))
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

/// Refuses too many levels.
pub(crate) fn check_level_count(of: &GroupSetting, count: usize) -> Result<()> {
    match count {
        0 => Err(Error::usage(format!("factor {of} has no levels"))
            .hint("give it at least one level, or leave it out")),
        1..=LEVELS_MAX => Ok(()),
        _ => Err(Error::usage(format!(
            "factor {of} has {count} levels, more than {LEVELS_MAX}"
        ))
        .hint("give it fewer levels")),
    }
}

impl Experiment {
    /// The definition as a document, in the order in which people write it.
    pub(super) fn document(&self) -> std::result::Result<Table, toml::ser::Error> {
        let mut document = Table::new();
        let mut put = |name: &str, value: Value| document.insert(name.to_owned(), value);
        put("name", self.name.clone().into());
        put("question", self.question.clone().into());
        let response = match &self.response_group {
            Some(group) => format!("{group}.{}", self.response.name()),
            None => self.response.name().to_owned(),
        };
        put("response", response.into());
        if let Some(standard) = self.standard {
            put("standard", standard.name().into());
        }
        for (name, levels) in [("seek", &self.seek), ("hold", &self.hold)] {
            if let Some(levels) = levels {
                put(name, levels.to_string().into());
            }
        }
        let factors = self.factors.iter().map(|Factor { of, levels }| {
            let levels = levels.iter();
            let levels = levels.map(|level| toml_value(of.setting.kind, level));
            (of.to_string(), Value::Array(levels.collect()))
        });
        put("factors", Value::Table(factors.collect()));
        put("settings", fixed_settings(&self.settings));
        let design = DESIGN.iter();
        let design = design.filter_map(|entry| {
            let value = (entry.get)(&self.design)?;
            Some((entry.name.to_owned(), value))
        });
        put("design", Value::Table(design.collect()));
        if !self.groups.is_empty() {
            let groups = self.groups.iter();
            let groups = groups.map(|group| (group.name.clone(), fixed_settings(&group.settings)));
            put("group", Value::Table(groups.collect()));
        }
        if let Some(refined) = &self.refined {
            put("refined", Value::try_from(refined)?);
        }
        if let Some(inquiry) = &self.inquiry {
            put("inquiry", Value::try_from(inquiry)?);
        }
        for (name, combinations) in [("only", &self.only), ("track", &self.track)] {
            if !combinations.is_empty() {
                let rows = combinations.iter().map(|row| {
                    let levels = row.iter();
                    table(levels.map(|(of, level)| (of.to_string(), of.setting, level)))
                });
                put(name, Value::Array(rows.collect()));
            }
        }
        Ok(document)
    }
}

/// A table of settings, each with its value, in their order.
fn table<'a>(settings: impl Iterator<Item = (String, &'static Setting, &'a String)>) -> Value {
    let values = settings.map(|(name, of, value)| (name, toml_value(of.kind, value)));
    Value::Table(values.collect())
}

fn fixed_settings(settings: &[(&'static Setting, String)]) -> Value {
    let settings = settings.iter();
    table(settings.map(|(setting, value)| (setting.name.to_owned(), *setting, value)))
}

/// A canonical value in the usual TOML form: numbers and flags without quotes.
fn toml_value(kind: ValueKind, text: &str) -> Value {
    match kind {
        ValueKind::Count | ValueKind::Rate => text.parse().map(Value::Integer).ok(),
        ValueKind::Flag => text.parse().map(Value::Boolean).ok(),
        _ => None,
    }
    .unwrap_or_else(|| Value::String(text.to_owned()))
}
