//! How two sides differ besides what is compared.

use std::borrow::Cow;

use iolab_workload::settings::{Setting, Value};

use crate::imbalance::Disturber;

/// A difference of the sides besides what is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What differs.
    pub what: DiffersIn,
    /// The base's value.
    pub base: SideValue,
    /// The new side's value.
    pub new: SideValue,
}

/// What two sides differ in.
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
    /// A disturbance.
    Disturbance(Disturber),
    /// The groups of workers.
    Groups,
    /// A setting.
    Setting {
        /// The group that it is a setting of; `None` where there are no groups.
        group: Option<String>,
        /// The setting.
        setting: &'static Setting,
    },
}

impl DiffersIn {
    /// Its name in exports: a key of the environment, a column.
    pub fn key(&self) -> Cow<'_, str> {
        match self {
            Self::Experiment => "experiment".into(),
            Self::Target => "target".into(),
            Self::TargetKind => "target_kind".into(),
            Self::ToolVersion => "tool_version".into(),
            Self::Fact(key) => key.into(),
            Self::Disturbance(by) => by.name().into(),
            Self::Groups => "groups".into(),
            Self::Setting { group, setting } => of_group(group.as_deref(), setting.column),
        }
    }

    /// The same, but of a setting the name that `--set` takes.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Setting { group, setting } => of_group(group.as_deref(), setting.name),
            other => other.key(),
        }
    }
}

/// A setting of a group: `log.bs`.
fn of_group(group: Option<&str>, name: &'static str) -> Cow<'static, str> {
    match group {
        None => name.into(),
        Some(group) => [group, ".", name].concat().into(),
    }
}

/// What a side has.
#[derive(Debug, Clone, PartialEq)]
pub enum SideValue {
    /// This, as in exports.
    Known(String),
    /// This value of a setting.
    Set(&'static Setting, Value),
    /// This much of a disturbance: the median over the cells.
    Disturbed(Disturber, f64),
    /// It is not known.
    Unknown,
    /// Another value in each cell.
    Various,
}
