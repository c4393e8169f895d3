//! Writes an experiment as TOML, with every value in canonical form.

use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::Value;

use super::{Combination, Design, Experiment, ExperimentGroup, Factor, WarmUp};
use crate::precondition::Precondition;
use iolab_workload::settings::{Setting, ValueKind};
use iolab_workload::units::{format_duration, format_size};

impl Serialize for Experiment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("question", &self.question)?;
        let response = match &self.response_group {
            Some(group) => format!("{group}.{}", self.response.name()),
            None => self.response.name().to_owned(),
        };
        map.serialize_entry("response", &response)?;
        if let Some(standard) = self.standard {
            map.serialize_entry("standard", standard.name())?;
        }
        if let Some(levels) = &self.seek {
            map.serialize_entry("seek", &levels.to_string())?;
        }
        if let Some(levels) = &self.hold {
            map.serialize_entry("hold", &levels.to_string())?;
        }
        map.serialize_entry("factors", &Factors(&self.factors))?;
        map.serialize_entry("settings", &Settings(&self.settings))?;
        map.serialize_entry("design", &self.design)?;
        if !self.groups.is_empty() {
            map.serialize_entry("group", &Groups(&self.groups))?;
        }
        if let Some(refined) = &self.refined {
            map.serialize_entry("refined", refined)?;
        }
        if let Some(inquiry) = &self.inquiry {
            map.serialize_entry("inquiry", inquiry)?;
        }
        for (name, combinations) in [("only", &self.only), ("track", &self.track)] {
            if !combinations.is_empty() {
                let rows: Vec<CombinationRow<'_>> =
                    combinations.iter().map(CombinationRow).collect();
                map.serialize_entry(name, &rows)?;
            }
        }
        map.end()
    }
}

impl Serialize for Design {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            trials_min,
            trials_max,
            precision,
            budget,
            refine,
            settle,
            precondition,
            pilot,
            warmup,
            writes,
            halves,
        } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("trials_min", trials_min)?;
        map.serialize_entry("trials_max", trials_max)?;
        map.serialize_entry("precision", precision)?;
        map.serialize_entry("budget", &format_duration(*budget))?;
        if *refine > 0 {
            map.serialize_entry("refine", refine)?;
        }
        if !settle.is_zero() {
            map.serialize_entry("settle", &format_duration(*settle))?;
        }
        if *precondition != Precondition::default() {
            map.serialize_entry("precondition", &precondition.to_string())?;
        }
        if let Some(pilot) = pilot {
            map.serialize_entry("pilot", &pilot)?;
        }
        if *warmup != WarmUp::default() {
            map.serialize_entry("warmup", warmup.name())?;
        }
        if let Some(bytes) = writes {
            map.serialize_entry("writes", &format_size(*bytes))?;
        }
        if *halves {
            map.serialize_entry("halves", halves)?;
        }
        map.end()
    }
}

struct Factors<'a>(&'a [Factor]);

impl Serialize for Factors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|factor| {
            let levels: Vec<Value> = factor
                .levels
                .iter()
                .map(|level| toml_value(factor.of.setting.kind, level))
                .collect();
            (factor.of.to_string(), levels)
        }))
    }
}

struct Settings<'a>(&'a [(&'static Setting, String)]);

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|(setting, value)| (setting.name, toml_value(setting.kind, value))),
        )
    }
}

struct CombinationRow<'a>(&'a Combination);

impl Serialize for CombinationRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let levels = self.0.iter();
        serializer.collect_map(
            levels.map(|(of, level)| (of.to_string(), toml_value(of.setting.kind, level))),
        )
    }
}

struct Groups<'a>(&'a [ExperimentGroup]);

impl Serialize for Groups<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let groups = self.0.iter();
        serializer.collect_map(groups.map(|group| (&group.name, Settings(&group.settings))))
    }
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
