//! Writes an experiment as TOML, with every value in canonical form.

use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::Value;

use super::design_entries::DESIGN;
use super::{Combination, Design, Experiment, ExperimentGroup, Factor};
use iolab_workload::settings::{Setting, ValueKind};

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
        let given = DESIGN
            .iter()
            .filter_map(|entry| Some((entry.name, entry.get(self)?)));
        serializer.collect_map(given)
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
