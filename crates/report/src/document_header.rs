//! Fields of every JSON document and its rows: versions, and the levels of a cell.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iolab_workload::escape_control::escape_control;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

/// Version of the schemas: it rises where a name vanishes or changes its meaning, not where one is added.
pub(crate) const SCHEMA: u32 = 1;
/// What a level of a row is.
pub(crate) const LEVEL: &str = "level of a factor of the experiment, as it is written: `4KiB`";
/// Version of iolab.
pub(crate) const IOLAB_VERSION: &str = env!("CARGO_PKG_VERSION");

/// `level_FACTOR`: the level of each factor of a cell, as it is written.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Levels(BTreeMap<String, String>);

impl Levels {
    pub(crate) fn of(factors: &[String], levels: &[String]) -> Self {
        let level = |(factor, level): (&String, &String)| {
            let name = format!("level_{}", escape_control(factor));
            (name, escape_control(level).into_owned())
        };
        Self(factors.iter().zip(levels).map(level).collect())
    }
}

impl JsonSchema for Levels {
    fn schema_name() -> Cow<'static, str> {
        "Levels".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let level = json!({"type": "string", "description": LEVEL});
        schemars::json_schema!({"type": "object", "patternProperties": {"^level_": level}})
    }
}
