//! Differences of two sides apart from what is compared.

use std::borrow::Cow;

use iolab_workload::settings::{Setting, Value};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// A difference of the sides apart from what is compared.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Name of the difference: a key of the environment, or the column of a setting.
    #[schemars(with = "String")]
    pub what: DiffersIn,
    /// The base's value; `null` where it is not known.
    #[schemars(with = "Option<String>")]
    pub base: SideValue,
    /// The new side's value; `null` where it is not known.
    #[schemars(with = "Option<String>")]
    pub new: SideValue,
}

/// Fact or setting in which two sides differ.
#[derive(Debug, Clone, PartialEq)]
pub enum DiffersIn {
    /// The experiment.
    Experiment,
    /// The target.
    Target,
    /// The kind of target.
    TargetKind,
    /// The version of iolab.
    ToolVersion,
    /// A fact of the environment with this key.
    Fact(String),
    /// The groups of workers.
    Groups,
    /// A setting.
    Setting {
        /// The group of the setting; `None` without groups.
        group: Option<String>,
        /// The setting.
        setting: &'static Setting,
    },
}

impl DiffersIn {
    /// Name of the difference in exports: a key of the environment, or a column.
    pub fn key(&self) -> Cow<'_, str> {
        match self {
            Self::Experiment => "experiment".into(),
            Self::Target => "target".into(),
            Self::TargetKind => "target_kind".into(),
            Self::ToolVersion => "tool_version".into(),
            Self::Fact(key) => key.into(),
            Self::Groups => "groups".into(),
            Self::Setting { group, setting } => of_group(group.as_deref(), setting.column),
        }
    }

    /// Key of the difference, but for a setting the name that `--set` takes.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Setting { group, setting } => of_group(group.as_deref(), setting.name),
            other => other.key(),
        }
    }
}

impl Serialize for DiffersIn {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.key())
    }
}

/// A setting of a group: `log.bs`.
fn of_group(group: Option<&str>, name: &'static str) -> Cow<'static, str> {
    match group {
        None => name.into(),
        Some(group) => [group, ".", name].concat().into(),
    }
}

/// Value of a side.
#[derive(Debug, Clone, PartialEq)]
pub enum SideValue {
    /// Known text, as in exports.
    Known(String),
    /// Value of a setting.
    Set(&'static Setting, Value),
    /// The value is not known.
    Unknown,
    /// Each cell has another value.
    Various,
}

impl Serialize for SideValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(text) => to.serialize_str(text),
            Self::Set(setting, value) => to.serialize_str(&value.text(setting.kind)),
            Self::Unknown => to.serialize_none(),
            Self::Various => to.serialize_str("various, by cell"),
        }
    }
}
