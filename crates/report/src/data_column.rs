//! Columns of rows for other programs: name, type, meaning, the function that gives the value, and the columns
//! that all rows have.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::notation::clean;
use crate::rows::{Format, RowWriter, text};
use iolab_analysis::analysed_run::RunAnswer;
use iolab_analysis::analysis::{LatencySummary, Response};
use iolab_analysis::fitness::Answer;
use iolab_analysis::runs::RunName;
use iolab_analysis::trial_values::distinct;
use iolab_record::column::{Access, Column as StoredColumn};
use iolab_record::{Cell, RunRecord, TargetKind, exported_settings};
use iolab_workload::escape_control::escape_control;
use iolab_workload::group::ALL;
use iolab_workload::settings::{Setting, ValueKind};
use iolab_workload::table;

/// A column of rows that are computed from an `R`.
pub(crate) struct DataColumn<'c, R> {
    name: String,
    doc: String,
    /// The JSON Schema of its values.
    schema: Map<String, Value>,
    /// Whether no value is `null`.
    is_known: bool,
    value: Box<dyn Fn(&R) -> Value + 'c>,
    /// The rows that have the column; `None` for all.
    is_of: Option<fn(&R) -> bool>,
}

impl<'c, R: 'c> DataColumn<'c, R> {
    fn new(
        name: &str,
        doc: &str,
        json_type: &str,
        value: impl Fn(&R) -> Option<Value> + 'c,
    ) -> Self {
        let schema = [("type".to_owned(), Value::from(json_type))];
        Self {
            name: name.to_owned(),
            doc: doc.to_owned(),
            schema: Map::from_iter(schema),
            is_known: false,
            value: Box::new(move |row| value(row).unwrap_or_default()),
            is_of: None,
        }
    }

    /// A column of text, with unsafe characters made visible.
    pub(crate) fn text<T: AsRef<str>>(
        name: &str,
        doc: &str,
        value: impl Fn(&R) -> Option<T> + 'c,
    ) -> Self {
        Self::new(name, doc, "string", move |row| {
            let text = value(row)?;
            Some(clean(text.as_ref()).into())
        })
    }

    /// A column of numbers.
    pub(crate) fn number(name: &str, doc: &str, value: impl Fn(&R) -> Option<f64> + 'c) -> Self {
        Self::new(name, doc, "number", move |row| value(row).map(Value::from))
    }

    /// A column of whole numbers.
    pub(crate) fn whole<N: TryInto<i64>>(
        name: &str,
        doc: &str,
        value: impl Fn(&R) -> Option<N> + 'c,
    ) -> Self {
        Self::new(name, doc, "integer", move |row| {
            let number: i64 = value(row)?.try_into().ok()?;
            Some(number.into())
        })
    }

    /// A column of a run file, with its type and meaning.
    pub(crate) fn stored<T>(column: &'static StoredColumn<T>, of: fn(&R) -> &T) -> Self {
        Self::like(column.name, column, move |row| {
            Some(column_value(column, of(row)))
        })
    }

    /// A column with the type and meaning of a column of a run file.
    pub(crate) fn like<T>(
        name: &str,
        column: &'static StoredColumn<T>,
        value: impl Fn(&R) -> Option<Value> + 'c,
    ) -> Self {
        let json_type = match &column.access {
            Access::Number(..) => "integer",
            Access::Real(..) => "number",
            Access::Flag(..) => "boolean",
            Access::Text(..) | Access::Bytes(..) => "string",
            Access::Setting(setting, ..) => return Self::setting(setting, value),
        };
        match column.words {
            [] => Self::new(name, column.doc, json_type, value),
            words => Self::new(name, column.doc, json_type, value).one_of(words),
        }
    }

    /// A column of a setting, with values as in exports.
    pub(crate) fn setting(setting: &Setting, value: impl Fn(&R) -> Option<Value> + 'c) -> Self {
        let json_type = match setting.kind {
            ValueKind::Size | ValueKind::Count | ValueKind::Time => "integer",
            ValueKind::Rate => "number",
            ValueKind::Flag => "boolean",
            ValueKind::Word | ValueKind::Path | ValueKind::List => "string",
        };
        // The name of the column carries the unit.
        Self::new(
            setting.column,
            setting.doc,
            json_type,
            move |row| match value(row)? {
                Value::String(text) => Some(clean(&text).into()),
                other => Some(other),
            },
        )
    }

    /// A column of objects that this schema describes.
    pub(crate) fn objects(
        name: &str,
        doc: &str,
        items: Value,
        value: impl Fn(&R) -> Value + 'c,
    ) -> Self {
        let mut column = Self::new(name, doc, "array", move |row| Some(value(row)));
        column.schema.insert("items".to_owned(), items);
        column
    }

    /// Limits the values of the column to these words.
    pub(crate) fn one_of(mut self, words: &[&str]) -> Self {
        self.schema.insert("enum".to_owned(), json!(words));
        self
    }

    /// States that every row has a value.
    pub(crate) fn known(mut self) -> Self {
        self.is_known = true;
        self
    }

    /// Limits the column to these rows.
    pub(crate) fn only_of(mut self, rows: fn(&R) -> bool) -> Self {
        self.is_of = Some(rows);
        self
    }

    /// The column's name, and its value in a row.
    pub(crate) fn field(&self, row: &R) -> (String, Value) {
        (self.name.clone(), (self.value)(row))
    }

    /// Whether some rows have the column.
    fn is_of_any<'r>(&self, mut rows: impl Iterator<Item = &'r R>) -> bool
    where
        R: 'r,
    {
        self.is_of.is_none_or(|is_of| rows.any(is_of))
    }

    /// The column's name, whether all rows have it, and the JSON Schema of its values with their meaning.
    pub(crate) fn described(&self) -> Described {
        let mut schema = self.schema.clone();
        if !self.is_known {
            let json_type = schema.get("type").cloned().unwrap_or_default();
            schema.insert("type".to_owned(), json!([json_type, "null"]));
            if let Some(Value::Array(words)) = schema.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        schema.insert("description".to_owned(), self.doc.clone().into());
        (
            self.name.clone(),
            self.is_of.is_none(),
            Value::Object(schema),
        )
    }
}

/// A column in a schema: see [`DataColumn::described`].
type Described = (String, bool, Value);

/// A row of a run, with its cell, and the number of its group from 1, or 0 for the whole cell.
pub(crate) type PlacedRow<'a, R> = (Option<&'a Cell>, u32, R);

/// Rows of several runs with the same columns: the columns of the place of a row, then its own. A value that
/// only some rows have is missing in the others.
pub(crate) struct DataRows<'c, R> {
    /// Values of the places of the rows: their run, and their cell with its settings.
    places: Vec<Vec<Value>>,
    /// The rows, each with the index of its place.
    rows: Vec<(usize, R)>,
    own: Vec<DataColumn<'c, R>>,
    /// Names of all columns.
    names: Vec<String>,
}

impl<'c, R: 'c> DataRows<'c, R> {
    pub(crate) fn new<'a, I: IntoIterator<Item = PlacedRow<'a, R>>>(
        mut own: Vec<DataColumn<'c, R>>,
        runs: impl Iterator<Item = (RunOfRows<'a>, I)>,
    ) -> Self {
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (run, of_run) in runs {
            let mut known = HashMap::new();
            for (cell, group, row) in of_run {
                let place = known.entry((cell.map(|cell| cell.id), group));
                let place = place.or_insert_with(|| {
                    places.push(Place::new(run, cell, group));
                    places.len() - 1
                });
                rows.push((*place, row));
            }
        }
        let factors = places
            .iter()
            .flat_map(|place| &place.record.experiment.factors);
        let mut of_place = columns(&distinct(factors));
        of_place.retain(|column| column.is_of_any(places.iter()));
        own.retain(|column| column.is_of_any(rows.iter().map(|(_, row)| row)));
        let names = of_place.iter().map(|column| &column.name);
        let names = names.chain(own.iter().map(|column| &column.name)).cloned();
        let values = |place| of_place.iter().map(move |column| (column.value)(place));
        let values = places.iter().map(|place| values(place).collect());
        Self {
            names: names.collect(),
            places: values.collect(),
            rows,
            own,
        }
    }

    /// Names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The values of each row, in the order of the names.
    pub(crate) fn values(&self) -> impl Iterator<Item = Vec<Cow<'_, Value>>> {
        self.rows.iter().map(|(place, row)| {
            let own = self
                .own
                .iter()
                .map(|column| Cow::Owned((column.value)(row)));
            let of_place = self.places[*place].iter().map(Cow::Borrowed);
            of_place.chain(own).collect()
        })
    }

    /// Writes all rows.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub(crate) fn write(&self, format: Format, to: &mut dyn Write) -> io::Result<()> {
        let mut writer = RowWriter::new(to, format, &self.names)?;
        for values in self.values() {
            writer.row(values)?;
        }
        writer.finish()
    }
}

/// The schema of an object with these columns, and with levels of factors if it `has_levels`. Rows of several runs have the same
/// columns; a value that only some rows have is `null` in the others.
pub(crate) fn row_schema(columns: impl Iterator<Item = Described>, has_levels: bool) -> Value {
    let level = json!({"type": ["string", "null"], "description": LEVEL});
    let levels = has_levels.then(|| ("^level_".to_owned(), level));
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, is_of_all, schema) in columns {
        required.extend(is_of_all.then(|| name.clone()));
        properties.insert(name, schema);
    }
    json!({
        "type": "object",
        "patternProperties": Map::from_iter(levels),
        "properties": properties,
        "required": required,
    })
}

/// The value of a column of a run file, as in exports.
pub(crate) fn column_value<T>(column: &StoredColumn<T>, row: &T) -> Value {
    match &column.access {
        Access::Number(get, _) => get(row).into(),
        Access::Real(get, _) => get(row).into(),
        Access::Flag(get, _) => get(row).into(),
        Access::Text(get, _) => {
            let value = get(row);
            value.map(|text| clean(&text)).into()
        }
        Access::Setting(setting, get, _) => setting.value(get(row)).into(),
        Access::Bytes(..) => Value::Null,
    }
}

/// Columns of the quantiles of times.
pub(crate) fn quantiles<'a, R: 'a>(
    times: &str,
    what: &str,
    latency: fn(&R) -> Option<LatencySummary>,
) -> impl Iterator<Item = DataColumn<'a, R>> {
    Response::shown_latencies().map(move |of| {
        let (end, over_trials) = match of {
            Response::Max => ("", "greatest of all trials"),
            _ => ("_median", "median over the trials"),
        };
        let name = of.column_of(times) + end;
        let doc = of.to_string().replacen("latency", what, 1);
        let doc = format!("{doc}, ns; {over_trials}");
        DataColumn::number(&name, &doc, move |row: &R| latency(row)?[of])
    })
}

/// Version of the schemas: it rises where a name vanishes or changes its meaning, not where one is added.
pub const SCHEMA: u32 = 1;

/// Description of the level columns of a row.
const LEVEL: &str = "level of a factor of the experiment, as it is written: `4KiB`";

/// Version of iolab.
pub const IOLAB_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A run with its answer.
pub type Exported<'a> = (RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// A run with its answer, under its name.
pub(crate) type RunOfRows<'a> = (&'a RunName, &'a RunRecord, Option<&'a RunAnswer>);

/// A column about the run of a row: its name, its meaning, and the value.
type RunColumn = (&'static str, &'static str, fn(&RunName) -> Option<&str>);

/// The columns that identify the run of a row.
const RUN: [RunColumn; 4] = table! {
    ("run", "the run: 16 hexadecimal digits, the same in every copy of its file", |run| Some(&run.id));
    ("file", "its file, as it was named", |run| Some(&run.file));
    ("host", "the host that planned it, where that is known", |run| run.host.as_deref());
    ("run_started_utc", "when it began: RFC 3339, UTC", |run| Some(&run.started_utc));
};

/// Names of the columns that identify the run of a row.
pub fn run_columns() -> impl Iterator<Item = String> {
    RUN.iter().map(|(name, ..)| (*name).to_owned())
}

/// Values of these columns.
pub fn run_values(run: &RunName) -> impl Iterator<Item = Value> {
    RUN.iter().map(|(.., value)| value(run).map(text).into())
}

/// The name of a factor's column.
pub fn level_column(factor: &str) -> String {
    format!("level_{}", escape_control(factor))
}

/// Source of the columns of a place.
struct Place<'a> {
    name: &'a RunName,
    answer: Option<&'a RunAnswer>,
    record: &'a RunRecord,
    /// The cell; in the row of a group with the settings of that group.
    cell: Option<Cow<'a, Cell>>,
    /// The group, or [`ALL`] for the whole cell; `None` if the cell has no groups.
    group: Option<&'a str>,
    /// Names of the targets, separated by commas.
    targets: String,
    /// Kinds of these targets, each once.
    kinds: String,
}

impl<'a> Place<'a> {
    /// The place of a group of a cell, by the number of the group from 1, or of the whole cell.
    fn new((name, record, answer): RunOfRows<'a>, cell: Option<&'a Cell>, group: u32) -> Self {
        let groups = cell.map_or(&[][..], |cell| &cell.spec.groups);
        let group = groups.get((group as usize).wrapping_sub(1));
        let numbers = match (group, cell) {
            (Some(group), _) => vec![record.target_number(group.spec.target.as_ref())],
            (None, Some(cell)) => record.targets_of(cell),
            (None, None) => vec![0],
        };
        let (targets, kinds) = named_targets(record, &numbers);
        let of_group = group.zip(cell).map(|(group, cell)| Cell {
            spec: group.spec.clone(),
            ..cell.clone()
        });
        Self {
            name,
            answer,
            record,
            cell: of_group.map(Cow::Owned).or(cell.map(Cow::Borrowed)),
            group: (!groups.is_empty()).then(|| group.map_or(ALL, |group| &group.name)),
            targets,
            kinds,
        }
    }

    /// The level of a factor; `None` if the cell has none.
    fn level(&self, factor: &str) -> Option<&str> {
        let factors = &self.record.experiment.factors;
        let place = factors.iter().position(|own| own == factor)?;
        Some(self.cell.as_ref()?.levels.get(place)?)
    }
}

/// The schema of rows that consist of a place and columns of their own.
pub(super) fn schema<R>(own: &[DataColumn<'_, R>]) -> Value {
    let of_place = columns(&[]);
    let of_place = of_place.iter().map(DataColumn::described);
    row_schema(of_place.chain(own.iter().map(DataColumn::described)), true)
}

/// The columns of places, with the levels of these factors.
fn columns<'c, 'p: 'c>(factors: &[&'c String]) -> Vec<DataColumn<'c, Place<'p>>> {
    type Column<'c, 'p> = DataColumn<'c, Place<'p>>;
    let run = RUN.map(|(name, doc, value)| {
        let column = Column::text(name, doc, move |place| value(place.name).map(str::to_owned));
        match name {
            "host" => column,
            _ => column.known(),
        }
    });
    let mut columns = Vec::from(run);
    columns.extend(table! {
        Column::text("answer", "what the run answers to its question; of a search `yes` where it found the limit",
            |place| place.answer.map(|answer| answer.answer().name())).one_of(Answer::NAMES).only_of(|place| place.answer.is_some());
        Column::text("experiment", "name of the experiment", |place| Some(place.record.experiment.name.clone())).known();
        Column::text("target", "the targets that the trials read or wrote, with commas between", |place| Some(place.targets.clone())).known();
        Column::text("target_kind", "what kinds these are of, each once", |place| Some(place.kinds.clone())).known();
        Column::whole("cell", "id of the cell in its run file, the same in `table`, `export` and `claims`", |place| place.cell.as_ref().map(|cell| cell.id)).known();
    });
    columns.extend(factors.iter().map(|factor| {
        let level = |place: &Place<'p>| place.level(factor).map(str::to_owned);
        Column::text(&level_column(factor), LEVEL, level)
    }));
    columns.extend(table! {
        Column::text("group", "group of workers that the row is of; `all` for the whole trial", |place| place.group.map(str::to_owned))
            .only_of(|place| place.group.is_some());
    });
    columns.extend(exported_settings().into_iter().map(|setting| {
        Column::setting(setting, move |place| {
            Some(place.cell.as_ref()?.value_in_force(setting).into())
        })
    }));
    columns
}

/// Names and kinds of the targets with these numbers, each kind once.
fn named_targets(record: &RunRecord, numbers: &[usize]) -> (String, String) {
    let all: Vec<(&str, TargetKind)> = record.targets().zip(record.target_kinds()).collect();
    let named = numbers.iter().filter_map(|number| all.get(*number));
    let (targets, kinds): (Vec<&str>, Vec<&str>) =
        named.map(|(target, kind)| (target, kind.name())).unzip();
    (targets.join(", "), distinct(kinds).join(", "))
}
